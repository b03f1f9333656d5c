#include "transfer.hpp"

#include <array>
#include <cstring>

namespace halocline {

namespace {

using Pitch = std::array<int64_t, 2>;  // bytes between neighbours on axis 0 and 1

// Rows of at most this many bytes are moved cell by cell: a call of memcpy costs more.
constexpr int64_t kThinBytes = 64;

template <size_t kBytes>
void move_cells(char* to, const Pitch& to_pitch, const char* from, const Pitch& from_pitch,
                const Index& extent) {
  for (int64_t i = 0; i < extent[0]; ++i) {
    for (int64_t j = 0; j < extent[1]; ++j) {
      char* target = to + i * to_pitch[0] + j * to_pitch[1];
      const char* source = from + i * from_pitch[0] + j * from_pitch[1];
      for (int64_t k = 0; k < extent[2]; ++k) {
        std::memcpy(target + k * kBytes, source + k * kBytes, kBytes);  // one move
      }
    }
  }
}

void move(char* to, const Pitch& to_pitch, const char* from, const Pitch& from_pitch, const Index& extent,
          size_t itemsize) {
  const int64_t row = extent[2] * static_cast<int64_t>(itemsize);
  if (row <= kThinBytes) {
    if (itemsize == 8) {
      move_cells<8>(to, to_pitch, from, from_pitch, extent);
    } else {
      move_cells<4>(to, to_pitch, from, from_pitch, extent);
    }
    return;
  }
  for (int64_t i = 0; i < extent[0]; ++i) {
    for (int64_t j = 0; j < extent[1]; ++j) {
      std::memcpy(to + i * to_pitch[0] + j * to_pitch[1], from + i * from_pitch[0] + j * from_pitch[1],
                  static_cast<size_t>(row));
    }
  }
}

Pitch dense(const Index& extent, size_t itemsize) {
  const int64_t row = extent[2] * static_cast<int64_t>(itemsize);
  return {row * extent[1], row};
}

}  // namespace

void pack(const Storage& from, const Index& lo, const Index& extent, char* buffer) {
  move(buffer, dense(extent, from.itemsize()), from.at(lo), from.pitch(), extent, from.itemsize());
}

void unpack(Storage& to, const Index& lo, const Index& extent, const char* buffer) {
  move(to.at(lo), to.pitch(), buffer, dense(extent, to.itemsize()), extent, to.itemsize());
}

void copy(Storage& storage, const Index& from, const Index& to, const Index& extent) {
  move(storage.at(to), storage.pitch(), storage.at(from), storage.pitch(), extent, storage.itemsize());
}

}  // namespace halocline
