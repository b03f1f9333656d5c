// Elementary functions with identical bits on every processor, compiler and vector width.
//
// The functions use only exactly specified operations: + - * / and fma rounded to nearest, comparisons,
// conversions and integer arithmetic. The code for vector loops has no data-dependent branch and no table. A
// compiler vectorises the loops without changing a bit, provided that it neither contracts nor reassociates
// (-ffp-contract=off, never -ffast-math). Subnormal numbers must be enabled. The text is C, C++, CUDA and
// OpenCL C alike: the prefix of a device defines HC_FUNCTION and its companions.
//
// Largest observed errors, in units in the last place: exp and log 0.60, sin and cos 0.62, pow 0.68 (0.77 if
// the result is subnormal). The float versions compute in double precision and round once; their largest
// error is 0.502. A NaN result is always the canonical NaN; zeros and infinities follow IEEE 754 and C99,
// annex F. See docs/decisions/0002-elementary-functions.md. The script tools/elementary_coefficients.py
// generates the polynomials; the errors next to them are relative to the function value.
//
// Methods: W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980; M. H. Payne and
// R. N. Hanek, Radian reduction for trigonometric functions, SIGNUM Newsletter 18, 1983; P. T. P. Tang,
// Table-driven implementation of the exponential / logarithm function, ACM TOMS 15, 1989 and 16, 1990;
// T. J. Dekker, A floating-point technique for extending the available precision, Numer. Math. 18, 1971;
// J.-M. Muller, Elementary Functions, 3rd ed., 2016.
#pragma once

#ifndef HC_FUNCTION
#include "halocline/host.h"
#endif

#define HC_SIGN 0x8000000000000000u
#define HC_SIGNF 0x80000000u
#define HC_NAN hc_from_bits(0x7ff8000000000000u)
#define HC_NANF hc_from_bitsf(0x7fc00000u)
#define HC_INFINITY hc_from_bits(0x7ff0000000000000u)
#define HC_INFINITYF hc_from_bitsf(0x7f800000u)

// ---- abs, sign, min, max ---------------------------------------------------------------------

HC_FUNCTION double hc_abs(double x) { return x != x ? HC_NAN : hc_from_bits(hc_bits(x) & ~HC_SIGN); }

// Return 1 or -1, or x itself if x is a zero of either sign.
HC_FUNCTION double hc_sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? x : HC_NAN; }

// -0 is less than +0. If an argument is NaN, the result is NaN. Numbers that compare equal have equal bits or
// are zeros: the union of their bits is the minimum, the intersection the maximum.
HC_FUNCTION double hc_min(double a, double b) {
  return a < b ? a : b < a ? b : a == b ? hc_from_bits(hc_bits(a) | hc_bits(b)) : HC_NAN;
}
HC_FUNCTION double hc_max(double a, double b) {
  return a > b ? a : b > a ? b : a == b ? hc_from_bits(hc_bits(a) & hc_bits(b)) : HC_NAN;
}

HC_FUNCTION float hc_absf(float x) { return x != x ? HC_NANF : hc_from_bitsf(hc_bitsf(x) & ~HC_SIGNF); }
HC_FUNCTION float hc_signf(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x == 0 ? x : HC_NANF; }
HC_FUNCTION float hc_minf(float a, float b) {
  return a < b ? a : b < a ? b : a == b ? hc_from_bitsf(hc_bitsf(a) | hc_bitsf(b)) : HC_NANF;
}
HC_FUNCTION float hc_maxf(float a, float b) {
  return a > b ? a : b > a ? b : a == b ? hc_from_bitsf(hc_bitsf(a) & hc_bitsf(b)) : HC_NANF;
}

// ---- exp -------------------------------------------------------------------------------------

// Adding this constant rounds a number below 2^51 to an integer, whose low bits are the low bits of the sum.
#define HC_ROUNDER 0x1.8p52

