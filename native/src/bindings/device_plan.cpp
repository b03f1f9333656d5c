// Bindings of plans for devices.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <span>
#include <tuple>

#include "bindings/bindings.hpp"
#include "bindings/bound_module.hpp"
#include "device/cells.hpp"
#include "device/search.hpp"
#include "device/sweep.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

using device::Device;
using FrameNumbers = std::array<int64_t, sizeof(hc_frame) / sizeof(int64_t)>;
using WallNumbers = std::array<int64_t, sizeof(hc_wall) / sizeof(int64_t)>;
using Place = std::tuple<uint32_t, Index, Index, Index, uint32_t>;

std::tuple<int64_t, int64_t, int64_t> as_tuple(const Index& index) { return {index[0], index[1], index[2]}; }

void make_launch(device::Launch* self, const std::string& kernel, const std::vector<int64_t>& operands,
                 const FrameNumbers& frame, const std::array<uint32_t, 3>& block_counts,
                 const std::array<uint32_t, 3>& block_shape, bool scratch, bool partials, bool layouts,
                 const std::pair<std::string, size_t>& invariants, const std::vector<WallNumbers>& walls,
                 size_t tile_bytes) {
  new (self) device::Launch{kernel,   operands, {},         block_counts, block_shape, scratch,
                            partials, layouts,  invariants, {},           tile_bytes};
  std::memcpy(&self->frame, frame.data(), sizeof self->frame);
  self->walls.resize(walls.size());
  for (size_t n = 0; n < walls.size(); ++n) {
    std::memcpy(&self->walls[n], walls[n].data(), sizeof self->walls[n]);
  }
}

void make_share(device::Share* self, const std::vector<Message>& sends, const std::vector<Message>& receives,
                const std::vector<Place>& copies, const std::vector<device::Launch>& invariants,
                const std::vector<device::Launch>& fills, const std::vector<device::Launch>& rims,
                const std::vector<device::Item>& items,
                const std::vector<std::tuple<std::string, std::vector<size_t>, size_t>>& partials) {
  new (self) device::Share{sends, receives, {}, invariants, fills, rims, items, {}};
  for (const auto& [storage, from, to, extent, source] : copies) {
    self->copies.push_back({storage, source, from, to, extent});
  }
  for (const auto& [kernel, reductions, total_blocks] : partials) {
    self->partials.push_back({kernel, reductions, total_blocks});
  }
}

nb::bytes as_bytes(const device::Shared& shared) { return nb::bytes(shared.data(), shared.size()); }

device::Shared as_shared(const nb::bytes& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.c_str());
  return {begin, begin + bytes.size()};
}

using Cells = nb::ndarray<const int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;

nb::bytes read_cells(const device::Storage& storage, const BoundModule& module, const Cells& cells) {
  const std::span indices(reinterpret_cast<const Index*>(cells.data()), cells.shape(0));
  std::vector<char> values;
  {
    const nb::gil_scoped_release release;
    values = device::read_cells(*module.shared(), storage, indices);
  }
  return nb::bytes(values.data(), values.size());
}

}  // namespace

void bind_link(nb::module_& m) {
  using device::Link;
  nb::class_<Link>(m, "Link",
                   "One end of a message between devices of two processes of a node, without MPI.\n\n"
                   "Parameters\n"
                   "----------\n"
                   "device : Device\n"
                   "receives : bool\n"
                   "    True if this end receives messages, into memory of the device.\n"
                   "bytes : int\n"
                   "    Size of a message.\n"
                   "counters : Counters\n"
                   "first : int\n"
                   "    Index of the first of its LINES counter lines. These lines are initially zero.\n\n"
                   "Raises\n"
                   "------\n"
                   "OutOfMemory, DeviceError")
      .def(
          "__init__",
          [](Link* self, std::shared_ptr<Device> on, bool receives, size_t bytes,
             std::shared_ptr<Counters> counters, size_t first) {
            new (self) Link(std::move(on), receives ? Link::Side::kReceive : Link::Side::kSend, bytes,
                            std::move(counters), first);
          },
          "device"_a, "receives"_a, "bytes"_a, "counters"_a, "first"_a)
      .def(
          "handle", [](const Link& link) { return as_bytes(link.handle()); },
          "Return the handle for the other end.")
      .def(
          "attach",
          [](Link& link, const std::shared_ptr<Device>& through, const nb::bytes& handle,
             std::shared_ptr<Counters> counters,
             size_t first) { link.attach(through, as_shared(handle), std::move(counters), first); },
          "through"_a, "handle"_a, "counters"_a, "first"_a,
          "Attach the memory, the event and the counters of the other end.\n\n"
          "Access is through the device `through`. DeviceError is raised if the memory is not accessible.")
      .def_prop_ro_static(
          "LINES", [](nb::handle) { return Link::kLines; }, "Number of counter lines per end.");
}

