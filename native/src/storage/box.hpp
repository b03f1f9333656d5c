// Indices and boxes of cells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline {

using Index = std::array<int64_t, 3>;

// Return the text of an index, such as "(1, 2, 3)".
inline std::string text(const Index& index) {
  std::string words(1, '(');
  words += std::to_string(index[0]);
  for (size_t axis = 1; axis < 3; ++axis) (words += ", ") += std::to_string(index[axis]);
  return words += ')';
}

inline Index extent(const Index& lo, const Index& hi) {
  return {hi[0] - lo[0], hi[1] - lo[1], hi[2] - lo[2]};
}

inline int64_t cells(const Index& extent) { return extent[0] * extent[1] * extent[2]; }

}  // namespace halocline
