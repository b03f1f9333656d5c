// What the memory of this machine can do.
#pragma once

#include <cstddef>

namespace halocline {

// GB/s of a += s * b over two arrays of `bytes` together, counted as three streams: the best of several
// repetitions. Throws std::invalid_argument and OutOfMemory.
double triad_bandwidth(int threads, size_t bytes);
// GB/s of a = b with stores that bypass the cache, counted as two streams.
double copy_bandwidth(int threads, size_t bytes);
// Bits of the widest vector registers.
int simd_width();

}  // namespace halocline
