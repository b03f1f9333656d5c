// Accumulators of reductions, shared by the host (reduce.hpp) and devices (device_reduce.h): layout, merge
// and results. The text uses the subset of C that is also valid C++, CUDA C++ and OpenCL C 1.2.
#pragma once

#ifndef HC_FUNCTION
#include "halocline/host.h"
#endif

#define HC_INT64_MAX ((hc_int64)0x7fffffffffffffffu)
#define HC_INT64_MIN (-HC_INT64_MAX - 1)
#define HC_KEY_INFINITY ((hc_int64)0x7ff0000000000000u)  // hc_key(infinity), equal to the bits of infinity

typedef enum { HC_SUM, HC_MIN, HC_MAX, HC_COUNT, HC_VALUE } hc_kind;

enum { HC_BINS = 3, HC_BIN_WIDTH = 40, HC_TOP_FIRST = HC_BINS - 1, HC_TOP_LAST = 52 };
enum { HC_MET_NAN = 1, HC_PLUS_INFINITY = 2, HC_MINUS_INFINITY = 4 };

// Accumulator of one reduction in one thread or rank. It consists of plain bytes, so it may be copied, sent
// and merged. Equal multisets of deposits give equal bytes.
typedef struct HC_ALIGNED(64) hc_accumulator {
  hc_int32 kind;           // hc_kind
  hc_int32 top;            // sum: index of the highest bin
  hc_uint64 low[HC_BINS];  // sum: lower halves of the bins top, top - 1, top - 2: 128-bit integers
  hc_int64 high[HC_BINS];  // sum: upper halves of these bins, in units of their quanta
  hc_int64 word;           // sum: flags of NaN and infinities; min, max, value: key; count: count
} hc_accumulator;

// --------------------------------------------------------------------------------------------- sum

// Splitter of a double into multiples of the quanta of three bins. Adding a splitter to x rounds x to the
// quantum. The bits of the sum, as an integer, are the bits of the splitter plus the multiple.
typedef struct {
  double high, middle, low;
  hc_uint64 floor;  // bits of `high` at the lowest multiple that the highest bin accepts
} hc_splitter;

// Return the bits of 1.5 * 2^52 quanta of a bin. One unit in the last place of this number is one quantum,
// for sums up to 2^51 quanta away. The mantissa is even, so x alone decides ties.
HC_FUNCTION hc_uint64 hc_splitter_bits(int bin) {
  return ((hc_uint64)(HC_BIN_WIDTH * bin + 1) << 52) | ((hc_uint64)1 << 51);
}

// Return the bits of the largest |x| that rounds to at most 2^38 quanta of a bin: 2^38 + 1/2 quanta.
HC_FUNCTION hc_uint64 hc_bin_limit(int bin) {
  return ((hc_uint64)(HC_BIN_WIDTH * bin - 13) << 52) | ((hc_uint64)1 << 13);
}

HC_FUNCTION hc_splitter hc_sum_splitter(int top) {
  hc_splitter s;
  s.floor = hc_splitter_bits(top);
  s.high = hc_from_bits(s.floor + ((hc_uint64)1 << 38));
  s.middle = hc_from_bits(hc_splitter_bits(top - 1));
  s.low = hc_from_bits(hc_splitter_bits(top - 2));
  return s;
}

HC_FUNCTION void hc_bin_add(hc_accumulator* a, int k, hc_uint64 low, hc_int64 high) {
  a->low[k] += low;
  a->high[k] += high + (a->low[k] < low);
}

HC_FUNCTION void hc_sum_raise(hc_accumulator* a, int top) {
  for (; a->top < top; ++a->top) {
    for (int k = HC_BINS - 1; k > 0; --k) {
      a->low[k] = a->low[k - 1];
      a->high[k] = a->high[k - 1];
    }
    a->low[0] = 0;
    a->high[0] = 0;
  }
}

