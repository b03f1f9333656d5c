// Checksum of an array and search for non-finite values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "storage/storage.hpp"

namespace halocline {

// Return a hash of the bits of the values in a box and of their positions in the global grid. It is a sum of
// one well-mixed word per cell. Hashes of parts therefore add up to the hash of the whole, in any order. All
// NaNs count as one value.
std::array<uint64_t, 2> checksum(const Storage& storage, const Index& lo, const Index& hi,
                                 const Index& origin, const Index& shape, int threads);

// Return the first non-finite cell of a box, in memory order.
std::optional<Index> first_nonfinite(const Storage& storage, const Index& lo, const Index& hi, int threads);

}  // namespace halocline
