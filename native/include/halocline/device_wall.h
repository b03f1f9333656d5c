// Ghost layers beyond a wall, for kernels that fill the ghosts of several walls.
#pragma once

#include "halocline/frame.h"

// Return the frame of a launch with the cells of one ghost layer. Layer 0 of `wall` is next to the interior,
// which lies at the upper end of the axis if `side` is -1. A layer beyond the cells of `wall` has no cells.
HC_FUNCTION hc_frame hc_wall_layer(hc_frame f, hc_wall wall, int axis, int side, int layer) {
  const hc_int64 at = side < 0 ? wall.hi[axis] - 1 - layer : wall.lo[axis] + layer;
  for (int a = 0; a < 3; ++a) {
    f.lo[a] = wall.lo[a];
    f.hi[a] = wall.hi[a];
  }
  f.lo[axis] = hc_max_index(at, wall.lo[axis]);
  f.hi[axis] = hc_min_index(at + 1, wall.hi[axis]);
  return f;
}

// Return the number of a thread among those of a wall. The thread blocks of the wall begin with `first`.
HC_FUNCTION hc_int64 hc_wall_thread(hc_int64 first) {
  return (hc_block(0) - first) * hc_block_size(0) + hc_thread(0);
}