// Return the exact sum of the bins, rounded once to nearest even.
HC_RARE double hc_sum_result(const hc_accumulator* a) {
  if (a->word != 0) {
    const int nan = (a->word & HC_MET_NAN) || a->word == (HC_PLUS_INFINITY | HC_MINUS_INFINITY);
    return nan                           ? hc_from_bits(0x7FF8000000000000)
           : a->word == HC_PLUS_INFINITY ? hc_from_bits(HC_KEY_INFINITY)
                                         : -hc_from_bits(HC_KEY_INFINITY);
  }
  // Sum in units of the lowest quantum: a two's complement integer of 256 bits, lowest word first.
  hc_uint64 sum[4] = {0, 0, 0, 0};
  for (int k = 0; k < HC_BINS; ++k) {
    for (int i = 3; i > 0; --i) sum[i] = sum[i] << HC_BIN_WIDTH | sum[i - 1] >> (64 - HC_BIN_WIDTH);
    sum[0] <<= HC_BIN_WIDTH;
    const hc_uint64 sign = (hc_uint64)(a->high[k] >> 63);
    const hc_uint64 bin[4] = {a->low[k], (hc_uint64)a->high[k], sign, sign};
    hc_uint64 carry = 0;
    for (int i = 0; i < 4; ++i) {
      const hc_uint64 part = sum[i] + carry;
      carry = part < carry;
      sum[i] = part + bin[i];
      carry += sum[i] < part;
    }
  }
  const int negative = sum[3] >> 63 != 0;
  if (negative) {
    hc_uint64 carry = 1;
    for (int i = 0; i < 4; ++i) {
      sum[i] = ~sum[i] + carry;
      carry &= sum[i] == 0;
    }
  }
  int word = 3;
  while (word > 0 && sum[word] == 0) --word;
  if (sum[word] == 0) return 0;
  // `lead` contains the 64 bits that begin with the leading 1. The bits below `lead` only decide on which
  // side of a tie the sum lies.
  const int zeros = hc_leading_zeros(sum[word]);
  hc_uint64 lead = sum[word] << zeros, below = 0;
  if (zeros > 0 && word > 0) lead |= sum[word - 1] >> (64 - zeros);
  if (word > 0) below = sum[word - 1] << zeros;
  for (int i = 0; i < word - 1; ++i) below |= sum[i];
  const hc_uint64 rest = lead & 0x7FF;
  hc_uint64 mantissa = lead >> 11;
  mantissa += rest > 0x400 || (rest == 0x400 && (below != 0 || (mantissa & 1)));
  // The result is mantissa * 2^exponent, a multiple of 2^-1074, so scaling in two steps does not round.
  int exponent = HC_BIN_WIDTH * (a->top - 2) - 1074 + 64 * word - zeros + 11;
  double result = (double)mantissa;
  for (; exponent > 960; exponent -= 960) result *= 0x1p960;
  for (; exponent < -960; exponent += 960) result *= 0x1p-960;
  result *= hc_from_bits((hc_uint64)(exponent + 1023) << 52);
  return negative ? -result : result;
}

// ---------------------------------------------------------------------------------------- min, max

// Return an integer key in the order of IEEE 754 totalOrder: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
HC_FUNCTION hc_int64 hc_key(double x) {
  const hc_int64 w = (hc_int64)hc_bits(x);
  return w ^ ((w >> 63) & HC_INT64_MAX);
}

HC_FUNCTION int hc_key_is_nan(hc_int64 key) { return key > HC_KEY_INFINITY || key < ~HC_KEY_INFINITY; }

// -------------------------------------------------------------------------------------- all kinds

// Reset an accumulator. Without deposits, sum, min, max, count and value are +0, +inf, -inf, 0 and NaN.
HC_FUNCTION void hc_reset(hc_accumulator* a, int kind) {
  a->kind = kind;
  a->top = 0;
  for (int k = 0; k < HC_BINS; ++k) {
    a->low[k] = 0;
    a->high[k] = 0;
  }
  a->word = 0;
  if (kind == HC_SUM) a->top = HC_TOP_FIRST;
  if (kind == HC_MIN) a->word = HC_KEY_INFINITY;
  if (kind == HC_MAX) a->word = ~HC_KEY_INFINITY;
  if (kind == HC_VALUE) a->word = HC_INT64_MIN;
}

// Merge an accumulator into another one of the same kind. The operation is associative and commutative.
HC_RARE void hc_merge(hc_accumulator* into, const hc_accumulator* from) {
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

HC_RARE double hc_result(const hc_accumulator* a) {
  switch (a->kind) {
    case HC_SUM:
      return hc_sum_result(a);
    case HC_COUNT:
      return (double)a->word;
    default:
      if (hc_key_is_nan(a->word)) return hc_from_bits(0x7FF8000000000000);
      return hc_from_bits((hc_uint64)(a->word ^ ((a->word >> 63) & HC_INT64_MAX)));
  }
}
