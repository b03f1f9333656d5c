// The threads of a run: how they wait for each other.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

namespace halocline {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits a little longer each time: there may be more threads than cores, and the one waited for may
// be without one.
class Backoff {
 public:
  // Returns how often it was called since the start or reset().
  uint32_t operator()() {
    if (++calls_ <= kSpins) {
      relax();
    } else {
      sched_yield();
    }
    return calls_;
  }
  void reset() { calls_ = 0; }

 private:
  static constexpr uint32_t kSpins = 200;
  uint32_t calls_ = 0;
};

// The first thread publishes work, all threads do it and join: a combining tree towards the first
// thread, which alone continues until it publishes again.
class Team {
 public:
  explicit Team(int threads);

  int size() const { return size_; }

  // First thread: lets the others go on to the next piece of work.
  void publish();
  // Others: waits for the piece of work after number `seen`; returns its number.
  uint32_t await(uint32_t seen) const;
  // All threads, at the end of piece of work `number`: waits for the threads below in the tree and
  // calls merge(thread) for each. The first thread returns when all have come.
  template <typename Merge>
  void join(int thread, uint32_t number, Merge&& merge) {
    for (int below = kArity * thread + 1; below <= kArity * thread + kArity && below < size_; ++below) {
      const std::atomic<uint32_t>& arrival = arrivals_[static_cast<size_t>(below)].number;
      for (Backoff backoff; arrival.load(std::memory_order_acquire) != number; backoff()) {
      }
      merge(below);
    }
    arrivals_[static_cast<size_t>(thread)].number.store(number, std::memory_order_release);
  }
  uint32_t number() const { return published_.load(std::memory_order_relaxed); }

  // Runs a task; what it throws is kept for failure(), and the run goes on until all threads can stop.
  template <typename Task>
  void attempt(Task&& task) noexcept {
    try {
      task();
    } catch (...) {
      record(std::current_exception());
    }
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // First thread, after a join: the first failure, which is then forgotten.
  std::exception_ptr take_failure();

 private:
  static constexpr int kArity = 4;

  struct alignas(64) Arrival {
    std::atomic<uint32_t> number{0};
  };

  void record(std::exception_ptr failure) noexcept;

  int size_;
  alignas(64) std::atomic<uint32_t> published_{0};
  std::unique_ptr<Arrival[]> arrivals_;
  alignas(64) std::atomic<bool> failed_{false};
  std::mutex failing_;
  std::exception_ptr failure_;
};

// Throws std::runtime_error where the calling thread does not round to nearest with gradual underflow.
void check_arithmetic(int thread);

}  // namespace halocline
