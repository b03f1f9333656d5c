// OpenCL devices. Those of one platform share a context, so that they copy from each other and wait for each
// other's events.

#include <algorithm>
#include <atomic>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "device/device.hpp"
#include "device/opencl_library.hpp"
#include "storage/memory.hpp"

namespace halocline::device {

namespace {

// Valid wherever there is a device.
const cl::Library& api() {
  std::string why;
  return *cl::library(why);
}

[[noreturn]] void fail(const std::string& device, const std::string& doing, cl::Int error) {
  const std::string advice = cl::advice_on(error);
  throw DeviceError(device + ": " + doing + " failed with " + cl::name_of(error) +
                    (advice.empty() ? "" : ": " + advice));
}

void check(const std::string& device, const std::string& doing, cl::Int error) {
  if (error != cl::kSuccess) fail(device, doing, error);
}

template <typename Value>
Value device_info(cl::DeviceId device, cl::UInt what) {
  Value value{};
  return api().GetDeviceInfo(device, what, sizeof value, &value, nullptr) == cl::kSuccess ? value : Value{};
}

// A text that the interface gives in two calls: its length, then itself.
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

std::string device_text(cl::DeviceId device, cl::UInt what) {
  return text([&](size_t bytes, void* to, size_t* needed) {
    return api().GetDeviceInfo(device, what, bytes, to, needed);
  });
}

// The version of OpenCL that a device provides, as 100 * major + minor: "OpenCL 1.2 words of the driver's".
int version_of(cl::DeviceId device) {
  std::istringstream words(device_text(device, cl::kDeviceVersion));
  std::string opencl;
  int major = 0, minor = 0;
  char point = 0;
  return words >> opencl >> major >> point >> minor ? 100 * major + minor : 0;
}

// float64 as the promise of equal bits needs it: with fma, subnormals, infinities and NaNs.
bool has_doubles(cl::DeviceId device) {
  constexpr cl::Bits kNeeded = cl::kFpDenorm | cl::kFpInfNan | cl::kFpRoundToNearest | cl::kFpFma;
  return (device_info<cl::Bits>(device, cl::kDeviceDoubleFpConfig) & kNeeded) == kNeeded;
}

// The same of float32, but for subnormals, which are outside the promise.
bool has_singles(cl::DeviceId device) {
  constexpr cl::Bits kNeeded = cl::kFpInfNan | cl::kFpRoundToNearest | cl::kFpFma | cl::kFpDivideSqrt;
  return (device_info<cl::Bits>(device, cl::kDeviceSingleFpConfig) & kNeeded) == kNeeded;
}

// A device as all that belongs to it sees it.
struct Home {
  Home(cl::DeviceId on, cl::Context within) : device(on), context(within) {}
  cl::DeviceId device;
  cl::Context context;
  std::string words;  // for messages
  std::atomic<size_t> used = 0;
};

void check_range(const Home& home, const Buffer& buffer, size_t offset, size_t bytes) {
  if (offset <= buffer.bytes() && bytes <= buffer.bytes() - offset) return;
  throw std::invalid_argument(home.words + ": bytes " + std::to_string(offset) + " to " +
                              std::to_string(offset + bytes) + " of a buffer of " +
                              std::to_string(buffer.bytes()) + " bytes, expected a range within it");
}

class ClBuffer : public Buffer {
 public:
  ClBuffer(std::shared_ptr<Home> home, cl::Memory memory, size_t bytes)
      : Buffer(bytes), home_(std::move(home)), memory_(memory) {
    home_->used += bytes;
  }
  // The library waits with it until what is queued has used it.
  ~ClBuffer() override {
    api().ReleaseMemObject(memory_);
    home_->used -= bytes();
  }

  cl::Memory memory() const { return memory_; }
  const Home& home() const { return *home_; }

