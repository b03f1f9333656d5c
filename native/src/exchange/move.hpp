// Copies of boxes of cells between arrays and message buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/storage.hpp"

namespace halocline {

// Copy a box into a contiguous buffer, in memory order, or back from the buffer.
void pack(const Storage& from, const Index& lo, const Index& extent, char* buffer);
void unpack(Storage& to, const Index& lo, const Index& extent, const char* buffer);
// Copy a box of one storage to a box of another or the same storage. The boxes must not overlap.
void copy(const Storage& from, const Index& source, Storage& to, const Index& target, const Index& extent);

// Cut a box along axis 0, then axis 1, into pieces of about kPieceBytes, so that several threads can share
// the box. Call f(lo, extent) for each piece in memory order.
template <typename F>
void cut(const Index& lo, const Index& extent, size_t itemsize, F&& f) {
  constexpr int64_t kPieceBytes = 128 * 1024;
  const int64_t row = extent[2] * static_cast<int64_t>(itemsize);
  if (cells(extent) <= 0) return;
  if (extent[0] > 1) {
    const int64_t planes = kPieceBytes / (row * extent[1]);
    const int64_t step = planes < 1 ? 1 : planes;
    for (int64_t i = 0; i < extent[0]; i += step) {
      const int64_t n = step < extent[0] - i ? step : extent[0] - i;
      const Index part_lo{lo[0] + i, lo[1], lo[2]}, part{n, extent[1], extent[2]};
      if (n == 1) {
        cut(part_lo, part, itemsize, f);
      } else {
        f(part_lo, part);
      }
    }
    return;
  }
  const int64_t rows = kPieceBytes / row;
  const int64_t step = rows < 1 ? 1 : rows;
  for (int64_t j = 0; j < extent[1]; j += step) {
    const int64_t n = step < extent[1] - j ? step : extent[1] - j;
    f(Index{lo[0], lo[1] + j, lo[2]}, Index{1, n, extent[2]});
  }
}

}  // namespace halocline
