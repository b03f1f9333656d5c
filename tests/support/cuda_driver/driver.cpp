// A stand-in for the CUDA driver, in host memory, for tests without a device.
//
// It runs the output of the stand-in for NVRTC. Each stream is a thread, so that only events order the work
// of different streams. The stand-in rejects everything that a driver rejects. It also rejects errors that a
// driver detects late: memory that was freed or belongs to another device, copies out of bounds, destroyed
// handles, missing arguments, and work of another context than the thread's. Its variables and their
// defaults:
//   HALOCLINE_TEST_CUDA_DEVICES  number of devices; 1
//   HALOCLINE_TEST_CUDA_MEMORY   bytes of each device; 1 GiB
//   HALOCLINE_TEST_CUDA_THREADS  maximum number of threads of a thread block; 1024
//   HALOCLINE_TEST_CUDA_SHARED   maximum bytes of shared memory of a thread block; 227 KiB
//   HALOCLINE_TEST_CUDA_PEERS    0: no device reaches another one's memory; 1
//   HALOCLINE_TEST_CUDA_IPC      0: no process reaches another one's memory; 1
//   HALOCLINE_TEST_CUDA_DELAY    maximum random delay of work before it begins, in microseconds; 0
// CUDA_VISIBLE_DEVICES renumbers the devices. halocline_standin_fail(function, status) makes the next call of
// a function fail. halocline_standin_calls(function) returns its number of calls.
// halocline_standin_launches() returns the kernels and their streams' priorities.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace {

using Address = unsigned long long;

enum Status : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kPeerUnsupported = 217,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kPeerAlreadyEnabled = 704,
  kTooManyPeers = 711,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCapturedEvent = 907,
};