// Return exp(x + tail) for x in [-746, 710], |tail| < 2^-40 (Cody and Waite): x = k ln 2 + r, and exp(r) = 1
// + r + r^2/2 + r^3 p(r), |r| <= ln(2) / 2, error 2^-60. The code keeps 1 + r to twice the precision and adds
// r^2/2 with one rounding. The total error is therefore close to the half ulp of the last addition.
HC_FUNCTION double hc_exp_sum(double x, double tail) {
  double shifted = hc_fma(x, 0x1.71547652b82fep+0, HC_ROUNDER);
  double k = shifted - HC_ROUNDER;
  double high = hc_fma(-k, 0x1.62e42fefa3800p-1, x);  // exact: 42 bits of ln 2
  double low = hc_fma(-k, 0x1.ef35793c76730p-45, tail);
  double r = high + low;
  double p = hc_fma(r, 0x1.1e66ebba9480ep-29, 0x1.af68e07424a37p-26);
  p = hc_fma(r, p, 0x1.27e58d70f66e1p-22);
  p = hc_fma(r, p, 0x1.71ddf229ac3b6p-19);
  p = hc_fma(r, p, 0x1.a01a015210143p-16);
  p = hc_fma(r, p, 0x1.a01a01b28401ap-13);
  p = hc_fma(r, p, 0x1.6c16c16c271d5p-10);
  p = hc_fma(r, p, 0x1.111111110ef82p-7);
  p = hc_fma(r, p, 0x1.5555555555530p-5);
  p = hc_fma(r, p, 0x1.555555555555ap-3);
  double one = 1.0 + r;
  double rest = ((1.0 - one) + r) + ((high - r) + low);
  double y = one + hc_fma(0.5 * r, r, hc_fma(r * r * r, p, rest));
  // 2^k is split into two factors, of which the first is always a normal number. The second product rounds a
  // subnormal result once more.
  hc_uint64 n = hc_bits(shifted) + 2048;
  hc_uint64 first = (n & 4095) >> 1;
  return y * hc_from_bits((first - 1) << 52) * hc_from_bits((n - first - 1) << 52);
}

HC_FUNCTION double hc_exp(double x) {
  double inside = x < 710.0 ? x : 710.0;
  inside = inside > -746.0 ? inside : -746.0;
  return x != x ? HC_NAN : hc_exp_sum(inside, 0.0);
}

// ---- log -------------------------------------------------------------------------------------

typedef struct {
  double mantissa;  // in [sqrt(1/2), sqrt(2)]
  double exponent;
} hc_scaled;

// Return x = mantissa * 2^exponent for normal x > 0 and `biased` = 2^52 + 1023. The result for other x is
// unspecified.
HC_FUNCTION hc_scaled hc_split(double x, double biased) {
  hc_scaled scaled;
  hc_uint64 exponent = (hc_bits(x) + 0x00095f619980c433u) >> 52;  // carries if mantissa >= sqrt(2)
  scaled.mantissa = hc_from_bits(hc_bits(x) - ((exponent - 1023) << 52));
  scaled.exponent = hc_from_bits(exponent | 0x4330000000000000u) - biased;
  return scaled;
}

// Return the mantissa and the exponent of x > 0, which may be subnormal.
HC_FUNCTION hc_scaled hc_split_any(double x) {
  return hc_split(x < 0x1p-1022 ? x * 0x1p54 : x, x < 0x1p-1022 ? 0x1p52 + 1023 + 54 : 0x1p52 + 1023);
}

// Return log(x). With x = 2^k m, f = m - 1, s = f / (2 + f): log(m) = 2 atanh(s) = f - f^2/2 + s (f^2/2 + s^2
// p(s^2)), error 2^-59. The code keeps f - f^2/2 and its sum with k ln 2 to twice the precision.
HC_FUNCTION double hc_log(double x) {
  hc_scaled scaled = hc_split_any(x);
  double k = scaled.exponent;
  double f = scaled.mantissa - 1.0;
  double s = f / (2.0 + f);
  double z = s * s;
  double p = hc_fma(z, 0x1.2f03c6a4093c3p-3, 0x1.39a1e78532208p-3);
  p = hc_fma(z, p, 0x1.74663cf9ee92cp-3);
  p = hc_fma(z, p, 0x1.c71c521417e53p-3);
  p = hc_fma(z, p, 0x1.24924941e18e4p-2);
  p = hc_fma(z, p, 0x1.999999997ff17p-2);
  p = hc_fma(z, p, 0x1.5555555555592p-1);
  double square = 0.5 * f * f;
  double high = f - square;
  double low = ((f - high) - square) - hc_fma(0.5 * f, f, -square);
  double whole = k * 0x1.62e42fefa3800p-1;  // exact: 42 bits of ln 2
  double sum = whole + high;
  double rest = hc_fma(k, 0x1.ef35793c76730p-45, hc_fma(s, hc_fma(z, p, square), low));
  double y = sum + (rest + ((whole - sum) + high));
  return x > 0.0 ? (x < HC_INFINITY ? y : HC_INFINITY) : x == 0.0 ? -HC_INFINITY : HC_NAN;
}

