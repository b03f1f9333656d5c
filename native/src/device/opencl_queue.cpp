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

void check_range(const State& state, const Buffer& buffer, size_t offset, size_t bytes) {
  if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return;
  throw std::invalid_argument(state.label + ": bytes " + std::to_string(offset) + " to " +
                              std::to_string(offset + bytes) + " of a buffer of " +
                              std::to_string(buffer.bytes()) + " bytes, expected a range within it");
}

}  // namespace

Commands::~Commands() {
  for (const auto& [event, doing] : pending_) api().ReleaseEvent(event);
}

void Commands::add(cl::Event event, std::string doing) {
  const std::scoped_lock lock(mutex_);
  pending_.emplace_back(event, std::move(doing));
  forget_done();
}

void Commands::check() {
  const std::scoped_lock lock(mutex_);
  forget_done();
  if (!failure_.empty()) throw DeviceError(failure_);
}

void Commands::forget_done() {
  for (; !pending_.empty(); pending_.pop_front()) {
    const auto& [event, doing] = pending_.front();
    const cl::Int status = status_of(event);
    if (status > cl::kComplete) return;
    if (status < 0 && failure_.empty()) {
      failure_ = state_->label + ": " + doing + " failed with " + described(status);
    }
    api().ReleaseEvent(event);
  }
}

bool ClEvent::done() const {
  const cl::Int status = status_of(event_);
  if (status > cl::kComplete) return false;
  judge(status);
  return true;
}

void ClEvent::judge(cl::Int error) const {
  commands_->check();
  check(commands_->state().label, "what an event waits for", error);
}

ClQueue::~ClQueue() {
  api().Finish(queue_);
  api().ReleaseCommandQueue(queue_);
}

template <typename Enqueue>
void ClQueue::queued(const std::string& doing, Enqueue&& enqueue) {
  cl::Event event = nullptr;
  check(state_->label, doing, enqueue(&event));
  commands_->add(event, doing);
}

void ClQueue::launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups,
                     const std::array<uint32_t, 3>& group, std::span<const Argument> arguments) {
  const auto* made = dynamic_cast<const ClKernel*>(&kernel);
  if (made == nullptr || made->state().device != state_->device) {
    throw std::invalid_argument(state_->label + ": a kernel of another device, expected one loaded for it");
  }
  made->set(arguments);
  size_t all[3], local[3];
  for (size_t axis = 0; axis < 3; ++axis) {
    if (groups[axis] == 0) return;
    local[axis] = group[axis];
    all[axis] = static_cast<size_t>(groups[axis]) * group[axis];
  }
  queued(made->name(), [&](cl::Event* event) {
    return api().EnqueueNDRangeKernel(queue_, made->kernel(), 3, nullptr, all, local, 0, nullptr, event);
  });
}

void ClQueue::copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) {
  const cl::Memory target = at(to, to_offset, bytes), source = at(from, from_offset, bytes);
  if (bytes == 0) return;
  queued("a copy of memory", [&](cl::Event* event) {
    return api().EnqueueCopyBuffer(queue_, source, target, from_offset, to_offset, bytes, 0, nullptr, event);
  });
}

void ClQueue::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  const cl::Memory memory = at(to, offset, bytes);
  if (bytes == 0) return;
  queued("a copy to the device", [&](cl::Event* event) {
    return api().EnqueueWriteBuffer(queue_, memory, cl::kFalse, offset, bytes, from, 0, nullptr, event);
  });
}

void ClQueue::download(void* to, const Buffer& from, size_t offset, size_t bytes) {
  const cl::Memory memory = at(from, offset, bytes);
  if (bytes == 0) return;
  queued("a copy from the device", [&](cl::Event* event) {
    return api().EnqueueReadBuffer(queue_, memory, cl::kFalse, offset, bytes, to, 0, nullptr, event);
  });
}

