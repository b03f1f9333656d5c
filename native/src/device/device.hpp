// Interface of the engine to devices with their own memory. CUDA and OpenCL implement it.
//
// Work is submitted to queues. The work in one queue runs in order. Events order the work of different
// queues, which may belong to different devices of one interface. Only Event::wait, Queue::finish and the
// destructor of a queue wait for the device.
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

// A failed call to the device. The message contains the call, the error of the device, and advice.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Advice for a device with too little memory.
inline constexpr const char* kLessMemory = "use more devices, a smaller grid or float32";

struct Description {
  std::string interface;     // "cuda" or "opencl"
  int index = 0;             // among the devices of the interface that this process sees
  std::string name;          // name of the model
  std::string driver;        // version of the driver
  std::string platform;      // OpenCL: devices of one platform can copy from each other; empty for CUDA
  std::string identity;      // equal in all processes: UUID for CUDA, platform and name for OpenCL
  std::string architecture;  // "sm_90"; empty for OpenCL
  size_t memory = 0;         // bytes
  size_t local_memory = 0;   // maximum bytes of shared memory per thread block
  size_t max_threads_per_block = 0;  // maximum threads per thread block
  size_t parameters = 0;             // maximum bytes of kernel arguments
  int units = 0;                     // multiprocessors or compute units
  bool doubles = false;              // supports float64
  bool singles = false;              // supports float32 with the bits of the host
};

// Memory of a device.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {}
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  size_t bytes() const { return bytes_; }
  // Address for MPI and peers; null if the interface has no addresses.
  virtual void* address() const { return nullptr; }

 private:
  size_t bytes_;
};

// Pinned (page-locked) host memory, which devices access by DMA.
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

  // Return true if all earlier work in the queue is complete. Throws DeviceError if some of it failed.
  virtual bool done() const = 0;
  virtual void wait() const = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Maximum number of threads per thread block.
  virtual size_t max_threads_per_block() const = 0;
  // Registers per thread, and bytes per thread of spilled registers in device memory; 0 if the device does
  // not report them.
  virtual int registers() const { return 0; }
  virtual size_t spilled() const { return 0; }
  // Reserve shared memory for the tiles of a thread block, in addition to arrays. Only CUDA needs this.
  virtual void reserve_tiles(size_t) {}
};

// Compiled code.
class Module {
 public:
  virtual ~Module() = default;
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Create a new kernel, which must not outlive the module. Throws DeviceError if there is no kernel of this
  // name.
  virtual std::unique_ptr<Kernel> kernel(const std::string& name) const = 0;
  // Return the constant memory of a symbol, which must not outlive the module; null if the interface has no
  // symbols.
  virtual std::unique_ptr<Buffer> symbol(const std::string&) const { return nullptr; }
};

// Argument of a kernel: the address of the first byte of a buffer, or the bytes of a value.
using Argument = std::variant<const Buffer*, std::span<const std::byte>>;

// Work that is recorded once and launched many times.
class Graph {
 public:
  virtual ~Graph() = default;
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
};

// Rows of bytes in a buffer: offset of the first row, distance between rows, bytes per row, number of rows.
struct Rows {
  size_t offset, pitch, bytes, count;

  size_t end() const { return count == 0 ? offset : offset + (count - 1) * pitch + bytes; }
  // Return the same number of rows of the same size, contiguous from offset `from` on.
  Rows dense(size_t from) const { return {from, bytes, bytes, count}; }
};

// Simultaneous readings of the clocks of a device and of the host, in seconds. The error of the host time is
// at most `error`.
struct Reading {
  double device = 0, host = 0, error = 0;
};

class Clock {
 public:
  virtual ~Clock() = default;
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  // Read the clocks. The call waits for the device, but not for work in other queues.
  virtual Reading read() = 0;
};

