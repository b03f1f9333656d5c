// Memory of CUDA devices, and host memory for copies with them.

#include <algorithm>

#include "device/cuda.hpp"
#include "storage/memory.hpp"

namespace halocline::device::cuda {

const CudaBuffer& ours(const Buffer& buffer) {
  const auto* cuda_buffer = dynamic_cast<const CudaBuffer*>(&buffer);
  if (cuda_buffer == nullptr)
    throw std::invalid_argument("a CUDA device cannot use a buffer of another interface");
  return *cuda_buffer;
}

CudaBuffer::~CudaBuffer() {
  if (owner_ == Owner::kModule) return;
  // An error here was already reported by an earlier call, or the process is ending.
  try {
    device.use();
  } catch (const DeviceError&) {
    return;
  }
  owner_ == Owner::kProcess ? library().ipc_memory_close(start) : library().free(start);
}

Address CudaBuffer::at(size_t offset, size_t bytes) const {
  if (offset > this->bytes() || bytes > this->bytes() - offset) {
    throw std::out_of_range(device.label() + ": bytes " + std::to_string(offset) + " to " +
                            std::to_string(offset + bytes) + " of a buffer of " +
                            std::to_string(this->bytes()) + " bytes");
  }
  return start + offset;
}

CudaPinned::~CudaPinned() {
  try {
    device_.use();
  } catch (const DeviceError&) {
    return;
  }
  library().free_host(data_);
}

size_t CudaDevice::free_memory() const {
  use();
  size_t left = 0, all = 0;
  check(library().memory_info(&left, &all), "query of the free memory");
  return left;
}

int CudaDevice::owner_of(uint64_t address) const {
  use();
  int number = -1;
  return library().pointer_attribute(&number, kPointerDeviceOrdinal, address) == kSuccess ? number : -1;
}

std::unique_ptr<Buffer> CudaDevice::allocate(size_t bytes) {
  use();
  Address address = 0;
  const size_t allocated_bytes = std::max<size_t>(bytes, 1);
  const Status status = library().allocate(&address, allocated_bytes);
  if (status == kOutOfMemory) throw OutOfMemory("memory of " + label(), bytes, free_memory(), kLessMemory);
  check(status, "allocation of memory");
  auto buffer = std::make_unique<CudaBuffer>(*this, address, bytes, CudaBuffer::Owner::kBuffer);
  // The call waits, since any queue may use the buffer immediately.
  check(library().set_bytes(address, 0, allocated_bytes, clearing_), "initialization of memory");
  check(library().stream_synchronize(clearing_), "initialization of memory");
  return buffer;
}

std::unique_ptr<Pinned> CudaDevice::pinned(size_t bytes) {
  use();
  void* data = nullptr;
  const Status status = library().allocate_host(&data, std::max<size_t>(bytes, 1), kHostPortable);
  if (status == kOutOfMemory) {
    throw OutOfMemory("pinned host memory for copies with " + label(), bytes, available_memory());
  }
  check(status, "allocation of pinned host memory");
  return std::make_unique<CudaPinned>(*this, data);
}

}  // namespace halocline::device::cuda
