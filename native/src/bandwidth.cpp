#include "bandwidth.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "clock.hpp"
#include "storage.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace halocline {

namespace {

constexpr int64_t kBlock = 64;  // doubles: what a thread's share is a multiple of

void triad(double* a, const double* b, double s, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) a[i] += s * b[i];
}

// n is a multiple of kBlock, both arrays start cache lines.
void streaming_copy(double* a, const double* b, int64_t n) {
#if defined(__AVX512F__)
  for (int64_t i = 0; i < n; i += 8) _mm512_stream_pd(a + i, _mm512_load_pd(b + i));
  _mm_sfence();
#elif defined(__AVX__)
  for (int64_t i = 0; i < n; i += 4) _mm256_stream_pd(a + i, _mm256_load_pd(b + i));
  _mm_sfence();
#elif defined(__x86_64__)
  for (int64_t i = 0; i < n; i += 2) _mm_stream_pd(a + i, _mm_load_pd(b + i));
  _mm_sfence();
#else
  std::copy(b, b + n, a);
#endif
}

template <typename Pass>
double best_bandwidth(int threads, size_t bytes, double streams, Pass&& pass) {
  constexpr int kRepetitions = 7;
  if (threads < 1) throw std::invalid_argument(std::to_string(threads) + " threads, expected at least 1");
  const auto block = static_cast<size_t>(kBlock);
  const size_t unit = block * static_cast<size_t>(threads);
  const size_t n = std::max<size_t>(1, bytes / 2 / sizeof(double) / unit) * unit;
  if (const size_t needed = 2 * n * sizeof(double), available = available_memory(); needed > available) {
    throw OutOfMemory("measuring bandwidth", needed, available);
  }
  // The second array starts at another offset within a page.
  const Memory first(n * sizeof(double)), second(n * sizeof(double) + 2048);
  auto* const a = reinterpret_cast<double*>(first.data());
  auto* const b = reinterpret_cast<double*>(second.data() + 2048);
  double best = 0;
  for (int repetition = -1; repetition < kRepetitions; ++repetition) {  // the first touches the pages
    const double begun = now();
#pragma omp parallel num_threads(threads)
    {
      const auto share = static_cast<int64_t>(n) / omp_get_num_threads() / kBlock * kBlock;
      const int64_t begin = share * omp_get_thread_num();
      const int64_t end =
          omp_get_thread_num() + 1 == omp_get_num_threads() ? static_cast<int64_t>(n) : begin + share;
      if (repetition < 0) std::fill(b + begin, b + end, 1.0);
      pass(a + begin, b + begin, end - begin);
    }
    const double seconds = now() - begun;
    if (repetition >= 0)
      best = std::max(best, streams * static_cast<double>(n) * sizeof(double) / seconds * 1e-9);
  }
  return best;
}

}  // namespace

double triad_bandwidth(int threads, size_t bytes) {
  return best_bandwidth(threads, bytes, 3,
                        [](double* a, const double* b, int64_t n) { triad(a, b, 1e-3, n); });
}

double copy_bandwidth(int threads, size_t bytes) { return best_bandwidth(threads, bytes, 2, streaming_copy); }

int simd_width() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 512;
  if (__builtin_cpu_supports("avx2")) return 256;
#endif
  return 128;
}

}  // namespace halocline
