// Copies between fields on a device and arrays of other libraries on the same device.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.hpp"
#include "device/storage.hpp"

namespace halocline::device {

// Elements in device memory of another library: address of the first element, and strides in elements.
struct Elements {
  uint64_t address;
  Index strides;
};

// Set the cells of a box of a storage to elements, and wait for the copy. The elements may be cells of the
// same storage. `module` contains device_copy.h. Throws std::invalid_argument if the box is outside the
// storage, or if the device has no addresses.
void assign(const Module& module, const Storage& storage, const Index& lo, const Index& hi,
            const Elements& from);

// Return a contiguous copy of the cells of a storage, and wait for the copy. `module` contains device_copy.h.
std::shared_ptr<Buffer> compact(const Module& module, const Storage& storage);

}  // namespace halocline::device
