// Memory of OpenCL devices, and host memory for copies with them.

#include <algorithm>
#include <utility>

#include "device/opencl.hpp"

namespace halocline::device::opencl {

ClBuffer::ClBuffer(std::shared_ptr<State> state, cl::Memory memory, size_t bytes)
    : Buffer(bytes), state_(std::move(state)), memory_(memory) {
  state_->used_bytes += bytes;
}

ClBuffer::~ClBuffer() {
  api().ReleaseMemObject(memory_);
  state_->used_bytes -= bytes();
}

const ClBuffer& ours(const State& state, const Buffer& buffer) {
  const auto* cl_buffer = dynamic_cast<const ClBuffer*>(&buffer);
  if (cl_buffer == nullptr) {
    throw std::invalid_argument(state.label + ": a buffer of another interface, expected an OpenCL buffer");
  }
  if (cl_buffer->state().context != state.context) {
    fail(state.label, "use of memory of " + cl_buffer->state().label, cl::kInvalidContext);
  }
  return *cl_buffer;
}

ClPinned::ClPinned(std::shared_ptr<State> state, cl::CommandQueue queue, size_t bytes)
    : state_(std::move(state)), queue_(queue) {
  cl::Int error = cl::kSuccess;
  memory_ =
      api().CreateBuffer(state_->context, cl::kMemReadWrite | cl::kMemAllocHostPtr, bytes, nullptr, &error);
  if (error == cl::kSuccess) {
    data_ = api().EnqueueMapBuffer(queue_, memory_, cl::kTrue, cl::kMapRead | cl::kMapWrite, 0, bytes, 0,
                                   nullptr, nullptr, &error);
    if (error != cl::kSuccess) api().ReleaseMemObject(memory_);
  }
  if (error != cl::kSuccess) {
    throw OutOfMemory("pinned memory for " + state_->label, bytes, available_memory());
  }
}

ClPinned::~ClPinned() {
  api().EnqueueUnmapMemObject(queue_, memory_, data_, 0, nullptr, nullptr);
  api().Finish(queue_);
  api().ReleaseMemObject(memory_);
}

size_t ClDevice::free_memory() const {
  return description_.memory - std::min(description_.memory, state_->used_bytes.load());
}

std::unique_ptr<Buffer> ClDevice::allocate(size_t bytes) {
  if (bytes > free_memory()) throw out_of_memory(bytes);
  if (bytes > largest_buffer_) {
    throw OutOfMemory("a buffer on " + state_->label + " (limited by the maximum size of a buffer)", bytes,
                      largest_buffer_, kLessMemory);
  }
  cl::Int error = cl::kSuccess;
  const cl::Memory memory =
      api().CreateBuffer(state_->context, cl::kMemReadWrite, std::max<size_t>(bytes, 1), nullptr, &error);
  if (no_memory(error)) throw out_of_memory(bytes);
  check(state_->label, "a buffer of " + std::to_string(bytes) + " bytes", error);
  auto buffer = std::make_unique<ClBuffer>(state_, memory, bytes);
  if (bytes != 0) {
    // Memory belongs to the context and is placed on the device that first writes it. Other queues may use it
    // only after this write, so the call waits.
    const Zeros zeros(0, bytes);
    error =
        api().EnqueueFillBuffer(setup_, memory, zeros.pattern, zeros.width, 0, bytes, 0, nullptr, nullptr);
    if (error == cl::kSuccess) error = api().Finish(setup_);
    if (no_memory(error)) throw out_of_memory(bytes);
    check(state_->label, "initialization of memory", error);
  }
  return buffer;
}

std::unique_ptr<Pinned> ClDevice::pinned(size_t bytes) {
  return std::make_unique<ClPinned>(state_, setup_, std::max<size_t>(bytes, 1));
}

OutOfMemory ClDevice::out_of_memory(size_t bytes) const {
  return {"a buffer on " + state_->label, bytes, free_memory(), kLessMemory};
}

bool ClDevice::no_memory(cl::Int error) {
  return error == cl::kMemObjectAllocationFailure || error == cl::kOutOfResources ||
         error == cl::kOutOfHostMemory || error == cl::kInvalidBufferSize;
}

}  // namespace halocline::device::opencl