// ---- sin, cos --------------------------------------------------------------------------------

// An angle as quarter * pi/2 + high + low, |high + low| <= pi/4 (1 + 2^-12).
typedef struct {
  double high;
  double low;
  hc_uint64 quarter;  // modulo 4 in its low bits
} hc_angle;

// Return 1 for arguments outside the domain of the functions *_small: beyond 2^40, infinite, or NaN.
HC_FUNCTION int hc_is_large_angle(double x) { return !(x <= 0x1p40) | !(x >= -0x1p40); }

// Reduce an angle 0 <= x <= 2^40 (Cody and Waite, with fma), with pi/2 in three parts of 53 bits. The first
// difference is exact, and the second product is kept to twice the precision. The neglected terms are below
// 2^-120, and no double except 0 is closer than 2^-61 to a multiple of pi/2 (Muller, ch. 11).
HC_FUNCTION hc_angle hc_reduce_small(double x) {
  hc_angle angle;
  double shifted = hc_fma(x, 0x1.45f306dc9c883p-1, HC_ROUNDER);
  double k = shifted - HC_ROUNDER;
  double first = hc_fma(-k, 0x1.921fb54442d18p+0, x);
  double product = k * 0x1.1a62633145c07p-54;
  double product_low = hc_fma(k, 0x1.1a62633145c07p-54, -product);
  double second = first - product;  // Dekker's fast sum holds: `first` is a multiple of product's last bit
  double rest = hc_fma(k, 0x1.f1976b7ed8fbcp-110, ((first - second) - product) - product_low);
  angle.high = second + rest;
  angle.low = (second - angle.high) + rest;
  angle.quarter = hc_bits(shifted);
  return angle;
}

// Bits of 2/pi, after 64 zero bits.
HC_TABLE hc_uint64 hc_two_over_pi[20] = {
    0x0000000000000000u, 0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
    0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u, 0xe99c7026b45f7e41u,
    0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu, 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u,
    0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu, 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu};

// Reduce a finite angle x >= 2^40 (Payne and Hanek): x = m 2^e with an integer m of 53 bits. The code skips
// the bits of 2/pi whose product with m 2^e is a multiple of 4 and takes the next 192 bits. Their product
// with m, modulo 2^192, is x * 2/pi modulo 4 in units of 2^-190. The code forms its upper 128 bits.
HC_RARE hc_angle hc_reduce_large(double x) {
  hc_angle angle;
  hc_uint64 m = (hc_bits(x) & 0x000fffffffffffffu) | 0x0010000000000000u;
  hc_uint64 start = (hc_bits(x) >> 52) - 1075 - 2 + 64;
  hc_uint64 word = start >> 6, shift = start & 63;
  hc_uint64 a = hc_two_over_pi[word], b = hc_two_over_pi[word + 1];
  hc_uint64 c = hc_two_over_pi[word + 2], d = hc_two_over_pi[word + 3];
  a = (a << shift) | (b >> 1 >> (63 - shift));
  b = (b << shift) | (c >> 1 >> (63 - shift));
  c = (c << shift) | (d >> 1 >> (63 - shift));
  hc_uint64 low = m * b + hc_multiply_high(m, c);
  hc_uint64 high = m * a + hc_multiply_high(m, b) + (low < m * b);
  hc_uint64 quarter = (high + 0x2000000000000000u) >> 62;
  high -= quarter << 62;
  // The remainder is a signed number of 128 bits in units of 2^-126, at most 1/2. The code writes its
  // absolute value as the sum of two doubles and multiplies it by pi/2.
  hc_uint64 negative = high >> 63;
  low = negative ? ~low + 1 : low;
  high = negative ? ~high + (low == 0) : high;
  double top = (double)high;
  double middle = hc_fma((double)(hc_int64)(high - (hc_uint64)top), 0x1p32, (double)(low >> 32));
  double sum = hc_fma(top, 0x1p32, middle);
  double rest = (hc_fma(top, 0x1p32, -sum) + middle) + (double)(low & 0xffffffffu) * 0x1p-32;
  sum *= 0x1p-94;
  rest *= 0x1p-94;
  double product = sum * 0x1.921fb54442d18p+0;
  double product_low = hc_fma(sum, 0x1.921fb54442d18p+0, -product) +
                       hc_fma(sum, 0x1.1a62633145c07p-54, rest * 0x1.921fb54442d18p+0);
  angle.high = product + product_low;
  angle.low = (product - angle.high) + product_low;
  angle.high = negative ? -angle.high : angle.high;
  angle.low = negative ? -angle.low : angle.low;
  angle.quarter = quarter;
  return angle;
}

