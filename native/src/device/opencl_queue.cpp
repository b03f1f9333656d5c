// Command queues of OpenCL devices: events, launches and copies.

#include <utility>

#include "device/opencl.hpp"

namespace halocline::device::opencl {

namespace {

cl::Int status_of(cl::Event event) {
  cl::Int status = cl::kComplete;
  const cl::Int error =
      api().GetEventInfo(event, cl::kEventCommandExecutionStatus, sizeof status, &status, nullptr);
  return error == cl::kSuccess ? status : error;
}

constexpr size_t kReadEvery = 64;  // number of traced commands between two readings of times

// Return a time of an event in seconds of the device clock, or 0 if the time is unknown, for example after a
// failure.
double time_of(cl::Event event, cl::UInt parameter) {
  uint64_t nanoseconds = 0;
  const cl::Int error =
      api().GetEventProfilingInfo(event, parameter, sizeof nanoseconds, &nanoseconds, nullptr);
  return error == cl::kSuccess ? 1e-9 * static_cast<double>(nanoseconds) : 0.0;
}

void check_range(const State& state, const Buffer& buffer, size_t offset, size_t bytes) {
  if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return;
  throw std::invalid_argument(state.label + ": bytes " + std::to_string(offset) + " to " +
                              std::to_string(offset + bytes) + " of a buffer of " +
                              std::to_string(buffer.bytes()) + " bytes, expected a range within it");
}

}  // namespace

Commands::~Commands() {
  for (const auto& [event, operation] : pending_) api().ReleaseEvent(event);
}

void Commands::add(cl::Event event, std::string operation) {
  const std::scoped_lock lock(mutex_);
  pending_.emplace_back(event, std::move(operation));
  forget_done();
}

void Commands::check() {
  const std::scoped_lock lock(mutex_);
  forget_done();
  if (!failure_.empty()) throw DeviceError(failure_);
}

void Commands::forget_done() {
  for (; !pending_.empty(); pending_.pop_front()) {
    const auto& [event, operation] = pending_.front();
    const cl::Int status = status_of(event);
    if (status > cl::kComplete) return;
    if (status < 0 && failure_.empty()) {
      failure_ = state_->label + ": " + operation + " failed with " + described(status);
    }
    api().ReleaseEvent(event);
  }
}

bool ClEvent::done() const {
  const cl::Int status = status_of(event_);
  if (status > cl::kComplete) return false;
  throw_if_failed(status);
  return true;
}

void ClEvent::throw_if_failed(cl::Int error) const {
  commands_->check();
  check(commands_->state().label, "work before an event", error);
}

ClQueue::~ClQueue() {
  api().Finish(queue_);
  api().ReleaseCommandQueue(queue_);
  if (!times_) return;
  for (const auto& [event, traced] : times_->pending) api().ReleaseEvent(event);
  api().ReleaseCommandQueue(times_->untimed);
}

template <typename Enqueue>
void ClQueue::queued(const std::string& operation, Enqueue&& enqueue, const TraceEvent* traced) {
  cl::Event event = nullptr;
  check(state_->label, operation, enqueue(&event));
  if (times_ && traced != nullptr) {
    api().RetainEvent(event);
    times_->pending.emplace_back(event, *traced);
    if (times_->pending.size() % kReadEvery == 0) read_times();
  }
  commands_->add(event, operation);
}

void ClQueue::begin_trace(std::shared_ptr<Clock>) {
  if (times_) end_trace();
  finish();
  const cl::CommandQueue timed = make_queue(*state_, urgent_, true);
  times_ = std::make_unique<Times>(Times{std::exchange(queue_, timed)});
}

std::vector<TraceEvent> ClQueue::end_trace() {
  if (!times_) return {};
  finish();
  read_times();
  const std::unique_ptr<Times> times = std::move(times_);
  api().ReleaseCommandQueue(std::exchange(queue_, times->untimed));
  return std::move(times->events);
}

void ClQueue::read_times() {
  auto& [untimed, pending, events] = *times_;
  for (; !pending.empty() && status_of(pending.front().first) <= cl::kComplete; pending.pop_front()) {
    auto& [event, traced] = pending.front();
    traced.begin = time_of(event, cl::kProfilingCommandStart);
    traced.end = time_of(event, cl::kProfilingCommandEnd);
    if (traced.begin > 0 && events.size() < Trace::kMost) events.push_back(traced);
    api().ReleaseEvent(event);
  }
}

void ClQueue::launch(const Kernel& kernel, const std::array<uint32_t, 3>& block_counts,
                     const std::array<uint32_t, 3>& block_shape, std::span<const Argument> arguments) {
  const auto* cl_kernel = dynamic_cast<const ClKernel*>(&kernel);
  if (cl_kernel == nullptr || cl_kernel->state().device != state_->device) {
    throw std::invalid_argument(
        state_->label + ": a kernel of another device, expected a kernel that was loaded for this device");
  }
  cl_kernel->set(arguments);
  size_t all[3], local[3];
  for (size_t axis = 0; axis < 3; ++axis) {
    if (block_counts[axis] == 0) return;
    local[axis] = block_shape[axis];
    all[axis] = static_cast<size_t>(block_counts[axis]) * block_shape[axis];
  }
  queued(
      cl_kernel->name(),
      [&](cl::Event* event) {
        return api().EnqueueNDRangeKernel(queue_, cl_kernel->kernel(), 3, nullptr, all, local, 0, nullptr,
                                          event);
      },
      &marked());
}

void ClQueue::copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) {
  const cl::Memory target = at(to, to_offset, bytes), source = at(from, from_offset, bytes);
  if (bytes == 0) return;
  queued(
      "a copy of memory",
      [&](cl::Event* event) {
        return api().EnqueueCopyBuffer(queue_, source, target, from_offset, to_offset, bytes, 0, nullptr,
                                       event);
      },
      &marked());
}

