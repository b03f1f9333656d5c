#include "threads/work.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace halocline {

namespace {

uint64_t pair(uint32_t front, uint32_t back) { return uint64_t{back} << 32 | front; }
uint32_t front_of(uint64_t ends) { return static_cast<uint32_t>(ends); }
uint32_t back_of(uint64_t ends) { return static_cast<uint32_t>(ends >> 32); }

}  // namespace

bool Work::Queue::empty() const {
  const uint64_t current = ends.load(std::memory_order_relaxed);
  return front_of(current) >= back_of(current);
}

bool Work::Queue::pop(bool front, uint32_t& position) {
  uint64_t current = ends.load(std::memory_order_relaxed);
  while (front_of(current) < back_of(current)) {
    const uint64_t rest =
        front ? pair(front_of(current) + 1, back_of(current)) : pair(front_of(current), back_of(current) - 1);
    if (ends.compare_exchange_weak(current, rest, std::memory_order_relaxed)) {
      position = front ? front_of(current) : back_of(rest);
      return true;
    }
  }
  return false;
}

Work::Work(int threads, const std::vector<int>& owners, const std::vector<Condition>& conditions,
           bool backward, Schedule schedule)
    : threads_(threads), backward_(backward), schedule_(schedule), kinds_(conditions) {
  const auto rank = [](const Condition& c) {
    return std::tuple(c.rims, std::popcount(c.needs), c.part, c.needs);
  };
  std::sort(kinds_.begin(), kinds_.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  kinds_.erase(std::unique(kinds_.begin(), kinds_.end()), kinds_.end());

  const auto wide = static_cast<size_t>(threads);
  std::vector<std::vector<uint32_t>> lists(kinds_.size() * wide);
  for (size_t n = 0; n < conditions.size(); ++n) {
    const auto kind =
        static_cast<size_t>(std::find(kinds_.begin(), kinds_.end(), conditions[n]) - kinds_.begin());
    const auto thread = static_cast<size_t>(schedule == Schedule::kDynamic ? 0 : owners[n]);
    lists[kind * wide + thread].push_back(static_cast<uint32_t>(n));
  }
  for (const auto& list : lists) {
    const auto front = static_cast<uint32_t>(items_.size());
    items_.insert(items_.end(), list.begin(), list.end());
    full_.push_back(pair(front, static_cast<uint32_t>(items_.size())));
  }
  for (auto& queues : queues_) {
    queues = std::vector<Queue>(full_.size());
    for (size_t n = 0; n < full_.size(); ++n) queues[n].ends.store(full_[n], std::memory_order_relaxed);
  }
}

void Work::refill(int thread) {
  const auto wide = static_cast<size_t>(threads_);
  for (size_t n = static_cast<size_t>(thread); n < full_.size(); n += wide) {
    queues_[set_ ^ 1][n].ends.store(full_[n], std::memory_order_relaxed);
  }
}

bool Work::any_left(size_t kind) {
  for (int thread = 0; thread < threads_; ++thread) {
    if (!queue(kind, thread).empty()) return true;
  }
  return false;
}

bool Work::pop_others(size_t kind, int thread, uint32_t& position) {
  for (int step = 1; step < threads_; ++step) {
    const int victim = thread + step < threads_ ? thread + step : thread + step - threads_;
    if (queue(kind, victim).pop(backward_, position)) return true;
  }
  return false;
}

}  // namespace halocline
