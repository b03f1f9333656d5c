#include "threads/team.hpp"

#include <omp.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cfenv>
#include <ctime>
#include <stdexcept>
#include <system_error>
#include <utility>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace halocline {

namespace {

bool flushes_to_zero() {
#if defined(__x86_64__)
  constexpr unsigned kDenormalsAreZero = 1u << 6, kFlushToZero = 1u << 15;
  return (_mm_getcsr() & (kDenormalsAreZero | kFlushToZero)) != 0;
#elif defined(__aarch64__)
  constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return (control & kFlushToZero) != 0;
#else
  return false;
#endif
}

}  // namespace

void Backoff::sleep(uint32_t times) {
  constexpr uint32_t kStep = 2000, kMost = 50000;  // nanoseconds
  const timespec moment{0, static_cast<long>(std::min(times * uint64_t{kStep}, uint64_t{kMost}))};
  nanosleep(&moment, nullptr);
}

PunctualSleep::PunctualSleep() : slack_(prctl(PR_GET_TIMERSLACK)) { prctl(PR_SET_TIMERSLACK, 1UL); }

PunctualSleep::~PunctualSleep() { prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_)); }

Team::Team(int threads, uint32_t spins)
    : size_(threads), spins_(spins), arrivals_(new Arrival[static_cast<size_t>(threads)]) {}

uint32_t Team::await(uint32_t previous) const {
  Backoff wait = backoff();
  for (;;) {
    const uint32_t current = published_.load(std::memory_order_acquire);
    if (current != previous) return current;
    wait();
  }
}

void Team::record(std::exception_ptr failure) noexcept {
  const std::lock_guard lock(failing_);
  if (!failure_) failure_ = std::move(failure);
  failed_.store(true, std::memory_order_release);
}

std::exception_ptr Team::take_failure() {
  const std::lock_guard lock(failing_);
  failed_.store(false, std::memory_order_relaxed);
  return std::exchange(failure_, nullptr);
}

void end_threads_before_forks() {
  const int status = pthread_atfork([] { omp_pause_resource_all(omp_pause_soft); }, nullptr, nullptr);
  if (status != 0) throw std::system_error(status, std::generic_category(), "pthread_atfork");
}

void check_arithmetic(int thread) {
  if (flushes_to_zero()) {
    throw std::runtime_error(
        "thread " + std::to_string(thread) +
        " flushes subnormal numbers to zero, which changes results. A loaded library was built with "
        "-ffast-math. Load this library after halocline, or build it without this option");
  }
  if (std::fegetround() != FE_TONEAREST) {
    throw std::runtime_error("thread " + std::to_string(thread) +
                             " does not round to nearest, which changes results");
  }
}

}  // namespace halocline