 private:
  std::shared_ptr<Home> home_;
  cl::Memory memory_;
};

const ClBuffer& ours(const Home& home, const Buffer& buffer) {
  const auto* found = dynamic_cast<const ClBuffer*>(&buffer);
  if (found == nullptr) {
    throw std::invalid_argument(home.words + ": a buffer of another interface, expected OpenCL's");
  }
  if (found->home().context != home.context) {
    fail(home.words, "the use of memory of " + found->home().words, cl::kInvalidContext);
  }
  return *found;
}

class ClPinned : public Pinned {
 public:
  ClPinned(std::shared_ptr<Home> home, cl::CommandQueue queue, size_t bytes)
      : home_(std::move(home)), queue_(queue) {
    cl::Int error = cl::kSuccess;
    memory_ =
        api().CreateBuffer(home_->context, cl::kMemReadWrite | cl::kMemAllocHostPtr, bytes, nullptr, &error);
    if (error == cl::kSuccess) {
      data_ = api().EnqueueMapBuffer(queue_, memory_, cl::kTrue, cl::kMapRead | cl::kMapWrite, 0, bytes, 0,
                                     nullptr, nullptr, &error);
      if (error != cl::kSuccess) api().ReleaseMemObject(memory_);
    }
    if (error != cl::kSuccess) {
      throw OutOfMemory("pinned memory for " + home_->words, bytes, available_memory());
    }
  }
  ~ClPinned() override {
    api().EnqueueUnmapMemObject(queue_, memory_, data_, 0, nullptr, nullptr);
    api().Finish(queue_);
    api().ReleaseMemObject(memory_);
  }

  char* data() const override { return static_cast<char*>(data_); }

 private:
  std::shared_ptr<Home> home_;
  cl::CommandQueue queue_;
  cl::Memory memory_ = nullptr;
  void* data_ = nullptr;
};

// Zeros to fill a range with: wide patterns are faster, but must divide it.
struct Zeros {
  alignas(64) std::byte pattern[64]{};
  size_t width = sizeof pattern;

  Zeros(size_t offset, size_t bytes) {
    while (offset % width != 0 || bytes % width != 0) width /= 2;
  }
};

cl::Int status_of(cl::Event event) {
  cl::Int status = cl::kComplete;
  const cl::Int error =
      api().GetEventInfo(event, cl::kEventCommandExecutionStatus, sizeof status, &status, nullptr);
  return error == cl::kSuccess ? status : error;
}

// What is queued and not known to be done. A command that fails says so in its own event only: neither those
// after it nor clFinish need to tell.
class Commands {
 public:
  explicit Commands(std::shared_ptr<Home> home) : home_(std::move(home)) {}
  ~Commands() {
    for (const auto& [event, doing] : pending_) api().ReleaseEvent(event);
  }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  // `doing` names the command in messages; taken over with its event.
  void add(cl::Event event, std::string doing) {
    const std::scoped_lock lock(mutex_);
    pending_.emplace_back(event, std::move(doing));
    forget_done();
  }

  // Throws DeviceError where a command has failed: in this call and in all later ones.
  void check() {
    const std::scoped_lock lock(mutex_);
    forget_done();
    if (!failure_.empty()) throw DeviceError(failure_);
  }

  const Home& home() const { return *home_; }

 private:
  void forget_done() {
    for (; !pending_.empty(); pending_.pop_front()) {
      const auto& [event, doing] = pending_.front();
      const cl::Int status = status_of(event);
      if (status > cl::kComplete) return;
      if (status < 0 && failure_.empty()) {
        const std::string advice = cl::advice_on(status);
        failure_ = home_->words + ": " + doing + " failed with " + cl::name_of(status) +
                   (advice.empty() ? "" : ": " + advice);
      }
      api().ReleaseEvent(event);
    }
  }

  std::shared_ptr<Home> home_;
  std::mutex mutex_;
  std::deque<std::pair<cl::Event, std::string>> pending_;
  std::string failure_;
};

class ClEvent : public Event {
 public:
  ClEvent(std::shared_ptr<Commands> commands, cl::Event event)
      : commands_(std::move(commands)), event_(event) {}
  ~ClEvent() override { api().ReleaseEvent(event_); }

