// OpenCL objects behind the device interface: memory in opencl_memory.cpp, code in opencl_kernel.cpp, command
// queues and events in opencl_queue.cpp, devices in opencl.cpp. Devices of one platform share a context, so
// that they can copy from each other and wait for each other's events.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "device/device.hpp"
#include "device/opencl_library.hpp"
#include "storage/memory.hpp"

namespace halocline::device::opencl {

// Return the functions of OpenCL. They are valid if there is a device.
const cl::Library& api();

// Return the name of an error, with advice.
std::string described(cl::Int error);

[[noreturn]] void fail(const std::string& device, const std::string& operation, cl::Int error);

inline void check(const std::string& device, const std::string& operation, cl::Int error) {
  if (error != cl::kSuccess) fail(device, operation, error);
}

// Return a text that the interface provides in two calls: first its length, then the text.
template <typename Get>
std::string text(Get&& get) {
  size_t bytes = 0;
  if (get(size_t{0}, nullptr, &bytes) != cl::kSuccess || bytes == 0) return "";
  std::string result(bytes, '\0');
  if (get(bytes, result.data(), nullptr) != cl::kSuccess) return "";
  result.resize(std::min(result.find('\0'), result.size()));
  const size_t first = result.find_first_not_of(" \n");
  return first == std::string::npos ? "" : result.substr(first, result.find_last_not_of(" \n") + 1 - first);
}

// Common state of the objects of a device.
struct State {
  State(cl::DeviceId on, cl::Context within) : device(on), context(within) {}
  cl::DeviceId device;
  cl::Context context;
  std::string label;        // name in messages
  bool priorities = false;  // the queues have priorities
  std::atomic<size_t> used_bytes = 0;
};

class ClBuffer : public Buffer {
 public:
  ClBuffer(std::shared_ptr<State> state, cl::Memory memory, size_t bytes);
  // The library defers the release until queued work has used the memory.
  ~ClBuffer() override;

  cl::Memory memory() const { return memory_; }
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
  cl::Memory memory_;
};

// Return the OpenCL buffer behind the general interface. Throws std::invalid_argument if it belongs to
// another interface, and DeviceError if it belongs to another platform.
const ClBuffer& ours(const State& state, const Buffer& buffer);

class ClPinned : public Pinned {
 public:
  ClPinned(std::shared_ptr<State> state, cl::CommandQueue queue, size_t bytes);
  ~ClPinned() override;

  char* data() const override { return static_cast<char*>(data_); }

 private:
  std::shared_ptr<State> state_;
  cl::CommandQueue queue_;
  cl::Memory memory_ = nullptr;
  void* data_ = nullptr;
};

// Zero pattern to fill a range. Wide patterns are faster, but their size must divide the size of the range.
struct Zeros {
  alignas(64) std::byte pattern[64]{};
  size_t width = sizeof pattern;

  Zeros(size_t offset, size_t bytes) {
    while (offset % width != 0 || bytes % width != 0) width /= 2;
  }
};

// Queued commands that are not known to be complete. A failed command reports its error only in its own
// event: neither later commands nor clFinish need to report it.
class Commands {
 public:
  explicit Commands(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;
  // Add a command and take ownership of its event. `operation` names the command in messages.
  void add(cl::Event event, std::string operation);
  // Throw DeviceError if a command has failed. All later calls throw again.
  void check();
  const State& state() const { return *state_; }

 private:
  void forget_done();

  std::shared_ptr<State> state_;
  std::mutex mutex_;
  std::deque<std::pair<cl::Event, std::string>> pending_;
  std::string failure_;
};

class ClEvent : public Event {
 public:
  ClEvent(std::shared_ptr<Commands> commands, cl::Event event)
      : commands_(std::move(commands)), event_(event) {}
  ~ClEvent() override { api().ReleaseEvent(event_); }

  bool done() const override;
  void wait() const override { throw_if_failed(api().WaitForEvents(1, &event_)); }

