// Memory bandwidth of this machine.
#pragma once

#include <cstddef>

#include "storage/memory.hpp"

namespace halocline {

// Two arrays that threads read and write as streams. The pages are touched and the threads are started before
// any pass. The time of the passes is therefore only memory time, even if several processes measure at once.
class Streams {
 public:
  // Both arrays together have `bytes` bytes. Throws std::invalid_argument and OutOfMemory.
  Streams(int threads, size_t bytes);

  // Run a number of passes and return the bytes that were transferred between memory and processor.
  size_t triad(size_t passes);  // a += s * b: three streams
  size_t copy(size_t passes);   // a = b with streaming stores, which bypass the cache: two streams

 private:
  template <typename Work>
  void each_thread(Work&& work);  // work(a, b, n) on the share of each thread
  size_t moved(size_t streams, size_t passes) const;

  int threads_;
  size_t n_;  // elements per array
  Memory first_, second_;
};

// Return the bits of the widest vector registers.
int simd_width();

}  // namespace halocline
