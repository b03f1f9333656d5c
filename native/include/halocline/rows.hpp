// Operations on rows of the contiguous axis, for generated kernels.
#pragma once

#include <stddef.h>
#include <stdint.h>

static inline int64_t hc_min_index(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t hc_max_index(int64_t a, int64_t b) { return a > b ? a : b; }

// Return the index of cell `index` on a periodic axis of `count` cells; `index` may be beyond the ends.
static inline double hc_around(int64_t index, int64_t count) {
  const double i = (double)(int32_t)index, n = (double)(int32_t)count;
  return i - n * __builtin_floor(i / n);
}

// Fill the halo at the ends of a periodic row of `around` cells that wraps onto itself. The kernel reads the
// row anyway, so the fill costs almost nothing; a separate pass would access each cache line of the ends
// twice. The planner makes the patches at the ends of such rows at least as long as the filled halo.
// Therefore no other patch writes the same cells at the same time.
template <class T>
static inline void hc_wrap_row(const T* interior, int64_t lower, int64_t upper, int64_t around,
                               const hc_box* box) {
  T* row = (T*)interior;
  if (box->lo[2] < lower)
    for (int64_t k = 1; k <= lower; ++k) row[-k] = row[around - k];
  if (box->hi[2] + upper > around)
    for (int64_t k = 0; k < upper; ++k) row[around + k] = row[k];
}

// Return the number of elements in a row of scratch memory: whole lines of 64 bytes.
static inline int64_t hc_padded_row(int64_t count, int64_t item) {
  const int64_t line = 64 / item;
  return (count + line - 1) / line * line;
}

// Vector of the widest store of the machine. The intrinsics header would double the compile time of a kernel.
// The type may alias other types, since rows of float are also copied by this type.
#if defined(__AVX512F__)
typedef double hc_line __attribute__((vector_size(64), may_alias));
#elif defined(__AVX__)
typedef double hc_line __attribute__((vector_size(32), may_alias));
#else
typedef double hc_line __attribute__((vector_size(16), may_alias));
#endif

// Return the smallest number of elements, at least `count`, that fills whole vectors of the machine.
static inline int64_t hc_whole(int64_t count, int64_t item) {
  const int64_t lanes = (int64_t)sizeof(hc_line) / item;
  return (count + lanes - 1) & -lanes;
}

static inline void hc_stream_store(hc_line* to, hc_line value) {
#if defined(__clang__)
  __builtin_nontemporal_store(value, to);
#elif defined(__AVX512F__)
  __builtin_ia32_movntpd512((double*)to, value);
#elif defined(__AVX__)
  __builtin_ia32_movntpd256((double*)to, value);
#elif defined(__SSE2__)
  __builtin_ia32_movntpd((double*)to, value);
#else
  *to = value;
#endif
}

// Copy a multiple of 64 bytes with streaming stores, which bypass the cache and do not read the destination.
// Both addresses are aligned to 64 bytes.
static inline void hc_stream_lines(char* to, const char* from, int64_t bytes) {
  for (int64_t b = 0; b < bytes; b += (int64_t)sizeof(hc_line))
    hc_stream_store((hc_line*)(to + b), *(const hc_line*)(from + b));
}

static inline void hc_stream_bytes(char* to, const char* from, int64_t bytes) {
  // Rows begin at a cache line, so `to` is misaligned only if a patch begins inside a line.
  const int64_t lead = (int64_t)(-(uintptr_t)to & 63);
  const bool together = (((uintptr_t)to ^ (uintptr_t)from) & 63) == 0;
  if (!together || lead >= bytes) {
    __builtin_memcpy(to, from, (size_t)bytes);
    return;
  }
  const int64_t lines = (bytes - lead) / 64 * 64;
  __builtin_memcpy(to, from, (size_t)lead);
  hc_stream_lines(to + lead, from + lead, lines);
  __builtin_memcpy(to + lead + lines, from + lead + lines, (size_t)(bytes - lead - lines));
}

static inline void hc_stream_row(double* to, const double* from, int64_t count) {
  hc_stream_bytes((char*)to, (const char*)from, count * 8);
}

static inline void hc_stream_row(float* to, const float* from, int64_t count) {
  hc_stream_bytes((char*)to, (const char*)from, count * 4);
}

// Complete all streaming stores. They are weakly ordered: other threads and ranks may read the rows only
// after this fence.
static inline void hc_stream_fence(void) {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}
