// Bindings for arrays of other libraries: DLPack, and copies from and to fields on devices.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/bound_module.hpp"
#include "device/strided.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

using DeviceArray = nb::ndarray<nb::array_api>;

// Return an array in memory of a CUDA device, with the last `axes` axes of a box. Many consumers ignore the
// byte offset of DLPack, so the address is that of the first element.
DeviceArray array_over(const device::Storage& storage, const std::shared_ptr<device::Buffer>& buffer,
                       int64_t first, const Index& strides, size_t axes) {
  if (axes < 1 || axes > 3) throw std::invalid_argument("expected 1 to 3 axes");
  const device::Description& device = storage.device()->description();
  if (device.interface != "cuda") throw std::invalid_argument("only CUDA memory has a DLPack consumer");
  const size_t shape[3] = {static_cast<size_t>(storage.shape()[0]), static_cast<size_t>(storage.shape()[1]),
                           static_cast<size_t>(storage.shape()[2])};
  const nb::capsule owner(new std::shared_ptr<device::Buffer>(buffer), [](void* memory) noexcept {
    delete static_cast<std::shared_ptr<device::Buffer>*>(memory);
  });
  const auto itemsize = static_cast<int64_t>(storage.itemsize());
  const auto dtype = itemsize == 8 ? nb::dtype<double>() : nb::dtype<float>();
  return DeviceArray(static_cast<char*>(buffer->address()) + first * itemsize, axes, shape + 3 - axes, owner,
                     strides.data() + 3 - axes, dtype, nb::device::cuda::value, device.index);
}

DeviceArray view(const device::Storage& storage, size_t axes) {
  const hc_layout& layout = storage.layout();
  return array_over(storage, storage.shared_buffer(), layout.at, {layout.s0, layout.s1, 1}, axes);
}

DeviceArray copied(const device::Storage& storage, const BoundModule& module, size_t axes) {
  std::shared_ptr<device::Buffer> buffer;
  {
    const nb::gil_scoped_release release;
    buffer = device::compact(*module.shared(), storage);
  }
  const Index& shape = storage.shape();
  return array_over(storage, buffer, 0, {shape[1] * shape[2], shape[2], 1}, axes);
}

std::string name_of(const nb::dlpack::dtype& dtype) {
  using Code = nb::dlpack::dtype_code;
  const std::string bits = std::to_string(dtype.bits);
  if (dtype.lanes != 1) return "vectors of " + std::to_string(dtype.lanes) + " numbers";
  switch (static_cast<Code>(dtype.code)) {
    case Code::Int:
      return "int" + bits;
    case Code::UInt:
      return "uint" + bits;
    case Code::Float:
      return "float" + bits;
    case Code::Complex:
      return "complex" + bits;
    case Code::Bfloat:
      return "bfloat" + bits;
    case Code::Bool:
      return "bool";
    default:
      return "type " + std::to_string(dtype.code) + " of DLPack with " + bits + " bits";
  }
}

using Facts =
    std::tuple<uint64_t, std::vector<int64_t>, std::vector<int64_t>, std::string, size_t, nb::capsule>;

Facts array_facts(const nb::ndarray<nb::ro>& array) {
  std::vector<int64_t> shape, strides;
  for (size_t axis = 0; axis < array.ndim(); ++axis) {
    shape.push_back(static_cast<int64_t>(array.shape(axis)));
    strides.push_back(array.stride(axis));
  }
  const nb::capsule owner(new nb::ndarray<nb::ro>(array),
                          [](void* held) noexcept { delete static_cast<nb::ndarray<nb::ro>*>(held); });
  return {reinterpret_cast<uint64_t>(array.data()),
          shape,
          strides,
          name_of(array.dtype()),
          array.itemsize(),
          owner};
}

// First members of the struct DLManagedTensorVersioned of DLPack 1.0.
struct Managed {
  uint32_t major, minor;
  void* context;
  void* deleter;
  uint64_t flags;
};
constexpr uint64_t kIsCopied = 2;

void mark_copied(const nb::handle& capsule) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
  if (managed == nullptr) throw nb::python_error();
  managed->flags |= kIsCopied;
}

}  // namespace

void bind_arrays(nb::module_& m) {
  m.def("device_view", &view, "storage"_a, "axes"_a,
        "Return the cells of a DeviceStorage of a CUDA device as an array with DLPack, without a copy.\n\n"
        "The array has the last `axes` axes. It keeps the memory alive. After a swap, the memory belongs to\n"
        "another storage.");
  m.def("device_copy", &copied, "storage"_a, "module"_a, "axes"_a,
        "Return a contiguous copy of the cells of a DeviceStorage, in memory of the same CUDA device.\n\n"
        "Parameters\n"
        "----------\n"
        "storage : DeviceStorage\n"
        "module : Module\n"
        "    Compiled code of device_copy.h.\n"
        "axes : int\n"
        "    Number of axes of the array.");
  m.def(
      "assign_from_device",
      [](const device::Storage& storage, const BoundModule& module, const Index& lo, const Index& hi,
         uint64_t address,
         const Index& strides) { device::assign(*module.shared(), storage, lo, hi, {address, strides}); },
      "storage"_a, "module"_a, "lo"_a, "hi"_a, "address"_a, "strides"_a,
      nb::call_guard<nb::gil_scoped_release>(),
      "Set the cells of a box of a DeviceStorage to elements in memory of the same device, and wait.\n\n"
      "Parameters\n"
      "----------\n"
      "storage : DeviceStorage\n"
      "module : Module\n"
      "    Compiled code of device_copy.h.\n"
      "lo, hi : three int\n"
      "    Box, in the indices of the subdomain.\n"
      "address : int\n"
      "    Address of the element of cell `lo`.\n"
      "strides : three int\n"
      "    Strides in elements.\n\n"
      "Raises\n"
      "------\n"
      "ValueError\n"
      "    The box is outside the storage, or the interface of the device has no addresses.\n"
      "DeviceError");
  m.def("array_facts", &array_facts, "capsule"_a,
        "Return facts about the array of a DLPack capsule, which is used up.\n\n"
        "The facts are address, shape, strides in elements, dtype, bytes per element, and owner. The memory\n"
        "remains valid as long as the owner exists. TypeError is raised for any other object.");
  m.def("mark_copied", &mark_copied, "capsule"_a,
        "Set the flag of a versioned DLPack capsule which says that its consumer alone owns the memory.");
}

}  // namespace halocline