struct Words {
  Status status;
  const char *name, *text;
};
constexpr Words kWords[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kPeerUnsupported, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer access is not supported"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {kPeerAlreadyEnabled, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {kTooManyPeers, "CUDA_ERROR_TOO_MANY_PEERS", "peer mapping resources exhausted"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted when stream is capturing"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "failed due to a previous error in capture"},
    {kCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture was begun in another stream"},
    {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "a stream of the capture was not joined"},
    {kCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency on work outside the capture"},
    {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in capture"},
};

long setting(const char* name, long otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtol(value, nullptr, 10);
}

long most_shared() { return setting("HALOCLINE_TEST_CUDA_SHARED", 227 << 10); }

// -- objects of the driver ---------------------------------------------------------------------------

struct Device {
  int physical = 0;
  std::atomic<int> broken{kSuccess};  // status of every later call
  size_t used_bytes = 0;
  std::set<Device*> reached;
};

// Memory has a page without access before and after it, and is as close to the latter as its alignment
// allows. An address is never used twice.
struct Memory {
  Device* device = nullptr;
  size_t bytes = 0;
  char* mapping = nullptr;
  size_t mapped = 0;  // includes both pages
  int file = -1;
  size_t offset = 0;  // in the file
  bool attached = false;
};

// State of an event, which processes can share.
struct Marks {
  std::atomic<uint64_t> recorded{0}, done{0};
  std::atomic<int64_t> at{0};  // nanoseconds at the last completion
};

struct Node {
  std::function<void()> work;
  std::vector<size_t> after;
};

struct Graph {
  std::vector<Node> nodes;
};

struct Stream;
struct Capture {
  Graph graph;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  bool invalid = false;
};

struct Event {
  unsigned flags = 0;
  Device* device = nullptr;
  std::shared_ptr<Marks> marks = std::make_shared<Marks>();
  int file = -1;
  std::shared_ptr<Capture> capture;  // capture of the last record
  std::vector<size_t> nodes;         // nodes that the event represents
};

struct Stream {
  Device* device = nullptr;
  int priority = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> work;
  bool busy = false, ends = false;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> last;  // nodes that precede the next one
  std::thread thread;
};

struct Function;
struct Module {
  Device* device = nullptr;
  void* library = nullptr;
  std::vector<Function*> functions;
  std::set<uintptr_t> symbols;
};

struct Function {
  Device* device = nullptr;
  const standin::Kernel* kernel = nullptr;
  unsigned shared = 48 << 10;  // maximum bytes for tiles
};

struct Executable {
  Graph graph;
};

// Never destroyed, since streams may still run at the end of the process.
struct World {
  std::mutex mutex;
  bool ready = false;
  std::vector<std::unique_ptr<Device>> devices;
  std::map<uintptr_t, Memory> memory;  // by first address
  std::set<void*> host;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Module*> modules;
  std::set<Function*> functions;
  std::set<Graph*> graphs;
  std::set<Executable*> executables;
  std::map<std::string, int> failures;
  std::map<std::string, size_t> calls;
  bool watched = false;
  std::string launches;  // launches since the first query
};
World& world() {
  static auto* const world = new World;
  return *world;
}

thread_local Device* current = nullptr;
thread_local int captures = 0;  // captures that this thread has begun

size_t memory_of_device() { return static_cast<size_t>(setting("HALOCLINE_TEST_CUDA_MEMORY", 1L << 30)); }

Device* device(int number) {
  auto& devices = world().devices;
  return number < 0 || number >= static_cast<int>(devices.size())
             ? nullptr
             : devices[static_cast<size_t>(number)].get();
}

template <typename Handle>
bool known(const std::set<Handle*>& all, Handle* handle) {
  const std::scoped_lock lock(world().mutex);
  return all.count(handle) != 0;
}

// Returns the status of a call before its work: a failure that a test requested, or that of a broken device.
int planned(const char* function) {
  const std::scoped_lock lock(world().mutex);
  if (!world().ready) return kNotInitialized;
  ++world().calls[function];
  const auto failure = world().failures.find(function);
  if (failure == world().failures.end()) return kSuccess;
  const int status = failure->second;
  world().failures.erase(failure);
  return status;
}

#define ANSWER_PLANNED() \
  if (const int planned_status = planned(__func__); planned_status != kSuccess) return planned_status
#define NEED_CONTEXT()                            \
  ANSWER_PLANNED();                               \
  if (current == nullptr) return kInvalidContext; \
  if (const int broken = current->broken; broken != kSuccess) return broken
// For calls that are invalid while the thread records a graph.
#define NEED_NO_CAPTURE() \
  if (captures != 0) return invalidate_all()

int invalidate_all() {
  const std::scoped_lock lock(world().mutex);
  for (Stream* stream : world().streams) {
    if (stream->capture) stream->capture->invalid = true;
  }
  return kCaptureUnsupported;
}

// Returns the memory that contains all these bytes; the lock is held.
const Memory* holds(Address address, size_t bytes) {
  auto after = world().memory.upper_bound(static_cast<uintptr_t>(address));
  if (after == world().memory.begin()) return nullptr;
  const auto& [start, memory] = *std::prev(after);
  const size_t offset = static_cast<uintptr_t>(address) - start;
  return offset <= memory.bytes && bytes <= memory.bytes - offset ? &memory : nullptr;
}

bool usable(Address address, size_t bytes, Device* by) {
  const std::scoped_lock lock(world().mutex);
  const Memory* memory = holds(address, bytes);
  return memory != nullptr && (memory->device == by || by->reached.count(memory->device) != 0);
}

char* pointer(Address address) { return reinterpret_cast<char*>(static_cast<uintptr_t>(address)); }

// -- streams -----------------------------------------------------------------------------------------

void delay() {
  static const long most = setting("HALOCLINE_TEST_CUDA_DELAY", 0);
  if (most <= 0) return;
  thread_local std::minstd_rand random(
      static_cast<unsigned>(std::hash<std::thread::id>()(std::this_thread::get_id())));
  // Delays are mostly short, so that an occasional long one lets all other work overtake.
  const unsigned long chance = random() % 32, limit = static_cast<unsigned long>(most);
  if (chance >= 16) return;
  std::this_thread::sleep_for(
      std::chrono::microseconds(random() % std::max(1UL, chance == 0 ? limit : limit / 16)));
}

void serve(Stream* stream) {
  std::unique_lock lock(stream->mutex);
  for (;;) {
    stream->changed.wait(lock, [&] { return !stream->work.empty() || stream->ends; });
    if (stream->work.empty()) return;
    auto work = std::move(stream->work.front());
    stream->work.pop_front();
    stream->busy = true;
    lock.unlock();
    delay();
    work();
    work = nullptr;
    lock.lock();
    stream->busy = false;
    stream->changed.notify_all();
  }
}

void drain(Stream* stream) {
  std::unique_lock lock(stream->mutex);
  stream->changed.wait(lock, [&] { return stream->work.empty() && !stream->busy; });
}

void drain(Device* device) {
  std::vector<Stream*> streams;
  {
    const std::scoped_lock lock(world().mutex);
    for (Stream* stream : world().streams) {
      if (stream->device == device) streams.push_back(stream);
    }
  }
  for (Stream* stream : streams) drain(stream);
}

// Queues work, or records it. A failure breaks the device, which then runs no more work.
int enqueue(Stream* stream, std::function<int()> work) {
  Device* const device = stream->device;
  auto guarded = [device, work = std::move(work)] {
    if (device->broken != kSuccess) return;
    const int status = work();
    if (status != kSuccess) device->broken = status;
  };
  const std::scoped_lock lock(stream->mutex);
  if (stream->capture) {
    auto& nodes = stream->capture->graph.nodes;
    nodes.push_back({std::move(guarded), stream->last});
    stream->last = {nodes.size() - 1};
    return stream->capture->invalid ? kCaptureInvalidated : kSuccess;
  }
  stream->work.emplace_back(std::move(guarded));
  stream->changed.notify_all();
  return kSuccess;
}

// Returns success if the stream is alive and belongs to the thread's context.
int check_stream(Stream* stream) {
  if (!known(world().streams, stream)) return kInvalidHandle;
  return stream->device == current ? kSuccess : kInvalidContext;
}
#define NEED_STREAM(stream) \
  NEED_CONTEXT();           \
  if (const int bad = check_stream(stream); bad != kSuccess) return bad

void await(const Marks& marks, uint64_t ticket) {
  // The pauses grow, since dozens of streams of several processes share one or two cores.
  std::chrono::microseconds nap(20);
  constexpr std::chrono::microseconds kLongest(1000);
  while (marks.done.load(std::memory_order_acquire) < ticket) {
    std::this_thread::sleep_for(nap);
    nap = std::min(nap + nap / 4, kLongest);
  }
}

// -- kernels -----------------------------------------------------------------------------------------

unsigned most_threads(const standin::Kernel& kernel) {
  return std::min(kernel.threads, static_cast<unsigned>(setting("HALOCLINE_TEST_CUDA_THREADS", 1024)));
}

thread_local sigjmp_buf* escape = nullptr;
struct sigaction segv_before, bus_before;

void on_fault(int number, siginfo_t* info, void* context) {
  if (escape != nullptr) siglongjmp(*escape, 1);
  const struct sigaction& before = number == SIGSEGV ? segv_before : bus_before;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

int run(const standin::Kernel& kernel, const uint3& grid_dim, const uint3& block_dim,
        std::vector<std::vector<char>>& values) {
  std::vector<void*> parameters;
  for (auto& value : values) parameters.push_back(value.data());
  sigjmp_buf return_point;
  escape = &return_point;
  int status = kIllegalAddress;
  if (sigsetjmp(return_point, 1) == 0) {
    const bool sound = kernel.run(grid_dim, block_dim, parameters.data());
    status = sound ? kSuccess : kLaunchFailed;
  }
  escape = nullptr;
  return status;
}

// Returns true if an argument contains the address of memory that the device cannot use.
bool strays(const std::vector<char>& value, Device* device) {
  const std::scoped_lock lock(world().mutex);
  for (size_t at = 0; at + sizeof(Address) <= value.size(); at += sizeof(Address)) {
    Address word = 0;
    std::memcpy(&word, value.data() + at, sizeof word);
    const Memory* memory = holds(word, 1);
    if (memory != nullptr && memory->device != device && device->reached.count(memory->device) == 0)
      return true;
  }
  return false;
}

// -- memory between processes ------------------------------------------------------------------------

struct Ticket {  // content of an IPC handle
  char magic[8];
  int64_t process, file;
  uint64_t offset, bytes, physical;
};
static_assert(sizeof(Ticket) <= 64);
constexpr char kOfMemory[8] = "HC-MEM", kOfEvent[8] = "HC-EVT";

int open_ticket(const Ticket& ticket, const char* magic, int* file) {
  if (std::memcmp(ticket.magic, magic, 8) != 0) return kInvalidHandle;
  if (ticket.process == getpid()) return kInvalidContext;
  if (setting("HALOCLINE_TEST_CUDA_IPC", 1) == 0) return kInvalidHandle;
  const std::string path = "/proc/" + std::to_string(ticket.process) + "/fd/" + std::to_string(ticket.file);
  *file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  return *file < 0 ? kInvalidHandle : kSuccess;
}

constexpr size_t kPage = 4096, kAlignment = 256;

// Maps a file between two pages without access; the lock is held.
Address map(Memory memory) {
  const size_t inside = (memory.offset + memory.bytes + kPage - 1) / kPage * kPage;
  memory.mapped = inside + 2 * kPage;
  void* place = mmap(nullptr, memory.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return 0;
  memory.mapping = static_cast<char*>(place);
  mmap(memory.mapping + kPage, inside, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory.file, 0);
  const auto start = reinterpret_cast<uintptr_t>(memory.mapping + kPage + memory.offset);
  world().memory[start] = memory;
  return start;
}

// Keeps the address range reserved, without access; the lock is held.
int unmap(Address address, bool attached) {
  const auto entry = world().memory.find(static_cast<uintptr_t>(address));
  if (entry == world().memory.end() || entry->second.attached != attached) return kInvalidValue;
  if (entry->second.mapping == nullptr) return kInvalidValue;  // the memory of a module
  const Memory& memory = entry->second;
  mmap(memory.mapping, memory.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
       0);
  if (memory.file >= 0) close(memory.file);
  if (!attached) memory.device->used_bytes -= memory.bytes;
  world().memory.erase(entry);
  return kSuccess;
}

}  // namespace

extern "C" {

void halocline_standin_fail(const char* function, int status) {
  const std::scoped_lock lock(world().mutex);
  world().failures[function] = status;
}

size_t halocline_standin_calls(const char* function) {
  const std::scoped_lock lock(world().mutex);
  return world().calls[function];
}

// Returns the kernels that were launched or recorded since the last call, after a first call that starts the
// record. Each line has the priority of the stream and the name of the kernel. The text is valid until the
// next call.
const char* halocline_standin_launches() {
  static std::string text;
  const std::scoped_lock lock(world().mutex);
  world().watched = true;
  text = std::exchange(world().launches, {});
  return text.c_str();
}

// Counts the objects of a process: memory, streams, events, modules, graphs.
void halocline_standin_held(size_t* counts) {
  const std::scoped_lock lock(world().mutex);
  const World& all = world();
  counts[0] = all.memory.size() + all.host.size();
  counts[1] = all.streams.size();
  counts[2] = all.events.size();
  counts[3] = all.modules.size();
  counts[4] = all.graphs.size() + all.executables.size();
}

int cuInit(unsigned) {
  const std::scoped_lock lock(world().mutex);
  if (world().ready) return kSuccess;
  const long count = setting("HALOCLINE_TEST_CUDA_DEVICES", 1);
  std::vector<int> visible;
  if (const char* numbers = std::getenv("CUDA_VISIBLE_DEVICES")) {
    for (const char* at = numbers; *at != 0;) {
      char* end = nullptr;
      const long number = std::strtol(at, &end, 10);
      if (end == at || number < 0 || number >= count) break;  // like a driver, ignores the rest
      visible.push_back(static_cast<int>(number));
      at = *end == ',' ? end + 1 : end;
    }
  } else {
    for (int number = 0; number < count; ++number) visible.push_back(number);
  }
  if (visible.empty()) return kNoDevice;
  for (const int physical : visible) {
    world().devices.push_back(std::make_unique<Device>());
    world().devices.back()->physical = physical;
  }
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &segv_before);
  sigaction(SIGBUS, &action, &bus_before);
  world().ready = true;
  return kSuccess;
}

int cuDriverGetVersion(int* version) {
  *version = 1020;  // CUDA 1.2, a version of no driver
  return kSuccess;
}

int cuGetErrorName(int status, const char** name) {
  for (const Words& words : kWords) {
    if (words.status == status) {
      *name = words.name;
      return kSuccess;
    }
  }
  return kInvalidValue;
}

int cuGetErrorString(int status, const char** text) {
  for (const Words& words : kWords) {
    if (words.status == status) {
      *text = words.text;
      return kSuccess;
    }
  }
  return kInvalidValue;
}

int cuDeviceGetCount(int* count) {
  ANSWER_PLANNED();
  *count = static_cast<int>(world().devices.size());
  return kSuccess;
}

int cuDeviceGet(int* number, int index) {
  ANSWER_PLANNED();
  *number = index;
  return device(index) == nullptr ? kInvalidDevice : kSuccess;
}

int cuDeviceGetName(char* name, int size, int) {
  ANSWER_PLANNED();
  std::snprintf(name, static_cast<size_t>(size), "CUDA stand-in (host)");
  return kSuccess;
}

int cuDeviceGetUuid_v2(unsigned char* uuid, int number) {
  ANSWER_PLANNED();
  std::memcpy(uuid, "HALOCLINE-TEST", 14);
  uuid[14] = 0;
  uuid[15] = static_cast<unsigned char>(device(number)->physical);
  return kSuccess;
}

int cuDeviceTotalMem_v2(size_t* bytes, int) {
  ANSWER_PLANNED();
  *bytes = memory_of_device();
  return kSuccess;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  ANSWER_PLANNED();
  switch (attribute) {
    case 1:  // threads of a thread block
      *value = 1024;
      return kSuccess;
    case 97:  // maximum shared memory of a thread block in bytes
      *value = static_cast<int>(most_shared());
      return kSuccess;
    case 16:  // multiprocessors
      *value = 1;
      return kSuccess;
    case 41:   // unified address space
    case 125:  // events between processes
      *value = 1;
      return kSuccess;
    case 75:
      *value = 9;
      return kSuccess;
    case 76:
      *value = 0;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

int cuDeviceCanAccessPeer(int* can, int from, int to) {
  ANSWER_PLANNED();
  *can = from != to && setting("HALOCLINE_TEST_CUDA_PEERS", 1) != 0 ? 1 : 0;
  return kSuccess;
}

// A device is its own context.
int cuDevicePrimaryCtxRetain(Device** context, int number) {
  ANSWER_PLANNED();
  *context = device(number);
  return *context == nullptr ? kInvalidDevice : kSuccess;
}

int cuCtxSetCurrent(Device* context) {
  ANSWER_PLANNED();
  current = context;
  return kSuccess;
}

int cuCtxSynchronize() {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  drain(current);
  return current->broken;
}

int cuCtxEnablePeerAccess(Device* peer, unsigned) {
  NEED_CONTEXT();
  if (setting("HALOCLINE_TEST_CUDA_PEERS", 1) == 0) return kPeerUnsupported;
  const std::scoped_lock lock(world().mutex);
  return current->reached.insert(peer).second ? kSuccess : kPeerAlreadyEnabled;
}

int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  NEED_CONTEXT();
  *least = 0;
  *greatest = -5;
  return kSuccess;
}

int cuMemGetInfo_v2(size_t* left, size_t* all) {
  NEED_CONTEXT();
  const std::scoped_lock lock(world().mutex);
  *all = memory_of_device();
  *left = *all - current->used_bytes;
  return kSuccess;
}

int cuPointerGetAttribute(void* value, int attribute, Address address) {
  NEED_CONTEXT();
  if (attribute != 9) return kInvalidValue;  // the number of the device
  const std::scoped_lock lock(world().mutex);
  const Memory* memory = holds(address, 1);
  const auto& devices = world().devices;
  for (size_t number = 0; memory != nullptr && number < devices.size(); ++number) {
    if (devices[number].get() != memory->device) continue;
    *static_cast<int*>(value) = static_cast<int>(number);
    return kSuccess;
  }
  return kInvalidValue;
}

int cuMemAlloc_v2(Address* address, size_t bytes) {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  if (bytes == 0) return kInvalidValue;
  const std::scoped_lock lock(world().mutex);
  if (bytes > memory_of_device() - current->used_bytes) return kOutOfMemory;
  Memory memory;
  memory.device = current;
  memory.bytes = bytes;
  memory.offset = (kPage - bytes % kPage) % kPage / kAlignment * kAlignment;
  memory.file = memfd_create("cuda-standin", MFD_CLOEXEC);
  if (memory.file < 0) return kOutOfMemory;
  const size_t size = memory.offset + bytes;
  if (ftruncate(memory.file, static_cast<off_t>((size + kPage - 1) / kPage * kPage)) != 0)
    return kOutOfMemory;
  *address = map(memory);
  if (*address == 0) return kOutOfMemory;
  std::memset(pointer(*address), 0xab, bytes);  // not zero, like the memory of a driver
  current->used_bytes += bytes;
  return kSuccess;
}

int cuMemFree_v2(Address address) {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  drain(current);  // like a driver
  const std::scoped_lock lock(world().mutex);
  return unmap(address, false);
}

int cuMemHostAlloc(void** data, size_t bytes, unsigned) {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  *data = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (*data == nullptr) return kOutOfMemory;
  const std::scoped_lock lock(world().mutex);
  world().host.insert(*data);
  return kSuccess;
}

int cuMemFreeHost(void* data) {
  NEED_CONTEXT();
  drain(current);
  const std::scoped_lock lock(world().mutex);
  if (world().host.erase(data) == 0) return kInvalidValue;
  std::free(data);
  return kSuccess;
}

int cuMemsetD8Async(Address to, unsigned char value, size_t bytes, Stream* stream) {
  NEED_STREAM(stream);
  Device* const device = current;
  if (!usable(to, bytes, device)) return kInvalidValue;
  return enqueue(stream, [=]() -> int {
    if (!usable(to, bytes, device)) return kIllegalAddress;
    std::memset(pointer(to), value, bytes);
    return kSuccess;
  });
}

// The host's memory is read when the stream executes the copy, so that an earlier change has an effect.
int cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, Stream* stream) {
  NEED_STREAM(stream);
  Device* const device = current;
  if (from == nullptr || !usable(to, bytes, device)) return kInvalidValue;
  return enqueue(stream, [=]() -> int {
    if (!usable(to, bytes, device)) return kIllegalAddress;
    std::memcpy(pointer(to), from, bytes);
    return kSuccess;
  });
}

int cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, Stream* stream) {
  NEED_STREAM(stream);
  Device* const device = current;
  if (to == nullptr || !usable(from, bytes, device)) return kInvalidValue;
  return enqueue(stream, [=]() -> int {
    if (!usable(from, bytes, device)) return kIllegalAddress;
    std::memcpy(to, pointer(from), bytes);
    return kSuccess;
  });
}

int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, Stream* stream) {
  NEED_STREAM(stream);
  Device* const device = current;
  if (!usable(to, bytes, device) || !usable(from, bytes, device)) return kInvalidValue;
  if (to < from + bytes && from < to + bytes) return kInvalidValue;  // undefined
  return enqueue(stream, [=]() -> int {
    if (!usable(to, bytes, device) || !usable(from, bytes, device)) return kIllegalAddress;
    std::memcpy(pointer(to), pointer(from), bytes);
    return kSuccess;
  });
}

// CUDA_MEMCPY2D_v2, without CUDA arrays.
struct RowsCopy {
  size_t source_x, source_y;
  int source_kind;
  const void* source_host;
  Address source;
  void* source_array;
  size_t source_pitch;
  size_t target_x, target_y;
  int target_kind;
  void* target_host;
  Address target;
  void* target_array;
  size_t target_pitch;
  size_t bytes, rows;
};

int cuMemcpy2DAsync_v2(const RowsCopy* rows, Stream* stream) {
  NEED_STREAM(stream);
  Device* const device = current;
  const RowsCopy c = *rows;
  constexpr int kHost = 1, kDevice = 2;
  if (c.source_x != 0 || c.source_y != 0 || c.target_x != 0 || c.target_y != 0) return kInvalidValue;
  if (c.source_pitch < c.bytes || c.target_pitch < c.bytes || c.rows == 0) return kInvalidValue;
  const size_t from = (c.rows - 1) * c.source_pitch + c.bytes, to = (c.rows - 1) * c.target_pitch + c.bytes;
  const auto good = [=]() {
    const bool source = c.source_kind == kHost ? c.source_host != nullptr
                                               : c.source_kind == kDevice && usable(c.source, from, device);
    const bool target = c.target_kind == kHost ? c.target_host != nullptr
                                               : c.target_kind == kDevice && usable(c.target, to, device);
    return source && target;
  };
  if (!good()) return kInvalidValue;
  return enqueue(stream, [=]() -> int {
    if (!good()) return kIllegalAddress;
    const char* source = c.source_kind == kHost ? static_cast<const char*>(c.source_host)
                                                : static_cast<const char*>(pointer(c.source));
    char* target =
        c.target_kind == kHost ? static_cast<char*>(c.target_host) : static_cast<char*>(pointer(c.target));
    for (size_t row = 0; row < c.rows; ++row) {
      std::memcpy(target + row * c.target_pitch, source + row * c.source_pitch, c.bytes);
    }
    return kSuccess;
  });
}

int cuMemcpyPeerAsync(Address to, Device* target, Address from, Device* source, size_t bytes,
                      Stream* stream) {
  NEED_STREAM(stream);
  if (target == nullptr || source == nullptr) return kInvalidContext;
  if (!usable(to, bytes, target) || !usable(from, bytes, source)) return kInvalidValue;
  return enqueue(stream, [=]() -> int {
    if (!usable(to, bytes, target) || !usable(from, bytes, source)) return kIllegalAddress;
    std::memcpy(pointer(to), pointer(from), bytes);
    return kSuccess;
  });
}

int cuStreamCreateWithPriority(Stream** stream, unsigned flags, int priority) {
  NEED_CONTEXT();
  if (flags > 1 || priority > 0 || priority < -5) return kInvalidValue;
  *stream = new Stream;
  (*stream)->device = current;
  (*stream)->priority = priority;
  (*stream)->thread = std::thread(serve, *stream);
  const std::scoped_lock lock(world().mutex);
  world().streams.insert(*stream);
  return kSuccess;
}

int cuStreamDestroy_v2(Stream* stream) {
  ANSWER_PLANNED();
  {
    const std::scoped_lock lock(world().mutex);
    if (world().streams.erase(stream) == 0) return kInvalidHandle;
  }
  {
    const std::scoped_lock lock(stream->mutex);
    stream->ends = true;
    stream->changed.notify_all();
  }
  stream->thread.join();
  if (stream->capture && stream->capture->origin == stream) --captures;
  delete stream;
  return kSuccess;
}

int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  NEED_CONTEXT();
  if (!known(world().streams, stream) || !known(world().events, event)) return kInvalidHandle;
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return kCaptureIsolation;
    if (!stream->capture) {
      stream->capture = event->capture;
      stream->capture->streams.insert(stream);
      stream->last.clear();
    }
    stream->last.insert(stream->last.end(), event->nodes.begin(), event->nodes.end());
    return kSuccess;
  }
  const uint64_t ticket = event->marks->recorded;
  if (stream->capture) {
    if (ticket == 0) return kSuccess;
    stream->capture->invalid = true;
    return kCaptureIsolation;
  }
  return enqueue(stream, [marks = event->marks, ticket]() -> int {
    await(*marks, ticket);
    return kSuccess;
  });
}

