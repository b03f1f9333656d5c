// Devices of the CUDA driver.
//
// A device's primary context is shared with what else in the process uses CUDA, a CUDA-aware MPI first of
// all. It is made at the first use: on a node of many devices a process pays for its own alone. Each call
// sets it, as the calling thread may have used another device since.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "device/cuda_library.hpp"
#include "device/device.hpp"
#include "storage/memory.hpp"

namespace halocline::device {
namespace cuda {
namespace {

class CudaDevice;

[[noreturn]] void fail(Status status, const std::string& where, const std::string& what) {
  throw DeviceError(where + ": " + what + " failed: " + described(status));
}

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

class CudaDevice : public Device {
 public:
  CudaDevice(int number, int index);

  const Description& description() const override { return description_; }
  size_t free_memory() const override;
  std::unique_ptr<Buffer> allocate(size_t bytes) override;
  std::unique_ptr<Pinned> pinned(size_t bytes) override;
  std::unique_ptr<Queue> queue(bool urgent) override;
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

const CudaBuffer& ours(const Buffer& buffer) {
  const auto* found = dynamic_cast<const CudaBuffer*>(&buffer);
  if (found == nullptr)
    throw std::invalid_argument("a buffer of another interface was given to a CUDA device");
  return *found;
}

const CudaEvent& ours(const Event& event) {
  const auto* found = dynamic_cast<const CudaEvent*>(&event);
  if (found == nullptr)
    throw std::invalid_argument("an event of another interface was given to a CUDA device");
  return *found;
}

// -- memory ----------------------------------------------------------------------------------------

CudaBuffer::~CudaBuffer() {
  // an error here is one that a call has told already, or the end of the process
  try {
    device.use();
  } catch (const DeviceError&) {
    return;
  }
  attached_ ? library().ipc_memory_close(start) : library().free(start);
}

Address CudaBuffer::at(size_t offset, size_t bytes) const {
  if (offset > this->bytes() || bytes > this->bytes() - offset) {
    throw std::out_of_range(device.where() + ": bytes " + std::to_string(offset) + " to " +
                            std::to_string(offset + bytes) + " of a buffer of " +
                            std::to_string(this->bytes()) + " bytes");
  }
  return start + offset;
}

class CudaPinned : public Pinned {
 public:
  CudaPinned(const CudaDevice& device, void* data) : device_(device), data_(data) {}
  ~CudaPinned() override {
    try {
      device_.use();
    } catch (const DeviceError&) {
      return;
    }
    library().free_host(data_);
  }

  char* data() const override { return static_cast<char*>(data_); }

 private:
  const CudaDevice& device_;
  void* data_;
};

// -- events ----------------------------------------------------------------------------------------

CudaEvent::~CudaEvent() {
  if (kind == Kind::kPooled) {
    device.give_event(event);
  } else {
    library().event_destroy(event);
  }
}

bool CudaEvent::done() const {
  device.use();
  const Status status = library().event_query(event);
  if (status == kNotReady) return false;
  device.check(status, "work that was queued");
  return true;
}

void CudaEvent::wait() const {
  device.use();
  device.check(library().event_synchronize(event), "work that was queued");
}

// -- code ------------------------------------------------------------------------------------------

class CudaKernel : public Kernel {
 public:
  CudaKernel(const CudaDevice& device, Function function, std::string name)
      : device(device),
        function(function),
        name(std::move(name)),
        threads_(attribute(kFunctionMaxThreadsPerBlock)),
        registers_(attribute(kFunctionRegisters)),
        spilled_(attribute(kFunctionLocalBytes)) {
    if (library().function_parameter == nullptr) return;
    size_t offset = 0;
    for (size_t size = 0;
         library().function_parameter(function, sizes_.size(), &offset, &size) == kSuccess;) {
      sizes_.push_back(size);
    }
    sized_ = true;
  }

  size_t largest_group() const override { return static_cast<size_t>(threads_); }
  int registers() const override { return registers_; }
  size_t spilled() const override { return static_cast<size_t>(spilled_); }

