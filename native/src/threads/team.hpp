// The threads of a run: how they wait for each other.
#pragma once

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

// How to wait: spins as long as waits last between threads with a core each, then sleeps, for longer the
// longer it has waited, since the one waited for may be without a core. (sched_yield does not help: Linux
// lets the caller run on until its time slice is over. Nor do futexes: one who is woken by another core
// waits for the next tick where a stranger runs on its own.) How many times to spin is the plan's to say.
class Backoff {
 public:
  explicit Backoff(uint32_t spins) : spins_(spins) {}

  void operator()() {
    if (++calls_ <= spins_) {
      relax();
    } else {
      sleep(calls_ - spins_);
    }
  }
  void reset() { calls_ = 0; }

 private:
  static void sleep(uint32_t times);

  uint32_t spins_;
  uint32_t calls_ = 0;
};

// Lets sleeps of the calling thread end on time, instead of tens of microseconds late, while it lives.
class PunctualSleep {
 public:
  PunctualSleep();
  ~PunctualSleep();
  PunctualSleep(const PunctualSleep&) = delete;
  PunctualSleep& operator=(const PunctualSleep&) = delete;

 private:
  int slack_;
};

// The first thread publishes work, all threads do it and join: a combining tree towards the first
// thread, which alone continues until it publishes again.
class Team {
 public:
  // Who waits spins that many times before it sleeps.
  Team(int threads, uint32_t spins);

  int size() const { return size_; }
  Backoff backoff() const { return Backoff(spins_); }

  // First thread: lets the others go on to the next piece of work.
  void publish() { published_.fetch_add(1, std::memory_order_release); }
  // Others: waits for the piece of work after number `seen`; returns its number.
  uint32_t await(uint32_t seen) const;
  // All threads, at the end of piece of work `number`: waits for the threads below in the tree and
  // calls merge(thread) for each. The first thread returns when all have come.
  template <typename Merge>
  void join(int thread, uint32_t number, Merge&& merge) {
    for (int below = kArity * thread + 1; below <= kArity * thread + kArity && below < size_; ++below) {
      const std::atomic<uint32_t>& arrival = arrivals_[static_cast<size_t>(below)].number;
      for (Backoff wait = backoff(); arrival.load(std::memory_order_acquire) != number; wait()) {
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
  uint32_t spins_;
  alignas(64) std::atomic<uint32_t> published_{0};
  std::unique_ptr<Arrival[]> arrivals_;
  alignas(64) std::atomic<bool> failed_{false};
  std::mutex failing_;
  std::exception_ptr failure_;
};

// Registers a handler that ends the OpenMP threads of a forking thread before each fork. Otherwise the OpenMP
// library would wait forever in the child process for threads that exist only in the parent. The next
// parallel region of either process starts new threads.
void end_threads_before_forks();

// Throws std::runtime_error where the calling thread does not round to nearest with gradual underflow.
void check_arithmetic(int thread);

}  // namespace halocline
