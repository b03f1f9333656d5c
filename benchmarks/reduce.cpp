// The loops that reduce.py measures: x += a p; r -= a q and, but in the first, the sum of r r; and the sum of
// one row, again and again.
#include <halocline/reduce.hpp>

namespace {

// The update of element i; v is the new r.
#define UPDATE(i)                                 \
  x[i] = __builtin_fma(a, p[i], x[i]);            \
  const double v = __builtin_fma(-a, q[i], r[i]); \
  r[i] = v

#define PREFETCH(begin)                                \
  for (int64_t i = begin; i < begin + piece; i += 8) { \
    __builtin_prefetch(x + i, 1);                      \
    __builtin_prefetch(p + i);                         \
    __builtin_prefetch(r + i, 1);                      \
    __builtin_prefetch(q + i);                         \
  }

typedef double* __restrict__ array;

constexpr int64_t piece = 32, ahead = 512;  // elements; STREAMING_PIECE and AHEAD of compile/passes/pieces.py

}  // namespace

extern "C" {

double update_alone(array x, array p, array r, array q, double a, int64_t n) {
  for (int64_t j = 0; j < n; j += HC_CHUNK) {
#pragma omp simd
    for (int64_t i = j; i < j + HC_CHUNK; ++i) {
      UPDATE(i);
    }
  }
  return 0;
}

double update_ordinary(array x, array p, array r, array q, double a, int64_t n) {
  double total = 0;
  for (int64_t j = 0; j < n; j += HC_CHUNK) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = j; i < j + HC_CHUNK; ++i) {
      UPDATE(i);
      sum += v * v;
    }
    total += sum;
  }
  return total;
}

double update_deposit(array x, array p, array r, array q, double a, int64_t n) {
  alignas(64) double row[HC_CHUNK];
  hc_accumulator sum;
  hc_reset(&sum, HC_SUM);
  for (int64_t j = 0; j < n; j += HC_CHUNK) {
#pragma omp simd
    for (int64_t i = j; i < j + HC_CHUNK; ++i) {
      UPDATE(i);
      row[i - j] = v * v;
    }
    hc_sum_deposit(&sum, row, HC_CHUNK);
  }
  return hc_result(&sum);
}

double update_split(array x, array p, array r, array q, double a, int64_t n) {
  alignas(64) double row[HC_CHUNK];
  hc_accumulator sum;
  hc_reset(&sum, HC_SUM);
  for (int64_t j = 0; j < n; j += HC_CHUNK) {
    const hc_splitter s = hc_sum_open(&sum);
    uint64_t high = 0, middle = 0, low = 0, outside = 0;
#pragma omp simd reduction(+ : high, middle, low) reduction(| : outside)
    for (int64_t i = j; i < j + HC_CHUNK; ++i) {
      UPDATE(i);
      row[i - j] = v * v;
      hc_sum_split(s, row[i - j], high, middle, low, outside);
    }
    hc_sum_close(&sum, s, high, middle, low, outside, row, HC_CHUNK);
  }
  return hc_result(&sum);
}

double update_ordinary_prefetched(array x, array p, array r, array q, double a, int64_t n) {
  double total = 0;
  for (int64_t j = 0; j < n; j += piece) {
    PREFETCH(j + ahead);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = j; i < j + piece; ++i) {
      UPDATE(i);
      sum += v * v;
    }
    total += sum;
  }
  return total;
}

// As it pays for vectors that exceed the cache: the loop waits for nothing, so that it computes meanwhile.
double update_prefetched(array x, array p, array r, array q, double a, int64_t n) {
  alignas(64) double row[piece];
  hc_accumulator sum;
  hc_reset(&sum, HC_SUM);
  for (int64_t j = 0; j < n; j += piece) {
    PREFETCH(j + ahead);
    const hc_splitter s = hc_sum_open(&sum);
    uint64_t high = 0, middle = 0, low = 0, outside = 0;
#pragma omp simd reduction(+ : high, middle, low) reduction(| : outside)
    for (int64_t i = j; i < j + piece; ++i) {
      UPDATE(i);
      row[i - j] = v * v;
      hc_sum_split(s, row[i - j], high, middle, low, outside);
    }
    hc_sum_close(&sum, s, high, middle, low, outside, row, piece);
  }
  return hc_result(&sum);
}

// Four vectors of partial sums: as fast as additions go.
double row_ordinary(const double* x, int64_t n, int64_t times) {
  double total = 0;
  for (int64_t t = 0; t < times; ++t) {
    hc_doubles sums[4] = {};
    for (int64_t i = 0; i < n; i += 4 * HC_LANES)
      for (int k = 0; k < 4; ++k) sums[k] += hc_load(x + i + k * HC_LANES);
    sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int lane = 0; lane < HC_LANES; ++lane) total += sums[0][lane];
    asm volatile("" ::"r"(x) : "memory");  // the next time is not this one
  }
  return total;
}

double row_deposit(const double* x, int64_t n, int64_t times) {
  hc_accumulator sum;
  hc_reset(&sum, HC_SUM);
  for (int64_t t = 0; t < times; ++t) {
    hc_sum_deposit(&sum, x, n);
    asm volatile("" ::"r"(x) : "memory");
  }
  return hc_result(&sum);
}
}