  // The driver reads as many arguments as the kernel has, whatever it is given: where it tells their sizes,
  // they are compared. Throws std::invalid_argument.
  void check_arguments(std::span<const Argument> arguments) const {
    if (!sized_) return;
    if (arguments.size() != sizes_.size()) {
      throw std::invalid_argument("kernel " + name + ": " + std::to_string(arguments.size()) +
                                  " arguments, expected " + std::to_string(sizes_.size()));
    }
    for (size_t n = 0; n < sizes_.size(); ++n) {
      const auto* value = std::get_if<std::span<const std::byte>>(&arguments[n]);
      const size_t size = value == nullptr ? sizeof(Address) : value->size();
      if (size != sizes_[n]) {
        throw std::invalid_argument("kernel " + name + ": argument " + std::to_string(n) + " has " +
                                    std::to_string(size) + " bytes, expected " + std::to_string(sizes_[n]));
      }
    }
  }

  const CudaDevice& device;
  const Function function;
  const std::string name;

 private:
  int attribute(FunctionAttribute attribute) const {
    int value = 0;
    device.check(library().function_attribute(&value, attribute, function), "asking about a kernel");
    return value;
  }

  int threads_, registers_, spilled_;
  bool sized_ = false;
  std::vector<size_t> sizes_;
};

class CudaModule : public Module {
 public:
  CudaModule(const CudaDevice& device, Code code) : device_(device), code_(code) {}
  ~CudaModule() override {
    try {
      device_.use();
    } catch (const DeviceError&) {
      return;
    }
    library().module_unload(code_);
  }

  std::unique_ptr<Kernel> kernel(const std::string& name) const override {
    device_.use();
    Function function = nullptr;
    const Status status = library().module_function(&function, code_, name.c_str());
    if (status == kNotFound) {
      throw DeviceError(device_.where() + ": the code has no kernel " + name +
                        " (a kernel is extern \"C\" __global__)");
    }
    device_.check(status, "looking up a kernel");
    return std::make_unique<CudaKernel>(device_, function, name);
  }

 private:
  const CudaDevice& device_;
  Code code_;
};

// -- queues ----------------------------------------------------------------------------------------

class CudaGraph : public Graph {
 public:
  CudaGraph(const CudaDevice& device, Executable executable) : executable(executable), device_(device) {}
  ~CudaGraph() override {
    try {
      device_.use();
    } catch (const DeviceError&) {
      return;
    }
    library().executable_destroy(executable);
  }

  const Executable executable;

 private:
  const CudaDevice& device_;
};

std::string in_words(const std::array<uint32_t, 3>& counts) {
  return std::to_string(counts[0]) + " x " + std::to_string(counts[1]) + " x " + std::to_string(counts[2]);
}

class CudaQueue : public Queue {
 public:
  CudaQueue(const CudaDevice& device, Stream stream) : device(device), stream(stream) {}
  ~CudaQueue() override {
    try {
      device.use();
    } catch (const DeviceError&) {
      return;
    }
    library().stream_synchronize(stream);
    library().stream_destroy(stream);
  }

  void launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups,
              const std::array<uint32_t, 3>& group, std::span<const Argument> arguments) override {
    const auto& ours = static_cast<const CudaKernel&>(kernel);
    ours.check_arguments(arguments);
    parameters_.clear();
    for (const Argument& argument : arguments) {
      const void* bytes = nullptr;
      if (const auto* buffer = std::get_if<const Buffer*>(&argument)) {
        bytes = &cuda::ours(**buffer).start;
      } else {
        bytes = std::get<std::span<const std::byte>>(argument).data();
      }
      parameters_.push_back(const_cast<void*>(bytes));
    }
    device.use();
    const Status status = library().launch(ours.function, groups[0], groups[1], groups[2], group[0], group[1],
                                           group[2], 0, stream, parameters_.data(), nullptr);
    if (status != kSuccess) {
      fail(status, device.where(),
           "launching " + in_words(groups) + " groups of " + in_words(group) + " threads of kernel " +
               ours.name + " (it can have " + std::to_string(ours.largest_group()) + " threads a group)");
    }
  }

  void copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) override {
    const CudaBuffer &target = ours(to), &source = ours(from);
    const Address there = target.at(to_offset, bytes), here = source.at(from_offset, bytes);
    if (bytes == 0) return;
    if (&target.device == &source.device) {
      device.use();
      device.check(library().copy(there, here, bytes, stream), "a copy");
      return;
    }
    const Context theirs = source.device.use(), mine = target.device.use();
    device.use();
    device.check(library().copy_peer(there, mine, here, theirs, bytes, stream), "a copy between devices");
  }

