// Reductions whose bits are independent of the order of the operands: sum, min, max, count, value.
//
// A sum is split into bins (Demmel and Nguyen, IEEE Trans. Comput. 64 (2015) 2060; Ahrens, Demmel and Nguyen,
// ACM Trans. Math. Softw. 46 (2020) 22): bin j counts multiples of its quantum 2^(40 j - 1074). The
// accumulator has three bins, and the highest one can hold the largest summand. The contribution of a summand
// to a bin depends only on the summand, and bins are integers. The accumulator is therefore the same for any
// order, any blocking, and any number of threads and ranks. docs/decisions/0001-reproducible-summation.md
// contains the proof and the error bound.
//
// A kernel writes a part of a row (summands, values to compare, or conditions), and deposits this part:
//
//   hc_sum_deposit(accumulator, row, n);    // or hc_min_, hc_max_, hc_count_, hc_value_deposit
//
// A faster kernel splits the summands in the loop that computes them:
//
//   const hc_splitter s = hc_sum_open(accumulator);
//   uint64_t high = 0, middle = 0, low = 0, outside = 0;
//   #pragma omp simd reduction(+ : high, middle, low) reduction(| : outside)
//   for (int64_t i = 0; i < n; ++i) {
//     row[i] = ...;
//     hc_sum_split(s, row[i], high, middle, low, outside);
//   }
//   hc_sum_close(accumulator, s, high, middle, low, outside, row, n);
//
// All functions require round-to-nearest, gradual underflow and no contraction of * and + into fma.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "halocline/accumulator.h"

#define HC_CHUNK 512  // maximum number of elements that kernels write before a deposit

#ifndef HC_LANES  // doubles per vector; results do not depend on it
#if defined(__AVX512F__)
#define HC_LANES 8
#elif defined(__AVX2__)
#define HC_LANES 4
#else
#define HC_LANES 2
#endif
#endif

typedef double hc_doubles __attribute__((vector_size(8 * HC_LANES)));
typedef uint64_t hc_words __attribute__((vector_size(8 * HC_LANES)));
typedef int64_t hc_integers __attribute__((vector_size(8 * HC_LANES)));

static inline hc_doubles hc_load(const double* x) {
  hc_doubles v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}

// Return n < HC_LANES doubles, with `rest` in the other lanes.
static inline hc_doubles hc_load_part(const double* x, int64_t n, double rest) {
  hc_doubles v;
  for (int l = 0; l < HC_LANES; ++l) v[l] = rest;
  __builtin_memcpy(&v, x, (size_t)n * sizeof(double));
  return v;
}

// --------------------------------------------------------------------------------------------- sum

// Add the contribution of x to each bin, offset by the bits of the splitter, to high, middle and low. If x
// does not fit the highest bin, the function sets a bit of `outside` above its lowest 39 bits. T is double or
// hc_doubles.
template <class T, class W>
static inline __attribute__((always_inline)) void hc_sum_split(const hc_splitter& s, T x, W& high, W& middle,
                                                               W& low, W& outside) {
  W w;
  T t = s.high + x;
  __builtin_memcpy(&w, &t, sizeof w);
  high += w;
  outside |= w ^ s.floor;
  x -= t - s.high;
  t = s.middle + x;
  __builtin_memcpy(&w, &t, sizeof w);
  middle += w;
  x -= t - s.middle;
  t = s.low + x;
  __builtin_memcpy(&w, &t, sizeof w);
  low += w;
}

static inline void hc_sum_split_row(const hc_splitter& s, const double* x, int64_t n, uint64_t& high,
                                    uint64_t& middle, uint64_t& low, uint64_t& outside) {
  hc_words h = {}, m = {}, l = {}, o = {};
  int64_t i = 0;
  for (; i + HC_LANES <= n; i += HC_LANES) hc_sum_split(s, hc_load(x + i), h, m, l, o);
  if (i < n) {
    hc_sum_split(s, hc_load_part(x + i, n - i, 0), h, m, l, o);
    i += HC_LANES;
  }
  // Each zero that fills the last vector adds the bits of the splitter to each bin. The initial values
  // subtract these bits.
  high = (n - i) * hc_bits(s.high);
  middle = (n - i) * hc_bits(s.middle);
  low = (n - i) * hc_bits(s.low);
  outside = 0;
  for (int lane = 0; lane < HC_LANES; ++lane) {
    high += h[lane];
    middle += m[lane];
    low += l[lane];
    outside |= o[lane];
  }
}

// Add the sums over n summands to the bins, without the bits of the splitter.
static inline void hc_sum_add(hc_accumulator* a, const hc_splitter& s, uint64_t high, uint64_t middle,
                              uint64_t low, int64_t n) {
  const uint64_t sums[HC_BINS] = {high - n * hc_bits(s.high), middle - n * hc_bits(s.middle),
                                  low - n * hc_bits(s.low)};
  for (int k = 0; k < HC_BINS; ++k) hc_bin_add(a, k, sums[k], (int64_t)sums[k] >> 63);
}

// Record NaN and infinities among the summands.
static inline void hc_sum_note(hc_accumulator* a, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) a->word |= HC_MET_NAN;
    if (x[i] == __builtin_inf()) a->word |= HC_PLUS_INFINITY;
    if (x[i] == -__builtin_inf()) a->word |= HC_MINUS_INFINITY;
  }
}

