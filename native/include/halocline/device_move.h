// Copies of boxes of cells on a device: between arrays with halos, and to and from message buffers.
#pragma once

// Copy one piece of fewer than 2^31 cells with all threads of a block. The function copies bits and does not
// interpret the values.
HC_FUNCTION void hc_move(const hc_piece p, HC_GLOBAL const char* from, HC_GLOBAL char* to) {
  const hc_uint32 rows = (hc_uint32)p.extent[1], row = (hc_uint32)p.extent[2];
  const hc_uint32 cells = (hc_uint32)p.extent[0] * rows * row, step = (hc_uint32)hc_block_threads();
  for (hc_uint32 n = (hc_uint32)hc_thread_number(); n < cells; n += step) {
    const hc_uint32 line = n / row;
    const hc_int64 i = line / rows, j = line % rows, k = n - line * row;
    const hc_int64 source = p.source.at + i * p.source.s0 + j * p.source.s1 + k;
    const hc_int64 target = p.target.at + i * p.target.s0 + j * p.target.s1 + k;
    if (p.itemsize == 8)
      ((HC_GLOBAL hc_uint64*)to)[target] = ((HC_GLOBAL const hc_uint64*)from)[source];
    else
      ((HC_GLOBAL hc_uint32*)to)[target] = ((HC_GLOBAL const hc_uint32*)from)[source];
  }
}