  bool done() const override {
    const cl::Int status = status_of(event_);
    if (status > cl::kComplete) return false;
    judge(status);
    return true;
  }
  void wait() const override { judge(api().WaitForEvents(1, &event_)); }

  cl::Event event() const { return event_; }
  const Home& home() const { return commands_->home(); }

 private:
  // The commands first: they know more than that something has failed.
  void judge(cl::Int error) const {
    commands_->check();
    check(commands_->home().words, "what an event waits for", error);
  }

  std::shared_ptr<Commands> commands_;
  cl::Event event_;
};

class ClKernel : public Kernel {
 public:
  ClKernel(std::shared_ptr<Home> home, cl::Kernel kernel, std::string name)
      : home_(std::move(home)), kernel_(kernel), name_("kernel " + std::move(name)) {
    check(home_->words, name_,
          api().GetKernelInfo(kernel_, cl::kKernelNumArgs, sizeof count_, &count_, nullptr));
  }
  ~ClKernel() override { api().ReleaseKernel(kernel_); }

  size_t largest_group() const override {
    size_t threads = 0;
    check(home_->words, name_,
          api().GetKernelWorkGroupInfo(kernel_, home_->device, cl::kKernelWorkGroupSize, sizeof threads,
                                       &threads, nullptr));
    return threads;
  }

  cl::Kernel kernel() const { return kernel_; }
  const std::string& name() const { return name_; }
  const Home& home() const { return *home_; }

  void set(std::span<const Argument> arguments) const {
    if (arguments.size() != count_) {
      throw std::invalid_argument(home_->words + ": " + name_ + " is given " +
                                  std::to_string(arguments.size()) + " arguments, expected " +
                                  std::to_string(count_));
    }
    for (cl::UInt n = 0; n < count_; ++n) {
      cl::Int error = cl::kSuccess;
      if (const auto* buffer = std::get_if<const Buffer*>(&arguments[n])) {
        const cl::Memory memory = *buffer == nullptr ? nullptr : ours(*home_, **buffer).memory();
        error = api().SetKernelArg(kernel_, n, sizeof(cl::Memory), static_cast<const void*>(&memory));
      } else {
        const auto& value = std::get<std::span<const std::byte>>(arguments[n]);
        error = api().SetKernelArg(kernel_, n, value.size(), value.data());
      }
      check(home_->words, "argument " + std::to_string(n) + " of " + name_, error);
    }
  }

 private:
  std::shared_ptr<Home> home_;
  cl::Kernel kernel_;
  std::string name_;
  cl::UInt count_ = 0;
};

class ClModule : public Module {
 public:
  ClModule(std::shared_ptr<Home> home, cl::Program program) : home_(std::move(home)), program_(program) {}
  ~ClModule() override { api().ReleaseProgram(program_); }

  std::unique_ptr<Kernel> kernel(const std::string& name) const override {
    cl::Int error = cl::kSuccess;
    const cl::Kernel made = api().CreateKernel(program_, name.c_str(), &error);
    if (error == cl::kInvalidKernelName) {
      throw DeviceError(home_->words + ": the code has no kernel " + name);
    }
    check(home_->words, "kernel " + name, error);
    return std::make_unique<ClKernel>(home_, made, name);
  }

 private:
  std::shared_ptr<Home> home_;
  cl::Program program_;
};

class ClQueue : public Queue {
 public:
  ClQueue(std::shared_ptr<Home> home, cl::CommandQueue queue)
      : home_(std::move(home)), queue_(queue), commands_(std::make_shared<Commands>(home_)) {}
  ~ClQueue() override {
    api().Finish(queue_);
    api().ReleaseCommandQueue(queue_);
  }

