// Random numbers as functions of three integers: the counter-based generator Philox4x32-10 of J. K. Salmon,
// M. A. Moraes, R. O. Dror and D. E. Shaw, Parallel random numbers: as easy as 1, 2, 3, SC11, 2011. The text
// is C, C++, CUDA and OpenCL C alike, and loops over it vectorise: see elementary.hpp.
#pragma once

#ifndef HC_FUNCTION
#include "halocline/host.h"
#endif

// Words of 32 bits, each in the lower half of a 64-bit integer: products of two words then need no
// conversion.
typedef struct {
  hc_uint64 word0, word1, word2, word3;
} hc_philox_words;

#define HC_LOW_WORD 0xffffffffu

HC_FUNCTION hc_philox_words hc_philox_round(hc_philox_words c, hc_uint64 key0, hc_uint64 key1) {
  hc_uint64 first = c.word0 * 0xd2511f53u, second = c.word2 * 0xcd9e8d57u;
  hc_philox_words next;
  next.word0 = (second >> 32) ^ c.word1 ^ key0;
  next.word1 = second & HC_LOW_WORD;
  next.word2 = (first >> 32) ^ c.word3 ^ key1;
  next.word3 = first & HC_LOW_WORD;
  return next;
}

// Return ten rounds of Philox. The counter and the key are words. The keys of later rounds are sums modulo
// 2^32 with a Weyl sequence.
HC_FUNCTION hc_philox_words hc_philox(hc_philox_words c, hc_uint64 key0, hc_uint64 key1) {
  for (hc_uint64 round = 0; round < 10; ++round)
    c = hc_philox_round(c, (key0 + round * 0x9e3779b9u) & HC_LOW_WORD,
                        (key1 + round * 0xbb67ae85u) & HC_LOW_WORD);
  return c;
}

// Return 1 if x is one of 0, 1, ... 2^53 - 1.
HC_FUNCTION int hc_is_counter(double x) {
  double whole = x < 0x1p52 ? (x + 0x1p52) - 0x1p52 : x;
  return (whole == x) & (x >= 0.0) & (x < 0x1p53);
}

// Return x, one of 0, 1, ... 2^53 - 1, as an integer. The code uses the bits of x, since not all processors
// convert vectors of 64-bit integers.
HC_FUNCTION hc_uint64 hc_counter(double x) {
  hc_uint64 small =
      hc_bits(x + 0x1p52) - 0x4330000000000000u;  // a double in [2^52, 2^53) is 2^52 plus its mantissa bits
  return x < 0x1p52 ? small : hc_bits(x) - 0x4320000000000000u;
}

// Return a random number in [0, 1), a multiple of 2^-53: the upper 53 bits of 2^32 w1 + w0. The words w0 and
// w1 are the first two words of the generator for the counter (index low, index high, step low, step high)
// and the key (seed low, seed high). The result is NaN if an argument is not one of 0, 1, ... 2^53 - 1.
HC_FUNCTION double hc_random(double seed, double step, double index) {
  hc_uint64 k = hc_counter(seed), s = hc_counter(step), i = hc_counter(index);
  hc_philox_words c;
  c.word0 = i & HC_LOW_WORD;
  c.word1 = i >> 32;
  c.word2 = s & HC_LOW_WORD;
  c.word3 = s >> 32;
  c = hc_philox(c, k & HC_LOW_WORD, k >> 32);
  // Convert the words to double, from their bits.
  double high = hc_from_bits(0x4330000000000000u | c.word1) - 0x1p52;
  double low = hc_from_bits(0x4330000000000000u | (c.word0 >> 11)) - 0x1p52;
  int fine = hc_is_counter(seed) & hc_is_counter(step) & hc_is_counter(index);
  return fine ? hc_fma(high, 0x1p-32, low * 0x1p-53) : hc_from_bits(0x7ff8000000000000u);
}
