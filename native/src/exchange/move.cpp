#include "exchange/move.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halocline {

namespace {

using Pitch = std::array<int64_t, 2>;  // bytes between adjacent cells along axes 0 and 1

// Rows of at most this many bytes are copied cell by cell, since a call of memcpy costs more.
constexpr int64_t kThinBytes = 64;

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// Return true if the processor has fast string moves (ERMS).
bool has_string_moves() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 9 & 1) != 0;
}
const bool kStringMoves = has_string_moves();

// The string instruction does not read the cache lines that it overwrites. If two processes copy from each
// other, it is up to three times faster than vector stores (docs/performance.md). memcpy uses vector stores
// for rows below some kilobytes.
void move_row(char* to, const char* from, size_t bytes) {
  if (!kStringMoves) {
    std::memcpy(to, from, bytes);
    return;
  }
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}
#else
void move_row(char* to, const char* from, size_t bytes) { std::memcpy(to, from, bytes); }
#endif

// Minimum bytes of a row for which string moves are faster.
constexpr int64_t kLongBytes = 512;

template <size_t kBytes>
void move_cells(char* to, const Pitch& to_pitch, const char* from, const Pitch& from_pitch,
                const Index& extent) {
  for (int64_t i = 0; i < extent[0]; ++i) {
    for (int64_t j = 0; j < extent[1]; ++j) {
      char* target = to + i * to_pitch[0] + j * to_pitch[1];
      const char* source = from + i * from_pitch[0] + j * from_pitch[1];
      for (int64_t k = 0; k < extent[2]; ++k) {
        std::memcpy(target + k * kBytes, source + k * kBytes, kBytes);  // one move instruction
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
  const auto move_one =
      row < kLongBytes ? [](char* a, const char* b, size_t n) { std::memcpy(a, b, n); } : move_row;
  for (int64_t i = 0; i < extent[0]; ++i) {
    for (int64_t j = 0; j < extent[1]; ++j) {
      move_one(to + i * to_pitch[0] + j * to_pitch[1], from + i * from_pitch[0] + j * from_pitch[1],
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

void copy(const Storage& from, const Index& source, Storage& to, const Index& target, const Index& extent) {
  move(to.at(target), to.pitch(), from.at(source), from.pitch(), extent, to.itemsize());
}

}  // namespace halocline