  using Queue::launch;
  void launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups,
              const std::array<uint32_t, 3>& group, std::span<const Argument> arguments) override {
    const auto* made = dynamic_cast<const ClKernel*>(&kernel);
    if (made == nullptr || made->home().device != home_->device) {
      throw std::invalid_argument(home_->words + ": a kernel of another device, expected one loaded for it");
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

  void copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override {
    const cl::Memory target = at(to, to_offset, bytes), source = at(from, from_offset, bytes);
    if (bytes == 0) return;
    queued("a copy of memory", [&](cl::Event* event) {
      return api().EnqueueCopyBuffer(queue_, source, target, from_offset, to_offset, bytes, 0, nullptr,
                                     event);
    });
  }

  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    const cl::Memory memory = at(to, offset, bytes);
    if (bytes == 0) return;
    queued("a copy to the device", [&](cl::Event* event) {
      return api().EnqueueWriteBuffer(queue_, memory, cl::kFalse, offset, bytes, from, 0, nullptr, event);
    });
  }

  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    const cl::Memory memory = at(from, offset, bytes);
    if (bytes == 0) return;
    queued("a copy from the device", [&](cl::Event* event) {
      return api().EnqueueReadBuffer(queue_, memory, cl::kFalse, offset, bytes, to, 0, nullptr, event);
    });
  }

  void upload(Buffer& to, const Rows& rows, const void* from) override {
    const cl::Memory memory = at(to, rows.offset, rows.end() - rows.offset);
    if (rows.bytes == 0 || rows.count == 0) return;
    const Box box(rows);
    queued("a copy of rows to the device", [&](cl::Event* event) {
      return api().EnqueueWriteBufferRect(queue_, memory, cl::kFalse, box.first, Box::kDense, box.region,
                                          rows.pitch, 0, rows.bytes, 0, from, 0, nullptr, event);
    });
  }

  void download(void* to, const Buffer& from, const Rows& rows) override {
    const cl::Memory memory = at(from, rows.offset, rows.end() - rows.offset);
    if (rows.bytes == 0 || rows.count == 0) return;
    const Box box(rows);
    queued("a copy of rows from the device", [&](cl::Event* event) {
      return api().EnqueueReadBufferRect(queue_, memory, cl::kFalse, box.first, Box::kDense, box.region,
                                         rows.pitch, 0, rows.bytes, 0, to, 0, nullptr, event);
    });
  }

  void copy(Buffer& to, const Rows& there, const Buffer& from, const Rows& here) override {
    const cl::Memory target = at(to, there.offset, there.end() - there.offset);
    const cl::Memory source = at(from, here.offset, here.end() - here.offset);
    if (here.bytes == 0 || here.count == 0) return;
    const Box one(here), other(there);
    queued("a copy of rows", [&](cl::Event* event) {
      return api().EnqueueCopyBufferRect(queue_, source, target, one.first, other.first, one.region,
                                         here.pitch, 0, there.pitch, 0, 0, nullptr, event);
    });
  }

  void clear(Buffer& buffer, size_t offset, size_t bytes) override {
    const cl::Memory memory = at(buffer, offset, bytes);
    if (bytes == 0) return;
    const Zeros zeros(offset, bytes);
    queued("clearing memory", [&](cl::Event* event) {
      return api().EnqueueFillBuffer(queue_, memory, zeros.pattern, zeros.width, offset, bytes, 0, nullptr,
                                     event);
    });
  }

  std::shared_ptr<Event> record() override {
    cl::Event event = nullptr;
    check(home_->words, "an event", api().EnqueueMarkerWithWaitList(queue_, 0, nullptr, &event));
    auto recorded = std::make_shared<ClEvent>(commands_, event);
    flush();  // or one who waits for it on another queue may wait for ever
    return recorded;
  }

  void wait(const std::shared_ptr<Event>& event) override {
    const auto* other = dynamic_cast<const ClEvent*>(event.get());
    if (other == nullptr) {
      throw std::invalid_argument(home_->words + ": an event of another interface, expected OpenCL's");
    }
    const cl::Event before = other->event();
    queued("waiting for " + other->home().words,
           [&](cl::Event* made) { return api().EnqueueBarrierWithWaitList(queue_, 1, &before, made); });
  }

