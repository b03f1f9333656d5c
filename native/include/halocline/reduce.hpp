// Reductions whose bits do not depend on the order of what is reduced: sum, min, max, count, value.
//
// A sum is split into bins (Demmel and Nguyen, IEEE Trans. Comput. 64 (2015) 2060; Ahrens, Demmel and
// Nguyen, ACM Trans. Math. Softw. 46 (2020) 22): bin j counts multiples of its quantum 2^(40 j - 1074),
// and three bins are kept, the highest one so that it holds the largest summand. What a summand
// adds to a bin depends on nothing but itself, and bins are integers: any order, any blocking, any
// number of threads and ranks gives the same accumulator. docs/decisions/0001-reproducible-summation.md
// has the proof and the error bound.
//
// A kernel writes a piece of a row of summands, of values to compare or of conditions, and deposits it:
//
//   hc_sum_deposit(accumulator, row, n);    // or hc_min_, hc_max_, hc_count_, hc_value_deposit
//
// or, faster, lets the loop that computes the summands split them too:
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
// Everything here needs round-to-nearest, gradual underflow and no contraction of * and + into fma.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__FAST_MATH__) || __FLT_EVAL_METHOD__ == 2
#error "halocline/reduce.hpp needs IEEE arithmetic: compile without -ffast-math and without x87"
#endif

#define HC_CHUNK 512  // the longest piece of a row that kernels write before they deposit it

#ifndef HC_LANES  // doubles in a vector; no result depends on it
#if defined(__AVX512F__)
#define HC_LANES 8
#elif defined(__AVX2__)
#define HC_LANES 4
#else
#define HC_LANES 2
#endif
#endif

typedef enum { HC_SUM, HC_MIN, HC_MAX, HC_COUNT, HC_VALUE } hc_kind;

enum { HC_BINS = 3, HC_BIN_WIDTH = 40, HC_TOP_FIRST = HC_BINS - 1, HC_TOP_LAST = 52 };
enum { HC_MET_NAN = 1, HC_PLUS_INFINITY = 2, HC_MINUS_INFINITY = 4 };

// One reduction of one thread or rank. Plain bytes: copy it, send it, merge it. Equal multisets of
// deposits give equal bytes.
struct alignas(64) hc_accumulator {
  int32_t kind;           // hc_kind
  int32_t top;            // sum: index of the highest bin
  uint64_t low[HC_BINS];  // sum: the bins top, top - 1, top - 2 as 128-bit integers, in units of
  int64_t high[HC_BINS];  //      their quanta
  int64_t word;           // sum: which of NaN and the infinities occurred; min, max, value: the
                          // key of the extreme; count: the count
};

typedef double hc_doubles __attribute__((vector_size(8 * HC_LANES)));
typedef uint64_t hc_words __attribute__((vector_size(8 * HC_LANES)));
typedef int64_t hc_integers __attribute__((vector_size(8 * HC_LANES)));

static inline hc_doubles hc_load(const double* x) {
  hc_doubles v;
  memcpy(&v, x, sizeof v);
  return v;
}

// n < HC_LANES doubles, and `rest` in the other lanes.
static inline hc_doubles hc_load_part(const double* x, int64_t n, double rest) {
  hc_doubles v;
  for (int l = 0; l < HC_LANES; ++l) v[l] = rest;
  memcpy(&v, x, (size_t)n * sizeof(double));
  return v;
}

static inline uint64_t hc_word_of(double x) {
  uint64_t w;
  memcpy(&w, &x, sizeof w);
  return w;
}

static inline double hc_double_of(uint64_t w) {
  double x;
  memcpy(&x, &w, sizeof x);
  return x;
}

// --------------------------------------------------------------------------------------------- sum

// What splits a double into multiples of the quanta of three bins. Adding a splitter to x rounds x to
// the quantum, and the bits of the sum, as an integer, are those of the splitter plus the multiple.
struct hc_splitter {
  double high, middle, low;
  uint64_t floor;  // bits of `high` at the lowest multiple that the highest bin accepts
};