void ClQueue::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  const cl::Memory memory = at(to, offset, bytes);
  if (bytes == 0) return;
  const TraceEvent traced = marked_as(EventKind::kUpload);
  queued(
      "a copy to the device",
      [&](cl::Event* event) {
        return api().EnqueueWriteBuffer(queue_, memory, cl::kFalse, offset, bytes, from, 0, nullptr, event);
      },
      &traced);
}

void ClQueue::download(void* to, const Buffer& from, size_t offset, size_t bytes) {
  const cl::Memory memory = at(from, offset, bytes);
  if (bytes == 0) return;
  const TraceEvent traced = marked_as(EventKind::kDownload);
  queued(
      "a copy from the device",
      [&](cl::Event* event) {
        return api().EnqueueReadBuffer(queue_, memory, cl::kFalse, offset, bytes, to, 0, nullptr, event);
      },
      &traced);
}

void ClQueue::upload(Buffer& to, const Rows& rows, const void* from) {
  const cl::Memory memory = at(to, rows.offset, rows.end() - rows.offset);
  if (rows.bytes == 0 || rows.count == 0) return;
  const Box box(rows);
  const TraceEvent traced = marked_as(EventKind::kUpload);
  queued(
      "a copy of rows to the device",
      [&](cl::Event* event) {
        return api().EnqueueWriteBufferRect(queue_, memory, cl::kFalse, box.first, Box::kDense, box.region,
                                            rows.pitch, 0, rows.bytes, 0, from, 0, nullptr, event);
      },
      &traced);
}

void ClQueue::download(void* to, const Buffer& from, const Rows& rows) {
  const cl::Memory memory = at(from, rows.offset, rows.end() - rows.offset);
  if (rows.bytes == 0 || rows.count == 0) return;
  const Box box(rows);
  const TraceEvent traced = marked_as(EventKind::kDownload);
  queued(
      "a copy of rows from the device",
      [&](cl::Event* event) {
        return api().EnqueueReadBufferRect(queue_, memory, cl::kFalse, box.first, Box::kDense, box.region,
                                           rows.pitch, 0, rows.bytes, 0, to, 0, nullptr, event);
      },
      &traced);
}