// Return sin(quarter * pi/2 + high + low). With r = high, z = r^2: sin(r) = r + r^3 p(z), error 2^-57.9, and
// cos(r) = 1 - z/2 + z^2 p(z), error 2^-63. `z_low` carries the rounding error of z.
HC_FUNCTION double hc_sin_angle(double high, double low, hc_uint64 quarter) {
  double z = high * high;
  double z_low = hc_fma(high, high, -z);
  double drop = 0.5 * z;
  double p = hc_fma(z, 0x1.5d8b725e14084p-33, -0x1.ae5e4bd2c9fc7p-26);
  p = hc_fma(z, p, 0x1.71de355577b12p-19);
  p = hc_fma(z, p, -0x1.a01a019be95e0p-13);
  p = hc_fma(z, p, 0x1.111111110f731p-7);
  double cube = z * high;
  double low_part = hc_fma(-0x1.5555555555548p-3 * high, z_low, hc_fma(-drop, low, low));
  double sine = high + hc_fma(cube, -0x1.5555555555548p-3, hc_fma(cube * z, p, low_part));
  double q = hc_fma(z, -0x1.8fa557a487c99p-37, 0x1.1ee9d9cc83110p-29);
  q = hc_fma(z, q, -0x1.27e4f7ef130e8p-22);
  q = hc_fma(z, q, 0x1.a01a019c8c80fp-16);
  q = hc_fma(z, q, -0x1.6c16c16c15005p-10);
  q = hc_fma(z, q, 0x1.555555555554bp-5);
  double one = 1.0 - drop;
  double cosine = one + hc_fma(z * z, q, ((1.0 - one) - drop) - hc_fma(high, low, 0.5 * z_low));
  return hc_from_bits(hc_bits((quarter & 1) ? cosine : sine) ^ ((quarter & 2) << 62));
}

// Sine and cosine for |x| <= 2^40, without a branch, for loops that vectorise. If hc_is_large_angle holds for
// any argument of a loop, the loop must call hc_sin and hc_cos instead. For arguments that are not
// large, hc_sin and hc_cos give the same bits as the functions *_small.
HC_FUNCTION double hc_sin_small(double x) {
  hc_uint64 sign = hc_bits(x) & HC_SIGN;
  hc_angle angle = hc_reduce_small(hc_from_bits(hc_bits(x) ^ sign));
  return hc_from_bits(hc_bits(hc_sin_angle(angle.high, angle.low, angle.quarter)) ^ sign);
}
HC_FUNCTION double hc_cos_small(double x) {
  hc_angle angle = hc_reduce_small(hc_from_bits(hc_bits(x) & ~HC_SIGN));
  return hc_sin_angle(angle.high, angle.low, angle.quarter + 1);
}

HC_RARE double hc_sin_large(double x) {
  hc_uint64 sign = hc_bits(x) & HC_SIGN;
  double size = hc_from_bits(hc_bits(x) ^ sign);
  if (!(size < HC_INFINITY)) return HC_NAN;
  hc_angle angle = hc_reduce_large(size);
  return hc_from_bits(hc_bits(hc_sin_angle(angle.high, angle.low, angle.quarter)) ^ sign);
}
HC_RARE double hc_cos_large(double x) {
  double size = hc_from_bits(hc_bits(x) & ~HC_SIGN);
  if (!(size < HC_INFINITY)) return HC_NAN;
  hc_angle angle = hc_reduce_large(size);
  return hc_sin_angle(angle.high, angle.low, angle.quarter + 1);
}

