// By-value arguments of kernels that run on a device. The same bytes in C++, CUDA C++ and OpenCL C: nothing
// but 64-bit integers. A subdomain's own indices are those of abi.h.
#pragma once

#ifndef HC_FUNCTION
#include "halocline/host.h"
#endif

// Where a launch runs.
typedef struct {
  hc_int64 lo[3], hi[3];                      // the cells to run over
  hc_int64 box_lo[3], box_hi[3], box_top[3];  // the patch that they belong to: hc_box
  hc_int64 origin[3], shape[3];               // global index of cell (0, 0, 0), global shape of the grid
  hc_int64 group0;                            // the number of the first group's partial result
  hc_int64 stride;                            // from a reduction's partial results to those of the next
  hc_int64 march;                             // cells of each thread along the slowest axis
} hc_frame;

// Where a field's cells are: (i, j, k) at element at + i * s0 + j * s1 + k of its buffer.
typedef struct {
  hc_int64 at, s0, s1;
} hc_layout;

// Cells that are copied from one array to another; of buffers of messages `s0` and `s1` are those of the box.
typedef struct {
  hc_int64 from, to;         // which of the kernel's arrays
  hc_layout source, target;  // `at`: the first of the cells there
  hc_int64 extent[3];
  hc_int64 itemsize;  // bytes
} hc_piece;

// How far a run is that the host does not wait for: kernels that follow the end of a loop, or of the run,
// have been queued all the same, and do nothing.
typedef struct {
  hc_int64 skip;   // 0: kernels run; else why they do not
  hc_int64 notes;  // how many notes the loop has made
} hc_control;

// Parameters of the test of a loop: before its first pass, and after each.
typedef struct {
  hc_int64 number;              // of the loop, in program order
  hc_int64 begins;              // 1 before the first pass: the count begins at 0
  hc_int64 count, limit;        // scalars; limit -1: none
  hc_int64 condition, reached;  // what `skip` becomes where the condition holds, or the limit is reached
  hc_int64 mispredicted;        // 0, or what `skip` becomes where the loop does not end, and only there
  hc_int64 scalars, rows;       // of notes: scalars of each, and how many there is room for
} hc_loop;
