// Bindings of devices, for tests and for measurements at set-up. Runs use devices through the engine.

#include "device/device.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "bindings/bindings.hpp"
#include "bindings/bound_module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

using device::Buffer;
using device::Device;
using Source = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Target = nb::ndarray<nb::c_contig, nb::device::cpu>;

std::invalid_argument unknown(const std::string& interface) {
  return std::invalid_argument("unknown device interface '" + interface + "', expected 'cuda' or 'opencl'");
}

const std::vector<std::shared_ptr<Device>>& devices(const std::string& interface) {
  if (interface == "cuda") return device::cuda_devices();
  if (interface == "opencl") return device::opencl_devices();
  throw unknown(interface);
}

std::string why_no_devices(const std::string& interface) {
  if (interface == "cuda") return device::why_no_cuda();
  if (interface == "opencl") return device::why_no_opencl();
  throw unknown(interface);
}

// Values of the arguments of a kernel, from Python objects.
class Arguments {
 public:
  explicit Arguments(const nb::list& values) : numbers_(values.size()) {
    size_t n = 0;
    for (const nb::handle item : values) {
      std::byte* number = numbers_[n++].data();
      if (nb::isinstance<Buffer>(item)) {
        all_.emplace_back(nb::cast<const Buffer*>(item));
      } else if (nb::isinstance<nb::bytes>(item)) {
        const auto value = nb::borrow<nb::bytes>(item);  // the list keeps the bytes alive
        all_.emplace_back(std::span(static_cast<const std::byte*>(value.data()), value.size()));
      } else if (nb::isinstance<nb::int_>(item)) {
        add(number, nb::cast<int64_t>(item));
      } else if (nb::isinstance<nb::float_>(item)) {
        add(number, nb::cast<double>(item));
      } else {
        throw std::invalid_argument("argument " + std::to_string(n - 1) + " of a kernel is " +
                                    nb::repr(item).c_str() + ", expected a Buffer, int, float or bytes");
      }
    }
  }

  std::span<const device::Argument> all() const { return all_; }

 private:
  template <typename Number>
  void add(std::byte* to, Number number) {
    std::memcpy(to, &number, sizeof number);
    all_.emplace_back(std::span<const std::byte>(to, sizeof number));
  }

  std::vector<std::array<std::byte, 8>> numbers_;
  std::vector<device::Argument> all_;
};

// Queue that keeps the queued objects alive until finish().
class BoundQueue {
 public:
  explicit BoundQueue(std::unique_ptr<device::Queue> queue) : queue_(std::move(queue)) {}

  device::Queue* operator->() { return queue_.get(); }
  device::Queue* get() { return queue_.get(); }

  template <typename Held>
  void hold(Held held) {
    held_.push_back(std::make_shared<Held>(std::move(held)));
  }
  void finish() {
    {
      const nb::gil_scoped_release release;
      queue_->finish();
    }
    held_.clear();
  }

 private:
  std::vector<std::shared_ptr<void>> held_;
  std::unique_ptr<device::Queue> queue_;  // destroyed first, since the destructor waits for queued work
};

nb::object object_of(const Buffer& buffer) { return nb::find(buffer); }

void upload(BoundQueue& queue, Buffer& to, Source from, size_t offset) {
  queue->upload(to, offset, from.data(), from.nbytes());
  queue.hold(object_of(to));
  queue.hold(std::move(from));
}

void download(BoundQueue& queue, const Buffer& from, Target to, size_t offset) {
  queue->download(to.data(), from, offset, to.nbytes());
  queue.hold(object_of(from));
  queue.hold(std::move(to));
}

void copy(BoundQueue& queue, Buffer& to, const Buffer& from, std::optional<size_t> bytes, size_t to_offset,
          size_t from_offset) {
  queue->copy(to, to_offset, from, from_offset, bytes.value_or(from.bytes()));
  queue.hold(object_of(to));
  queue.hold(object_of(from));
}

void clear(BoundQueue& queue, Buffer& buffer, std::optional<size_t> bytes, size_t offset) {
  queue->clear(buffer, offset, bytes.value_or(buffer.bytes() - std::min(buffer.bytes(), offset)));
  queue.hold(object_of(buffer));
}

void launch(BoundQueue& queue, BoundModule& module, const std::string& kernel,
            const std::array<uint32_t, 3>& block_counts, const std::array<uint32_t, 3>& block_shape,
            const nb::list& arguments) {
  const Arguments kernel_arguments(arguments);
  queue->launch(module.kernel(kernel), block_counts, block_shape, kernel_arguments.all());
  queue.hold(nb::find(module));
  queue.hold(nb::list(nb::tuple(arguments)));  // the caller may change its list
}

nb::bytes as_bytes(const device::Shared& shared) { return nb::bytes(shared.data(), shared.size()); }

device::Shared as_shared(const nb::bytes& bytes) {
  const auto* data = static_cast<const std::byte*>(bytes.data());
  return {data, data + bytes.size()};
}

