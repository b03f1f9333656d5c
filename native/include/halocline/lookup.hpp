// Access to tables of numbers that generated code holds as constants. The text is C, C++, CUDA and OpenCL C
// alike: see elementary.hpp.
#pragma once

#ifndef HC_FUNCTION
#include "halocline/host.h"
#endif

// Return the entry number for an index: truncated toward zero and limited to 0, ... count - 1. NaN gives the
// last entry.
HC_FUNCTION hc_int32 hc_entry(double index, hc_int32 count) {
  double last = count - 1;
  double inside = index < last ? index : last;
  return (hc_int32)(inside > 0.0 ? inside : 0.0);
}