  void flush() override { check(home_->words, "starting what is queued", api().Flush(queue_)); }

  void finish() override {
    const cl::Int error = api().Finish(queue_);
    commands_->check();
    check(home_->words, "what is queued", error);
  }

 private:
  // Rows as the interface wants them: the first byte, and how many bytes, rows and planes.
  struct Box {
    explicit Box(const Rows& rows) : first{rows.offset, 0, 0}, region{rows.bytes, rows.count, 1} {}

    static constexpr size_t kDense[3] = {0, 0, 0};
    size_t first[3], region[3];
  };

  cl::Memory at(const Buffer& buffer, size_t offset, size_t bytes) const {
    check_range(*home_, buffer, offset, bytes);
    return ours(*home_, buffer).memory();
  }

  template <typename Enqueue>
  void queued(const std::string& doing, Enqueue&& enqueue) {
    cl::Event event = nullptr;
    check(home_->words, doing, enqueue(&event));
    commands_->add(event, doing);
  }

  std::shared_ptr<Home> home_;
  cl::CommandQueue queue_;
  std::shared_ptr<Commands> commands_;
};

class ClDevice : public Device {
 public:
  ClDevice(Description description, cl::DeviceId device, cl::Context context)
      : description_(std::move(description)), home_(std::make_shared<Home>(device, context)) {
    home_->words = "OpenCL device " + std::to_string(description_.index) + " (" + description_.name + ")";
    largest_buffer_ = device_info<cl::Bits>(device, cl::kDeviceMaxMemAllocSize);
    const std::string extensions = " " + device_text(device, cl::kDeviceExtensions) + " ";
    priorities_ = version_of(device) >= 200 && api().CreateCommandQueueWithProperties != nullptr &&
                  extensions.find(" cl_khr_priority_hints ") != std::string::npos;
    setup_ = make_queue(false);
  }
  ~ClDevice() override { api().ReleaseCommandQueue(setup_); }

  const Description& description() const override { return description_; }

  // OpenCL does not tell what others have taken.
  size_t free_memory() const override {
    return description_.memory - std::min(description_.memory, home_->used.load());
  }

  std::unique_ptr<Buffer> allocate(size_t bytes) override {
    if (bytes > free_memory()) throw out_of_memory(bytes);
    if (bytes > largest_buffer_) {
      throw OutOfMemory("one buffer on " + home_->words + ", which limits the size of each,", bytes,
                        largest_buffer_, kLessMemory);
    }
    cl::Int error = cl::kSuccess;
    const cl::Memory memory =
        api().CreateBuffer(home_->context, cl::kMemReadWrite, std::max<size_t>(bytes, 1), nullptr, &error);
    if (no_memory(error)) throw out_of_memory(bytes);
    check(home_->words, "a buffer of " + std::to_string(bytes) + " bytes", error);
    auto buffer = std::make_unique<ClBuffer>(home_, memory, bytes);
    if (bytes != 0) {
      // Memory belongs to the context; the device that first writes it is where it lies. What other queues do
      // with it must come after, so this waits.
      const Zeros zeros(0, bytes);
      error =
          api().EnqueueFillBuffer(setup_, memory, zeros.pattern, zeros.width, 0, bytes, 0, nullptr, nullptr);
      if (error == cl::kSuccess) error = api().Finish(setup_);
      if (no_memory(error)) throw out_of_memory(bytes);
      check(home_->words, "clearing new memory", error);
    }
    return buffer;
  }

  std::unique_ptr<Pinned> pinned(size_t bytes) override {
    return std::make_unique<ClPinned>(home_, setup_, std::max<size_t>(bytes, 1));
  }

  std::unique_ptr<Queue> queue(bool urgent) override {
    return std::make_unique<ClQueue>(home_, make_queue(urgent));
  }

