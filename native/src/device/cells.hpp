// Copies of single cells from device memory, which save a copy of the whole field.
#pragma once

#include <span>
#include <vector>

#include "device/device.hpp"
#include "device/storage.hpp"

namespace halocline::device {

// Returns the bytes of the values of cells, one after the other, and waits for the device. `module` is the
// module of device_find.h. Throws std::invalid_argument where a cell lies outside the storage.
std::vector<char> read_cells(const Module& module, const Storage& storage, std::span<const Index> cells);

}  // namespace halocline::device
