// What the engine needs of a device with memory of its own; CUDA and OpenCL provide it.
//
// Work goes to queues. What is in one queue runs in order; events order what is in different queues, also
// of different devices of one interface. No call but Event::wait, Queue::finish and the destructors waits
// for the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "threads/trace.hpp"

namespace halocline::device {

// A call to the device failed: the message says which, the device's own error, and what to do.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// To do where a device has too little memory.
inline constexpr const char* kLessMemory = "take more devices, a smaller grid or float32";

struct Description {
  std::string interface;  // "cuda" or "opencl"
  int index = 0;          // among the devices of the interface that this process sees
  std::string name;       // of the model
  std::string driver;     // its version
  std::string platform;   // OpenCL's: only devices of one reach each other's memory; empty for CUDA
  std::string identity;   // the same for one device in all processes: CUDA's UUID, OpenCL's platform and name
  std::string architecture;  // "sm_90"; empty for OpenCL
  size_t memory = 0;         // bytes
  size_t local_memory = 0;   // bytes that the threads of a group can share
  size_t largest_group = 0;  // threads
  size_t parameters = 0;     // bytes that a kernel can be given
  int units = 0;             // processors that run groups side by side
  bool doubles = false;      // has float64
  bool singles = false;      // has float32 with the host's bits
};

// Memory of a device.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  size_t bytes() const { return bytes_; }
  // Where MPI and peers find it; null where the interface has no addresses.
  virtual void* address() const { return nullptr; }

 private:
  size_t bytes_;
};

// Memory of the host that devices copy from and to without help of the processor.
class Pinned {
 public:
  virtual ~Pinned() = default;
  Pinned() = default;
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  virtual char* data() const = 0;
};

class Event {
 public:
  virtual ~Event() = default;
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Whether all before it in its queue is done. Throws DeviceError where something of that failed.
  virtual bool done() const = 0;
  virtual void wait() const = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // The most threads of a group that it can run with.
  virtual size_t largest_group() const = 0;
  // Of a thread: registers, and bytes in the device's memory, which hold what registers could not; 0 where
  // the device does not tell.
  virtual int registers() const { return 0; }
  virtual size_t spilled() const { return 0; }
};

// Compiled code.
class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Throws DeviceError where there is no kernel of that name. Each call makes another; it must not outlive
  // the module.
  virtual std::unique_ptr<Kernel> kernel(const std::string& name) const = 0;
};

// A parameter of a kernel: the address of a buffer's first byte, or the bytes of a value.
using Argument = std::variant<const Buffer*, std::span<const std::byte>>;

// Work that is recorded once and launched many times.
class Graph {
 public:
  virtual ~Graph() = default;
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

// Rows of bytes in a buffer: where the first begins, how far apart they begin, and how many there are.
struct Rows {
  size_t offset, pitch, bytes, count;

