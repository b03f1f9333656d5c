// What threads and messages did, and when.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "threads/clock.hpp"

namespace halocline {

enum class Doing : uint8_t { kPatch, kHalo, kFill, kCopy, kPack, kUnpack, kReduction, kMessage };

struct Event {
  Doing doing;
  int32_t sweep;  // its number
  int32_t what;   // patch, message or peer
  double begin, end;
};

// The events of one thread, or of all messages. Beyond a limit none are kept.
class Trace {
 public:
  static constexpr size_t kMost = size_t{1} << 20;

  void add(const Event& event) {
    if (events_.size() < kMost) events_.push_back(event);
  }
  // The same from any thread.
  void add_together(const Event& event) {
    const std::lock_guard lock(adding_);
    add(event);
  }
  std::vector<Event> take() {
    std::vector<Event> taken;
    taken.swap(events_);
    return taken;
  }

 private:
  std::vector<Event> events_;
  std::mutex adding_;
};

// Adds an event that lasts as long as this lives; nothing where there is no trace.
class Span {
 public:
  Span(Trace* trace, Doing doing, int32_t sweep, int32_t what)
      : trace_(trace), event_{doing, sweep, what, trace == nullptr ? 0.0 : now(), 0.0} {}
  ~Span() {
    if (trace_ == nullptr) return;
    event_.end = now();
    trace_->add(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Trace* trace_;
  Event event_;
};

}  // namespace halocline
