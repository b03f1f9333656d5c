// Bindings of memory: storages, shared memory, measurements of bandwidth.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>

#include "bindings/bindings.hpp"
#include "ranks/rank.hpp"
#include "storage/bandwidth.hpp"
#include "storage/hash.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

// Return an array of the cells of a storage, beginning at `lo`. The array keeps the memory alive, but not the
// storage.
nb::ndarray<nb::numpy> array_over(const Storage& storage, const Index& lo, const Index& extent) {
  const auto itemsize = static_cast<int64_t>(storage.itemsize());
  const size_t shape[3] = {static_cast<size_t>(extent[0]), static_cast<size_t>(extent[1]),
                           static_cast<size_t>(extent[2])};
  const int64_t strides[3] = {storage.pitch()[0] / itemsize, storage.pitch()[1] / itemsize, 1};
  nb::capsule owner(new std::shared_ptr<Memory>(storage.memory()),
                    [](void* memory) noexcept { delete static_cast<std::shared_ptr<Memory>*>(memory); });
  const auto dtype = itemsize == 8 ? nb::dtype<double>() : nb::dtype<float>();
  return nb::ndarray<nb::numpy>(storage.at(lo), 3, shape, owner, strides, dtype);
}

nb::ndarray<nb::numpy> interior(const Storage& storage) {
  return array_over(storage, {0, 0, 0}, storage.shape());
}

nb::ndarray<nb::numpy> whole(const Storage& storage) {
  Index lo, extent;
  for (size_t axis = 0; axis < 3; ++axis) {
    lo[axis] = -storage.lower()[axis];
    extent[axis] = storage.lower()[axis] + storage.shape()[axis] + storage.upper()[axis];
  }
  return array_over(storage, lo, extent);
}

std::tuple<uint64_t, uint64_t> checksum_of(const Storage& storage, const Index& lo, const Index& hi,
                                           const Index& origin, const Index& shape, int threads) {
  const auto [first, second] = checksum(storage, lo, hi, origin, shape, threads);
  return {first, second};
}

std::optional<std::tuple<int64_t, int64_t, int64_t>> nonfinite(const Storage& storage, const Index& lo,
                                                               const Index& hi, int threads) {
  const std::optional<Index> cell = first_nonfinite(storage, lo, hi, threads);
  if (!cell) return std::nullopt;
  return std::tuple((*cell)[0], (*cell)[1], (*cell)[2]);
}

std::tuple<int64_t, int64_t, int64_t> as_tuple(const Index& index) { return {index[0], index[1], index[2]}; }

std::tuple<int64_t, int64_t, uint64_t, uint64_t, bool> as_tuple(const Handle& h) {
  return {h.process, h.file, h.inode, h.bytes, h.sparse};
}
using HandleTuple = std::tuple<int64_t, int64_t, uint64_t, uint64_t, bool>;
Handle as_handle(const HandleTuple& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t), std::get<4>(t)};
}

using StorageTuple = std::tuple<HandleTuple, int64_t, std::array<int64_t, 2>, Index, Index, Index, size_t>;
StorageTuple storage_handle(const Storage& storage) {
  const StorageHandle h = storage.handle();
  return {as_tuple(h.memory), h.origin, h.pitch, h.shape, h.lower, h.upper, h.itemsize};
}
std::shared_ptr<Storage> attach_storage(const StorageTuple& t) {
  return std::make_shared<Storage>(StorageHandle{as_handle(std::get<0>(t)), std::get<1>(t), std::get<2>(t),
                                                 std::get<3>(t), std::get<4>(t), std::get<5>(t),
                                                 std::get<6>(t)});
}

}  // namespace

