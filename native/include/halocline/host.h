// Host counterpart of device.h: the operations that determine the bits. The text is C and C++.
#pragma once

#include <stdint.h>

#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0)
#error "halocline: compile without -ffast-math and with SSE2 or newer arithmetic"
#endif

#define HC_FUNCTION static inline __attribute__((always_inline))  // otherwise loops would not vectorise
#define HC_RARE static __attribute__((noinline, unused))
#define HC_TABLE static const
#define HC_ALIGNED(bytes) __attribute__((aligned(bytes)))

typedef int32_t hc_int32;
typedef uint32_t hc_uint32;
typedef int64_t hc_int64;
typedef uint64_t hc_uint64;

HC_FUNCTION hc_uint64 hc_bits(double x) {
  hc_uint64 bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
HC_FUNCTION double hc_from_bits(hc_uint64 bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
HC_FUNCTION hc_uint32 hc_bitsf(float x) {
  hc_uint32 bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
HC_FUNCTION float hc_from_bitsf(hc_uint32 bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}
HC_FUNCTION double hc_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
HC_FUNCTION float hc_fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HC_FUNCTION double hc_sqrt(double x) { return __builtin_sqrt(x); }
HC_FUNCTION float hc_sqrtf(float x) { return __builtin_sqrtf(x); }
HC_FUNCTION hc_uint64 hc_multiply_high(hc_uint64 a, hc_uint64 b) {
  return (hc_uint64)((__extension__(unsigned __int128) a * b) >> 64);
}
HC_FUNCTION int hc_leading_zeros(hc_uint64 bits) { return __builtin_clzll(bits); }
