// Arguments of device kernels that are passed by value. They contain only 64-bit integers, so their bytes are
// the same in C++, CUDA C++ and OpenCL C. The indices of a subdomain are those of abi.h.
#pragma once

#ifndef HC_FUNCTION
#include "halocline/host.h"
#endif

// Cells of a launch and their position in the grid.
typedef struct {
  hc_int64 lo[3], hi[3];                      // cells of the launch
  hc_int64 box_lo[3], box_hi[3], box_top[3];  // patch that contains these cells: hc_box
  hc_int64 origin[3], shape[3];               // global index of cell (0, 0, 0), global shape of the grid
  hc_int64 first_block;                       // index of the partial result of the first thread block
  hc_int64 stride;                            // distance between partial results of consecutive reductions
  hc_int64 block_cells[3];                    // cells of each thread block along three axes
} hc_frame;

// Ghost layers beyond a wall that a launch computes: their cells, and the end of their thread blocks.
typedef struct {
  hc_int64 lo[3], hi[3];
  hc_int64 end_block;
} hc_wall;

// Layout of a field: cell (i, j, k) is element at + i * s0 + j * s1 + k of its buffer.
typedef struct {
  hc_int64 at, s0, s1;
} hc_layout;

// Layout of field `number` in a kernel, which has `argument` as an argument. A source may define this macro
// before this header, so that the layouts are literals (compile/targets/source.py). HC_RESIDENT is the
// minimum number of thread blocks that a multiprocessor holds. HC_RECOMPUTE(value) makes a compiler for CUDA
// compute expressions of a 64-bit value again for each plane. Kept from plane to plane, the distances to
// neighbours and the addresses of scratch arrays would need too many registers.
#ifdef HC_LAYOUT
#define HC_RESIDENT(blocks) blocks
#define HC_RECOMPUTE(value)
#else
#define HC_LAYOUT(number, argument) argument
#define HC_RESIDENT(blocks) 1  // addresses need the registers
#ifdef __CUDA_ARCH__
#define HC_RECOMPUTE(value) asm volatile("" : "+l"(value))
#else
#define HC_RECOMPUTE(value)
#endif
#endif

// Extent of a patch along an axis, or an upper bound. Scratch arrays have the strides of such a patch.
#ifndef HC_EXTENT
#define HC_EXTENT(axis) (f.box_hi[axis] - f.box_lo[axis])
#endif

// Cells to copy between two arrays. For message buffers, `s0` and `s1` are the strides of the box.
typedef struct {
  hc_int64 from, to;         // indices of the arrays of the kernel
  hc_layout source, target;  // `at`: first cell in the array
  hc_int64 extent[3];
  hc_int64 itemsize;  // bytes
} hc_piece;

// State of an asynchronous run. The host queues kernels before it knows that a loop or the run has ended. The
// kernels that follow this end in the queue do nothing.
typedef struct {
  hc_int64 skip;   // 0: kernels run; otherwise the reason why they do not
  hc_int64 notes;  // number of notes that the loop has written
} hc_control;

// Parameters of the test of a loop, before its first pass and after each pass.
typedef struct {
  hc_int64 number;              // number of the loop, in program order
  hc_int64 begins;              // 1 before the first pass: the count begins at 0
  hc_int64 count, limit;        // indices of scalars; a limit of -1 means no limit
  hc_int64 condition, reached;  // values of `skip` if the condition holds, or if the limit is reached
  hc_int64 mispredicted;        // 0, or the value of `skip` if the loop does not end
  hc_int64 scalars, rows;       // of notes: scalars per note; capacity in notes
} hc_loop;