  std::unique_ptr<Module> load(const std::string& code, const std::string& options) override {
    const char* source = code.c_str();
    const size_t length = code.size();
    cl::Int error = cl::kSuccess;
    const cl::Program program = api().CreateProgramWithSource(home_->context, 1, &source, &length, &error);
    check(home_->words, "taking a source", error);
    auto module = std::make_unique<ClModule>(home_, program);
    const std::string all = options + (options.empty() ? "" : " ") + "-cl-std=CL1.2";
    error = api().BuildProgram(program, 1, &home_->device, all.c_str(), nullptr, nullptr);
    if (error != cl::kSuccess) {
      const std::string log = text([&](size_t bytes, void* to, size_t* needed) {
        return api().GetProgramBuildInfo(program, home_->device, cl::kProgramBuildLog, bytes, to, needed);
      });
      const std::string advice = cl::advice_on(error);
      throw DeviceError(home_->words + ": code does not compile with options '" + all + "', " +
                        cl::name_of(error) + (advice.empty() ? "" : ": " + advice) + "\n" +
                        (log.empty() ? "its compiler says nothing" : log));
    }
    return module;
  }

  // In OpenCL 1.2 a kernel takes memory of its context, but which device then holds it is not told.
  bool reaches(const Device& other) override { return &other == this; }

 private:
  OutOfMemory out_of_memory(size_t bytes) const {
    return {"a buffer on " + home_->words, bytes, free_memory(), kLessMemory};
  }

  static bool no_memory(cl::Int error) {
    return error == cl::kMemObjectAllocationFailure || error == cl::kOutOfResources ||
           error == cl::kOutOfHostMemory || error == cl::kInvalidBufferSize;
  }

  cl::CommandQueue make_queue(bool urgent) const {
    cl::Int error = cl::kSuccess;
    if (urgent && priorities_) {
      const cl::Bits properties[] = {cl::kQueuePriority, cl::kQueuePriorityHigh, 0};
      const cl::CommandQueue made =
          api().CreateCommandQueueWithProperties(home_->context, home_->device, properties, &error);
      if (error == cl::kSuccess) return made;
    }
    // a priority is a hint: without it the results are the same
    const cl::CommandQueue made = api().CreateCommandQueue(home_->context, home_->device, 0, &error);
    check(home_->words, "a queue", error);
    return made;
  }