void bind_storage(nb::module_& m) {
  const nb::exception<OutOfMemory> out_of_memory(m, "OutOfMemory", PyExc_MemoryError);

  nb::class_<Storage>(
      m, "Storage",
      "One array of one subdomain with its halo, in its own memory.\n\n"
      "The array is initially zero and uses no memory until it is touched. It has three axes; the last\n"
      "one is contiguous in memory.\n\n"
      "Parameters\n"
      "----------\n"
      "shape, lower, upper : three int\n"
      "    Cells of the subdomain; halo layers below and above.\n"
      "itemsize : int\n"
      "    8 for float64, 4 for float32.\n"
      "index : int\n"
      "    Number of the field. Fields with different numbers have different offsets within a page, so\n"
      "    that equal cells do not alias.\n"
      "shared : bool\n"
      "    True if other processes of the node can read the array.\n"
      "sparse : bool\n"
      "    True if interior parts that are never touched must not use memory.\n\n"
      "Raises\n"
      "------\n"
      "OutOfMemory\n"
      "    With the required and the available bytes.")
      .def(nb::init<const Index&, const Index&, const Index&, size_t, size_t, bool, bool>(), "shape"_a,
           "lower"_a, "upper"_a, "itemsize"_a, "index"_a = 0, "shared"_a = false, "sparse"_a = false)
      .def_static(
          "attach", &attach_storage, "handle"_a,
          "Return a read-only view of a storage of another process.\n\n"
          "The view does not follow swaps in that process. RuntimeError is raised if the memory is not\n"
          "accessible.")
      .def("handle", &storage_handle,
           "Return the handle (plain numbers) by which another process of the node attaches the storage.\n\n"
           "The storage must be shared.")
      .def("view", &interior,
           "Return the interior as an array without a copy.\n\n"
           "After a swap, the memory of this array belongs to another storage. Create a new view after each\n"
           "run.")
      .def("whole", &whole,
           "Return an array like view(), with the halo: cell (0, 0, 0) has the index `lower`.")
      .def_prop_ro("shape", [](const Storage& storage) { return as_tuple(storage.shape()); })
      .def_prop_ro("lower", [](const Storage& storage) { return as_tuple(storage.lower()); })
      .def_prop_ro("upper", [](const Storage& storage) { return as_tuple(storage.upper()); })
      .def_prop_ro("itemsize", &Storage::itemsize)
      .def_prop_ro("bytes", &Storage::bytes, "Allocated memory in bytes, including padding.")
      .def("checksum", &checksum_of, "lo"_a, "hi"_a, "origin"_a, "shape"_a, "threads"_a = 1,
           "Return a hash of the bits of the cells in a box and of their positions in the global grid.\n\n"
           "The hash consists of two 64-bit words. Their sums modulo 2**64 over boxes, subdomains and ranks\n"
           "are the hash of the whole field, for any decomposition. All NaNs count as one value.\n\n"
           "Parameters\n"
           "----------\n"
           "lo, hi : three int\n"
           "    Box, in the indices of the subdomain.\n"
           "origin, shape : three int\n"
           "    Global index of cell (0, 0, 0); global shape.",
           nb::call_guard<nb::gil_scoped_release>())
      .def("first_nonfinite", &nonfinite, "lo"_a, "hi"_a, "threads"_a = 1,
           "Return the index of the first cell of a box, in memory order, that is NaN or infinite.\n\n"
           "The result is None if all cells are finite.",
           nb::call_guard<nb::gil_scoped_release>());

  nb::class_<Streams>(m, "Streams",
                      "Two arrays that threads read and write as streams, to measure memory bandwidth.\n\n"
                      "The pages are touched and the threads are started before any pass.\n\n"
                      "Parameters\n"
                      "----------\n"
                      "threads : int\n"
                      "bytes : int\n"
                      "    Size of both arrays together.\n\n"
                      "Raises\n"
                      "------\n"
                      "OutOfMemory\n"
                      "    With the required and the available bytes.")
      .def(nb::init<int, size_t>(), "threads"_a, "bytes"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("triad", &Streams::triad, "passes"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Run passes of a += s * b and return the transferred bytes of its three streams.")
      .def("copy", &Streams::copy, "passes"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Run passes of a copy with streaming stores. Return the transferred bytes of its two streams.");

  nb::class_<Counters>(m, "Counters",
                       "Progress counters of this process in shared memory. Each subdomain has 54 counters.")
      .def(
          "__init__",
          [](Counters* self, size_t subdomains) {
            new (self) Counters(2 * Signals::kDirections * subdomains);
          },
          "subdomains"_a)
      .def_static(
          "attach", [](const HandleTuple& handle) { return std::make_shared<Counters>(as_handle(handle)); },
          "handle"_a, "Return the counters of another process, which are read-only.")
      .def(
          "handle", [](const Counters& counters) { return as_tuple(counters.handle()); },
          "Return the handle by which another process of the node attaches the counters.");
}

}  // namespace halocline
