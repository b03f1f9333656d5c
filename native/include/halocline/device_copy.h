// Kernel that copies a box of elements between two arrays with different strides.
#pragma once

// Copy planes x rows x row elements. The last axis of the target is contiguous, and that of the source has
// the stride `step`. A launch may have any number of thread blocks: dimension 0 runs along the last axis,
// dimension 1 along the rows.
HC_KERNEL hc_copy_strided(HC_GLOBAL char* HC_RESTRICT to, const hc_layout target,
                          HC_GLOBAL const char* HC_RESTRICT from, const hc_layout source, const hc_int64 step,
                          const hc_int64 planes, const hc_int64 rows, const hc_int64 row,
                          const hc_int64 itemsize) {
  for (hc_int64 n = hc_block(1) * hc_block_size(1) + hc_thread(1); n < planes * rows;
       n += hc_blocks(1) * hc_block_size(1)) {
    const hc_int64 begin = target.at + n / rows * target.s0 + n % rows * target.s1;
    const hc_int64 first = source.at + n / rows * source.s0 + n % rows * source.s1;
    for (hc_int64 k = hc_block(0) * hc_block_size(0) + hc_thread(0); k < row;
         k += hc_blocks(0) * hc_block_size(0)) {
      if (itemsize == 8)
        ((HC_GLOBAL hc_uint64*)to)[begin + k] = ((HC_GLOBAL const hc_uint64*)from)[first + k * step];
      else
        ((HC_GLOBAL hc_uint32*)to)[begin + k] = ((HC_GLOBAL const hc_uint32*)from)[first + k * step];
    }
  }
}