int cuStreamSynchronize(Stream* stream) {
  NEED_CONTEXT();
  if (!known(world().streams, stream)) return kInvalidHandle;
  if (stream->capture) return invalidate_all();
  drain(stream);
  return stream->device->broken;
}

int cuEventCreate(Event** event, unsigned flags) {
  NEED_CONTEXT();
  if ((flags & 4) != 0 && (flags & 2) == 0) return kInvalidValue;  // events between processes have no times
  auto created = std::make_unique<Event>();
  created->flags = flags;
  created->device = current;
  if ((flags & 4) != 0) {
    created->file = memfd_create("cuda-standin", MFD_CLOEXEC);
    if (created->file < 0 || ftruncate(created->file, kPage) != 0) return kOutOfMemory;
    void* shared = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, created->file, 0);
    if (shared == MAP_FAILED) return kOutOfMemory;
    created->marks =
        std::shared_ptr<Marks>(static_cast<Marks*>(shared), [](Marks* marks) { munmap(marks, kPage); });
  }
  const std::scoped_lock lock(world().mutex);
  world().events.insert(created.get());
  *event = created.release();
  return kSuccess;
}

int cuEventDestroy_v2(Event* event) {
  ANSWER_PLANNED();
  {
    const std::scoped_lock lock(world().mutex);
    if (world().events.erase(event) == 0) return kInvalidHandle;
  }
  if (event->file >= 0) close(event->file);
  delete event;
  return kSuccess;
}