// 1.5 * 2^52 quanta of a bin: the unit in the last place is one quantum, up to 2^51 quanta either way,
// and the mantissa is even, so that ties are decided by x alone.
static inline uint64_t hc_splitter_bits(int bin) {
  return ((uint64_t)(HC_BIN_WIDTH * bin + 1) << 52) | ((uint64_t)1 << 51);
}

// The bits of the largest |x| that rounds to at most 2^38 quanta of a bin: 2^38 + 1/2 of them.
static inline uint64_t hc_bin_limit(int bin) {
  return ((uint64_t)(HC_BIN_WIDTH * bin - 13) << 52) | ((uint64_t)1 << 13);
}

static inline hc_splitter hc_sum_splitter(int top) {
  const uint64_t floor = hc_splitter_bits(top), range = (uint64_t)1 << 38;
  return {hc_double_of(floor + range), hc_double_of(hc_splitter_bits(top - 1)),
          hc_double_of(hc_splitter_bits(top - 2)), floor};
}

// Adds what x puts into each bin, offset by the splitter's bits, to high, middle and low. Where x does
// not fit the highest bin, a bit of `outside` above the lowest 39 is set. T is double or hc_doubles.
template <class T, class W>
static inline __attribute__((always_inline)) void hc_sum_split(const hc_splitter& s, T x, W& high, W& middle,
                                                               W& low, W& outside) {
  W w;
  T t = s.high + x;
  memcpy(&w, &t, sizeof w);
  high += w;
  outside |= w ^ s.floor;
  x -= t - s.high;
  t = s.middle + x;
  memcpy(&w, &t, sizeof w);
  middle += w;
  x -= t - s.middle;
  t = s.low + x;
  memcpy(&w, &t, sizeof w);
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
  // The zeros that fill the last vector put the splitter's bits into each bin, and nothing else.
  high = (n - i) * hc_word_of(s.high);
  middle = (n - i) * hc_word_of(s.middle);
  low = (n - i) * hc_word_of(s.low);
  outside = 0;
  for (int lane = 0; lane < HC_LANES; ++lane) {
    high += h[lane];
    middle += m[lane];
    low += l[lane];
    outside |= o[lane];
  }
}

static inline void hc_bin_add(hc_accumulator* a, int k, uint64_t low, int64_t high) {
  a->low[k] += low;
  a->high[k] += high + (a->low[k] < low);
}

// The sums over n summands, less what the splitter's own bits put into them.
static inline void hc_sum_add(hc_accumulator* a, const hc_splitter& s, uint64_t high, uint64_t middle,
                              uint64_t low, int64_t n) {
  const uint64_t sums[HC_BINS] = {high - n * hc_word_of(s.high), middle - n * hc_word_of(s.middle),
                                  low - n * hc_word_of(s.low)};
  for (int k = 0; k < HC_BINS; ++k) hc_bin_add(a, k, sums[k], (int64_t)sums[k] >> 63);
}

static inline void hc_sum_raise(hc_accumulator* a, int top) {
  for (; a->top < top; ++a->top) {
    for (int k = HC_BINS - 1; k > 0; --k) {
      a->low[k] = a->low[k - 1];
      a->high[k] = a->high[k - 1];
    }
    a->low[0] = 0;
    a->high[0] = 0;
  }
}

// Notes which of NaN and the infinities occur.
static inline void hc_sum_note(hc_accumulator* a, const double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] != x[i]) a->word |= HC_MET_NAN;
    if (x[i] == __builtin_inf()) a->word |= HC_PLUS_INFINITY;
    if (x[i] == -__builtin_inf()) a->word |= HC_MINUS_INFINITY;
  }
}

