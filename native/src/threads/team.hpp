// Threads of a run and their synchronisation.
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

// Waiting policy: spin, then sleep for increasing times. Spinning is fast if each thread has a core. Sleeping
// frees the core for other threads. sched_yield does not free the core: Linux lets the caller continue until
// its time slice ends. A futex is no alternative: if another process occupies the core of a woken thread, the
// thread waits for the next timer tick. The plan sets the number of spins.
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

// Guard that makes sleeps of the calling thread end on time, and not tens of microseconds late.
class PunctualSleep {
 public:
  PunctualSleep();
  ~PunctualSleep();
  PunctualSleep(const PunctualSleep&) = delete;
  PunctualSleep& operator=(const PunctualSleep&) = delete;

 private:
  int slack_;
};

// The first thread publishes work, and all threads execute the work and join. The join is a tree whose root
// is the first thread. Only the first thread continues between the join and the next publication.
class Team {
 public:
  // A waiting thread spins the given number of times before it sleeps.
  Team(int threads, uint32_t spins);

  int size() const { return size_; }
  Backoff backoff() const { return Backoff(spins_); }

  // Release the other threads to the next piece of work. Only the first thread calls it.
  void publish() { published_.fetch_add(1, std::memory_order_release); }
  // Wait for the piece of work after number `previous` and return its number. All other threads call it.
  uint32_t await(uint32_t previous) const;
  // Wait for the child threads in the tree and call merge(thread) for each of them. All threads call this
  // function at the end of piece of work `number`. The first thread returns after all threads have joined.
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

  // Run a task. An exception is stored for take_failure(). The run continues until all threads can stop.
  template <typename Task>
  void attempt(Task&& task) noexcept {
    try {
      task();
    } catch (...) {
      record(std::current_exception());
    }
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Return the first failure and clear it. Only the first thread calls it, after a join.
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

// Register a handler that ends the OpenMP threads of the forking thread before each fork. Otherwise, the
// OpenMP library in the child process would wait forever for threads that exist only in the parent. The next
// parallel region of either process starts new threads.
void end_threads_before_forks();

// Throw std::runtime_error if the calling thread flushes subnormal numbers or does not round to nearest.
void check_arithmetic(int thread);

}  // namespace halocline
