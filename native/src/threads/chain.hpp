// Chain of stages. The tasks of one stage run in parallel. Each stage starts after all previous stages.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

namespace halocline {

class Chain {
 public:
  // Add tasks to the current stage, or begin a new stage.
  void add(size_t tasks, bool new_stage) {
    const size_t begin = new_stage || after_.empty() ? after_.size() : after_.back();
    after_.insert(after_.end(), tasks, begin);
  }
  size_t size() const { return after_.size(); }

  // Reset the chain. One thread calls it while no other thread uses the chain.
  void start() {
    next_.store(0, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
  }
  bool complete() const { return done_.load(std::memory_order_acquire) == after_.size(); }

  // Take the next task, wait for the previous stages and call task(number). Return false if all tasks are
  // taken. The wait ends, since running threads have taken all tasks of the previous stages.
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
  std::vector<size_t> after_;  // per task: number of tasks that must be complete before it
  alignas(64) std::atomic<size_t> next_{0};
  alignas(64) std::atomic<size_t> done_{0};
};

}  // namespace halocline