int cuEventRecord(Event* event, Stream* stream) {
  NEED_STREAM(stream);
  if (!known(world().events, event)) return kInvalidHandle;
  if (event->device != current) return kInvalidHandle;
  if (stream->capture) {
    if ((event->flags & 4) != 0) return kCaptureUnsupported;
    event->capture = stream->capture;
    event->nodes = stream->last;
    return kSuccess;
  }
  event->capture = nullptr;
  // work that waits for the previous record, perhaps in another stream, still waits for that record
  if (event->file < 0 && (event->flags & 4) == 0) event->marks = std::make_shared<Marks>();
  const uint64_t ticket = ++event->marks->recorded;
  Device* const device = current;
  std::shared_ptr<Marks> marks = event->marks;
  // also on a broken device, since waiting work must continue
  const std::scoped_lock lock(stream->mutex);
  stream->work.emplace_back([marks, ticket, device] {
    marks->at = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    uint64_t done = marks->done;
    while (done < ticket && !marks->done.compare_exchange_weak(done, ticket)) {
    }
  });
  stream->changed.notify_all();
  return kSuccess;
}

int cuEventQuery(Event* event) {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  if (!known(world().events, event)) return kInvalidHandle;
  if (event->capture) return kCapturedEvent;
  if (event->marks->done < event->marks->recorded) return kNotReady;
  return event->device->broken;
}

