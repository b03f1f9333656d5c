// Test of the reductions with sanitizers. It covers every path of reduce.hpp, with unaligned rows of all
// lengths that end inside a vector. The values of the results are tested in tests/native/test_reduce.py.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "halocline/reduce.hpp"

namespace {

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
    default:
      return hc_value_deposit(a, x, n);
  }
}

// Return true if the reduction of a row equals the merged reductions of its elements, from the last on.
bool agrees(int kind, const double* x, int64_t n) {
  hc_accumulator whole, parts;
  hc_reset(&whole, kind);
  hc_reset(&parts, kind);
  deposit(&whole, x, n);
  for (int64_t i = n - 1; i >= 0; --i) {
    hc_accumulator one;
    hc_reset(&one, kind);
    deposit(&one, x + i, 1);
    hc_merge(&parts, &one);
  }
  const double a = hc_result(&whole), b = hc_result(&parts);
  return memcmp(&whole, &parts, sizeof whole) == 0 && memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

int main() {
  std::mt19937_64 random(1);
  const double special[] = {0.0,    -0.0,    __builtin_inf(), -__builtin_inf(), __builtin_nan(""),
                            5e-324, 1.7e308, -1.7e308,        1e-310,           1e300,
                            -1e300};
  for (int round = 0; round < 2000; ++round) {
    const int64_t n = round < 40 ? round : static_cast<int64_t>(random() % 1200);
    std::vector<double> x(static_cast<size_t>(n) + 1);
    for (double& v : x) {
      const int exponent = round % 3 == 0 ? static_cast<int>(random() % 2098) - 1074 : 0;
      v = __builtin_ldexp(static_cast<double>(random()) * 0x1p-63 - 1, exponent);
      if (round % 5 == 0 && random() % 50 == 0) v = special[random() % (sizeof special / sizeof *special)];
    }
    for (int kind : {HC_SUM, HC_MIN, HC_MAX, HC_COUNT, HC_VALUE}) {
      const double* row = x.data() + round % 2;  // odd rounds: unaligned, and up to the last element
      if (!agrees(kind, row, n)) {
        std::printf("kind %d, round %d, %lld values: the row and its elements disagree\n", kind, round,
                    static_cast<long long>(n));
        return EXIT_FAILURE;
      }
    }
  }
  return EXIT_SUCCESS;
}