  cl::Event event() const { return event_; }
  const State& state() const { return commands_->state(); }

 private:
  // Throw if the event failed. The errors of the commands come first, since they are more specific.
  void throw_if_failed(cl::Int error) const;

  std::shared_ptr<Commands> commands_;
  cl::Event event_;
};

class ClKernel : public Kernel {
 public:
  ClKernel(std::shared_ptr<State> state, cl::Kernel kernel, std::string name);
  ~ClKernel() override { api().ReleaseKernel(kernel_); }

  size_t max_threads_per_block() const override;

  cl::Kernel kernel() const { return kernel_; }
  const std::string& name() const { return name_; }
  const State& state() const { return *state_; }

  void set(std::span<const Argument> arguments) const;

 private:
  std::shared_ptr<State> state_;
  cl::Kernel kernel_;
  std::string name_;
  cl::UInt count_ = 0;
};

// Create a queue. Work in urgent queues runs first. A timed queue stores the times of its commands.
cl::CommandQueue make_queue(const State& state, bool urgent, bool timed);

class ClQueue : public Queue {
 public:
  ClQueue(std::shared_ptr<State> state, bool urgent)
      : state_(std::move(state)),
        urgent_(urgent),
        queue_(make_queue(*state_, urgent, false)),
        commands_(std::make_shared<Commands>(state_)) {}
  ~ClQueue() override;
  using Queue::launch;
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
  void flush() override { check(state_->label, "start of queued work", api().Flush(queue_)); }
  void finish() override;
  void begin_trace(std::shared_ptr<Clock> clock) override;
  std::vector<TraceEvent> end_trace() override;

 private:
  // State of a trace: the queue without times, and the commands whose times are not read yet. `events` has
  // times of the device clock.
  struct Times {
    cl::CommandQueue untimed;
    std::deque<std::pair<cl::Event, TraceEvent>> pending{};
    std::vector<TraceEvent> events{};
  };

  // Rows in the form of the interface: the first byte, and the numbers of bytes, rows and planes.
  struct Box {
    explicit Box(const Rows& rows) : first{rows.offset, 0, 0}, region{rows.bytes, rows.count, 1} {}

    static constexpr size_t kDense[3] = {0, 0, 0};
    size_t first[3], region[3];
  };

  cl::Memory at(const Buffer& buffer, size_t offset, size_t bytes) const;

  template <typename Enqueue>
  void queued(const std::string& operation, Enqueue&& enqueue, const TraceEvent* traced = nullptr);
  // Read the times of pending commands that are complete.
  void read_times();

  std::shared_ptr<State> state_;
  bool urgent_;
  cl::CommandQueue queue_;
  std::shared_ptr<Commands> commands_;
  std::unique_ptr<Times> times_;  // empty: no trace
};

class ClDevice : public Device {
 public:
  ClDevice(Description description, cl::DeviceId device, cl::Context context);
  ~ClDevice() override { api().ReleaseCommandQueue(setup_); }
  const Description& description() const override { return description_; }
  // OpenCL does not report the allocations of other processes.
  size_t free_memory() const override;
  std::unique_ptr<Buffer> allocate(size_t bytes) override;
  std::unique_ptr<Pinned> pinned(size_t bytes) override;
  std::unique_ptr<Queue> queue(bool urgent) override;
  std::shared_ptr<Clock> clock() override;
  std::unique_ptr<Module> load(const std::string& code, const std::string& options) override;
  // In OpenCL 1.2 a kernel can use all memory of its context, but it is unspecified which device holds the
  // memory.
  bool reaches(const Device& other) override { return &other == this; }

 private:
  OutOfMemory out_of_memory(size_t bytes) const;
  static bool no_memory(cl::Int error);

  Description description_;
  std::shared_ptr<State> state_;
  size_t largest_buffer_ = 0;
  cl::CommandQueue setup_ = nullptr;
};

}  // namespace halocline::device::opencl