void bind_device_plan(nb::module_& m) {
  nb::class_<device::Storage>(
      m, "DeviceStorage",
      "One array of one subdomain with its halo, in device memory, initially zero.\n\n"
      "Parameters\n"
      "----------\n"
      "device : Device\n"
      "shape, lower, upper : three int\n"
      "    Cells of the subdomain; halo layers below and above.\n"
      "itemsize : int\n"
      "    8 for float64, 4 for float32.\n\n"
      "Raises\n"
      "------\n"
      "OutOfMemory\n"
      "    With the required and the available bytes.")
      .def(nb::init<std::shared_ptr<Device>, const Index&, const Index&, const Index&, size_t>(), "device"_a,
           "shape"_a, "lower"_a, "upper"_a, "itemsize"_a)
      .def("fetch", &device::Storage::fetch, nb::call_guard<nb::gil_scoped_release>(),
           "Return a Storage with a copy of the cells, without halo.")
      .def("store", &device::Storage::store, "storage"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Copy the cells of a Storage of the same shape to the device.")
      .def("read", &read_cells, "module"_a, "cells"_a,
           "Return the values of single cells as contiguous bytes.\n\n"
           "Parameters\n"
           "----------\n"
           "module : Module\n"
           "    Compiled code of device_find.h.\n"
           "cells : array of int64 (cells, 3)\n\n"
           "Raises\n"
           "------\n"
           "ValueError\n"
           "    A cell is outside the storage.")
      .def_prop_ro("shape", [](const device::Storage& storage) { return as_tuple(storage.shape()); })
      .def_prop_ro("itemsize", &device::Storage::itemsize)
      .def_prop_ro(
          "layout",
          [](const device::Storage& storage) {
            const hc_layout& layout = storage.layout();
            return std::array{layout.at, layout.s0, layout.s1};
          },
          "Element of cell (0, 0, 0), and strides of the first two axes in elements.")
      .def_prop_ro("bytes", &device::Storage::bytes, "Allocated memory in bytes, including padding.");

  nb::class_<device::Search>(
      m, "Search",
      "Search for non-finite values in fields, on their device. The constructor does not wait.\n\n"
      "Parameters\n"
      "----------\n"
      "module : Module\n"
      "    Compiled code of device_find.h.\n"
      "storages : list of DeviceStorage\n"
      "    Storages of one device.\n"
      "boxes : list of lists of (three int, three int)\n"
      "    Boxes to search, for each storage.\n\n"
      "Raises\n"
      "------\n"
      "OutOfMemory, DeviceError")
      .def(
          "__init__",
          [](device::Search* self, const BoundModule& module,
             std::vector<std::shared_ptr<device::Storage>> storages,
             const std::vector<device::Search::Boxes>& boxes) {
            new (self) device::Search(module.shared(), std::move(storages), boxes);
          },
          "module"_a, "storages"_a, "boxes"_a)
      .def("has_nonfinite", &device::Search::has_nonfinite, nb::call_guard<nb::gil_scoped_release>(),
           "Wait for the search and return, for each storage, True if a value is not finite.");

  nb::class_<device::Subdomain>(
      m, "DeviceSubdomain",
      "One subdomain of a rank, on a device.\n\n"
      "Parameters\n"
      "----------\n"
      "device : Device\n"
      "module : Module\n"
      "    Kernels, compiled for the device.\n"
      "storages : list of DeviceStorage\n"
      "    Storages, in the order of their numbers. Several engines may share them.\n"
      "scalars : int\n"
      "    Number of scalars of the program.")
      .def(
          "__init__",
          [](device::Subdomain* self, std::shared_ptr<Device> on, const BoundModule& module,
             std::vector<std::shared_ptr<device::Storage>> storages, size_t scalars) {
            new (self) device::Subdomain(std::move(on), module.shared(), std::move(storages), scalars);
          },
          "device"_a, "module"_a, "storages"_a, "scalars"_a);

  nb::class_<device::Launch>(
      m, "Launch",
      "Launch of a kernel over one box.\n\n"
      "Parameters\n"
      "----------\n"
      "kernel : str\n"
      "operands : list of int\n"
      "    Storage numbers.\n"
      "frame : list of int\n"
      "    Members of the struct hc_frame, in order.\n"
      "block_counts, block_shape : three int\n"
      "    Number of thread blocks along x, y, z; threads per block along x, y, z.\n"
      "scratch, partials, layouts : bool\n"
      "    True if the kernel takes a pointer to scratch memory, to partial results of reductions, and to\n"
      "    the layouts of its storages.\n"
      "invariants : (str, int)\n"
      "    Symbol and number of the values in constant memory that the kernel computes or reads. The number\n"
      "    is 0 if there are none.\n"
      "walls : list of seven int\n"
      "    Members of the struct hc_wall, in order, for each wall whose ghosts the kernel fills.\n"
      "tile_bytes : int\n"
      "    Bytes of shared memory per thread block for planes of fields.")
      .def("__init__", &make_launch, "kernel"_a, "operands"_a, "frame"_a, "block_counts"_a, "block_shape"_a,
           "scratch"_a, "partials"_a, "layouts"_a, "invariants"_a, "walls"_a = nb::list(),
           "tile_bytes"_a = 0);

  nb::class_<device::Item>(m, "Item",
                           "Patch, or box of halo cells that the sweep also computes.\n\n"
                           "Parameters\n"
                           "----------\n"
                           "needs : int\n"
                           "    Bit mask. If bit m is set, the item waits for receives[m].\n"
                           "rims : bool\n"
                           "    True if the item waits for the rims.\n"
                           "launches : list of Launch\n"
                           "    Launches in sequence.\n"
                           "halo : bool\n"
                           "    True for a box in the halo.")
      .def(
          "__init__",
          [](device::Item* self, uint32_t needs, bool rims, const std::vector<device::Launch>& launches,
             bool halo) { new (self) device::Item{needs, rims, halo, launches}; },
          "needs"_a, "rims"_a, "launches"_a, "halo"_a = false);

  nb::class_<device::Share>(
      m, "DeviceShare",
      "Part of a sweep in one subdomain on a device.\n\n"
      "Parameters\n"
      "----------\n"
      "sends, receives : list of Message\n"
      "    At most 64 and 32.\n"
      "copies : list of (storage, source lo, destination lo, extent, subdomain)\n"
      "invariants : list of Launch\n"
      "    Kernels that compute invariants, before all other kernels.\n"
      "fills, rims : list of Launch\n"
      "    Boundary fills that run before the items. Rims are the boundary fills that run after all\n"
      "    messages have arrived.\n"
      "items : list of Item\n"
      "partials : list of (kernel, reductions, total_blocks)\n"
      "    For each kernel with reductions: its name, the numbers of its reductions, and the total number\n"
      "    of thread blocks of its launches.")
      .def("__init__", &make_share, "sends"_a, "receives"_a, "copies"_a, "invariants"_a, "fills"_a, "rims"_a,
           "items"_a, "partials"_a);
}

}  // namespace halocline