// Sine and cosine of any x. Loops that call these functions do not vectorise.
HC_FUNCTION double hc_sin(double x) { return hc_is_large_angle(x) ? hc_sin_large(x) : hc_sin_small(x); }
HC_FUNCTION double hc_cos(double x) { return hc_is_large_angle(x) ? hc_cos_large(x) : hc_cos_small(x); }

// ---- pow -------------------------------------------------------------------------------------

typedef struct {
  double high;
  double low;
} hc_pair;

// Return log(x) as the sum of two numbers, relative error 2^-64, for finite x > 0. With s = (m - 1) / (m +
// 1): log(m) = 2s + 2/3 s^3 + s^5 p(s^2), error 2^-73. The first two terms are kept to twice the precision.
HC_FUNCTION hc_pair hc_log_pair(double x) {
  hc_pair pair;
  hc_scaled scaled = hc_split_any(x);
  double k = scaled.exponent;
  double f = scaled.mantissa - 1.0;
  double d = scaled.mantissa + 1.0;
  double d_low = scaled.mantissa - (d - 1.0);
  double inverse = 1.0 / d;
  double s = f * inverse;
  double s_low = hc_fma(-s, d_low, hc_fma(-s, d, f)) * inverse;
  double z = s * s;
  double z_low = hc_fma(2.0 * s, s_low, hc_fma(s, s, -z));
  double cube = s * z;
  double cube_low = hc_fma(s_low, z, hc_fma(s, z_low, hc_fma(s, z, -cube)));
  double fifth = hc_fma(cube, z, hc_fma(cube, z_low, cube_low * z));
  double p = hc_fma(z, 0x1.eac599a85c230p-4, 0x1.de3d742db3c1ep-4);
  p = hc_fma(z, p, 0x1.11206f1cbf39ep-3);
  p = hc_fma(z, p, 0x1.3b1364c997c4ep-3);
  p = hc_fma(z, p, 0x1.745d182955e22p-3);
  p = hc_fma(z, p, 0x1.c71c71c596900p-3);
  p = hc_fma(z, p, 0x1.2492492492f51p-2);
  p = hc_fma(z, p, 0x1.9999999999996p-2);
  double third = cube * 0x1.5555555555555p-1;
  double third_low = hc_fma(cube_low, 0x1.5555555555555p-1,
                            hc_fma(cube, 0x1.5555555555555p-55, hc_fma(cube, 0x1.5555555555555p-1, -third)));
  double head = 2.0 * s + third;
  double head_low = ((2.0 * s - head) + third) + hc_fma(fifth, p, hc_fma(2.0, s_low, third_low));
  double whole = k * 0x1.62e42fefa3800p-1;  // exact: 42 bits of ln 2
  double sum = whole + head;
  double sum_low = ((whole - sum) + head) + hc_fma(k, 0x1.ef35793c76730p-45, head_low);
  pair.high = sum + sum_low;
  pair.low = (sum - pair.high) + sum_low;
  return pair;
}

// Return x^y from base = |x| and power = base^y, with the signs and exceptions of C99, F.9.4.4.
HC_FUNCTION double hc_pow_cases(double x, double y, double base, double power) {
  double size = hc_from_bits(hc_bits(y) & ~HC_SIGN);
  double shifted = size + 0x1p52;  // the last bit has the weight 1
  double whole = size < 0x1p52 ? shifted - 0x1p52 : size;
  hc_uint64 odd = size < 0x1p52 ? hc_bits(shifted) : size < 0x1p53 ? hc_bits(size) : 0;
  hc_uint64 sign = whole == size ? (odd << 63) & hc_bits(x) : 0;
  power = base == 1.0 ? 1.0 : power;  // also for infinite y
  double real = x < 0.0 ? (base < HC_INFINITY ? HC_NAN : power) : power;
  double z = whole == size ? hc_from_bits(hc_bits(power) ^ sign) : real;
  z = x == x ? z : HC_NAN;
  z = y == y ? z : HC_NAN;
  z = x == 1.0 ? 1.0 : z;
  return y == 0.0 ? 1.0 : z;
}

HC_FUNCTION double hc_pow(double x, double y) {
  double base = hc_from_bits(hc_bits(x) & ~HC_SIGN);
  hc_pair exponent = hc_log_pair(base);
  double high = base < HC_INFINITY ? exponent.high : HC_INFINITY;
  high = base == 0.0 ? -HC_INFINITY : high;
  double product = y * high;
  double low = hc_fma(y, exponent.low, hc_fma(y, high, -product));
  double inside = product < 710.0 ? product : 710.0;
  inside = inside > -746.0 ? inside : -746.0;
  return hc_pow_cases(x, y, base, hc_exp_sum(inside, inside == product ? low : 0.0));
}

