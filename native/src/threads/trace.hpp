// What threads, messages and devices did, and when.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "threads/clock.hpp"

namespace halocline {

enum class Doing : uint8_t {
  kPatch,
  kHalo,
  kFill,
  kCopy,
  kPack,
  kUnpack,
  kReduction,
  kMessage,   // from the start of its exchange until it has come
  kSend,      // from its start by MPI until its buffer is free
  kDownload,  // from a device to the host
  kUpload,
  kScalars,  // statements about scalars, and conditions, on a device
  kLaunch,   // the host queues work of its devices
};

struct TraceEvent {
  Doing doing = Doing::kScalars;
  int32_t sweep = -1;         // its number; -1: it belongs to none
  int32_t what = -1;          // patch, task or peer
  int32_t tag = -1;           // of a message; -1: it belongs to none
  double begin = 0, end = 0;  // seconds of now()
};

// The events of one thread, or of all messages. Beyond a limit none are kept.
class Trace {
 public:
  static constexpr size_t kMost = size_t{1} << 20;

  void add(const TraceEvent& event) {
    if (events_.size() < kMost) events_.push_back(event);
  }
  // The same from any thread.
  void add_together(const TraceEvent& event) {
    const std::lock_guard lock(adding_);
    add(event);
  }
  std::vector<TraceEvent> take() {
    std::vector<TraceEvent> taken;
    taken.swap(events_);
    return taken;
  }

 private:
  std::vector<TraceEvent> events_;
  std::mutex adding_;
};

// Adds an event that lasts as long as this lives; nothing where there is no trace.
class Span {
 public:
  Span(Trace* trace, Doing doing, int32_t sweep, int32_t what, int32_t tag = -1)
      : trace_(trace), event_{doing, sweep, what, tag, trace == nullptr ? 0.0 : now(), 0.0} {}
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
