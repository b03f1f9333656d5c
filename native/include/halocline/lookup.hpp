// Reading tables of numbers that generated code holds as constants. C, C++, CUDA and OpenCL C alike: see
// elementary.hpp.
#pragma once

#ifndef HC_FUNCTION
#include "halocline/host.h"
#endif

// Which of `count` entries stands at an index: truncated toward zero, the first below and the last beyond the
// ends; the last for NaN.
HC_FUNCTION hc_int32 hc_entry(double index, hc_int32 count) {
  double last = count - 1;
  double inside = index < last ? index : last;
  return (hc_int32)(inside > 0.0 ? inside : 0.0);
}