class Queue {
 public:
  virtual ~Queue() = default;  // waits for its work
  Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Launch a kernel: `block_counts` thread blocks of `block_shape` threads, along x, y, z. The x direction is
  // the contiguous axis. The call copies the arguments.
  virtual void launch(const Kernel& kernel, const std::array<uint32_t, 3>& block_counts,
                      const std::array<uint32_t, 3>& block_shape, std::span<const Argument> arguments) = 0;
  // Copy within the memory of this device, or from another device of the interface to this one.
  virtual void copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) = 0;
  // Copy from or to the host. Host memory must not change until the copy is complete. The calls may wait for
  // the copy unless the host memory is pinned.
  virtual void upload(Buffer& to, size_t offset, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const Buffer& from, size_t offset, size_t bytes) = 0;
  // Copy rows of device memory from and to contiguous rows of the host.
  virtual void upload(Buffer& to, const Rows& rows, const void* from) = 0;
  virtual void download(void* to, const Buffer& from, const Rows& rows) = 0;
  // Copy rows within the memory of this device. Both ends have the same number and size of rows.
  virtual void copy(Buffer& to, const Rows& to_rows, const Buffer& from, const Rows& from_rows) = 0;
  virtual void clear(Buffer& buffer, size_t offset, size_t bytes) = 0;  // sets bytes to zero
  virtual std::shared_ptr<Event> record() = 0;
  // Make subsequent work in this queue wait for the event.
  virtual void wait(const std::shared_ptr<Event>& event) = 0;
  // Let the device begin the queued work.
  virtual void flush() = 0;
  // Wait for all queued work. Throws DeviceError if some of it failed.
  virtual void finish() = 0;

  // Record subsequent work instead of running it, until end_capture(). Requires Device::captures().
  virtual void begin_capture() { throw std::logic_error("this device does not support graphs"); }
  virtual std::unique_ptr<Graph> end_capture() {
    throw std::logic_error("this device does not support graphs");
  }
  virtual void launch(const Graph&) { throw std::logic_error("this device does not support graphs"); }

  // Measure the time of each subsequent command by a clock of the device, until end_trace(). The call waits
  // for queued work. Without a trace, a queue measures no times.
  virtual void begin_trace(std::shared_ptr<Clock> clock) = 0;
  // Wait for queued work, and return an event for each command, in the order of the queue. Times are in
  // seconds of the clock.
  virtual std::vector<TraceEvent> end_trace() = 0;
  // Set the activity of subsequent commands. Copies between device and host are always kDownload and kUpload.
  void mark(EventKind kind, int32_t sweep = -1, int32_t subject = -1, int32_t tag = -1) {
    mark_ = {kind, sweep, subject, tag, 0.0, 0.0};
  }

 protected:
  TraceEvent marked_as(EventKind kind) const {
    return {kind, mark_.sweep, mark_.subject, mark_.tag, 0.0, 0.0};
  }
  const TraceEvent& marked() const { return mark_; }

 private:
  TraceEvent mark_;
};

// Handle of a buffer or an event for another process.
using Shared = std::vector<std::byte>;

class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const Description& description() const = 0;
  // Bytes that can still be allocated, as far as the device reports them.
  virtual size_t free_memory() const = 0;
  // Allocate zeroed device memory. Throws OutOfMemory (storage/memory.hpp) with the name of the device.
  virtual std::unique_ptr<Buffer> allocate(size_t bytes) = 0;
  virtual std::unique_ptr<Pinned> pinned(size_t bytes) = 0;
  // Create a queue. Ready work in urgent queues runs before ready work in other queues.
  virtual std::unique_ptr<Queue> queue(bool urgent) = 0;
  // Wait for all work of this process on the device, including the work of other libraries. An interface that
  // does not give its memory to other libraries has nothing to wait for.
  virtual void synchronize() {}
  // Return the index of the device whose memory contains an address, or -1 if there is none.
  virtual int owner_of(uint64_t) const { return -1; }
  // Create a clock for traces of the queues of this device. The clock must not outlive the device.
  virtual std::shared_ptr<Clock> clock() = 0;
  // Load code. CUDA: a cubin or PTX; OpenCL: source, with options for the compiler. Throws DeviceError with
  // the message of the compiler.
  virtual std::unique_ptr<Module> load(const std::string& code, const std::string& options) = 0;
  // Return true if kernels of this device can access the memory of another device. Enable the access if
  // possible.
  virtual bool reaches(const Device&) { return false; }
  virtual bool captures() const { return false; }

  // Sharing between processes of a node.
  virtual bool shares() const { return false; }
  virtual Shared share(const Buffer&) {
    throw std::logic_error("this device does not support shared memory");
  }
  virtual std::unique_ptr<Buffer> attach(const Shared&, size_t) {
    throw std::logic_error("this device does not support shared memory");
  }
  // Return an event that the creating process records repeatedly, and for which another process waits.
  virtual std::shared_ptr<Event> shared_event() {
    throw std::logic_error("this device does not support shared events");
  }
  virtual Shared share(const Event&) { throw std::logic_error("this device does not support shared events"); }
  virtual std::shared_ptr<Event> attach_event(const Shared&) {
    throw std::logic_error("this device does not support shared events");
  }
  virtual void record(Event&, Queue&) {
    throw std::logic_error("this device does not support shared events");
  }
};

// Return the visible devices of an interface, which are created at the first call. The list is empty if the
// library or driver is missing. The functions why_no_* then return the reason.
const std::vector<std::shared_ptr<Device>>& opencl_devices();
const std::vector<std::shared_ptr<Device>>& cuda_devices();
const std::string& why_no_opencl();
const std::string& why_no_cuda();

}  // namespace halocline::device
