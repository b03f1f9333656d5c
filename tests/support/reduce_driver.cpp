// Functions for native/test_reduce.py, compiled once per instruction set.
#include <halocline/reduce.hpp>

extern "C" {

int64_t accumulator_bytes() { return sizeof(hc_accumulator); }
int32_t accumulator_top(const hc_accumulator* a) { return a->top; }
void reset(hc_accumulator* a, int kind) { hc_reset(a, kind); }
void merge(hc_accumulator* into, const hc_accumulator* from) { hc_merge(into, from); }
double result(const hc_accumulator* a) { return hc_result(a); }
void count_add(hc_accumulator* a, int64_t amount) { hc_count_add(a, amount); }

void deposit(hc_accumulator* a, const double* x, int64_t n) {
  switch (a->kind) {
    case HC_SUM:
      return hc_sum_deposit(a, x, n);
    case HC_MIN:
      return hc_min_deposit(a, x, n);
    case HC_MAX:
      return hc_max_deposit(a, x, n);
    case HC_COUNT:
      return hc_count_deposit(a, x, n);
    case HC_VALUE:
      return hc_value_deposit(a, x, n);
  }
}

// Deposits products in a loop like that of a kernel. Returns true if they fit the existing bins.
bool deposit_products(hc_accumulator* a, const double* x, const double* y, int64_t n) {
  double row[HC_CHUNK];
  const hc_splitter s = hc_sum_open(a);
  uint64_t high = 0, middle = 0, low = 0, outside = 0;
#pragma omp simd reduction(+ : high, middle, low) reduction(| : outside)
  for (int64_t i = 0; i < n; ++i) {
    row[i] = x[i] * y[i];
    hc_sum_split(s, row[i], high, middle, low, outside);
  }
  hc_sum_close(a, s, high, middle, low, outside, row, n);
  return outside >> 39 == 0;
}
}