nb::ndarray<nb::numpy, uint8_t> pinned(Device& device, size_t bytes) {
  auto* memory = device.pinned(bytes).release();
  const nb::capsule owner(memory, [](void* held) noexcept { delete static_cast<device::Pinned*>(held); });
  return nb::ndarray<nb::numpy, uint8_t>(memory->data(), {bytes}, owner);
}

}  // namespace

void bind_device(nb::module_& m) {
  const nb::exception<device::DeviceError> device_error(m, "DeviceError", PyExc_RuntimeError);

  nb::class_<Buffer>(m, "Buffer", "Memory of a device; Device.allocate() creates it.")
      .def_prop_ro("bytes", &Buffer::bytes)
      .def_prop_ro(
          "address", [](const Buffer& buffer) { return reinterpret_cast<uintptr_t>(buffer.address()); },
          "Address for MPI; 0 if the interface has no addresses.");

  nb::class_<device::Event>(m, "Event", "Point in a queue; Queue.record() creates it.")
      .def("done", &device::Event::done,
           "Return True if all earlier work of the queue is complete.\n\n"
           "DeviceError is raised if some of this work failed.")
      .def("wait", &device::Event::wait, "Wait until the event is complete.",
           nb::call_guard<nb::gil_scoped_release>());

  const nb::class_<device::Graph> graph(m, "Graph", "Recorded work; Queue.end_capture() creates it.");

  nb::class_<BoundModule>(m, "Module", "Compiled code; Device.load() creates it.")
      .def(
          "max_threads_per_block",
          [](BoundModule& module, const std::string& name) {
            return module.kernel(name).max_threads_per_block();
          },
          "kernel"_a, "Return the maximum number of threads per thread block of a kernel.")
      .def(
          "registers",
          [](BoundModule& module, const std::string& name) { return module.kernel(name).registers(); },
          "kernel"_a, "Return the registers per thread; 0 if the device does not report them.")
      .def(
          "spilled",
          [](BoundModule& module, const std::string& name) { return module.kernel(name).spilled(); },
          "kernel"_a, "Return the bytes of spilled registers per thread, which are stored in device memory.");

  nb::class_<BoundQueue>(m, "Queue",
                         "Work for a device, in order.\n\n"
                         "Only Event.wait(), finish() and the deletion of a queue wait for the work.\n"
                         "The queue keeps the queued objects alive until finish(). Arrays must not\n"
                         "change before finish().")
      .def("upload", &upload, "to"_a, "array"_a, "offset"_a = 0,
           "Copy an array to a buffer, from byte `offset` on.")
      .def("download", &download, "source"_a, "array"_a.noconvert(), "offset"_a = 0,
           "Fill an array from a buffer, from byte `offset` on.")
      .def("copy", &copy, "to"_a, "source"_a, "bytes"_a = nb::none(), "to_offset"_a = 0,
           "source_offset"_a = 0,
           "Copy between buffers of this device, or from another device to this one.\n\n"
           "By default, all bytes of `source` are copied.")
      .def("clear", &clear, "buffer"_a, "bytes"_a = nb::none(), "offset"_a = 0,
           "Set bytes to zero, by default up to the end of the buffer.")
      .def("launch", &launch, "module"_a, "kernel"_a, "block_counts"_a, "block_shape"_a, "arguments"_a,
           "Run a kernel.\n\n"
           "Parameters\n"
           "----------\n"
           "block_counts, block_shape : three int\n"
           "    Number of thread blocks along x, y, z; threads per block along x, y, z.\n"
           "arguments : list\n"
           "    A Buffer, an int (64 bits), a float (64 bits), or the bytes of any other value.")
      .def(
          "record", [](BoundQueue& queue) { return queue->record(); },
          "Return an event that is complete when all work queued so far is complete.")
      .def(
          "wait", [](BoundQueue& queue, const std::shared_ptr<device::Event>& event) { queue->wait(event); },
          "event"_a, "Make subsequent work wait for an event of any device of the interface.")
      .def(
          "flush", [](BoundQueue& queue) { queue->flush(); }, "Make the device start the queued work.")
      .def("finish", &BoundQueue::finish,
           "Wait for all queued work; DeviceError is raised if some of it failed.")
      .def(
          "begin_capture", [](BoundQueue& queue) { queue->begin_capture(); },
          "Record subsequent work instead of running it. This requires Device.captures.")
      .def(
          "end_capture", [](BoundQueue& queue) { return queue->end_capture(); },
          "Return the recorded graph. Its buffers and modules must be kept alive.")
      .def(
          "replay",
          [](BoundQueue& queue, const device::Graph& graph) {
            queue->launch(graph);
            queue.hold(nb::find(graph));
          },
          "graph"_a, "Run recorded work.");

  const auto description = [](auto member) {
    return [member](const Device& device) { return device.description().*member; };
  };
  using device::Description;
  nb::class_<Device>(m, "Device", "Device with its own memory; devices() lists all devices.")
      .def_prop_ro("interface", description(&Description::interface), "'cuda' or 'opencl'.")
      .def_prop_ro("index", description(&Description::index), "Index among the devices of the interface.")
      .def_prop_ro("name", description(&Description::name), "Name of the model.")
      .def_prop_ro("driver", description(&Description::driver), "Version of the driver.")
      .def_prop_ro("platform", description(&Description::platform),
                   "OpenCL platform; '' for CUDA. Devices of one platform can copy from each other.")
      .def_prop_ro("identity", description(&Description::identity),
                   "Identity of the device, equal in all processes of a node.")
      .def_prop_ro("architecture", description(&Description::architecture),
                   "Target architecture of CUDA, such as 'sm_90'; '' for OpenCL.")
      .def_prop_ro("memory", description(&Description::memory), "Device memory in bytes.")
      .def_prop_ro("local_memory", description(&Description::local_memory),
                   "Maximum shared memory per thread block in bytes.")
      .def_prop_ro("max_threads_per_block", description(&Description::max_threads_per_block),
                   "Maximum number of threads per thread block.")
      .def_prop_ro("parameters", description(&Description::parameters),
                   "Maximum size of the arguments of a kernel in bytes.")
      .def_prop_ro("units", description(&Description::units), "Number of multiprocessors or compute units.")
      .def_prop_ro("doubles", description(&Description::doubles),
                   "True if the device has float64 with fma, subnormals and NaNs.")
      .def_prop_ro("singles", description(&Description::singles),
                   "True if float32 has fma, NaNs, and correctly rounded division and square root.")
      .def_prop_ro("free_memory", &Device::free_memory,
                   "Bytes that can still be allocated, as far as the device reports them.")
      .def_prop_ro("captures", &Device::captures, "True if the queues of the device can record graphs.")
      .def("reaches", &Device::reaches, "other"_a,
           "Return True if kernels of this device can access the memory of another device.")
      .def("allocate", &Device::allocate, "bytes"_a,
           "Return zeroed memory; OutOfMemory is raised if there is too little.",
           nb::call_guard<nb::gil_scoped_release>())
      .def("synchronize", &Device::synchronize, nb::call_guard<nb::gil_scoped_release>(),
           "Wait for all work of this process on the device, including the work of other libraries.")
      .def("owner_of", &Device::owner_of, "address"_a,
           "Return the index of the device whose memory contains an address, or -1 if there is none.")
      .def("pinned", &pinned, "bytes"_a,
           "Return an array in pinned host memory, which the device accesses by DMA.")
      .def(
          "queue",
          [](Device& device, bool urgent) { return std::make_unique<BoundQueue>(device.queue(urgent)); },
          "urgent"_a = false, "Return a new queue; work in urgent queues runs first.")
      .def(
          "load",
          [](Device& device, const std::string& code, const std::string& options) {
            return std::make_unique<BoundModule>(device.load(code, options));
          },
          "code"_a, "options"_a = "", "Compile OpenCL C; DeviceError contains the message of the compiler.",
          nb::call_guard<nb::gil_scoped_release>())
      .def(
          "load",
          [](Device& device, const nb::bytes& binary) {
            const std::string code(binary.c_str(), binary.size());
            const nb::gil_scoped_release release;
            return std::make_unique<BoundModule>(device.load(code, ""));
          },
          "code"_a, "Load a cubin or PTX; DeviceError contains the message of the driver.")
      .def_prop_ro("shares", &Device::shares,
                   "True if other processes of the node can attach memory of the device.")
      .def(
          "share", [](Device& device, const Buffer& buffer) { return as_bytes(device.share(buffer)); },
          "buffer"_a,
          "Return the handle by which another process attaches a buffer.\n\n"
          "The buffer must outlive its use by the other process.")
      .def(
          "attach",
          [](Device& device, const nb::bytes& shared, size_t bytes) {
            return device.attach(as_shared(shared), bytes);
          },
          "shared"_a, "bytes"_a,
          "Return a buffer of another process; DeviceError is raised if it is not accessible.")
      .def("shared_event", &Device::shared_event, "Return a new event for which other processes can wait.")
      .def(
          "share_event",
          [](Device& device, const device::Event& event) { return as_bytes(device.share(event)); }, "event"_a,
          "Return the handle by which another process attaches an event.\n\n"
          "The event must outlive its use by the other process.")
      .def(
          "attach_event",
          [](Device& device, const nb::bytes& shared) { return device.attach_event(as_shared(shared)); },
          "shared"_a, "Return an event of another process; DeviceError is raised if it is not accessible.")
      .def(
          "record",
          [](Device& device, device::Event& event, BoundQueue& queue) { device.record(event, *queue.get()); },
          "event"_a, "queue"_a,
          "Record a shared event, which is complete when all work queued so far is complete.");

  m.def("devices", &devices, "interface"_a,
        "Return the visible devices of 'cuda' or 'opencl'. The list is empty without a driver.",
        nb::call_guard<nb::gil_scoped_release>());
  m.def("why_no_devices", &why_no_devices, "interface"_a,
        "Return the reason why no device of 'cuda' or 'opencl' is visible; '' if there are devices.",
        nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace halocline