// ---- float: computed in double, rounded once -------------------------------------------------

// Return exp(x) to 2^-39 for x in [-110, 90].
HC_FUNCTION double hc_exp_short(double x) {
  double shifted = hc_fma(x, 0x1.71547652b82fep+0, HC_ROUNDER);
  double k = shifted - HC_ROUNDER;
  double r = hc_fma(-k, 0x1.62e42fefa39efp-1, x);
  double p = hc_fma(r, 0x1.9e885618c799ap-16, 0x1.a185ff0a2aa54p-13);
  p = hc_fma(r, p, 0x1.6c18d52e2ba06p-10);
  p = hc_fma(r, p, 0x1.1110a1fec076ep-7);
  p = hc_fma(r, p, 0x1.5555541ca07e4p-5);
  p = hc_fma(r, p, 0x1.5555557e07f70p-3);
  p = hc_fma(r, p, 0x1.000000005e980p-1);
  return hc_fma(r * r, p, 1.0 + r) * hc_from_bits((hc_bits(shifted) + 1023) << 52);
}

HC_FUNCTION float hc_expf(float x) {
  double inside = x < 90.0f ? x : 90.0f;
  inside = inside > -110.0 ? inside : -110.0;
  return x != x ? HC_NANF : (float)hc_exp_short(inside);
}

// log(1 + f) = f + f^2 p(f), error 2^-33.
HC_FUNCTION float hc_logf(float x) {
  hc_scaled scaled = hc_split(x, 0x1p52 + 1023);
  double f = scaled.mantissa - 1.0;
  double p = hc_fma(f, -0x1.eb0b7f238be57p-5, 0x1.b761420457b99p-4);
  p = hc_fma(f, p, -0x1.bd416842f54f1p-4);
  p = hc_fma(f, p, 0x1.c36c6d54649e3p-4);
  p = hc_fma(f, p, -0x1.fc6bfeb6d2ec6p-4);
  p = hc_fma(f, p, 0x1.2492344b8d207p-3);
  p = hc_fma(f, p, -0x1.5568872a9b2eap-3);
  p = hc_fma(f, p, 0x1.999a1b09e7385p-3);
  p = hc_fma(f, p, -0x1.ffffacef61f66p-3);
  p = hc_fma(f, p, 0x1.5555546d4ead2p-2);
  p = hc_fma(f, p, -0x1.0000001869c6ep-1);
  float y = (float)hc_fma(scaled.exponent, 0x1.62e42fefa39efp-1, hc_fma(f * f, p, f));
  return x > 0.0f ? (x < HC_INFINITYF ? y : HC_INFINITYF) : x == 0.0f ? -HC_INFINITYF : HC_NANF;
}

HC_FUNCTION int hc_is_large_anglef(float x) { return !(x <= 0x1p40f) | !(x >= -0x1p40f); }

typedef struct {
  double rest;
  hc_uint64 quarter;
} hc_anglef;

// Reduce an angle 0 <= x <= 2^40. No float except 0 is closer than 2^-30 to a multiple of pi/2.
HC_FUNCTION hc_anglef hc_reduce_nearf(double x) {
  hc_anglef angle;
  double shifted = hc_fma(x, 0x1.45f306dc9c883p-1, HC_ROUNDER);
  double k = shifted - HC_ROUNDER;
  angle.rest = hc_fma(-k, 0x1.1a62633145c07p-54, hc_fma(-k, 0x1.921fb54442d18p+0, x));
  angle.quarter = hc_bits(shifted);
  return angle;
}

// Return sin(quarter * pi/2 + r). The errors of the polynomials are 2^-37 and 2^-42.
HC_FUNCTION double hc_sin_anglef(double r, hc_uint64 quarter) {
  double z = r * r;
  double p = hc_fma(z, 0x1.6ccf74a0be56cp-19, -0x1.a00f74b5d58adp-13);
  p = hc_fma(z, p, 0x1.1111085d6031bp-7);
  p = hc_fma(z, p, -0x1.5555554c5fd42p-3);
  double q = hc_fma(z, -0x1.241cb85715829p-22, 0x1.a010d5a26675dp-16);
  q = hc_fma(z, q, -0x1.6c16b81c2165ap-10);
  q = hc_fma(z, q, 0x1.5555554ecc969p-5);
  double y = (quarter & 1) ? hc_fma(z * z, q, hc_fma(z, -0.5, 1.0)) : hc_fma(z * r, p, r);
  return hc_from_bits(hc_bits(y) ^ ((quarter & 2) << 62));
}

