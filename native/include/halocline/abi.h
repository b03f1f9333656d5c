// Interface between generated kernels and the engine, in plain C data. Arrays always have three axes. A grid
// of fewer axes has leading axes of one cell. Axis 2 is contiguous in memory.
#pragma once

#include <stdint.h>

struct hc_accumulator;  // accumulator.h

// A box of cells in the indices of its subdomain. Cell (0, 0, 0) is the first interior cell; halo cells have
// negative indices or indices beyond the shape. `top[a]` is 1 if the box ends at the upper wall of a
// non-periodic axis: points staggered along that axis have one more index there.
struct hc_box {
  int64_t lo[3];
  int64_t hi[3];
  int64_t top[3];
};

struct hc_arguments {
  void* const* fields;         // address of cell (0, 0, 0) of each operand
  const int64_t* strides;      // two per operand: elements between neighbours on axes 0 and 1
  const double* scalars;       // all scalars and parameters of the program
  const int64_t* origin;       // global index of cell (0, 0, 0)
  const int64_t* shape;        // global shape of the grid
  hc_accumulator* reductions;  // accumulators of the calling thread, one per reduction of the sweep
  void* scratch;               // scratch memory of the calling thread, 64-byte aligned
};

// Types of the extern "C" functions of a generated library.
typedef void (*hc_kernel)(const hc_arguments*, const hc_box*);
typedef void (*hc_scalars)(double* scalars);         // a sequence of scalar statements
typedef int (*hc_condition)(const double* scalars);  // 1 if the condition holds
