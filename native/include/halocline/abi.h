// The contract between generated kernels and the engine: plain C data, nothing else.
// Arrays always have three axes; a grid of fewer axes has leading axes of one cell.
// Axis 2 is contiguous in memory.
#pragma once

#include <stdint.h>

struct hc_accumulator;  // accumulator.h

// A box of cells in a subdomain's own indices: cell (0, 0, 0) is its first interior cell, halo
// cells have negative indices or indices beyond its shape. `top[a]` is 1 where the box ends at the
// upper wall of a non-periodic axis: points staggered along that axis have one more index there.
struct hc_box {
  int64_t lo[3];
  int64_t hi[3];
  int64_t top[3];
};

struct hc_arguments {
  void* const* fields;         // per operand: address of cell (0, 0, 0)
  const int64_t* strides;      // per operand two: elements between neighbours on axes 0 and 1
  const double* scalars;       // every scalar and parameter of the program
  const int64_t* origin;       // global index of cell (0, 0, 0)
  const int64_t* shape;        // global shape of the grid
  hc_accumulator* reductions;  // per reduction of the sweep: the calling thread's accumulator
  void* scratch;               // the calling thread's scratch memory, 64-byte aligned
};

// extern "C" functions of a generated library
typedef void (*hc_kernel)(const hc_arguments*, const hc_box*);
typedef void (*hc_scalars)(double* scalars);         // a run of scalar statements
typedef int (*hc_condition)(const double* scalars);  // 1 where the condition holds
