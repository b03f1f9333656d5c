// Streams of CUDA devices: events, launches, copies and recorded graphs.

#include <array>
#include <string>
#include <utility>

#include "device/cuda.hpp"

namespace halocline::device::cuda {

const CudaEvent& ours(const Event& event) {
  const auto* cuda_event = dynamic_cast<const CudaEvent*>(&event);
  if (cuda_event == nullptr)
    throw std::invalid_argument("a CUDA device cannot use an event of another interface");
  return *cuda_event;
}

CudaEvent::~CudaEvent() {
  if (kind == Kind::kPooled) {
    device.recycle_event(event);
  } else {
    library().event_destroy(event);
  }
}

bool CudaEvent::done() const {
  device.use();
  const Status status = library().event_query(event);
  if (status == kNotReady) return false;
  device.check(status, "queued work");
  return true;
}

void CudaEvent::wait() const {
  device.use();
  device.check(library().event_synchronize(event), "queued work");
}

EventOfStream CudaDevice::take_event() const {
  {
    const std::scoped_lock lock(mutex_);
    if (!events_.empty()) {
      const EventOfStream event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  EventOfStream event = nullptr;
  check(library().event_create(&event, kEventDisableTiming), "creation of an event");
  return event;
}

// Waits for an earlier record of an event remain valid if the event is recorded again.
void CudaDevice::recycle_event(EventOfStream event) const noexcept {
  const std::scoped_lock lock(mutex_);
  events_.push_back(event);
}

namespace {

class CudaGraph : public Graph {
 public:
  CudaGraph(const CudaDevice& device, Executable executable) : executable(executable), device_(device) {}
  ~CudaGraph() override {
    try {
      device_.use();
    } catch (const DeviceError&) {
      return;
    }
    library().executable_destroy(executable);
  }

  const Executable executable;

 private:
  const CudaDevice& device_;
};

std::string in_words(const std::array<uint32_t, 3>& counts) {
  return std::to_string(counts[0]) + " x " + std::to_string(counts[1]) + " x " + std::to_string(counts[2]);
}

constexpr size_t kReadEvery = 64;     // number of traced commands between two readings of times
constexpr double kLongElapsed = 1.0;  // seconds; for longer times, the float of CUDA is too inaccurate

}  // namespace

class CudaQueue::Timing {
 public:
  Timing(CudaQueue& queue, const TraceEvent& traced)
      : queue_(queue), traced_(traced), before_(queue.times_ ? queue.record_time() : nullptr) {}
  ~Timing() {  // releases the event if the command failed
    if (before_ != nullptr) queue_.times_->unused.push_back(before_);
  }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;
  // Record the event after the queued command.
  void done() {
    if (before_ == nullptr) return;
    auto& pending = queue_.times_->pending;
    pending.push_back({before_, queue_.record_time(), traced_});
    before_ = nullptr;
    if (pending.size() % kReadEvery == 0) queue_.read_times();
  }

 private:
  CudaQueue& queue_;
  const TraceEvent traced_;
  EventOfStream before_;
};

CudaQueue::~CudaQueue() {
  try {
    device.use();
  } catch (const DeviceError&) {
    return;
  }
  library().stream_synchronize(stream);
  forget_times();
  library().stream_destroy(stream);
}

void CudaQueue::launch(const Kernel& kernel, const std::array<uint32_t, 3>& block_counts,
                       const std::array<uint32_t, 3>& block_shape, std::span<const Argument> arguments) {
  const auto& ours = static_cast<const CudaKernel&>(kernel);
  ours.check_arguments(arguments);
  parameters_.clear();
  for (const Argument& argument : arguments) {
    const void* bytes = nullptr;
    if (const auto* buffer = std::get_if<const Buffer*>(&argument)) {
      bytes = &cuda::ours(**buffer).start;
    } else {
      bytes = std::get<std::span<const std::byte>>(argument).data();
    }
    parameters_.push_back(const_cast<void*>(bytes));
  }
  device.use();
  Timing timing(*this, marked());
  const Status status = library().launch(
      ours.function, block_counts[0], block_counts[1], block_counts[2], block_shape[0], block_shape[1],
      block_shape[2], static_cast<unsigned>(ours.tile_bytes()), stream, parameters_.data(), nullptr);
  if (status != kSuccess) {
    fail(status, device.label(),
         "launch of " + in_words(block_counts) + " thread blocks of " + in_words(block_shape) +
             " threads of kernel " + ours.name + " (the maximum is " +
             std::to_string(ours.max_threads_per_block()) + " threads per block)");
  }
  timing.done();
}

void CudaQueue::copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) {
  const CudaBuffer &target = ours(to), &source = ours(from);
  const Address target_address = target.at(to_offset, bytes), source_address = source.at(from_offset, bytes);
  if (bytes == 0) return;
  if (&target.device == &source.device) {
    device.use();
    Timing timing(*this, marked());
    device.check(library().copy(target_address, source_address, bytes, stream), "a copy");
    timing.done();
    return;
  }
  const Context source_context = source.device.use(), target_context = target.device.use();
  device.use();
  Timing timing(*this, marked());
  device.check(
      library().copy_peer(target_address, target_context, source_address, source_context, bytes, stream),
      "a copy between devices");
  timing.done();
}

void CudaQueue::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  const Address address = ours(to).at(offset, bytes);
  if (bytes == 0) return;
  device.use();
  Timing timing(*this, marked_as(EventKind::kUpload));
  device.check(library().upload(address, from, bytes, stream), "a copy to the device");
  timing.done();
}

void CudaQueue::download(void* to, const Buffer& from, size_t offset, size_t bytes) {
  const Address address = ours(from).at(offset, bytes);
  if (bytes == 0) return;
  device.use();
  Timing timing(*this, marked_as(EventKind::kDownload));
  device.check(library().download(to, address, bytes, stream), "a copy from the device");
  timing.done();
}

void CudaQueue::upload(Buffer& to, const Rows& rows, const void* from) {
  RowsCopy copy;
  copy.source_host = from;
  copy.source_pitch = rows.bytes;
  target(copy, to, rows);
  run(copy, rows, "a copy of rows to the device", marked_as(EventKind::kUpload));
}

void CudaQueue::download(void* to, const Buffer& from, const Rows& rows) {
  RowsCopy copy;
  source(copy, from, rows);
  copy.target_host = to;
  copy.target_pitch = rows.bytes;
  run(copy, rows, "a copy of rows from the device", marked_as(EventKind::kDownload));
}

void CudaQueue::copy(Buffer& to, const Rows& to_rows, const Buffer& from, const Rows& from_rows) {
  RowsCopy copy;
  source(copy, from, from_rows);
  target(copy, to, to_rows);
  run(copy, from_rows, "a copy of rows", marked());
}

void CudaQueue::clear(Buffer& buffer, size_t offset, size_t bytes) {
  const Address address = ours(buffer).at(offset, bytes);
  if (bytes == 0) return;
  device.use();
  Timing timing(*this, marked());
  device.check(library().set_bytes(address, 0, bytes, stream), "a fill with zeros");
  timing.done();
}

std::shared_ptr<Event> CudaQueue::record() {
  device.use();
  auto event = std::make_shared<CudaEvent>(device, device.take_event(), CudaEvent::Kind::kPooled);
  device.check(library().event_record(event->event, stream), "record of an event");
  return event;
}

void CudaQueue::wait(const std::shared_ptr<Event>& event) {
  device.use();
  device.check(library().stream_wait(stream, ours(*event).event, 0), "a wait for an event");
}

void CudaQueue::finish() {
  device.use();
  device.check(library().stream_synchronize(stream), "queued work");
}

void CudaQueue::begin_capture() {
  device.use();
  device.check(library().capture_begin(stream, kCaptureThreadLocal), "begin of a capture");
}

std::unique_ptr<Graph> CudaQueue::end_capture() {
  device.use();
  Recording recording = nullptr;
  device.check(library().capture_end(stream, &recording), "recording a graph");
  Executable executable = nullptr;
  const Status status = library().graph_instantiate(&executable, recording, 0);
  library().graph_destroy(recording);
  device.check(status, "instantiation of a graph");
  return std::make_unique<CudaGraph>(device, executable);
}

void CudaQueue::launch(const Graph& graph) {
  device.use();
  device.check(library().graph_launch(static_cast<const CudaGraph&>(graph).executable, stream),
               "launch of a graph");
}

void CudaQueue::source(RowsCopy& copy, const Buffer& from, const Rows& rows) {
  copy.source_kind = kMemoryDevice;
  copy.source = ours(from).at(rows.offset, rows.end() - rows.offset);
  copy.source_pitch = rows.pitch;
}

void CudaQueue::target(RowsCopy& copy, const Buffer& to, const Rows& rows) {
  copy.target_kind = kMemoryDevice;
  copy.target = ours(to).at(rows.offset, rows.end() - rows.offset);
  copy.target_pitch = rows.pitch;
}

void CudaQueue::run(RowsCopy& copy, const Rows& rows, const char* operation, const TraceEvent& traced) {
  if (rows.bytes == 0 || rows.count == 0) return;
  copy.bytes = rows.bytes;
  copy.rows = rows.count;
  device.use();
  Timing timing(*this, traced);
  device.check(library().copy_rows(&copy, stream), operation);
  timing.done();
}

void CudaQueue::begin_trace(std::shared_ptr<Clock> clock) {
  if (times_) end_trace();
  finish();
  auto ours = std::dynamic_pointer_cast<CudaClock>(std::move(clock));
  if (!ours || &ours->device != &device) throw std::invalid_argument("a clock of another device");
  const EventOfStream zero = ours->zero;
  times_ = std::make_unique<Times>(Times{std::move(ours), zero});
}

std::vector<TraceEvent> CudaQueue::end_trace() {
  if (!times_) return {};
  finish();
  read_times();
  std::vector<TraceEvent> events = std::move(times_->events);
  forget_times();
  return events;
}

EventOfStream CudaQueue::record_time() {
  EventOfStream event = nullptr;
  if (times_->unused.empty()) {
    device.check(library().event_create(&event, kEventDefault), "creation of an event");
  } else {
    event = times_->unused.back();
    times_->unused.pop_back();
  }
  device.check(library().event_record(event, stream), "record of an event");
  return event;
}

// Return the time of a completed event. CUDA returns milliseconds as a float. For long times, the reference
// event is therefore replaced by this event.
double CudaQueue::seconds_of(EventOfStream event) {
  float milliseconds = 0;
  device.check(library().event_elapsed(&milliseconds, times_->zero, event), "query of the time of an event");
  const double seconds = times_->since + 1e-3 * static_cast<double>(milliseconds);
  if (seconds - times_->since > kLongElapsed) {
    times_->since = seconds;
    std::swap(times_->zero, event);
  }
  if (event != times_->clock->zero) times_->unused.push_back(event);
  return seconds;
}

void CudaQueue::read_times() {
  auto& pending = times_->pending;
  device.use();
  for (; !pending.empty(); pending.pop_front()) {
    Timed& timed = pending.front();
    const Status status = library().event_query(timed.after);
    if (status == kNotReady) return;
    device.check(status, "queued work");
    timed.traced.begin = seconds_of(timed.before);
    timed.traced.end = seconds_of(timed.after);
    if (times_->events.size() < Trace::kMost) times_->events.push_back(timed.traced);
  }
}

void CudaQueue::forget_times() noexcept {
  if (!times_) return;
  for (const Timed& timed : times_->pending) {
    library().event_destroy(timed.before);
    library().event_destroy(timed.after);
  }
  for (const EventOfStream event : times_->unused) library().event_destroy(event);
  if (times_->zero != times_->clock->zero) library().event_destroy(times_->zero);
  times_.reset();
}

CudaClock::CudaClock(const CudaDevice& device) : device(device) {
  device.use();
  device.check(library().stream_create(&stream, kStreamNonBlocking, 0), "creation of a stream");
  device.check(library().event_create(&zero, kEventDefault), "creation of an event");
  device.check(library().event_create(&last, kEventDefault), "creation of an event");
  device.check(library().event_record(zero, stream), "record of an event");
  device.check(library().stream_synchronize(stream), "a reading of the clock");
}

CudaClock::~CudaClock() {
  try {
    device.use();
  } catch (const DeviceError&) {
    return;
  }
  for (const EventOfStream event : {zero, last}) {
    if (event != nullptr) library().event_destroy(event);
  }
  library().stream_destroy(stream);
}

Reading CudaClock::read() {
  device.use();
  const double before = now();
  device.check(library().event_record(last, stream), "record of an event");
  device.check(library().event_synchronize(last), "a reading of the clock");
  const double after = now();
  float milliseconds = 0;
  device.check(library().event_elapsed(&milliseconds, zero, last), "query of the time of an event");
  return {1e-3 * static_cast<double>(milliseconds), (before + after) / 2, (after - before) / 2};
}

// Other libraries use the same primary context.
void CudaDevice::synchronize() {
  use();
  check(library().synchronize(), "work of other libraries");
}

std::shared_ptr<Clock> CudaDevice::clock() { return std::make_shared<CudaClock>(*this); }

std::unique_ptr<Queue> CudaDevice::queue(bool urgent) {
  use();
  int lowest_priority = 0, highest_priority = 0;
  check(library().priorities(&lowest_priority, &highest_priority), "query of stream priorities");
  Stream stream = nullptr;
  check(library().stream_create(&stream, kStreamNonBlocking, urgent ? highest_priority : lowest_priority),
        "creation of a stream");
  return std::make_unique<CudaQueue>(*this, stream);
}

}  // namespace halocline::device::cuda
