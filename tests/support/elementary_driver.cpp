// Loops over the elementary functions of generated code. The text is valid C and C++.
#include "halocline/elementary.hpp"

#ifdef __cplusplus
#define EXPORT extern "C"
#else
#define EXPORT
#endif

#define ONE(name, type)                                                           \
  EXPORT void loop_##name(long n, const type* __restrict x, type* __restrict y) { \
    _Pragma("omp simd") for (long i = 0; i < n; ++i) y[i] = hc_##name(x[i]);      \
  }
#define TWO(name, type)                                                                                     \
  EXPORT void loop_##name(long n, const type* __restrict x, const type* __restrict y, type* __restrict z) { \
    _Pragma("omp simd") for (long i = 0; i < n; ++i) z[i] = hc_##name(x[i], y[i]);                          \
  }
#define SCALAR(name, type)                                                        \
  EXPORT void loop_##name(long n, const type* __restrict x, type* __restrict y) { \
    for (long i = 0; i < n; ++i) y[i] = hc_##name(x[i]);                          \
  }
#define ANY(name, type)                                                                       \
  EXPORT int loop_##name(long n, const type* x) {                                             \
    int any = 0;                                                                              \
    _Pragma("omp simd reduction(|:any)") for (long i = 0; i < n; ++i) any |= hc_##name(x[i]); \
    return any;                                                                               \
  }

// These loops must become vector code.
ONE(exp, double)
ONE(log, double)
ONE(sin_small, double)
ONE(cos_small, double)
TWO(pow, double)
ONE(abs, double)
ONE(sign, double)
TWO(min, double)
TWO(max, double)
ANY(is_large_angle, double)
ONE(expf, float)
ONE(logf, float)
ONE(sinf_small, float)
ONE(cosf_small, float)
TWO(powf, float)
ONE(absf, float)
ONE(signf, float)
TWO(minf, float)
TWO(maxf, float)
ANY(is_large_anglef, float)

// These functions accept any argument and stay scalar.
SCALAR(sin, double)
SCALAR(cos, double)
SCALAR(sinf, float)
SCALAR(cosf, float)
