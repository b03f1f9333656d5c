// Copies of single cells from device memory, without a copy of the whole field.
#pragma once

#include <span>
#include <vector>

#include "device/device.hpp"
#include "device/storage.hpp"

namespace halocline::device {

// Return the values of cells as contiguous bytes, and wait for the device. `module` is the module of
// device_find.h. Throws std::invalid_argument if a cell is outside the storage.
std::vector<char> read_cells(const Module& module, const Storage& storage, std::span<const Index> cells);

}  // namespace halocline::device