void ClQueue::copy(Buffer& to, const Rows& to_rows, const Buffer& from, const Rows& from_rows) {
  const cl::Memory target = at(to, to_rows.offset, to_rows.end() - to_rows.offset);
  const cl::Memory source = at(from, from_rows.offset, from_rows.end() - from_rows.offset);
  if (from_rows.bytes == 0 || from_rows.count == 0) return;
  const Box one(from_rows), other(to_rows);
  queued(
      "a copy of rows",
      [&](cl::Event* event) {
        return api().EnqueueCopyBufferRect(queue_, source, target, one.first, other.first, one.region,
                                           from_rows.pitch, 0, to_rows.pitch, 0, 0, nullptr, event);
      },
      &marked());
}

void ClQueue::clear(Buffer& buffer, size_t offset, size_t bytes) {
  const cl::Memory memory = at(buffer, offset, bytes);
  if (bytes == 0) return;
  const Zeros zeros(offset, bytes);
  queued(
      "a fill with zeros",
      [&](cl::Event* event) {
        return api().EnqueueFillBuffer(queue_, memory, zeros.pattern, zeros.width, offset, bytes, 0, nullptr,
                                       event);
      },
      &marked());
}

std::shared_ptr<Event> ClQueue::record() {
  cl::Event event = nullptr;
  check(state_->label, "an event", api().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event));
  auto recorded = std::make_shared<ClEvent>(commands_, event);
  flush();  // otherwise a wait for this event in another queue may never end
  return recorded;
}

void ClQueue::wait(const std::shared_ptr<Event>& event) {
  const auto* other = dynamic_cast<const ClEvent*>(event.get());
  if (other == nullptr) {
    throw std::invalid_argument(state_->label + ": an event of another interface, expected an OpenCL event");
  }
  const cl::Event before = other->event();
  queued("a wait for " + other->state().label, [&](cl::Event* barrier_event) {
    return api().EnqueueBarrierWithWaitList(queue_, 1, &before, barrier_event);
  });
}

void ClQueue::finish() {
  const cl::Int error = api().Finish(queue_);
  commands_->check();
  check(state_->label, "queued work", error);
}

cl::Memory ClQueue::at(const Buffer& buffer, size_t offset, size_t bytes) const {
  check_range(*state_, buffer, offset, bytes);
  return ours(*state_, buffer).memory();
}

namespace {

// Clock of the device, the same for all queues.
class ClClock : public Clock {
 public:
  explicit ClClock(std::shared_ptr<State> state)
      : state_(std::move(state)), queue_(make_queue(*state_, false, true)) {}
  ~ClClock() override { api().ReleaseCommandQueue(queue_); }

  Reading read() override {
    constexpr const char* kDoing = "a reading of the clock";
    cl::Event event = nullptr;
    const double before = now();
    check(state_->label, kDoing, api().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event));
    const cl::Int error = api().WaitForEvents(1, &event);
    const double after = now();
    const double device = time_of(event, cl::kProfilingCommandEnd);
    api().ReleaseEvent(event);
    check(state_->label, kDoing, error);
    return {device, (before + after) / 2, (after - before) / 2};
  }

 private:
  std::shared_ptr<State> state_;
  cl::CommandQueue queue_;
};

}  // namespace

std::shared_ptr<Clock> ClDevice::clock() { return std::make_shared<ClClock>(state_); }

std::unique_ptr<Queue> ClDevice::queue(bool urgent) { return std::make_unique<ClQueue>(state_, urgent); }

cl::CommandQueue make_queue(const State& state, bool urgent, bool timed) {
  const cl::Bits profiling = timed ? cl::kQueueProfilingEnable : 0;
  cl::Int error = cl::kSuccess;
  if (urgent && state.priorities) {
    const cl::Bits properties[] = {cl::kQueuePriority, cl::kQueuePriorityHigh, cl::kQueueProperties,
                                   profiling, 0};
    const cl::CommandQueue queue =
        api().CreateCommandQueueWithProperties(state.context, state.device, properties, &error);
    if (error == cl::kSuccess) return queue;
  }
  // A priority is only a hint. The results are the same without priorities.
  const cl::CommandQueue queue = api().CreateCommandQueue(state.context, state.device, profiling, &error);
  check(state.label, "a queue", error);
  return queue;
}

}  // namespace halocline::device::opencl
