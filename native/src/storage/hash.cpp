#include "storage/hash.hpp"

#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "storage/clones.hpp"

namespace halocline {

namespace {

// Output function of SplitMix64 (Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195) with the constants
// of variant 13 of D. Stafford. Every bit of the result depends on every bit of x.
inline uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Step of SplitMix64, 2^64 / golden ratio.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;

template <typename Bits>
struct Format;
template <>
struct Format<uint64_t> {
  static constexpr uint64_t magnitude = 0x7fffffffffffffffu, infinity = 0x7ff0000000000000u,
                            nan = 0x7ff8000000000000u;
};
template <>
struct Format<uint32_t> {
  static constexpr uint32_t magnitude = 0x7fffffffu, infinity = 0x7f800000u, nan = 0x7fc00000u;
};

// A search of fewer cells takes less time than waking up threads.
constexpr int64_t kWorthThreads = int64_t{1} << 15;

template <typename Bits>
const Bits* row(const Storage& storage, int64_t i, int64_t j) {
  return reinterpret_cast<const Bits*>(storage.at({i, j, 0}));
}

// Add the words of a row to two sums. The row begins at cell number `start` of the grid.
template <typename Bits>
[[gnu::always_inline]] inline void add_words(const Bits* values, int64_t lo, int64_t hi, uint64_t start,
                                             uint64_t& first, uint64_t& second) {
  using F = Format<Bits>;
  for (int64_t k = lo; k < hi; ++k) {
    Bits bits = values[k];
    bits = (bits & F::magnitude) > F::infinity ? F::nan : bits;
    const uint64_t place = mix((start + static_cast<uint64_t>(k) + 1) * kStep);
    const uint64_t word = mix(place ^ bits);
    first += word;
    second += mix(word + place);
  }
}
HALOCLINE_CLONES void add_row(const uint64_t* values, int64_t lo, int64_t hi, uint64_t start, uint64_t& first,
                              uint64_t& second) {
  add_words(values, lo, hi, start, first, second);
}
HALOCLINE_CLONES void add_row(const uint32_t* values, int64_t lo, int64_t hi, uint64_t start, uint64_t& first,
                              uint64_t& second) {
  add_words(values, lo, hi, start, first, second);
}

template <typename Bits>
std::array<uint64_t, 2> sum_of_words(const Storage& storage, const Index& lo, const Index& hi,
                                     const Index& origin, const Index& shape, int threads) {
  const int64_t rows = hi[1] - lo[1];
  uint64_t first = 0, second = 0;
#pragma omp parallel for num_threads(threads) schedule(static) \
    reduction(+ : first, second) if (cells(extent(lo, hi)) >= kWorthThreads)
  for (int64_t n = 0; n < (hi[0] - lo[0]) * rows; ++n) {
    const int64_t i = lo[0] + n / rows, j = lo[1] + n % rows;
    const Bits* values = row<Bits>(storage, i, j);
    const auto start =
        static_cast<uint64_t>(((origin[0] + i) * shape[1] + origin[1] + j) * shape[2] + origin[2]);
    add_row(values, lo[2], hi[2], start, first, second);
  }
  return {first, second};
}

template <typename Bits>
int64_t first_nonfinite_in(const Bits* values, int64_t lo, int64_t hi) {
  for (int64_t k = lo; k < hi; ++k) {
    if ((values[k] & Format<Bits>::magnitude) >= Format<Bits>::infinity) return k;
  }
  return hi;
}

// The loop has no early exit, so that it vectorises.
template <typename Bits>
[[gnu::always_inline]] inline bool all_finite(const Bits* values, int64_t lo, int64_t hi) {
  Bits bad = 0;
  for (int64_t k = lo; k < hi; ++k) {
    bad |= static_cast<Bits>((values[k] & Format<Bits>::magnitude) >= Format<Bits>::infinity);
  }
  return bad == 0;
}
HALOCLINE_CLONES bool finite(const uint64_t* values, int64_t lo, int64_t hi) {
  return all_finite(values, lo, hi);
}
HALOCLINE_CLONES bool finite(const uint32_t* values, int64_t lo, int64_t hi) {
  return all_finite(values, lo, hi);
}

template <typename Bits>
std::optional<Index> search(const Storage& storage, const Index& lo, const Index& hi, int threads) {
  const int64_t rows = hi[1] - lo[1];
  int64_t first_row = std::numeric_limits<int64_t>::max();
#pragma omp parallel for num_threads(threads) schedule(static) \
    reduction(min : first_row) if (cells(extent(lo, hi)) >= kWorthThreads)
  for (int64_t n = 0; n < (hi[0] - lo[0]) * rows; ++n) {
    if (n < first_row && !finite(row<Bits>(storage, lo[0] + n / rows, lo[1] + n % rows), lo[2], hi[2]))
      first_row = n;
  }
  if (first_row == std::numeric_limits<int64_t>::max()) return std::nullopt;
  const int64_t i = lo[0] + first_row / rows, j = lo[1] + first_row % rows;
  return Index{i, j, first_nonfinite_in(row<Bits>(storage, i, j), lo[2], hi[2])};
}

void check(const Storage& storage, const Index& lo, const Index& hi) {
  if (!storage.holds(lo, hi)) {
    throw std::invalid_argument("box " + text(lo) + " to " + text(hi) + " is not within storage of shape " +
                                text(storage.shape()));
  }
}

}  // namespace

std::array<uint64_t, 2> checksum(const Storage& storage, const Index& lo, const Index& hi,
                                 const Index& origin, const Index& shape, int threads) {
  check(storage, lo, hi);
  return storage.itemsize() == 8 ? sum_of_words<uint64_t>(storage, lo, hi, origin, shape, threads)
                                 : sum_of_words<uint32_t>(storage, lo, hi, origin, shape, threads);
}

std::optional<Index> first_nonfinite(const Storage& storage, const Index& lo, const Index& hi, int threads) {
  check(storage, lo, hi);
  return storage.itemsize() == 8 ? search<uint64_t>(storage, lo, hi, threads)
                                 : search<uint32_t>(storage, lo, hi, threads);
}

}  // namespace halocline