  void upload(Buffer& to, size_t offset, const void* from, size_t bytes) override {
    const Address there = ours(to).at(offset, bytes);
    if (bytes == 0) return;
    device.use();
    device.check(library().upload(there, from, bytes, stream), "a copy to the device");
  }

  void download(void* to, const Buffer& from, size_t offset, size_t bytes) override {
    const Address there = ours(from).at(offset, bytes);
    if (bytes == 0) return;
    device.use();
    device.check(library().download(to, there, bytes, stream), "a copy from the device");
  }

  void upload(Buffer& to, const Rows& rows, const void* from) override {
    RowsCopy copy;
    copy.source_host = from;
    copy.source_pitch = rows.bytes;
    target(copy, to, rows);
    run(copy, rows, "a copy of rows to the device");
  }

  void download(void* to, const Buffer& from, const Rows& rows) override {
    RowsCopy copy;
    source(copy, from, rows);
    copy.target_host = to;
    copy.target_pitch = rows.bytes;
    run(copy, rows, "a copy of rows from the device");
  }

  void copy(Buffer& to, const Rows& there, const Buffer& from, const Rows& here) override {
    RowsCopy copy;
    source(copy, from, here);
    target(copy, to, there);
    run(copy, here, "a copy of rows");
  }

  void clear(Buffer& buffer, size_t offset, size_t bytes) override {
    const Address there = ours(buffer).at(offset, bytes);
    if (bytes == 0) return;
    device.use();
    device.check(library().set_bytes(there, 0, bytes, stream), "clearing memory");
  }

  std::shared_ptr<Event> record() override {
    device.use();
    auto event = std::make_shared<CudaEvent>(device, device.take_event(), CudaEvent::Kind::kPooled);
    device.check(library().event_record(event->event, stream), "recording an event");
    return event;
  }

  void wait(const std::shared_ptr<Event>& event) override {
    device.use();
    device.check(library().stream_wait(stream, ours(*event).event, 0), "waiting for an event");
  }

  void flush() override {}  // the driver begins at once

  void finish() override {
    device.use();
    device.check(library().stream_synchronize(stream), "work that was queued");
  }

  // Other threads may go on using the device meanwhile.
  void begin_capture() override {
    device.use();
    device.check(library().capture_begin(stream, kCaptureThreadLocal), "beginning to record a graph");
  }

  std::unique_ptr<Graph> end_capture() override {
    device.use();
    Recording recording = nullptr;
    device.check(library().capture_end(stream, &recording), "recording a graph");
    Executable executable = nullptr;
    const Status status = library().graph_instantiate(&executable, recording, 0);
    library().graph_destroy(recording);
    device.check(status, "making a graph that can be launched");
    return std::make_unique<CudaGraph>(device, executable);
  }

  void launch(const Graph& graph) override {
    device.use();
    device.check(library().graph_launch(static_cast<const CudaGraph&>(graph).executable, stream),
                 "launching a graph");
  }

  const CudaDevice& device;
  const Stream stream;

 private:
  // The end that neither of these sets is in memory of the host.
  static void source(RowsCopy& copy, const Buffer& from, const Rows& rows) {
    copy.source_kind = kMemoryDevice;
    copy.source = ours(from).at(rows.offset, rows.end() - rows.offset);
    copy.source_pitch = rows.pitch;
  }

  static void target(RowsCopy& copy, const Buffer& to, const Rows& rows) {
    copy.target_kind = kMemoryDevice;
    copy.target = ours(to).at(rows.offset, rows.end() - rows.offset);
    copy.target_pitch = rows.pitch;
  }

  void run(RowsCopy& copy, const Rows& rows, const char* doing) const {
    if (rows.bytes == 0 || rows.count == 0) return;
    copy.bytes = rows.bytes;
    copy.rows = rows.count;
    device.use();
    device.check(library().copy_rows(&copy, stream), doing);
  }

