// Kernels that the tests of the engine load as a library.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "halocline/abi.h"
#include "halocline/reduce.hpp"

namespace {

double& at(const hc_arguments* a, int n, int64_t i, int64_t j, int64_t k) {
  return static_cast<double*>(a->fields[n])[i * a->strides[2 * n] + j * a->strides[2 * n + 1] + k];
}

template <typename F>
void each_cell(const hc_box* b, F&& f) {
  for (int64_t i = b->lo[0]; i < b->hi[0]; ++i) {
    for (int64_t j = b->lo[1]; j < b->hi[1]; ++j) {
      for (int64_t k = b->lo[2]; k < b->hi[2]; ++k) f(i, j, k);
    }
  }
}

void pause_a_little(const hc_box* b) {
  std::this_thread::sleep_for(std::chrono::microseconds((b->lo[1] * 7 + b->lo[2] * 3) % 50));
}

}  // namespace

extern "C" {

// Set each cell of the first operand to a weighted sum over 27 cells of the second operand, modulo 1021. The
// reductions are the sum and the maximum of the first operand over the grid.
void shift(const hc_arguments* a, const hc_box* b) {
  pause_a_little(b);
  each_cell(b, [&](int64_t i, int64_t j, int64_t k) {
    double sum = 0, weight = 3;
    for (int x = -1; x <= 1; ++x) {
      for (int y = -1; y <= 1; ++y) {
        for (int z = -1; z <= 1; ++z) {
          sum += weight * at(a, 1, i + x, j + y, k + z);
          weight += 2;
        }
      }
    }
    double& result = at(a, 0, i, j, k);
    result = std::fmod(sum, 1021);
    hc_sum_deposit(&a->reductions[0], &result, 1);
    hc_max_deposit(&a->reductions[1], &result, 1);
  });
}

// Fill the scratch memory, then copy its values to the field.
void through_scratch(const hc_arguments* a, const hc_box* b) {
  auto* scratch = static_cast<double*>(a->scratch);
  for (int n = 0; n < 512; ++n) scratch[n] = static_cast<double>(b->lo[1] * 100 + b->lo[2]);
  pause_a_little(b);
  each_cell(b, [&](int64_t i, int64_t j, int64_t k) { at(a, 0, i, j, k) = scratch[(i + j + k) % 512]; });
}

// Copy the inner neighbours to the halo layer at the lower end of axis 2 or 1.
void ghost_2(const hc_arguments* a, const hc_box* b) {
  each_cell(b, [&](int64_t i, int64_t j, int64_t k) { at(a, 0, i, j, k) = at(a, 0, i, j, k + 1); });
}
void ghost_1(const hc_arguments* a, const hc_box* b) {
  each_cell(b, [&](int64_t i, int64_t j, int64_t k) { at(a, 0, i, j, k) = at(a, 0, i, j + 1, k); });
}

// Kernel with an intentional error: it also writes cells of the next patch.
void race(const hc_arguments* a, const hc_box* b) {
  for (int64_t j = b->lo[1]; j < b->hi[1] + 1; ++j) at(a, 0, 0, j, 0) += 1;
  pause_a_little(b);
}

void refuse(const hc_arguments*, const hc_box* b) {
  if (b->lo[1] == 0) throw std::runtime_error("no");
}

void count(double* scalars) { scalars[4] += 1; }
int ninth_pass(const double* scalars) { return scalars[0] == 9 ? 1 : 0; }
int never(const double*) { return 0; }
}
