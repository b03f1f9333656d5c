#include "engine/requests.hpp"

#include <atomic>

namespace halocline {

namespace {

std::atomic<bool> stop_everything{false};
std::atomic<int> last_signal{0};
std::atomic<int> stopping{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "signal handlers need lock-free flags");

}  // namespace

void request_stop() noexcept { stop_everything.store(true, std::memory_order_relaxed); }
void stop_on_signal(int number) noexcept {
  stopping.store(number, std::memory_order_relaxed);
  request_stop();
}
int stopping_signal() noexcept { return stopping.load(std::memory_order_relaxed); }
bool stop_requested() noexcept { return stop_everything.load(std::memory_order_relaxed); }
bool forget_stop() noexcept { return stop_everything.exchange(false, std::memory_order_relaxed); }
void note_signal(int number) noexcept { last_signal.store(number, std::memory_order_relaxed); }
int noted_signal() noexcept { return last_signal.load(std::memory_order_relaxed); }
void forget_signal() noexcept { last_signal.store(0, std::memory_order_relaxed); }

}  // namespace halocline