  std::vector<void*> parameters_;
};

// -- devices ---------------------------------------------------------------------------------------

std::string driver_version() {
  int version = 0;
  library().driver_version(&version);
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// As nvidia-smi -L shows it.
std::string in_words(const Uuid& uuid, bool part) {
  std::string text = part ? "MIG" : "GPU";
  for (size_t n = 0; n < uuid.bytes.size(); ++n) {
    if (n == 0 || n == 4 || n == 6 || n == 8 || n == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(uuid.bytes[n]));
    text += digits.data();
  }
  return text;
}

CudaDevice::CudaDevice(int number, int index) : number_(number) {
  description_.interface = "cuda";
  description_.index = index;
  std::array<char, 256> name{};
  check(library().device_name(name.data(), name.size() - 1, number), "asking for its name");
  description_.name = name.data();
  description_.driver = driver_version();
  Uuid uuid{};
  check(library().device_uuid(&uuid, number), "asking for its UUID");
  description_.identity = in_words(uuid, description_.name.find(" MIG ") != std::string::npos);
  check(library().device_memory(&description_.memory, number), "asking for its memory");
  description_.architecture = "sm_" + std::to_string(attribute(kComputeCapabilityMajor)) +
                              std::to_string(attribute(kComputeCapabilityMinor));
  description_.local_memory = static_cast<size_t>(attribute(kMaxSharedMemoryPerBlock));
  description_.largest_group = static_cast<size_t>(attribute(kMaxThreadsPerBlock));
  description_.parameters = 4096;  // more only since CUDA 12.1 and from sm_70
  description_.units = attribute(kMultiprocessorCount);
  description_.doubles = description_.singles = true;  // as on all devices since 2010
  // a driver that is older than the question shares
  int events = 1;
  if (library().device_attribute(&events, kIpcEventSupported, number) != kSuccess) events = 1;
  shares_ = events != 0 && attribute(kUnifiedAddressing) != 0;
}

int CudaDevice::attribute(DeviceAttribute attribute) const {
  int value = 0;
  check(library().device_attribute(&value, attribute, number_), "asking for its properties");
  return value;
}

std::string CudaDevice::where() const {
  std::string text = "device cuda:" + std::to_string(description_.index);
  if (!description_.name.empty()) text += " (" + description_.name + ")";
  return text;
}

Context CudaDevice::use() const {
  std::call_once(made_, [&] {
    Context context = nullptr;
    check(library().primary_context(&context, number_), "making a context");
    check(library().set_context(context), "making a context");
    check(library().stream_create(&clearing_, kStreamNonBlocking, 0), "making a context");
    context_ = context;
  });
  check(library().set_context(context_), "a switch to it");
  return context_;
}

size_t CudaDevice::free_memory() const {
  use();
  size_t left = 0, all = 0;
  check(library().memory_info(&left, &all), "asking for its free memory");
  return left;
}

std::unique_ptr<Buffer> CudaDevice::allocate(size_t bytes) {
  use();
  Address address = 0;
  const size_t taken = std::max<size_t>(bytes, 1);
  const Status status = library().allocate(&address, taken);
  if (status == kOutOfMemory) throw OutOfMemory("memory of " + where(), bytes, free_memory(), kLessMemory);
  check(status, "allocating memory");
  auto buffer = std::make_unique<CudaBuffer>(*this, address, bytes, false);
  // it may be used in any queue at once
  check(library().set_bytes(address, 0, taken, clearing_), "clearing memory");
  check(library().stream_synchronize(clearing_), "clearing memory");
  return buffer;
}

std::unique_ptr<Pinned> CudaDevice::pinned(size_t bytes) {
  use();
  void* data = nullptr;
  const Status status = library().allocate_host(&data, std::max<size_t>(bytes, 1), kHostPortable);
  if (status == kOutOfMemory) {
    throw OutOfMemory("memory of the host for copies with " + where(), bytes, available_memory());
  }
  check(status, "allocating memory of the host");
  return std::make_unique<CudaPinned>(*this, data);
}

std::unique_ptr<Queue> CudaDevice::queue(bool urgent) {
  use();
  int least = 0, greatest = 0;
  check(library().priorities(&least, &greatest), "asking for the priorities of streams");
  Stream stream = nullptr;
  check(library().stream_create(&stream, kStreamNonBlocking, urgent ? greatest : least), "making a stream");
  return std::make_unique<CudaQueue>(*this, stream);
}

std::unique_ptr<Module> CudaDevice::load(const std::string& code, const std::string& options) {
  if (!options.empty()) {
    throw std::invalid_argument(where() + ": options '" + options +
                                "' for code that is compiled already, expected none");
  }
  use();
  std::array<char, 4096> log{};
  // values of options are passed in the place of pointers
  std::array<JitOption, 2> names{kJitErrorLog, kJitErrorLogBytes};
  std::array<void*, 2> values{log.data(),
                              reinterpret_cast<void*>(log.size() - 1)};  // NOLINT(performance-no-int-to-ptr)
  Code loaded = nullptr;
  const Status status =
      library().module_load(&loaded, code.c_str(), names.size(), names.data(), values.data());
  if (status != kSuccess) {
    std::string what = "loading code";
    if (log[0] != 0) what += std::string(" (") + log.data() + ")";
    fail(status, where(), what + " for " + description_.architecture);
  }
  return std::make_unique<CudaModule>(*this, loaded);
}

bool CudaDevice::reaches(const Device& other) {
  if (&other == this) return true;
  const auto* peer = dynamic_cast<const CudaDevice*>(&other);
  if (peer == nullptr) return false;
  int reachable = 0;
  check(library().can_access_peer(&reachable, number_, peer->number_), "asking for its peers");
  if (reachable == 0) return false;
  const Context theirs = peer->use();
  use();
  const Status status = library().enable_peer(theirs, 0);
  if (status == kTooManyPeers) return false;  // a device takes but some: copies reach the others
  if (status != kPeerAccessAlreadyEnabled) check(status, "reaching a peer's memory");
  return true;
}

EventOfStream CudaDevice::take_event() const {
  {
    const std::scoped_lock lock(mutex_);
    if (!events_.empty()) {
      const EventOfStream event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  EventOfStream event = nullptr;
  check(library().event_create(&event, kEventDisableTiming), "making an event");
  return event;
}

// What waits for its last record waits for that one even when it is recorded again.
void CudaDevice::give_event(EventOfStream event) const noexcept {
  const std::scoped_lock lock(mutex_);
  events_.push_back(event);
}

// -- between processes -----------------------------------------------------------------------------

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
                                std::to_string(sizeof handle) + ": it is not of a CUDA device");
  }
  std::memcpy(&handle, shared.data(), sizeof handle);
  return handle;
}

constexpr const char* kOutOfReach =
    "opening what another process shares (processes of different containers, or of different users, may be "
    "out of "
    "reach)";

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
  return std::make_unique<CudaBuffer>(*this, address, bytes, true);
}

std::shared_ptr<Event> CudaDevice::shared_event() {
  use();
  EventOfStream event = nullptr;
  check(library().event_create(&event, kEventDisableTiming | kEventInterprocess), "making an event");
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

// -- what there is ---------------------------------------------------------------------------------

struct Found {
  std::vector<std::shared_ptr<Device>> devices;
  std::string why;
};

Found look() {
  Found found;
  const Library& driver = library();
  if (!driver.symbols.loaded()) {
    found.why = "no CUDA driver: " + driver.symbols.why();
    return found;
  }
  if (!driver.symbols.missing().empty()) {
    found.why = "the CUDA driver is too old, it lacks " + driver.symbols.missing().front() +
                ": install one for CUDA 11.4 or newer";
    return found;
  }
  int count = 0;
  Status status = driver.init(0);
  if (status == kSuccess) status = driver.device_count(&count);
  if (status == kSuccess && count == 0) status = kNoDevice;
  if (status != kSuccess) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): at start
    found.why = "no CUDA device";
    if (visible != nullptr) found.why += std::string(" (CUDA_VISIBLE_DEVICES is '") + visible + "')";
    found.why += ": " + described(status);
    return found;
  }
  try {
    for (int index = 0; index < count; ++index) {
      int number = 0;
      status = driver.device_get(&number, index);
      if (status != kSuccess) fail(status, "device cuda:" + std::to_string(index), "asking for it");
      found.devices.push_back(std::make_shared<CudaDevice>(number, index));
    }
  } catch (const DeviceError& error) {
    found.devices.clear();
    found.why = error.what();
  }
  return found;
}

// Never destroyed: what uses devices may outlive the static variables.
const Found& found() {
  static const Found* const found = new Found(look());
  return *found;
}

}  // namespace
}  // namespace cuda

const std::vector<std::shared_ptr<Device>>& cuda_devices() { return cuda::found().devices; }
const std::string& why_no_cuda() { return cuda::found().why; }

}  // namespace halocline::device