  size_t end() const { return count == 0 ? offset : offset + (count - 1) * pitch + bytes; }
  // As many of the same size that lie one after the other.
  Rows dense(size_t from) const { return {from, bytes, bytes, count}; }
};

// One moment by the clocks of a device and of the host, in seconds. The host's time is wrong by `error` at
// most.
struct Reading {
  double device = 0, host = 0, error = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  // Waits for the device, but not for what is queued elsewhere.
  virtual Reading read() = 0;
};

class Queue {
 public:
  virtual ~Queue() = default;  // waits for what it holds
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // `groups` and the threads of each, both along x, y, z; x runs along the contiguous axis. Arguments are
  // taken at once.
  virtual void launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups,
                      const std::array<uint32_t, 3>& group, std::span<const Argument> arguments) = 0;
  // Between two places of this device's memory, or from another device of the interface to this one.
  virtual void copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) = 0;
  // The host's memory must stay as it is until this is done; only where it is pinned does the host not wait.
  virtual void upload(Buffer& to, size_t offset, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const Buffer& from, size_t offset, size_t bytes) = 0;
  // The same for rows of this device's memory; the host's lie one after the other.
  virtual void upload(Buffer& to, const Rows& rows, const void* from) = 0;
  virtual void download(void* to, const Buffer& from, const Rows& rows) = 0;
  // As many rows of the same size, between two places of this device's memory.
  virtual void copy(Buffer& to, const Rows& there, const Buffer& from, const Rows& here) = 0;
  virtual void clear(Buffer& buffer, size_t offset, size_t bytes) = 0;  // to zero bytes
  virtual std::shared_ptr<Event> record() = 0;
  // What follows in this queue waits for the event.
  virtual void wait(const std::shared_ptr<Event>& event) = 0;
  // Lets the device begin with what is queued.
  virtual void flush() = 0;
  // Waits for all that is queued. Throws DeviceError where something of it failed.
  virtual void finish() = 0;

  // Records what is queued, instead of running it, until end_capture(); only where Device::captures().
  virtual void begin_capture() { throw std::logic_error("this device records no graphs"); }
  virtual std::unique_ptr<Graph> end_capture() { throw std::logic_error("this device records no graphs"); }
  virtual void launch(const Graph&) { throw std::logic_error("this device records no graphs"); }

  // Times each command from now on by a clock of the device, until end_trace(). Waits for what is queued. A
  // queue that is never traced takes no times.
  virtual void begin_trace(std::shared_ptr<Clock> clock) = 0;
  // Waits, and returns an event for each command, in the order of the queue and in seconds of the clock.
  virtual std::vector<TraceEvent> end_trace() = 0;
  // What the commands that follow do; copies between device and host are kDownload and kUpload in any case.
  void mark(Doing doing, int32_t sweep = -1, int32_t what = -1, int32_t tag = -1) {
    mark_ = {doing, sweep, what, tag, 0.0, 0.0};
  }

 protected:
  TraceEvent marked_as(Doing doing) const { return {doing, mark_.sweep, mark_.what, mark_.tag, 0.0, 0.0}; }
  const TraceEvent& marked() const { return mark_; }

 private:
  TraceEvent mark_;
};

// What another process needs to use a buffer or an event of this one.
using Shared = std::vector<std::byte>;

class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const Description& description() const = 0;
  // Bytes that can still be allocated, as far as the device tells.
  virtual size_t free_memory() const = 0;
  // Throws OutOfMemory (storage/memory.hpp), naming the device.
  virtual std::unique_ptr<Buffer> allocate(size_t bytes) = 0;
  virtual std::unique_ptr<Pinned> pinned(size_t bytes) = 0;
  // What is in urgent queues runs before what other queues have ready.
  virtual std::unique_ptr<Queue> queue(bool urgent) = 0;
  // Clock for traces of the queues of this device; must not outlive the device.
  virtual std::shared_ptr<Clock> clock() = 0;
  // CUDA: a cubin or PTX; OpenCL: source, with options for the compiler. Throws DeviceError with the
  // compiler's words.
  virtual std::unique_ptr<Module> load(const std::string& code, const std::string& options) = 0;
  // Whether kernels of this device can use the memory of another one; makes it so where it can be.
  virtual bool reaches(const Device&) { return false; }
  virtual bool captures() const { return false; }

  // Between processes of a node.
  virtual bool shares() const { return false; }
  virtual Shared share(const Buffer&) { throw std::logic_error("this device shares no memory"); }
  virtual std::unique_ptr<Buffer> attach(const Shared&, size_t) {
    throw std::logic_error("this device shares no memory");
  }
  // An event that is recorded again and again by the process that makes it, and waited for by another one.
  virtual std::shared_ptr<Event> shared_event() { throw std::logic_error("this device shares no events"); }
  virtual Shared share(const Event&) { throw std::logic_error("this device shares no events"); }
  virtual std::shared_ptr<Event> attach_event(const Shared&) {
    throw std::logic_error("this device shares no events");
  }
  virtual void record(Event&, Queue&) { throw std::logic_error("this device shares no events"); }
};

// The devices of an interface that this process sees, made at the first call and kept. Empty where its
// library or driver is missing; why() says so in words.
const std::vector<std::shared_ptr<Device>>& opencl_devices();
const std::vector<std::shared_ptr<Device>>& cuda_devices();
const std::string& why_no_opencl();
const std::string& why_no_cuda();

}  // namespace halocline::device
