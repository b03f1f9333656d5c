// Memory and events of CUDA devices that processes of a node share.

#include <cstring>

#include "device/cuda.hpp"

namespace halocline::device::cuda {

namespace {

template <typename Handle>
Shared as_shared(const Handle& handle) {
  Shared shared(sizeof handle);
  std::memcpy(shared.data(), &handle, sizeof handle);
  return shared;
}

IpcHandle handle_of(const Shared& shared) {
  IpcHandle handle{};
  if (shared.size() != sizeof handle) {
    throw std::invalid_argument("a handle of " + std::to_string(shared.size()) + " bytes, expected " +
                                std::to_string(sizeof handle) + " bytes for a CUDA device");
  }
  std::memcpy(&handle, shared.data(), sizeof handle);
  return handle;
}

constexpr const char* kOutOfReach =
    "access to an object that another process shares (it may be impossible between containers or users)";

}  // namespace

Shared CudaDevice::share(const Buffer& buffer) {
  use();
  IpcHandle handle{};
  check(library().ipc_memory_handle(&handle, ours(buffer).start), "sharing memory with other processes");
  return as_shared(handle);
}

std::unique_ptr<Buffer> CudaDevice::attach(const Shared& shared, size_t bytes) {
  use();
  Address address = 0;
  check(library().ipc_memory_open(&address, handle_of(shared), kIpcLazyPeerAccess), kOutOfReach);
  return std::make_unique<CudaBuffer>(*this, address, bytes, CudaBuffer::Owner::kProcess);
}

std::shared_ptr<Event> CudaDevice::shared_event() {
  use();
  EventOfStream event = nullptr;
  check(library().event_create(&event, kEventDisableTiming | kEventInterprocess), "creation of an event");
  return std::make_shared<CudaEvent>(*this, event, CudaEvent::Kind::kShared);
}

Shared CudaDevice::share(const Event& event) {
  use();
  IpcHandle handle{};
  check(library().ipc_event_handle(&handle, ours(event).event), "sharing an event with other processes");
  return as_shared(handle);
}

std::shared_ptr<Event> CudaDevice::attach_event(const Shared& shared) {
  use();
  EventOfStream event = nullptr;
  check(library().ipc_event_open(&event, handle_of(shared)), kOutOfReach);
  return std::make_shared<CudaEvent>(*this, event, CudaEvent::Kind::kAttached);
}

void CudaDevice::record(Event& event, Queue& queue) {
  use();
  check(library().event_record(ours(event).event, static_cast<CudaQueue&>(queue).stream),
        "recording an event");
}

}  // namespace halocline::device::cuda