int cuEventSynchronize(Event* event) {
  NEED_CONTEXT();
  if (!known(world().events, event)) return kInvalidHandle;
  if (event->capture) return kCapturedEvent;
  NEED_NO_CAPTURE();
  await(*event->marks, event->marks->recorded);
  return event->device->broken;
}

int cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  for (const Event* event : {start, end}) {
    if (!known(world().events, const_cast<Event*>(event)) || event->device != current) return kInvalidHandle;
    if ((event->flags & 2) != 0 || event->marks->recorded == 0) return kInvalidHandle;
    if (event->capture) return kCapturedEvent;
    if (event->marks->done < event->marks->recorded) return kNotReady;
  }
  *milliseconds = static_cast<float>(1e-6 * static_cast<double>(end->marks->at - start->marks->at));
  return kSuccess;
}

int cuModuleLoadDataEx(Module** module, const void* image, unsigned, int*, void**) {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  constexpr char kMagic[] = "HALOCLINE-STAND-IN";
  if (std::strncmp(static_cast<const char*>(image), kMagic, sizeof kMagic - 1) != 0) return kInvalidImage;
  const char* at = static_cast<const char*>(image) + sizeof kMagic - 1;
  uint64_t size = 0;
  std::memcpy(&size, at, sizeof size);
  // file and library are never closed: the loader identifies libraries by the name of their file
  const int file = memfd_create("cuda-standin", MFD_CLOEXEC);
  if (file < 0 || write(file, at + sizeof size, size) != static_cast<ssize_t>(size)) return kInvalidImage;
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return kInvalidImage;
  *module = new Module;
  (*module)->device = current;
  (*module)->library = library;
  const std::scoped_lock lock(world().mutex);
  world().modules.insert(*module);
  return kSuccess;
}

