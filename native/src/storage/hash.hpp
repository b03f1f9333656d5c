// What can be said about the values of a whole array.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "storage/storage.hpp"

namespace halocline {

// A hash of the bits of the values in a box and of where they lie in the global grid. It is a sum of
// one well-mixed word per cell, so hashes of parts add up to the hash of the whole, in any order.
// NaNs count as one value.
std::array<uint64_t, 2> checksum(const Storage& storage, const Index& lo, const Index& hi,
                                 const Index& origin, const Index& shape, int threads);

// The first cell of a box, in memory order, that is not finite.
std::optional<Index> first_nonfinite(const Storage& storage, const Index& lo, const Index& hi, int threads);

}  // namespace halocline
