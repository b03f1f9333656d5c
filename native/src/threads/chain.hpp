// Tasks in stages: those of one stage run side by side, the next stage starts when all before are done.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace halocline {

class Chain {
 public:
  // Adds tasks to the present stage, or begins a new one.
  void add(size_t tasks, bool new_stage) {
    const size_t begin = new_stage || after_.empty() ? after_.size() : after_.back();
    after_.insert(after_.end(), tasks, begin);
  }
  size_t size() const { return after_.size(); }

  // One thread, while no other works on this chain.
  void start() {
    next_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
  }
  bool complete() const { return done_.load(std::memory_order_acquire) == after_.size(); }

  // Takes the next task, waits for the stages before it and calls task(number); false where all tasks are
  // taken. The stages before are with threads that run, so the wait ends.
  template <typename Task, typename Idle>
  bool take(Task&& task, Idle&& idle) {
    if (next_.load(std::memory_order_relaxed) >= after_.size()) return false;
    const size_t number = next_.fetch_add(1, std::memory_order_relaxed);
    if (number >= after_.size()) return false;
    while (done_.load(std::memory_order_acquire) < after_[number]) idle();
    task(number);
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

 private:
  std::vector<size_t> after_;  // per task: how many must be done before
  alignas(64) std::atomic<size_t> next_{0};
  alignas(64) std::atomic<size_t> done_{0};
};

}  // namespace halocline