// Deposit summands of any size: raise the bins, record NaN and infinities, and scale if the splitter of the
// highest bin would overflow. The rounding error of the scaling is below the lowest of the three bins.
[[maybe_unused, gnu::noinline]] static void hc_sum_deposit_any(hc_accumulator* a, const double* x,
                                                               int64_t n) {
  const int64_t infinity = (int64_t)0x7FF << 52;
  for (int64_t begin = 0; begin < n; begin += HC_CHUNK) {
    const int count = (int)(n - begin < HC_CHUNK ? n - begin : HC_CHUNK);
    double y[HC_CHUNK];
    int64_t largest = 0, special = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t w = (int64_t)(hc_bits(x[begin + i]) & INT64_MAX), finite = w < infinity ? w : 0;
      y[i] = w < infinity ? x[begin + i] : 0;
      largest = finite > largest ? finite : largest;
      special |= w ^ finite;
    }
    if (special != 0) hc_sum_note(a, x + begin, count);
    int top = a->top;
    while ((uint64_t)largest > hc_bin_limit(top)) ++top;
    hc_sum_raise(a, top);
    if (top == HC_TOP_LAST) {
      top -= 2;
      for (int i = 0; i < count; ++i) y[i] *= 0x1p-80;
    }
    const hc_splitter s = hc_sum_splitter(top);
    uint64_t high, middle, low, outside;
    hc_sum_split_row(s, y, count, high, middle, low, outside);
    hc_sum_add(a, s, high, middle, low, count);
  }
}

static inline hc_splitter hc_sum_open(const hc_accumulator* a) { return hc_sum_splitter(a->top); }

// Close a loop of hc_sum_split over n < 2^24 summands. `row` contains the summands, for
// the case that one of them did not fit the highest bin.
static inline void hc_sum_close(hc_accumulator* a, const hc_splitter& s, uint64_t high, uint64_t middle,
                                uint64_t low, uint64_t outside, const double* row, int64_t n) {
  if (outside >> 39 != 0 || a->top == HC_TOP_LAST)
    hc_sum_deposit_any(a, row, n);
  else
    hc_sum_add(a, s, high, middle, low, n);
}

// Return the sum over the lanes of an array that hc_sum_split filled, with one element per lane.
template <int lanes>
static inline uint64_t hc_sum_lanes(const uint64_t (&parts)[lanes]) {
  uint64_t sum = 0;
  for (int lane = 0; lane < lanes; ++lane) sum += parts[lane];
  return sum;
}

template <int lanes>
static inline uint64_t hc_any_lanes(const uint64_t (&parts)[lanes]) {
  uint64_t any = 0;
  for (int lane = 0; lane < lanes; ++lane) any |= parts[lane];
  return any;
}

// Deposit n < 2^24 summands. With this limit, the sum of a bin over the row fits 63 bits.
static inline void hc_sum_deposit(hc_accumulator* a, const double* x, int64_t n) {
  const hc_splitter s = hc_sum_open(a);
  uint64_t high, middle, low, outside;
  hc_sum_split_row(s, x, n, high, middle, low, outside);
  hc_sum_close(a, s, high, middle, low, outside, x, n);
}

// ---------------------------------------------------------------------------------------- min, max

// Compute the minimum and the maximum key of n > 0 values.
static inline void hc_extremes(const double* x, int64_t n, int64_t& least, int64_t& greatest) {
  hc_integers low = hc_integers{} + hc_key(x[0]), high = low;
  const auto take = [&](hc_doubles v) __attribute__((always_inline)) {
    const hc_integers w = (hc_integers)v, key = w ^ ((w >> 63) & INT64_MAX);
    low = key < low ? key : low;
    high = key > high ? key : high;
  };
  int64_t i = 0;
  for (; i + HC_LANES <= n; i += HC_LANES) take(hc_load(x + i));
  if (i < n) take(hc_load_part(x + i, n - i, x[0]));
  least = low[0];
  greatest = high[0];
  for (int lane = 1; lane < HC_LANES; ++lane) {
    least = low[lane] < least ? low[lane] : least;
    greatest = high[lane] > greatest ? high[lane] : greatest;
  }
}

static inline void hc_min_deposit(hc_accumulator* a, const double* x, int64_t n) {
  if (n == 0) return;
  int64_t least, greatest;
  hc_extremes(x, n, least, greatest);
  if (hc_key_is_nan(least) || hc_key_is_nan(greatest)) least = INT64_MIN;
  if (least < a->word) a->word = least;
}

static inline void hc_max_deposit(hc_accumulator* a, const double* x, int64_t n) {
  if (n == 0) return;
  int64_t least, greatest;
  hc_extremes(x, n, least, greatest);
  if (hc_key_is_nan(least) || hc_key_is_nan(greatest)) greatest = INT64_MAX;
  if (greatest > a->word) a->word = greatest;
}

// ----------------------------------------------------------------------------------- count, value

// Count the non-zero elements of x. NaN is not counted.
static inline void hc_count_deposit(hc_accumulator* a, const double* x, int64_t n) {
  hc_integers lanes = {};
  for (int64_t i = 0; i < n; i += HC_LANES) {
    const hc_doubles v = i + HC_LANES <= n ? hc_load(x + i) : hc_load_part(x + i, n - i, 0);
    lanes -= (hc_integers)(v != 0);
  }
  for (int lane = 0; lane < HC_LANES; ++lane) a->word += lanes[lane];
}

static inline void hc_count_add(hc_accumulator* a, int64_t amount) { a->word += amount; }

// Deposit the value at one point. The owner of the point calls it once with n = 1, all others with n = 0.
static inline void hc_value_deposit(hc_accumulator* a, const double* x, int64_t n) {
  hc_max_deposit(a, x, n);
}
