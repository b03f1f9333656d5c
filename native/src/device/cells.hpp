// Values of single cells, so that the others need not leave the device.
#pragma once

#include <span>
#include <vector>

#include "device/device.hpp"
#include "device/storage.hpp"

namespace halocline::device {

// Returns the bytes of the values of cells, one after the other, and waits for the device. `module` has
// device_find.h. Throws std::invalid_argument for a cell that is not within the storage.
std::vector<char> read_cells(const Module& module, const Storage& storage, std::span<const Index> cells);

}  // namespace halocline::device