// Deposits anything: raises the bins, notes NaN and infinities, and scales where the splitter of the
// highest bin would overflow (what scaling rounds there lies below the lowest of the three bins).
[[maybe_unused, gnu::noinline]] static void hc_sum_deposit_any(hc_accumulator* a, const double* x,
                                                               int64_t n) {
  const int64_t infinity = (int64_t)0x7FF << 52;
  for (int64_t begin = 0; begin < n; begin += HC_CHUNK) {
    const int count = (int)(n - begin < HC_CHUNK ? n - begin : HC_CHUNK);
    double y[HC_CHUNK];
    int64_t largest = 0, special = 0;
    for (int i = 0; i < count; ++i) {
      const int64_t w = (int64_t)(hc_word_of(x[begin + i]) & INT64_MAX), finite = w < infinity ? w : 0;
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

// Ends a loop of hc_sum_split over n < 2^24 summands; `row` holds them, should one not have fitted.
static inline void hc_sum_close(hc_accumulator* a, const hc_splitter& s, uint64_t high, uint64_t middle,
                                uint64_t low, uint64_t outside, const double* row, int64_t n) {
  if (outside >> 39 != 0 || a->top == HC_TOP_LAST)
    hc_sum_deposit_any(a, row, n);
  else
    hc_sum_add(a, s, high, middle, low, n);
}

// What hc_sum_split has added to an array with an element for each lane of a vector.
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

// n < 2^24: a bin's sum over the row has to fit 63 bits.
static inline void hc_sum_deposit(hc_accumulator* a, const double* x, int64_t n) {
  const hc_splitter s = hc_sum_open(a);
  uint64_t high, middle, low, outside;
  hc_sum_split_row(s, x, n, high, middle, low, outside);
  hc_sum_close(a, s, high, middle, low, outside, x, n);
}

// The exact sum of the bins, rounded once, to nearest even.
[[maybe_unused]] static double hc_sum_result(const hc_accumulator* a) {
  if (a->word != 0) {
    const bool nan = (a->word & HC_MET_NAN) || a->word == (HC_PLUS_INFINITY | HC_MINUS_INFINITY);
    return nan                           ? hc_double_of(0x7FF8000000000000)
           : a->word == HC_PLUS_INFINITY ? __builtin_inf()
                                         : -__builtin_inf();
  }
  // In units of the lowest quantum, as a two's complement integer of 256 bits, lowest word first.
  uint64_t sum[4] = {};
  for (int k = 0; k < HC_BINS; ++k) {
    for (int i = 3; i > 0; --i) sum[i] = sum[i] << HC_BIN_WIDTH | sum[i - 1] >> (64 - HC_BIN_WIDTH);
    sum[0] <<= HC_BIN_WIDTH;
    const uint64_t sign = (uint64_t)(a->high[k] >> 63);
    const uint64_t bin[4] = {a->low[k], (uint64_t)a->high[k], sign, sign};
    uint64_t carry = 0;
    for (int i = 0; i < 4; ++i) {
      const uint64_t part = sum[i] + carry;
      carry = part < carry;
      sum[i] = part + bin[i];
      carry += sum[i] < part;
    }
  }
  const bool negative = sum[3] >> 63 != 0;
  if (negative) {
    uint64_t carry = 1;
    for (int i = 0; i < 4; ++i) {
      sum[i] = ~sum[i] + carry;
      carry &= sum[i] == 0;
    }
  }
  int word = 3;
  while (word > 0 && sum[word] == 0) --word;
  if (sum[word] == 0) return 0;
  // The 64 bits from the leading one on; what lies below them only says to which side of a tie it is.
  const int zeros = __builtin_clzll(sum[word]);
  uint64_t lead = sum[word] << zeros, below = 0;
  if (zeros > 0 && word > 0) lead |= sum[word - 1] >> (64 - zeros);
  if (word > 0) below = sum[word - 1] << zeros;
  for (int i = 0; i < word - 1; ++i) below |= sum[i];
  const uint64_t rest = lead & 0x7FF;
  uint64_t mantissa = lead >> 11;
  mantissa += rest > 0x400 || (rest == 0x400 && (below != 0 || (mantissa & 1)));
  // mantissa * 2^exponent. It is a multiple of 2^-1074, so scaling in two steps rounds nothing.
  int exponent = HC_BIN_WIDTH * (a->top - 2) - 1074 + 64 * word - zeros + 11;
  double result = (double)mantissa;
  for (; exponent > 960; exponent -= 960) result *= 0x1p960;
  for (; exponent < -960; exponent += 960) result *= 0x1p-960;
  result *= hc_double_of((uint64_t)(exponent + 1023) << 52);
  return negative ? -result : result;
}

// ---------------------------------------------------------------------------------------- min, max

// Integers in the order of IEEE 754 totalOrder: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
static inline int64_t hc_key(double x) {
  const int64_t w = (int64_t)hc_word_of(x);
  return w ^ ((w >> 63) & INT64_MAX);
}

static const int64_t HC_KEY_INFINITY = 0x7FF0000000000000;

static inline bool hc_key_is_nan(int64_t key) { return key > HC_KEY_INFINITY || key < ~HC_KEY_INFINITY; }

// The least and greatest key of n > 0 values.
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

// How many of x are not zero; NaN is not zero.
static inline void hc_count_deposit(hc_accumulator* a, const double* x, int64_t n) {
  hc_integers lanes = {};
  for (int64_t i = 0; i < n; i += HC_LANES) {
    const hc_doubles v = i + HC_LANES <= n ? hc_load(x + i) : hc_load_part(x + i, n - i, 0);
    lanes -= (hc_integers)(v != 0);
  }
  for (int lane = 0; lane < HC_LANES; ++lane) a->word += lanes[lane];
}

static inline void hc_count_add(hc_accumulator* a, int64_t amount) { a->word += amount; }

// The value at one point: whoever holds the point deposits it, once, and n is 1; n is 0 for all others.
static inline void hc_value_deposit(hc_accumulator* a, const double* x, int64_t n) {
  hc_max_deposit(a, x, n);
}

// -------------------------------------------------------------------------------------- all kinds

// The result of nothing is +0, +inf, -inf, 0 and NaN, for sum, min, max, count and value.
static inline void hc_reset(hc_accumulator* a, int kind) {
  memset(a, 0, sizeof *a);
  a->kind = kind;
  if (kind == HC_SUM) a->top = HC_TOP_FIRST;
  if (kind == HC_MIN) a->word = HC_KEY_INFINITY;
  if (kind == HC_MAX) a->word = ~HC_KEY_INFINITY;
  if (kind == HC_VALUE) a->word = INT64_MIN;
}

// Associative and commutative; both of one kind.
[[maybe_unused]] static void hc_merge(hc_accumulator* into, const hc_accumulator* from) {
  switch (into->kind) {
    case HC_SUM:
      hc_sum_raise(into, from->top);
      for (int k = into->top - from->top; k < HC_BINS; ++k) {
        const int j = k - (into->top - from->top);
        hc_bin_add(into, k, from->low[j], from->high[j]);
      }
      into->word |= from->word;
      break;
    case HC_MIN:
      if (from->word < into->word) into->word = from->word;
      break;
    case HC_COUNT:
      into->word += from->word;
      break;
    default:
      if (from->word > into->word) into->word = from->word;
  }
}

[[maybe_unused]] static double hc_result(const hc_accumulator* a) {
  switch (a->kind) {
    case HC_SUM:
      return hc_sum_result(a);
    case HC_COUNT:
      return (double)a->word;
    default:
      if (hc_key_is_nan(a->word)) return hc_double_of(0x7FF8000000000000);
      return hc_double_of((uint64_t)(a->word ^ ((a->word >> 63) & INT64_MAX)));
  }
}
