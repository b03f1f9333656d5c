#include "storage/bandwidth.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "storage/clones.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace halocline {

namespace {

constexpr int64_t kBlock = 64;  // doubles; the share of each thread is a multiple of this number
// Offset in bytes of the second array within a page, relative to the first array. With equal offsets, a store
// to one page would delay loads from other pages (4K aliasing).
constexpr size_t kOffset = 2048;

// Not inlined, since the compiler might otherwise merge several passes.
HALOCLINE_CLONES void triad(double* a, const double* b, double s, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) a[i] += s * b[i];
}

// n is a multiple of kBlock, and both arrays begin at a cache line.
#if defined(__x86_64__)
[[gnu::target("avx512f")]] void stream_512(double* a, const double* b, int64_t n) {
  for (int64_t i = 0; i < n; i += 8) _mm512_stream_pd(a + i, _mm512_load_pd(b + i));
}
[[gnu::target("avx")]] void stream_256(double* a, const double* b, int64_t n) {
  for (int64_t i = 0; i < n; i += 4) _mm256_stream_pd(a + i, _mm256_load_pd(b + i));
}
[[gnu::noinline]] void streaming_copy(double* a, const double* b, int64_t n) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) {
    stream_512(a, b, n);
  } else if (__builtin_cpu_supports("avx")) {
    stream_256(a, b, n);
  } else {
    for (int64_t i = 0; i < n; i += 2) _mm_stream_pd(a + i, _mm_load_pd(b + i));
  }
  _mm_sfence();
}
#else
[[gnu::noinline]] void streaming_copy(double* a, const double* b, int64_t n) { std::copy(b, b + n, a); }
#endif

size_t numbers_each(int threads, size_t bytes) {
  if (threads < 1) throw std::invalid_argument(std::to_string(threads) + " threads, expected at least 1");
  const size_t unit = static_cast<size_t>(kBlock) * static_cast<size_t>(threads);
  const size_t n = std::max<size_t>(1, bytes / 2 / sizeof(double) / unit) * unit;
  if (const size_t required = 2 * n * sizeof(double), available = available_to_process();
      required > available) {
    throw OutOfMemory("measuring bandwidth", required, available);
  }
  return n;
}

}  // namespace

Streams::Streams(int threads, size_t bytes)
    : threads_(threads),
      n_(numbers_each(threads, bytes)),
      first_(n_ * sizeof(double)),
      second_(n_ * sizeof(double) + kOffset) {
  each_thread([](double* a, double* b, int64_t n) {
    std::fill(a, a + n, 0.0);
    std::fill(b, b + n, 1.0);
  });
}

template <typename Work>
void Streams::each_thread(Work&& work) {
  auto* const a = reinterpret_cast<double*>(first_.data());
  auto* const b = reinterpret_cast<double*>(second_.data() + kOffset);
#pragma omp parallel num_threads(threads_)
  {
    const auto n = static_cast<int64_t>(n_);
    const auto share = n / omp_get_num_threads() / kBlock * kBlock;
    const int64_t begin = share * omp_get_thread_num();
    const int64_t end = omp_get_thread_num() + 1 == omp_get_num_threads() ? n : begin + share;
    work(a + begin, b + begin, end - begin);
  }
}

// Threads do not wait for each other between passes. Otherwise, two threads that temporarily share a core
// would wait for a time slice in each pass.
size_t Streams::triad(size_t passes) {
  each_thread([passes](double* a, const double* b, int64_t n) {
    for (size_t pass = 0; pass < passes; ++pass) halocline::triad(a, b, 1e-3, n);
  });
  return moved(3, passes);
}

size_t Streams::copy(size_t passes) {
  each_thread([passes](double* a, const double* b, int64_t n) {
    for (size_t pass = 0; pass < passes; ++pass) streaming_copy(a, b, n);
  });
  return moved(2, passes);
}

size_t Streams::moved(size_t streams, size_t passes) const { return streams * n_ * sizeof(double) * passes; }

int simd_width() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return 512;
  if (__builtin_cpu_supports("avx2")) return 256;
#endif
  return 128;
}

}  // namespace halocline
