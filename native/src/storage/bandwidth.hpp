// What the memory of this machine can do.
#pragma once

#include <cstddef>

#include "storage/memory.hpp"

namespace halocline {

// Two arrays that threads sweep over. Their pages are touched, and the threads started, before any pass: who
// times passes, of one process or of many at once, times memory alone.
class Streams {
 public:
  // Both arrays together have `bytes`. Throws std::invalid_argument and OutOfMemory.
  Streams(int threads, size_t bytes);

  // Each makes so many passes, and returns the bytes that crossed memory.
  size_t triad(size_t passes);  // a += s * b: three streams
  size_t copy(size_t passes);   // a = b with stores that bypass the cache: two streams

 private:
  template <typename Work>
  void each_thread(Work&& work);  // work(a, b, n) on each thread's share
  size_t moved(size_t streams, size_t passes) const;

  int threads_;
  size_t n_;  // numbers in each array
  Memory first_, second_;
};

// Bits of the widest vector registers.
int simd_width();

}  // namespace halocline