int cuModuleUnload(Module* module) {
  NEED_CONTEXT();
  NEED_NO_CAPTURE();
  drain(current);
  const std::scoped_lock lock(world().mutex);
  if (world().modules.erase(module) == 0) return kInvalidHandle;
  for (Function* function : module->functions) world().functions.erase(function);
  for (const uintptr_t symbol : module->symbols) world().memory.erase(symbol);
  delete module;
  return kSuccess;
}

int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  NEED_CONTEXT();
  if (!known(world().modules, module)) return kInvalidHandle;
  const void* kernel = dlsym(module->library, (std::string("standin_") + name).c_str());
  if (kernel == nullptr) return kNotFound;
  const std::scoped_lock lock(world().mutex);
  *function = new Function{module->device, static_cast<const standin::Kernel*>(kernel)};
  module->functions.push_back(*function);
  world().functions.insert(*function);
  return kSuccess;
}

int cuModuleGetGlobal_v2(uint64_t* address, size_t* bytes, Module* module, const char* name) {
  NEED_CONTEXT();
  if (!known(world().modules, module)) return kInvalidHandle;
  void* variable = dlsym(module->library, name);
  if (variable == nullptr) return kNotFound;
  Dl_info info;
  void* entry = nullptr;
  if (dladdr1(variable, &info, &entry, RTLD_DL_SYMENT) == 0) return kNotFound;
  *address = reinterpret_cast<uint64_t>(variable);
  *bytes = static_cast<const ElfW(Sym)*>(entry)->st_size;
  const std::scoped_lock lock(world().mutex);
  Memory& memory = world().memory[static_cast<uintptr_t>(*address)];
  memory.device = module->device;
  memory.bytes = *bytes;
  module->symbols.insert(static_cast<uintptr_t>(*address));
  return kSuccess;
}

