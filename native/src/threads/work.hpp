// The work items of a sweep: which thread has which, and when they are ready.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace halocline {

// What must be there before an item can run.
struct Condition {
  uint32_t part;       // the subdomain
  uint32_t needs = 0;  // bit m: receive m of the part
  bool rims = false;   // the boundary conditions that wait for messages

  auto operator<=>(const Condition&) const = default;
};

// Who runs which item.
enum class Schedule {
  kStatic,   // its owner
  kDynamic,  // whoever comes first, in one order
  kGuided,   // its owner, or whoever has run all of its own
};

// Items with one condition form a class. Each thread has a queue per class, takes its own items in order
// and then takes from the far end of the others' queues; of a dynamic schedule all share those of the first.
class Work {
 public:
  // owners[n]: thread of item n; conditions[n]: its condition. With `backward` each queue runs in
  // descending order.
  Work(int threads, const std::vector<int>& owners, const std::vector<Condition>& conditions, bool backward,
       Schedule schedule);

  // First thread, before each execution.
  void start() { set_ ^= 1; }
  // Every thread once in each execution: fills its queues for the next.
  void refill(int thread);

  enum class Found { kItem, kNoneReady, kNoneLeft };
  // Takes an item for a thread whose condition is ready(condition).
  template <typename Ready>
  Found take(int thread, Ready&& ready, uint32_t& item) {
    uint32_t position = 0;
    if (schedule_ == Schedule::kDynamic) thread = 0;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (!queue(kind, thread).empty() && ready(kinds_[kind]) &&
          queue(kind, thread).pop(!backward_, position)) {
        item = items_[position];
        return Found::kItem;
      }
    }
    bool left = false;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (schedule_ == Schedule::kGuided ? !any_left(kind) : queue(kind, thread).empty()) continue;
      if (!ready(kinds_[kind]) || schedule_ != Schedule::kGuided) {
        left = true;
        continue;
      }
      if (pop_others(kind, thread, position)) {
        item = items_[position];
        return Found::kItem;
      }
    }
    return left ? Found::kNoneReady : Found::kNoneLeft;
  }

 private:
  // The items [front, back) of items_, both in one word so that they change together.
  struct alignas(64) Queue {
    std::atomic<uint64_t> ends{0};

    bool empty() const;
    bool pop(bool front, uint32_t& position);
  };

  Queue& queue(size_t kind, int thread) {
    return queues_[set_][kind * static_cast<size_t>(threads_) + static_cast<size_t>(thread)];
  }
  bool any_left(size_t kind);
  bool pop_others(size_t kind, int thread, uint32_t& position);

  int threads_;
  bool backward_;
  Schedule schedule_;
  std::vector<Condition> kinds_;
  std::vector<uint32_t> items_;               // by class, then thread
  std::vector<uint64_t> full_;                // the ends of each queue when it is full
  std::array<std::vector<Queue>, 2> queues_;  // one set in use, one being filled
  size_t set_ = 0;
};

}  // namespace halocline
