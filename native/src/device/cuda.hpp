// Objects of the CUDA driver behind the device interface: memory in cuda_memory.cpp, code in cuda_kernel.cpp,
// streams and events in cuda_queue.cpp, handles for other processes in cuda_ipc.cpp, devices in cuda.cpp.
//
// A device's primary context is shared with other users of CUDA in the process, such as a CUDA-aware MPI. It
// is created at the first use: on a node of many devices a process pays for its own alone. Each call sets the
// context, since the calling thread may have used another device in between.
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

[[noreturn]] void fail(Status status, const std::string& where, const std::string& what);

class CudaBuffer : public Buffer {
 public:
  CudaBuffer(const CudaDevice& device, Address address, size_t bytes, bool attached)
      : Buffer(bytes), device(device), start(address), attached_(attached) {}
  ~CudaBuffer() override;

  void* address() const override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's type is a number
    return reinterpret_cast<void*>(start);
  }
  // Where `bytes` from `offset` on begin.
  Address at(size_t offset, size_t bytes) const;

  const CudaDevice& device;
  const Address start;

 private:
  bool attached_;  // another process's
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

  size_t largest_group() const override { return static_cast<size_t>(threads_); }
  int registers() const override { return registers_; }
  size_t spilled() const override { return static_cast<size_t>(spilled_); }

  // The driver reads as many arguments as the kernel has, whatever the caller passes. Where the driver tells
  // their sizes, this compares them. Throws std::invalid_argument.
  void check_arguments(std::span<const Argument> arguments) const;

  const CudaDevice& device;
  const Function function;
  const std::string name;

 private:
  int attribute(FunctionAttribute attribute) const;

  int threads_, registers_, spilled_;
  bool sized_ = false;
  std::vector<size_t> sizes_;
};

// Events have times relative to one that is recorded first.
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

  void launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups,
              const std::array<uint32_t, 3>& group, std::span<const Argument> arguments) override;
  void copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override;
  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override;
  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override;
  void upload(Buffer& to, const Rows& rows, const void* from) override;
  void download(void* to, const Buffer& from, const Rows& rows) override;
  void copy(Buffer& to, const Rows& there, const Buffer& from, const Rows& here) override;
  void clear(Buffer& buffer, size_t offset, size_t bytes) override;
  std::shared_ptr<Event> record() override;
  void wait(const std::shared_ptr<Event>& event) override;
  void flush() override {}  // the driver begins at once
  void finish() override;
  // Other threads may go on using the device meanwhile.
  void begin_capture() override;
  std::unique_ptr<Graph> end_capture() override;
  void launch(const Graph& graph) override;
  void begin_trace(std::shared_ptr<Clock> clock) override;
  std::vector<TraceEvent> end_trace() override;

  const CudaDevice& device;
  const Stream stream;

 private:
  // State of a trace: times are differences between events, of which `zero` is at `since` seconds of the
  // clock. A command whose times are not read yet has an event before and after it.
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
  // Around a command: before it, and after it once it is queued.
  class Timing;

  EventOfStream record_time();
  double seconds_of(EventOfStream event);
  // Reads the times of pending commands that are done.
  void read_times();
  void forget_times() noexcept;

  // The end that neither of these sets is in memory of the host.
  static void source(RowsCopy& copy, const Buffer& from, const Rows& rows);
  static void target(RowsCopy& copy, const Buffer& to, const Rows& rows);
  void run(RowsCopy& copy, const Rows& rows, const char* doing, const TraceEvent& traced);

  std::vector<void*> parameters_;
  std::unique_ptr<Times> times_;  // none: nothing is traced
};

class CudaDevice : public Device {
 public:
  CudaDevice(int number, int index);

  const Description& description() const override { return description_; }
  size_t free_memory() const override;
  std::unique_ptr<Buffer> allocate(size_t bytes) override;
  std::unique_ptr<Pinned> pinned(size_t bytes) override;
  std::unique_ptr<Queue> queue(bool urgent) override;
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

  // Makes its context the calling thread's, and returns it.
  Context use() const;
  std::string where() const;
  void check(Status status, const char* what) const {
    if (status != kSuccess) fail(status, where(), what);
  }

  // Events cost more to make than to record, and steps need many: those that are no longer held are used
  // again.
  EventOfStream take_event() const;
  void give_event(EventOfStream event) const noexcept;

 private:
  int attribute(DeviceAttribute attribute) const;

  int number_;  // the driver's
  Description description_;
  bool shares_ = true;
  mutable std::once_flag made_;
  mutable Context context_ = nullptr;
  mutable Stream clearing_ = nullptr;  // of new memory
  mutable std::mutex mutex_;           // of the events
  mutable std::vector<EventOfStream> events_;
};

// The object of this interface behind that of any interface. Throws std::invalid_argument where it is another
// interface's.
const CudaBuffer& ours(const Buffer& buffer);
const CudaEvent& ours(const Event& event);

}  // namespace halocline::device::cuda