int cuFuncGetAttribute(int* value, int attribute, Function* function) {
  NEED_CONTEXT();
  if (!known(world().functions, function)) return kInvalidHandle;
  *value = attribute == 0 ? static_cast<int>(most_threads(*function->kernel)) : 0;
  return kSuccess;
}

int cuFuncSetAttribute(Function* function, int attribute, int value) {
  NEED_CONTEXT();
  if (!known(world().functions, function)) return kInvalidHandle;
  if (attribute != 8 || value < 0 || value > most_shared()) return kInvalidValue;
  function->shared = static_cast<unsigned>(value);
  return kSuccess;
}

int cuFuncGetParamInfo(Function* function, size_t index, size_t* offset, size_t* size) {
  NEED_CONTEXT();
  if (!known(world().functions, function)) return kInvalidHandle;
  if (index >= function->kernel->count) return kInvalidValue;
  *offset = 0;
  *size = function->kernel->sizes[index];
  return kSuccess;
}

int cuLaunchKernel(Function* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Stream* stream, void** parameters, void**) {
  NEED_STREAM(stream);
  if (!known(world().functions, function)) return kInvalidHandle;
  if (function->device != current) return kInvalidHandle;
  const uint64_t threads = uint64_t{bx} * by * bz;
  if (gx == 0 || gy == 0 || gz == 0 || threads == 0) return kInvalidValue;
  if (gx > INT_MAX || gy > 65535 || gz > 65535 || bz > 64 || threads > 1024) return kInvalidValue;
  if (threads > most_threads(*function->kernel)) return kLaunchOutOfResources;
  if (shared > function->shared) return kInvalidValue;
  std::vector<std::vector<char>> values;
  for (size_t n = 0; n < function->kernel->count; ++n) {
    const char* bytes = static_cast<const char*>(parameters[n]);
    values.emplace_back(bytes, bytes + function->kernel->sizes[n]);
  }
  Device* const device = current;
  {
    const std::scoped_lock lock(world().mutex);
    if (world().watched)
      world().launches += std::to_string(stream->priority) + " " + function->kernel->name + "\n";
  }
  return enqueue(stream, [=, kernel = function->kernel]() mutable -> int {
    for (const auto& value : values) {
      if (strays(value, device)) return kIllegalAddress;
    }
    auto once = values;  // a graph may run the kernel again
    return run(*kernel, {gx, gy, gz}, {bx, by, bz}, once);
  });
}

int cuStreamBeginCapture_v2(Stream* stream, int mode) {
  NEED_STREAM(stream);
  if (stream->capture || mode < 0 || mode > 2) return kInvalidValue;
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->streams.insert(stream);
  stream->last.clear();
  ++captures;
  return kSuccess;
}

int cuStreamEndCapture(Stream* stream, Graph** graph) {
  NEED_STREAM(stream);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return kInvalidValue;
  if (capture->origin != stream) return kCaptureUnmatched;
  --captures;
  // records of other streams must precede the last record of this stream
  std::set<size_t> before;
  std::vector<size_t> open = stream->last;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (before.insert(node).second) {
      const auto& after = capture->graph.nodes[node].after;
      open.insert(open.end(), after.begin(), after.end());
    }
  }
  bool joined = true;
  for (Stream* member : capture->streams) {
    if (!known(world().streams, member)) continue;
    joined = joined && std::all_of(member->last.begin(), member->last.end(),
                                   [&](size_t n) { return before.count(n) != 0; });
    member->capture = nullptr;
    member->last.clear();
  }
  if (capture->invalid) return kCaptureInvalidated;
  if (!joined) return kCaptureUnjoined;
  const std::scoped_lock lock(world().mutex);
  *graph = new Graph(capture->graph);
  world().graphs.insert(*graph);
  return kSuccess;
}

