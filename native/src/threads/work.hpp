// Work items of a sweep: assignment to threads, and conditions under which an item may run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace halocline {

// Dependencies of an item.
struct Condition {
  uint32_t part;       // number of the subdomain
  uint32_t needs = 0;  // bit m: the item waits for receive m of the part
  bool rims = false;   // the item waits for the rims

  auto operator<=>(const Condition&) const = default;
};

// Assignment of items to threads.
enum class Schedule {
  kStatic,   // the owner of the item
  kDynamic,  // the next free thread; items run in one order
  kGuided,   // the owner, or a thread that has completed its own items
};

// Items with equal conditions form a class. Each thread has one queue per class, and runs the items of its
// own queues in order. In a guided schedule, it then takes items from the far end of the queues of other
// threads. In a dynamic schedule, all threads share the queues of the first thread.
class Work {
 public:
  // owners[n]: thread of item n; conditions[n]: its condition. With `backward`, each queue runs in descending
  // order.
  Work(int threads, const std::vector<int>& owners, const std::vector<Condition>& conditions, bool backward,
       Schedule schedule);

  // Start an execution. Only the first thread calls it.
  void start() { set_ ^= 1; }
  // Fill the queues of a thread for the next execution. Every thread calls it once per execution.
  void refill(int thread);

  enum class Outcome { kItem, kNoneReady, kNoneLeft };
  // Take an item whose condition satisfies ready(condition).
  template <typename Ready>
  Outcome take(int thread, Ready&& ready, uint32_t& item) {
    uint32_t position = 0;
    if (schedule_ == Schedule::kDynamic) thread = 0;
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (!queue(kind, thread).empty() && ready(kinds_[kind]) &&
          queue(kind, thread).pop(!backward_, position)) {
        item = items_[position];
        return Outcome::kItem;
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
        return Outcome::kItem;
      }
    }
    return left ? Outcome::kNoneReady : Outcome::kNoneLeft;
  }

 private:
  // Items [front, back) of items_. Both ends are in one word, so that they change atomically.
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
  std::vector<uint32_t> items_;               // ordered by class, then thread
  std::vector<uint64_t> full_;                // ends of each full queue
  std::array<std::vector<Queue>, 2> queues_;  // one set in use, one being filled
  size_t set_ = 0;
};

}  // namespace halocline
