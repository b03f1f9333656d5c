// Streams of CUDA devices: events, launches, copies, and recorded graphs.

#include <array>
#include <string>

#include "device/cuda.hpp"

namespace halocline::device::cuda {

const CudaEvent& ours(const Event& event) {
  const auto* found = dynamic_cast<const CudaEvent*>(&event);
  if (found == nullptr)
    throw std::invalid_argument("an event of another interface was given to a CUDA device");
  return *found;
}

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

namespace {

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

}  // namespace

CudaQueue::~CudaQueue() {
  try {
    device.use();
  } catch (const DeviceError&) {
    return;
  }
  library().stream_synchronize(stream);
  library().stream_destroy(stream);
}

void CudaQueue::launch(const Kernel& kernel, const std::array<uint32_t, 3>& groups,
                       const std::array<uint32_t, 3>& group, std::span<const Argument> arguments) {
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

void CudaQueue::copy(Buffer& to, size_t to_offset, const Buffer& from, size_t from_offset, size_t bytes) {
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

void CudaQueue::upload(Buffer& to, size_t offset, const void* from, size_t bytes) {
  const Address there = ours(to).at(offset, bytes);
  if (bytes == 0) return;
  device.use();
  device.check(library().upload(there, from, bytes, stream), "a copy to the device");
}

void CudaQueue::download(void* to, const Buffer& from, size_t offset, size_t bytes) {
  const Address there = ours(from).at(offset, bytes);
  if (bytes == 0) return;
  device.use();
  device.check(library().download(to, there, bytes, stream), "a copy from the device");
}

void CudaQueue::upload(Buffer& to, const Rows& rows, const void* from) {
  RowsCopy copy;
  copy.source_host = from;
  copy.source_pitch = rows.bytes;
  target(copy, to, rows);
  run(copy, rows, "a copy of rows to the device");
}

void CudaQueue::download(void* to, const Buffer& from, const Rows& rows) {
  RowsCopy copy;
  source(copy, from, rows);
  copy.target_host = to;
  copy.target_pitch = rows.bytes;
  run(copy, rows, "a copy of rows from the device");
}

void CudaQueue::copy(Buffer& to, const Rows& there, const Buffer& from, const Rows& here) {
  RowsCopy copy;
  source(copy, from, here);
  target(copy, to, there);
  run(copy, here, "a copy of rows");
}

void CudaQueue::clear(Buffer& buffer, size_t offset, size_t bytes) {
  const Address there = ours(buffer).at(offset, bytes);
  if (bytes == 0) return;
  device.use();
  device.check(library().set_bytes(there, 0, bytes, stream), "clearing memory");
}

std::shared_ptr<Event> CudaQueue::record() {
  device.use();
  auto event = std::make_shared<CudaEvent>(device, device.take_event(), CudaEvent::Kind::kPooled);
  device.check(library().event_record(event->event, stream), "recording an event");
  return event;
}

void CudaQueue::wait(const std::shared_ptr<Event>& event) {
  device.use();
  device.check(library().stream_wait(stream, ours(*event).event, 0), "waiting for an event");
}

void CudaQueue::finish() {
  device.use();
  device.check(library().stream_synchronize(stream), "work that was queued");
}

void CudaQueue::begin_capture() {
  device.use();
  device.check(library().capture_begin(stream, kCaptureThreadLocal), "beginning to record a graph");
}

std::unique_ptr<Graph> CudaQueue::end_capture() {
  device.use();
  Recording recording = nullptr;
  device.check(library().capture_end(stream, &recording), "recording a graph");
  Executable executable = nullptr;
  const Status status = library().graph_instantiate(&executable, recording, 0);
  library().graph_destroy(recording);
  device.check(status, "making a graph that can be launched");
  return std::make_unique<CudaGraph>(device, executable);
}

void CudaQueue::launch(const Graph& graph) {
  device.use();
  device.check(library().graph_launch(static_cast<const CudaGraph&>(graph).executable, stream),
               "launching a graph");
}

void CudaQueue::source(RowsCopy& copy, const Buffer& from, const Rows& rows) {
  copy.source_kind = kMemoryDevice;
  copy.source = ours(from).at(rows.offset, rows.end() - rows.offset);
  copy.source_pitch = rows.pitch;
}

void CudaQueue::target(RowsCopy& copy, const Buffer& to, const Rows& rows) {
  copy.target_kind = kMemoryDevice;
  copy.target = ours(to).at(rows.offset, rows.end() - rows.offset);
  copy.target_pitch = rows.pitch;
}

void CudaQueue::run(RowsCopy& copy, const Rows& rows, const char* doing) const {
  if (rows.bytes == 0 || rows.count == 0) return;
  copy.bytes = rows.bytes;
  copy.rows = rows.count;
  device.use();
  device.check(library().copy_rows(&copy, stream), doing);
}

std::unique_ptr<Queue> CudaDevice::queue(bool urgent) {
  use();
  int least = 0, greatest = 0;
  check(library().priorities(&least, &greatest), "asking for the priorities of streams");
  Stream stream = nullptr;
  check(library().stream_create(&stream, kStreamNonBlocking, urgent ? greatest : least), "making a stream");
  return std::make_unique<CudaQueue>(*this, stream);
}

}  // namespace halocline::device::cuda
