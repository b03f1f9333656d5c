// Kernels that search device fields for non-finite values and that read single cells.
#pragma once

// Set flags[number] to 1 if a box contains a non-finite value. The box has planes x rows x row cells and
// begins at first.at. A launch may have any number of thread blocks: dimension 0 runs along the contiguous
// axis, dimension 1 along the rows.
HC_KERNEL hc_find_nonfinite(HC_GLOBAL const char* HC_RESTRICT values, const hc_layout first,
                            const hc_int64 planes, const hc_int64 rows, const hc_int64 row,
                            const hc_int64 itemsize, HC_GLOBAL hc_int64* HC_RESTRICT flags,
                            const hc_int64 number) {
  int bad = 0;
  for (hc_int64 n = hc_block(1) * hc_block_size(1) + hc_thread(1); n < planes * rows;
       n += hc_blocks(1) * hc_block_size(1)) {
    const hc_int64 start = first.at + n / rows * first.s0 + n % rows * first.s1;
    for (hc_int64 k = hc_block(0) * hc_block_size(0) + hc_thread(0); k < row;
         k += hc_blocks(0) * hc_block_size(0)) {
      if (itemsize == 8)
        bad |= (((HC_GLOBAL const hc_uint64*)values)[start + k] & 0x7fffffffffffffffu) >= 0x7ff0000000000000u;
      else
        bad |= (((HC_GLOBAL const hc_uint32*)values)[start + k] & 0x7fffffffu) >= 0x7f800000u;
    }
  }
  if (bad != 0) flags[number] = 1;
}

// Copy the elements values[numbers[0]], values[numbers[1]], ... to `elements`. A thread copies several
// elements if there are fewer threads than elements.
HC_KERNEL hc_read_cells(HC_GLOBAL const char* HC_RESTRICT values,
                        HC_GLOBAL const hc_int64* HC_RESTRICT numbers, const hc_int64 count,
                        const hc_int64 itemsize, HC_GLOBAL char* HC_RESTRICT elements) {
  for (hc_int64 n = hc_block(0) * hc_block_size(0) + hc_thread(0); n < count;
       n += hc_blocks(0) * hc_block_size(0)) {
    if (itemsize == 8)
      ((HC_GLOBAL hc_uint64*)elements)[n] = ((HC_GLOBAL const hc_uint64*)values)[numbers[n]];
    else
      ((HC_GLOBAL hc_uint32*)elements)[n] = ((HC_GLOBAL const hc_uint32*)values)[numbers[n]];
  }
}