HC_FUNCTION float hc_sinf_small(float x) {
  hc_uint64 sign = hc_bits((double)x) & HC_SIGN;
  hc_anglef angle = hc_reduce_nearf(hc_from_bits(hc_bits((double)x) ^ sign));
  return (float)hc_from_bits(hc_bits(hc_sin_anglef(angle.rest, angle.quarter)) ^ sign);
}
HC_FUNCTION float hc_cosf_small(float x) {
  hc_anglef angle = hc_reduce_nearf(hc_from_bits(hc_bits((double)x) & ~HC_SIGN));
  return (float)hc_sin_anglef(angle.rest, angle.quarter + 1);
}

HC_RARE float hc_sinf_large(float x) {
  hc_uint64 sign = hc_bits((double)x) & HC_SIGN;
  double size = hc_from_bits(hc_bits((double)x) ^ sign);
  if (!(size < HC_INFINITY)) return HC_NANF;
  hc_angle angle = hc_reduce_large(size);
  return (float)hc_from_bits(hc_bits(hc_sin_anglef(angle.high, angle.quarter)) ^ sign);
}
HC_RARE float hc_cosf_large(float x) {
  double size = hc_from_bits(hc_bits((double)x) & ~HC_SIGN);
  if (!(size < HC_INFINITY)) return HC_NANF;
  hc_angle angle = hc_reduce_large(size);
  return (float)hc_sin_anglef(angle.high, angle.quarter + 1);
}

HC_FUNCTION float hc_sinf(float x) { return hc_is_large_anglef(x) ? hc_sinf_large(x) : hc_sinf_small(x); }
HC_FUNCTION float hc_cosf(float x) { return hc_is_large_anglef(x) ? hc_cosf_large(x) : hc_cosf_small(x); }

// log(1 + f) = f + f^2 p(f), error 2^-46.
HC_FUNCTION float hc_powf(float x, float y) {
  double base = hc_from_bits(hc_bits((double)x) & ~HC_SIGN);
  hc_scaled scaled = hc_split(base, 0x1p52 + 1023);
  double f = scaled.mantissa - 1.0;
  double p = hc_fma(f, 0x1.2a12c8366fec0p-5, -0x1.33e4b64fb19c1p-4);
  p = hc_fma(f, p, 0x1.3f80359cbe918p-4);
  p = hc_fma(f, p, -0x1.24d6eada72f05p-4);
  p = hc_fma(f, p, 0x1.3425a09e6d1f8p-4);
  p = hc_fma(f, p, -0x1.5476a3401740dp-4);
  p = hc_fma(f, p, 0x1.74ddeb762f34fp-4);
  p = hc_fma(f, p, -0x1.99b05f8a2ca85p-4);
  p = hc_fma(f, p, 0x1.c717674f0cacap-4);
  p = hc_fma(f, p, -0x1.fffefe9948c7ep-4);
  p = hc_fma(f, p, 0x1.249256af737a8p-3);
  p = hc_fma(f, p, -0x1.555558081c05ep-3);
  p = hc_fma(f, p, 0x1.9999997617397p-3);
  p = hc_fma(f, p, -0x1.fffffff9ea1bap-3);
  p = hc_fma(f, p, 0x1.55555555662ecp-2);
  p = hc_fma(f, p, -0x1.0000000000eccp-1);
  double exponent = hc_fma(scaled.exponent, 0x1.62e42fefa39efp-1, hc_fma(f * f, p, f));
  exponent = base < HC_INFINITY ? exponent : HC_INFINITY;
  exponent = base == 0.0 ? -HC_INFINITY : exponent;
  double product = (double)y * exponent;
  double inside = product < 90.0 ? product : 90.0;
  inside = inside > -110.0 ? inside : -110.0;
  float power = (float)hc_pow_cases((double)x, (double)y, base, hc_exp_short(inside));
  return power != power ? HC_NANF : power;
}