int cuGraphInstantiateWithFlags(Executable** executable, Graph* graph, unsigned long long) {
  NEED_CONTEXT();
  if (!known(world().graphs, graph)) return kInvalidHandle;
  const std::scoped_lock lock(world().mutex);
  *executable = new Executable{*graph};
  world().executables.insert(*executable);
  return kSuccess;
}

int cuGraphDestroy(Graph* graph) {
  ANSWER_PLANNED();
  const std::scoped_lock lock(world().mutex);
  if (world().graphs.erase(graph) == 0) return kInvalidHandle;
  delete graph;
  return kSuccess;
}

int cuGraphExecDestroy(Executable* executable) {
  ANSWER_PLANNED();
  const std::scoped_lock lock(world().mutex);
  if (world().executables.erase(executable) == 0) return kInvalidHandle;
  delete executable;
  return kSuccess;
}

// The nodes run in a random order that respects their dependencies.
int cuGraphLaunch(Executable* executable, Stream* stream) {
  NEED_STREAM(stream);
  if (!known(world().executables, executable)) return kInvalidHandle;
  return enqueue(stream, [graph = executable->graph]() -> int {
    thread_local std::minstd_rand random(7);
    std::vector<size_t> waiting(graph.nodes.size(), 0), ready;
    for (size_t n = 0; n < waiting.size(); ++n) {
      waiting[n] = graph.nodes[n].after.size();
      if (waiting[n] == 0) ready.push_back(n);
    }
    while (!ready.empty()) {
      const size_t at = random() % ready.size();
      const size_t node = ready[at];
      ready.erase(ready.begin() + static_cast<ptrdiff_t>(at));
      delay();
      graph.nodes[node].work();
      for (size_t n = 0; n < waiting.size(); ++n) {
        for (const size_t after : graph.nodes[n].after) {
          if (after == node && --waiting[n] == 0) ready.push_back(n);
        }
      }
    }
    return kSuccess;
  });
}

struct Handle {
  char bytes[64];
};

int cuIpcGetMemHandle(Handle* handle, Address address) {
  NEED_CONTEXT();
  const std::scoped_lock lock(world().mutex);
  const auto entry = world().memory.find(static_cast<uintptr_t>(address));
  if (entry == world().memory.end() || entry->second.attached) return kInvalidValue;
  const Memory& memory = entry->second;
  Ticket ticket{
      {}, getpid(), memory.file, memory.offset, memory.bytes, static_cast<uint64_t>(memory.device->physical)};
  std::memcpy(ticket.magic, kOfMemory, 8);
  std::memcpy(handle->bytes, &ticket, sizeof ticket);
  return kSuccess;
}

// The memory belongs to the device that opens it, if it is the same device or can reach it.
int cuIpcOpenMemHandle_v2(Address* address, Handle handle, unsigned) {
  NEED_CONTEXT();
  Ticket ticket;
  std::memcpy(&ticket, handle.bytes, sizeof ticket);
  Memory memory;
  if (const int status = open_ticket(ticket, kOfMemory, &memory.file); status != kSuccess) return status;
  if (ticket.physical != static_cast<uint64_t>(current->physical) &&
      setting("HALOCLINE_TEST_CUDA_PEERS", 1) == 0) {
    close(memory.file);
    return kPeerUnsupported;
  }
  memory.device = current;
  memory.bytes = ticket.bytes;
  memory.offset = ticket.offset;
  memory.attached = true;
  const std::scoped_lock lock(world().mutex);
  *address = map(memory);
  return *address == 0 ? kOutOfMemory : kSuccess;
}

int cuIpcCloseMemHandle(Address address) {
  NEED_CONTEXT();
  drain(current);
  const std::scoped_lock lock(world().mutex);
  return unmap(address, true);
}

int cuIpcGetEventHandle(Handle* handle, Event* event) {
  NEED_CONTEXT();
  if (!known(world().events, event)) return kInvalidHandle;
  if (event->file < 0) return kInvalidHandle;
  Ticket ticket{{}, getpid(), event->file, 0, kPage, 0};
  std::memcpy(ticket.magic, kOfEvent, 8);
  std::memcpy(handle->bytes, &ticket, sizeof ticket);
  return kSuccess;
}

int cuIpcOpenEventHandle(Event** event, Handle handle) {
  NEED_CONTEXT();
  Ticket ticket;
  std::memcpy(&ticket, handle.bytes, sizeof ticket);
  int file = -1;
  if (const int status = open_ticket(ticket, kOfEvent, &file); status != kSuccess) return status;
  void* shared = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared == MAP_FAILED) return kOutOfMemory;
  auto* opened = new Event;
  opened->flags = 6;
  opened->device = current;
  opened->marks =
      std::shared_ptr<Marks>(static_cast<Marks*>(shared), [](Marks* marks) { munmap(marks, kPage); });
  const std::scoped_lock lock(world().mutex);
  world().events.insert(opened);
  *event = opened;
  return kSuccess;
}
}
