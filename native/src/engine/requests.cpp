#include "engine/requests.hpp"

#include <atomic>

namespace halocline {

namespace {

std::atomic<int> stop{0};      // see stop_requested
std::atomic<int> followed{0};  // last request that was followed or cleared, in the encoding of `stop`
std::atomic<int> last_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "signal handlers need lock-free flags");

}  // namespace

void request_stop() noexcept { stop.store(1, std::memory_order_relaxed); }
void stop_on_signal(int number) noexcept { stop.store(1 + number, std::memory_order_relaxed); }
int stop_requested() noexcept { return stop.load(std::memory_order_relaxed); }
void follow_stop(int request) noexcept {
  stop.store(0, std::memory_order_relaxed);
  followed.store(request, std::memory_order_relaxed);
}
bool forget_stop() noexcept {
  const int request = stop.exchange(0, std::memory_order_relaxed);
  if (request != 0) followed.store(request, std::memory_order_relaxed);
  return request != 0;
}
int stopping_signal() noexcept {
  const int request = followed.load(std::memory_order_relaxed);
  return request > 1 ? request - 1 : 0;
}
void note_signal(int number) noexcept { last_signal.store(number, std::memory_order_relaxed); }
int noted_signal() noexcept { return last_signal.load(std::memory_order_relaxed); }
void forget_signal() noexcept { last_signal.store(0, std::memory_order_relaxed); }

}  // namespace halocline
