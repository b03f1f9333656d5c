// Events of threads, messages and devices, with their times.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "threads/clock.hpp"

namespace halocline {

enum class EventKind : uint8_t {
  kPatch,
  kHalo,
  kFill,
  kCopy,
  kPack,
  kUnpack,
  kReduction,
  kMessage,   // from the start of the exchange to the arrival
  kSend,      // from the start of the send until the buffer is free
  kDownload,  // from a device to the host
  kUpload,
  kScalars,  // scalar statements and conditions on a device
  kLaunch,   // the host queues work of its devices
};

struct TraceEvent {
  EventKind kind = EventKind::kScalars;
  int32_t sweep = -1;         // number of the sweep; -1: none
  int32_t subject = -1;       // patch, task or peer
  int32_t tag = -1;           // tag of the message; -1: none
  double begin = 0, end = 0;  // seconds of now()
};

// Events of one thread, or of all messages. Events beyond the limit are dropped.
class Trace {
 public:
  static constexpr size_t kMost = size_t{1} << 20;

  void add(const TraceEvent& event) {
    if (events_.size() < kMost) events_.push_back(event);
  }
  // Add an event from any thread.
  void add_together(const TraceEvent& event) {
    const std::lock_guard lock(adding_);
    add(event);
  }
  std::vector<TraceEvent> take() {
    std::vector<TraceEvent> events;
    events.swap(events_);
    return events;
  }

 private:
  std::vector<TraceEvent> events_;
  std::mutex adding_;
};

// Event that lasts from construction to destruction. Without a trace, it does nothing.
class Span {
 public:
  Span(Trace* trace, EventKind kind, int32_t sweep, int32_t subject, int32_t tag = -1)
      : trace_(trace), event_{kind, sweep, subject, tag, trace == nullptr ? 0.0 : now(), 0.0} {}
  ~Span() {
    if (trace_ == nullptr) return;
    event_.end = now();
    trace_->add(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Trace* trace_;
  TraceEvent event_;
};

}  // namespace halocline