void ClQueue::upload(Buffer& to, const Rows& rows, const void* from) {
  const cl::Memory memory = at(to, rows.offset, rows.end() - rows.offset);
  if (rows.bytes == 0 || rows.count == 0) return;
  const Box box(rows);
  queued("a copy of rows to the device", [&](cl::Event* event) {
    return api().EnqueueWriteBufferRect(queue_, memory, cl::kFalse, box.first, Box::kDense, box.region,
                                        rows.pitch, 0, rows.bytes, 0, from, 0, nullptr, event);
  });
}

void ClQueue::download(void* to, const Buffer& from, const Rows& rows) {
  const cl::Memory memory = at(from, rows.offset, rows.end() - rows.offset);
  if (rows.bytes == 0 || rows.count == 0) return;
  const Box box(rows);
  queued("a copy of rows from the device", [&](cl::Event* event) {
    return api().EnqueueReadBufferRect(queue_, memory, cl::kFalse, box.first, Box::kDense, box.region,
                                       rows.pitch, 0, rows.bytes, 0, to, 0, nullptr, event);
  });
}

void ClQueue::copy(Buffer& to, const Rows& there, const Buffer& from, const Rows& here) {
  const cl::Memory target = at(to, there.offset, there.end() - there.offset);
  const cl::Memory source = at(from, here.offset, here.end() - here.offset);
  if (here.bytes == 0 || here.count == 0) return;
  const Box one(here), other(there);
  queued("a copy of rows", [&](cl::Event* event) {
    return api().EnqueueCopyBufferRect(queue_, source, target, one.first, other.first, one.region, here.pitch,
                                       0, there.pitch, 0, 0, nullptr, event);
  });
}

void ClQueue::clear(Buffer& buffer, size_t offset, size_t bytes) {
  const cl::Memory memory = at(buffer, offset, bytes);
  if (bytes == 0) return;
  const Zeros zeros(offset, bytes);
  queued("clearing memory", [&](cl::Event* event) {
    return api().EnqueueFillBuffer(queue_, memory, zeros.pattern, zeros.width, offset, bytes, 0, nullptr,
                                   event);
  });
}

std::shared_ptr<Event> ClQueue::record() {
  cl::Event event = nullptr;
  check(state_->label, "an event", api().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event));
  auto recorded = std::make_shared<ClEvent>(commands_, event);
  flush();  // or one who waits for it on another queue may wait for ever
  return recorded;
}

void ClQueue::wait(const std::shared_ptr<Event>& event) {
  const auto* other = dynamic_cast<const ClEvent*>(event.get());
  if (other == nullptr) {
    throw std::invalid_argument(state_->label + ": an event of another interface, expected OpenCL's");
  }
  const cl::Event before = other->event();
  queued("waiting for " + other->state().label,
         [&](cl::Event* made) { return api().EnqueueBarrierWithWaitList(queue_, 1, &before, made); });
}

void ClQueue::finish() {
  const cl::Int error = api().Finish(queue_);
  commands_->check();
  check(state_->label, "what is queued", error);
}

cl::Memory ClQueue::at(const Buffer& buffer, size_t offset, size_t bytes) const {
  check_range(*state_, buffer, offset, bytes);
  return ours(*state_, buffer).memory();
}

std::unique_ptr<Queue> ClDevice::queue(bool urgent) {
  return std::make_unique<ClQueue>(state_, make_queue(urgent));
}

cl::CommandQueue ClDevice::make_queue(bool urgent) const {
  cl::Int error = cl::kSuccess;
  if (urgent && priorities_) {
    const cl::Bits properties[] = {cl::kQueuePriority, cl::kQueuePriorityHigh, 0};
    const cl::CommandQueue made =
        api().CreateCommandQueueWithProperties(state_->context, state_->device, properties, &error);
    if (error == cl::kSuccess) return made;
  }
  // a priority is a hint: without it the results are the same
  const cl::CommandQueue made = api().CreateCommandQueue(state_->context, state_->device, 0, &error);
  check(state_->label, "a queue", error);
  return made;
}

}  // namespace halocline::device::opencl