  Description description_;
  std::shared_ptr<Home> home_;
  size_t largest_buffer_ = 0;
  bool priorities_ = false;
  cl::CommandQueue setup_ = nullptr;
};

Description describe(cl::DeviceId device) {
  Description found;
  found.interface = "opencl";
  found.name = device_text(device, cl::kDeviceName);
  found.driver = device_text(device, cl::kDriverVersion);
  found.memory = device_info<cl::Bits>(device, cl::kDeviceGlobalMemSize);
  found.local_memory = device_info<cl::Bits>(device, cl::kDeviceLocalMemSize);
  found.largest_group = device_info<size_t>(device, cl::kDeviceMaxWorkGroupSize);
  found.parameters = device_info<size_t>(device, cl::kDeviceMaxParameterSize);
  found.units = static_cast<int>(device_info<cl::UInt>(device, cl::kDeviceMaxComputeUnits));
  found.doubles = has_doubles(device);
  found.singles = has_singles(device);
  return found;
}

// Why a device cannot be used; null where it can.
const char* lack_of(cl::DeviceId device) {
  if (version_of(device) < 102) return "OpenCL 1.2";
  if (device_info<cl::UInt>(device, cl::kDeviceAvailable) == 0) return "availability";
  if (device_info<cl::UInt>(device, cl::kDeviceCompilerAvailable) == 0) return "a compiler";
  return nullptr;
}

struct Candidate {
  cl::DeviceId device;
  cl::Context context;
  std::string platform, identity;
};

std::string platform_name(cl::Platform platform) {
  return text([&](size_t bytes, void* to, size_t* needed) {
    return api().GetPlatformInfo(platform, cl::kPlatformName, bytes, to, needed);
  });
}

// The devices of a platform, with a context for all of them; none adds a reason to `why`.
std::vector<Candidate> devices_of(cl::Platform platform, const std::string& name, std::string& why) {
  const auto note = [&](const std::string& reason) {
    if (!why.empty()) why += "; ";
    why += "the platform " + name + reason;
  };
  constexpr cl::Bits kTypes = cl::kDeviceTypeCpu | cl::kDeviceTypeGpu | cl::kDeviceTypeAccelerator;
  cl::UInt count = 0;
  if (api().GetDeviceIDs(platform, kTypes, 0, nullptr, &count) != cl::kSuccess || count == 0) {
    note(" has no device");
    return {};
  }
  std::vector<cl::DeviceId> devices(count);
  api().GetDeviceIDs(platform, kTypes, count, devices.data(), nullptr);
  std::erase_if(devices, [&](cl::DeviceId device) {
    const char* lack = lack_of(device);
    if (lack != nullptr) note(" has the device " + device_text(device, cl::kDeviceName) + " without " + lack);
    return lack != nullptr;
  });
  if (devices.empty()) return {};
  const cl::Property properties[] = {cl::kContextPlatform, reinterpret_cast<cl::Property>(platform), 0};
  cl::Int error = cl::kSuccess;
  const cl::Context context = api().CreateContext(properties, static_cast<cl::UInt>(devices.size()),
                                                  devices.data(), nullptr, nullptr, &error);
  if (error != cl::kSuccess) {
    note(" gives no context: " + cl::name_of(error));
    return {};
  }
  std::vector<Candidate> found;
  std::map<std::string, int> same;  // devices of equal names are told apart by their order
  for (const cl::DeviceId device : devices) {
    const std::string model = device_text(device, cl::kDeviceName);
    std::string identity = name;
    identity.append(": ").append(model).append(" #").append(std::to_string(same[model]++));
    found.push_back({device, context, name, std::move(identity)});
  }
  return found;
}

struct Found {
  std::vector<std::shared_ptr<Device>> devices;
  std::string why;
};

Found search() {
  Found found;
  if (cl::library(found.why) == nullptr) return found;
  cl::UInt count = 0;
  if (api().GetPlatformIDs(0, nullptr, &count) != cl::kSuccess || count == 0) {
    found.why =
        "OpenCL has no platform: install a driver for the device (for the processor, Debian: "
        "pocl-opencl-icd)";
    return found;
  }
  std::vector<cl::Platform> platforms(count);
  api().GetPlatformIDs(count, platforms.data(), nullptr);
  std::vector<Candidate> candidates;
  std::map<std::string, int> same;  // platforms of equal names too
  for (const cl::Platform platform : platforms) {
    std::string name = platform_name(platform);
    if (const int before = same[name]++; before > 0) name += " #" + std::to_string(before);
    std::ranges::copy(devices_of(platform, name, found.why), std::back_inserter(candidates));
  }
  std::ranges::stable_sort(candidates, {}, [](const Candidate& each) {  // GPUs first
    return (device_info<cl::Bits>(each.device, cl::kDeviceType) & cl::kDeviceTypeGpu) == 0;
  });
  for (const Candidate& each : candidates) {
    Description description = describe(each.device);
    description.index = static_cast<int>(found.devices.size());
    description.platform = each.platform;
    description.identity = each.identity;
    found.devices.push_back(std::make_shared<ClDevice>(std::move(description), each.device, each.context));
  }
  if (!found.devices.empty()) found.why.clear();
  return found;
}

// Never destroyed: drivers may be gone before this is when the process ends.
const Found& all() {
  static const auto* found = new Found(search());
  return *found;
}

}  // namespace

const std::vector<std::shared_ptr<Device>>& opencl_devices() { return all().devices; }
const std::string& why_no_opencl() { return all().why; }

}  // namespace halocline::device
