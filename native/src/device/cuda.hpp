// CUDA driver objects behind the device interface: memory in cuda_memory.cpp, code in cuda_kernel.cpp,
// streams and events in cuda_queue.cpp, handles for other processes in cuda_ipc.cpp, devices in cuda.cpp.
//
// The primary context of a device is shared with other users of CUDA in the process, such as a CUDA-aware
// MPI. It is created at the first use, so that a process on a node with many devices creates only its own
// context. Each call sets the context, since the calling thread may have used another device in between.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "device/cuda_library.hpp"
#include "device/device.hpp"

namespace halocline::device::cuda {

class CudaDevice;

[[noreturn]] void fail(Status status, const std::string& device, const std::string& operation);

class CudaBuffer : public Buffer {
 public:
  // Owner of the memory: this buffer, another process, or a module.
  enum class Owner { kBuffer, kProcess, kModule };

  CudaBuffer(const CudaDevice& device, Address address, size_t bytes, Owner owner)
      : Buffer(bytes), device(device), start(address), owner_(owner) {}
  ~CudaBuffer() override;

  void* address() const override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's type is a number
    return reinterpret_cast<void*>(start);
  }
  // Return the address of `bytes` bytes that begin at `offset`.
  Address at(size_t offset, size_t bytes) const;

  const CudaDevice& device;
  const Address start;

 private:
  Owner owner_;
};

class CudaPinned : public Pinned {
 public:
  CudaPinned(const CudaDevice& device, void* data) : device_(device), data_(data) {}
  ~CudaPinned() override;

  char* data() const override { return static_cast<char*>(data_); }

 private:
  const CudaDevice& device_;
  void* data_;
};

class CudaEvent : public Event {
 public:
  enum class Kind { kPooled, kShared, kAttached };

  CudaEvent(const CudaDevice& device, EventOfStream event, Kind kind)
      : device(device), event(event), kind(kind) {}
  ~CudaEvent() override;

  bool done() const override;
  void wait() const override;

  const CudaDevice& device;
  const EventOfStream event;
  const Kind kind;
};

class CudaKernel : public Kernel {
 public:
  CudaKernel(const CudaDevice& device, Function function, std::string name);

  size_t max_threads_per_block() const override { return static_cast<size_t>(threads_); }
  int registers() const override { return registers_; }
  size_t spilled() const override { return static_cast<size_t>(spilled_); }
  void reserve_tiles(size_t bytes) override;
  size_t tile_bytes() const { return tile_bytes_; }

  // Check the number and sizes of the arguments, if the driver reports the sizes. The driver itself does not
  // check them: it reads as many arguments as the kernel has. Throws std::invalid_argument.
  void check_arguments(std::span<const Argument> arguments) const;

  const CudaDevice& device;
  const Function function;
  const std::string name;

 private:
  int attribute(FunctionAttribute attribute) const;

  int threads_, registers_, spilled_;
  size_t tile_bytes_ = 0;
  bool sized_ = false;
  std::vector<size_t> sizes_;
};

// Clock of event times. Times are relative to an event that the constructor records.
class CudaClock : public Clock {
 public:
  explicit CudaClock(const CudaDevice& device);
  ~CudaClock() override;

  Reading read() override;

  const CudaDevice& device;
  Stream stream = nullptr;
  EventOfStream zero = nullptr, last = nullptr;
};

class CudaQueue : public Queue {
 public:
  CudaQueue(const CudaDevice& device, Stream stream) : device(device), stream(stream) {}
  ~CudaQueue() override;

  void launch(const Kernel& kernel, const std::array<uint32_t, 3>& block_counts,
              const std::array<uint32_t, 3>& block_shape, std::span<const Argument> arguments) override;
  void copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override;
  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override;
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override;
  void upload(Buffer& to, const Rows& rows, const void* from) override;
  void download(void* to, const Buffer& from, const Rows& rows) override;
  void copy(Buffer& to, const Rows& to_rows, const Buffer& from, const Rows& from_rows) override;
  void clear(Buffer& buffer, size_t offset, size_t bytes) override;
  std::shared_ptr<Event> record() override;
  void wait(const std::shared_ptr<Event>& event) override;
  void flush() override {}  // the driver begins at once
  void finish() override;
  // Other threads may use the device during a capture.
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void launch(const Graph& graph) override;
  void begin_trace(std::shared_ptr<Clock> clock) override;
  std::vector<TraceEvent> end_trace() override;

  const CudaDevice& device;
  const Stream stream;

 private:
  // State of a trace. Times are differences between events. The event `zero` occurs at `since` seconds of the
  // clock. Each command whose times are not read yet has an event before it and an event after it.
  struct Timed {
    EventOfStream before, after;
    TraceEvent traced;
  };
  struct Times {
    std::shared_ptr<CudaClock> clock;
    EventOfStream zero;
    double since = 0;
    std::deque<Timed> pending{};
    std::vector<EventOfStream> unused{};
    std::vector<TraceEvent> events{};
  };
  // Guard of a command: it records an event before the command, and one after the command is queued.
  class Timing;

  EventOfStream record_time();
  double seconds_of(EventOfStream event);
  // Read the times of pending commands that are complete.
  void read_times();
  void forget_times() noexcept;

  // Set the device end of a copy. An end that neither function sets is in host memory.
  static void source(RowsCopy& copy, const Buffer& from, const Rows& rows);
  static void target(RowsCopy& copy, const Buffer& to, const Rows& rows);
  void run(RowsCopy& copy, const Rows& rows, const char* operation, const TraceEvent& traced);

  std::vector<void*> parameters_;
  std::unique_ptr<Times> times_;  // empty: no trace
};

class CudaDevice : public Device {
 public:
  CudaDevice(int number, int index);

  const Description& description() const override { return description_; }
  size_t free_memory() const override;
  std::unique_ptr<Buffer> allocate(size_t bytes) override;
  std::unique_ptr<Pinned> pinned(size_t bytes) override;
  std::unique_ptr<Queue> queue(bool urgent) override;
  void synchronize() override;
  int owner_of(uint64_t address) const override;
  std::shared_ptr<Clock> clock() override;
  std::unique_ptr<Module> load(const std::string& code, const std::string& options) override;
  bool reaches(const Device& other) override;
  bool captures() const override { return true; }

  bool shares() const override { return shares_; }
  Shared share(const Buffer& buffer) override;
  std::unique_ptr<Buffer> attach(const Shared& shared, size_t bytes) override;
  std::shared_ptr<Event> shared_event() override;
  Shared share(const Event& event) override;
  std::shared_ptr<Event> attach_event(const Shared& shared) override;
  void record(Event& event, Queue& queue) override;

  // Make the context of the device current in the calling thread, and return it.
  Context use() const;
  std::string label() const;
  void check(Status status, const char* operation) const {
    if (status != kSuccess) fail(status, label(), operation);
  }

  // Released events are reused, since steps need many events, and creating an event takes longer than
  // recording it.
  EventOfStream take_event() const;
  void recycle_event(EventOfStream event) const noexcept;

 private:
  int attribute(DeviceAttribute attribute) const;

  int number_;  // number of the driver
  Description description_;
  bool shares_ = true;
  mutable std::once_flag context_once_;
  mutable Context context_ = nullptr;
  mutable Stream clearing_ = nullptr;  // clears new memory
  mutable std::mutex mutex_;           // protects the events
  mutable std::vector<EventOfStream> events_;
};

// Return the CUDA object behind the general interface. Throws std::invalid_argument if it belongs to another
// interface.
const CudaBuffer& ours(const Buffer& buffer);
const CudaEvent& ours(const Event& event);

}  // namespace halocline::device::cuda
