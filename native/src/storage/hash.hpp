// Checksum of an array and search for non-finite values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "storage/storage.hpp"

namespace halocline {

// Return a hash of the bits of the values in a box and of their positions in the global grid. The hash is a
// sum of well-mixed words, one per cell. The hash of a field is therefore the sum of the hashes of its parts,
// in any order. All NaNs count as one value.
std::array<uint64_t, 2> checksum(const Storage& storage, const Index& lo, const Index& hi,
                                 const Index& origin, const Index& shape, int threads);

// Return the index of the first non-finite cell of a box, in memory order.
std::optional<Index> first_nonfinite(const Storage& storage, const Index& lo, const Index& hi, int threads);

}  // namespace halocline
