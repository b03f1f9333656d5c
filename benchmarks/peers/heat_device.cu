/* Hand-written kernels for benchmarks/gpu_heat.py: one forward Euler step of the heat equation on CELLS^3
   cells, with a star stencil of any radius. NVRTC compiles this text behind definitions, which
   benchmarks/heat_device.py writes:

     REAL, FMA          type of a cell, and its fused multiply-add
     CELLS, RADIUS      cells along each axis, layers of halo
     WEIGHTS, CENTRE    weights of the neighbours at distances 1 to RADIUS, weight of the cell
     VARIANT            NAIVE, QUEUE, ASYNC or TMA
     BLOCK_X, BLOCK_Y   shape of a thread block
     ROWS, VECTOR       cells per thread along y and along x
     STREAMED, AHEAD    planes that a thread block computes, planes that it loads ahead
     DYNAMIC            if defined, the launch sets the size of the shared memory
     PLAIN_COPIES       if defined, plain loops replace the instructions of cp.async and TMA

   All variants add in the same order, so that their results have the same bits. */

#define NAIVE 1
#define QUEUE 2
#define ASYNC 3
#define TMA 4

constexpr int BYTES_16 = 16 / sizeof(REAL);  // cells in 16 bytes
constexpr int TILE_X = BLOCK_X * VECTOR, TILE_Y = BLOCK_Y * ROWS;

/* Layout of a field. Rows begin at multiples of 128 bytes. The padding behind the cells contains all tiles,
   so that only stores need a check of bounds. */
constexpr int PAD = 128 / sizeof(REAL);
constexpr int PITCH = PAD + (CELLS + 127) / 128 * 128 + PAD;
constexpr int HEIGHT = RADIUS + (CELLS + 31) / 32 * 32 + RADIUS;
constexpr int DEPTH = RADIUS + CELLS + RADIUS;
constexpr long long PLANE = (long long)PITCH * HEIGHT;
constexpr long long FIRST = RADIUS * PLANE + RADIUS * PITCH + PAD;  // number of the first cell
static_assert(128 % TILE_X == 0 && 32 % TILE_Y == 0, "the padding does not contain all tiles");
static_assert(RADIUS <= PAD, "the padding does not contain the halo");

__device__ __forceinline__ bool inside(int x, int y) {
  return (CELLS % TILE_X == 0 || x < CELLS) && (CELLS % TILE_Y == 0 || y < CELLS);
}

// Returns the next value of a cell. The sums are those of the six neighbours at each distance.
__device__ __forceinline__ REAL update(REAL cell, const REAL* sums, REAL factor) {
  constexpr REAL weights[RADIUS] = {WEIGHTS};
  REAL laplacian = REAL(CENTRE) * cell;
#pragma unroll
  for (int r = 0; r < RADIUS; ++r) laplacian = FMA(weights[r], sums[r], laplacian);
  return FMA(factor, laplacian, cell);
}

// -- auxiliary kernels -------------------------------------------------------------------------------

// Fills the halo of periodic sides; blockIdx.z selects the axis and the layer. A star stencil reads no
// corners.
extern "C" __global__ void __launch_bounds__(256) fill_halo(REAL* field) {
  const int i = blockIdx.x * 64 + threadIdx.x, j = blockIdx.y * 4 + threadIdx.y;
  const int axis = blockIdx.z / RADIUS, layer = blockIdx.z % RADIUS;
  if (i >= CELLS || j >= CELLS) return;
  const long long stride = axis == 0 ? 1 : axis == 1 ? PITCH : PLANE;
  REAL* line =
      field + FIRST + (axis == 2 ? j * (long long)PITCH : j * PLANE) + (axis == 0 ? i * (long long)PITCH : i);
  line[-(1 + layer) * stride] = line[(CELLS - 1 - layer) * stride];
  line[(CELLS + layer) * stride] = line[layer * stride];
}

// Sets all cells to numbers in [0, 1) that look random.
extern "C" __global__ void __launch_bounds__(256) scatter(REAL* field) {
  const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z;
  if (x >= CELLS || y >= CELLS) return;
  unsigned bits = (unsigned)((z * (long long)CELLS + y) * CELLS + x);
  for (int turn = 0; turn < 3; ++turn) bits = (bits ^ bits >> 15) * 747796405u + 2891336453u;
  field[FIRST + z * PLANE + y * PITCH + x] = REAL(bits >> 8) / REAL(16777216);
}

// Counts the cells in which two fields differ. A NaN differs from everything.
extern "C" __global__ void __launch_bounds__(256)
    compare(const REAL* a, const REAL* b, unsigned long long* count) {
  const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z;
  if (x >= CELLS || y >= CELLS) return;
  const long long cell = FIRST + z * PLANE + y * PITCH + x;
  if (!(a[cell] == b[cell])) atomicAdd(count, 1ull);
}

// -- one thread per cell -----------------------------------------------------------------------------

#if VARIANT == NAIVE
extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y)
    heat_step(const REAL* __restrict__ field, REAL* __restrict__ next, REAL factor) {
  const int x = blockIdx.x * BLOCK_X + threadIdx.x, y = blockIdx.y * BLOCK_Y + threadIdx.y, z = blockIdx.z;
  if (!inside(x, y)) return;
  const long long cell = FIRST + z * PLANE + y * PITCH + x;
  const REAL* at = field + cell;
  REAL sums[RADIUS];
#pragma unroll
  for (int r = 1; r <= RADIUS; ++r) {
    sums[r - 1] = (at[-r] + at[r]) + (at[-r * PITCH] + at[r * PITCH]) + (at[-r * PLANE] + at[r * PLANE]);
  }
  next[cell] = update(*at, sums, factor);
}
#endif

// -- 2.5D streaming: a register queue along z, and L1 for the other neighbours -----------------------

#if VARIANT == QUEUE
struct alignas(sizeof(REAL) * VECTOR) Pack {
  REAL cells[VECTOR];
};

__device__ __forceinline__ Pack load(const REAL* at) { return *reinterpret_cast<const Pack*>(at); }

extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y)
    heat_step(const REAL* __restrict__ field, REAL* __restrict__ next, REAL factor) {
  constexpr int SIDE = (RADIUS + VECTOR - 1) / VECTOR;  // packs on each side of a row that hold neighbours
  const int x = blockIdx.x * TILE_X + threadIdx.x * VECTOR, y = blockIdx.y * TILE_Y + threadIdx.y * ROWS;
  const int begin = blockIdx.z * STREAMED, end = min(begin + STREAMED, CELLS);
  const REAL* at = field + FIRST + begin * PLANE + y * PITCH + x;
  REAL* to = next + FIRST + begin * PLANE + y * PITCH + x;

  Pack queue[ROWS][2 * RADIUS + 1];  // planes z - RADIUS to z + RADIUS
#pragma unroll
  for (int row = 0; row < ROWS; ++row) {
#pragma unroll
    for (int d = 0; d < 2 * RADIUS; ++d) queue[row][d] = load(at + row * PITCH + (d - RADIUS) * PLANE);
  }
  for (int z = begin; z < end; ++z) {
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      queue[row][2 * RADIUS] = load(at + row * PITCH + RADIUS * PLANE);
    }
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      REAL line[(2 * SIDE + 1) * VECTOR];
#pragma unroll
      for (int n = 0; n <= 2 * SIDE; ++n) {
        const Pack pack = n == SIDE ? queue[row][RADIUS] : load(at + row * PITCH + (n - SIDE) * VECTOR);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) line[n * VECTOR + v] = pack.cells[v];
      }
      REAL sums[VECTOR][RADIUS];
#pragma unroll
      for (int r = 1; r <= RADIUS; ++r) {
        // rows of this thread are in its registers
        const Pack below = row >= r ? queue[row >= r ? row - r : 0][RADIUS] : load(at + (row - r) * PITCH);
        const Pack above =
            row + r < ROWS ? queue[row + r < ROWS ? row + r : 0][RADIUS] : load(at + (row + r) * PITCH);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) {
          sums[v][r - 1] = (line[SIDE * VECTOR + v - r] + line[SIDE * VECTOR + v + r]) +
                           (below.cells[v] + above.cells[v]) +
                           (queue[row][RADIUS - r].cells[v] + queue[row][RADIUS + r].cells[v]);
        }
      }
      Pack result;
#pragma unroll
      for (int v = 0; v < VECTOR; ++v) {
        result.cells[v] = update(queue[row][RADIUS].cells[v], sums[v], factor);
      }
      if (CELLS % VECTOR == 0) {
        if (inside(x, y + row)) *reinterpret_cast<Pack*>(to + row * PITCH) = result;
      } else {
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) {
          if (inside(x + v, y + row)) to[row * PITCH + v] = result.cells[v];
        }
      }
    }
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
#pragma unroll
      for (int d = 0; d < 2 * RADIUS; ++d) queue[row][d] = queue[row][d + 1];
    }
    at += PLANE;
    to += PLANE;
  }
}
#endif

// -- 2.5D streaming: tiles of planes in shared memory, and a register queue along z ------------------

#if VARIANT == ASYNC || VARIANT == TMA
static_assert(VECTOR == 1 && AHEAD >= 1, "a thread computes one cell of each row, and loads ahead");
constexpr int SIDE = (RADIUS + BYTES_16 - 1) / BYTES_16 * BYTES_16;  // columns on each side of a tile
constexpr int WIDTH = SIDE + TILE_X + SIDE, LINES = RADIUS + TILE_Y + RADIUS;
constexpr int SLOT = (WIDTH * LINES * (int)sizeof(REAL) + 127) / 128 * 128;  // bytes
constexpr int SLOTS = RADIUS + 1 + AHEAD;                                    // planes z to z + RADIUS + AHEAD
static_assert(SIDE <= PAD, "the padding does not contain the sides of a tile");

#ifdef PLAIN_COPIES
#define __grid_constant__
struct TensorMap {
  unsigned long long words[16];
};
#else
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return (unsigned)__cvta_generic_to_shared(at);
}
#endif

#if VARIANT == ASYNC
// Starts copies of one tile, 16 bytes at a time, with all threads of the block.
__device__ __forceinline__ void start_copies(unsigned char* slot, const REAL* corner, int thread) {
  constexpr int CHUNKS = WIDTH / BYTES_16;
  for (int n = thread; n < LINES * CHUNKS; n += BLOCK_X * BLOCK_Y) {
    const int line = n / CHUNKS, chunk = n % CHUNKS;
    const REAL* from = corner + line * PITCH + chunk * BYTES_16;
    unsigned char* to = slot + (line * CHUNKS + chunk) * 16;
#ifdef PLAIN_COPIES
    for (int v = 0; v < BYTES_16; ++v) reinterpret_cast<REAL*>(to)[v] = from[v];
#else
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
#endif
  }
}

// Ends the group of copies that this thread has started since the last call.
__device__ __forceinline__ void end_group() {
#ifndef PLAIN_COPIES
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most PENDING groups of this thread are incomplete.
template <int PENDING>
__device__ __forceinline__ void wait_for_groups() {
#ifndef PLAIN_COPIES
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
#endif

#if VARIANT == TMA
__device__ __forceinline__ void make_barriers(unsigned long long* barriers) {
#ifndef PLAIN_COPIES
  for (int n = 0; n < SLOTS; ++n) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barriers + n)) : "memory");
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// Waits until the copies into a slot are complete. The parity is that of the number of earlier copies.
__device__ __forceinline__ void wait_for_slot(unsigned long long* barrier, int parity) {
#ifndef PLAIN_COPIES
  unsigned complete = 0;
  while (complete == 0) {
    asm volatile(
        "{\n .reg .pred complete;\n"
        " mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
        " selp.u32 %0, 1, 0, complete;\n}"
        : "=r"(complete)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
#endif
}

// Starts the copy of one tile with one thread. The coordinates count from the first number of the field.
__device__ __forceinline__ void start_copy(unsigned char* slot, const TensorMap* map, const REAL* field,
                                           unsigned long long* barrier, int x, int y, int z) {
#ifdef PLAIN_COPIES
  for (int line = 0; line < LINES; ++line) {
    for (int n = 0; n < WIDTH; ++n) {
      const bool in_field = x + n < PITCH && y + line < HEIGHT && z < DEPTH;
      reinterpret_cast<REAL*>(slot)[line * WIDTH + n] =
          in_field ? field[z * PLANE + (y + line) * (long long)PITCH + x + n] : REAL(0);
    }
  }
#else
  const unsigned address = shared_address(barrier);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address),
               "r"((unsigned)(WIDTH * LINES * sizeof(REAL)))
               : "memory");
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(slot)),
      "l"(map), "r"(address), "r"(x), "r"(y), "r"(z)
      : "memory");
#endif
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_X* BLOCK_Y)
    heat_step(const __grid_constant__ TensorMap map, const REAL* __restrict__ field, REAL* __restrict__ next,
              REAL factor) {
#ifdef DYNAMIC
  alignas(128) extern __shared__ unsigned char tiles[];
#else
  alignas(128) __shared__ unsigned char tiles[SLOTS * SLOT];
#endif
  const int thread = threadIdx.y * BLOCK_X + threadIdx.x;
  const int x0 = blockIdx.x * TILE_X, y0 = blockIdx.y * TILE_Y;
  const int begin = blockIdx.z * STREAMED, end = min(begin + STREAMED, CELLS);
  const int x = x0 + threadIdx.x, y = y0 + threadIdx.y;  // first cell of the thread; rows are BLOCK_Y apart

#if VARIANT == ASYNC
  const REAL* corner = field + FIRST + (y0 - RADIUS) * (long long)PITCH + x0 - SIDE;
  auto start_plane = [&](int z, int slot) {
    if (z < end + RADIUS) start_copies(tiles + slot * SLOT, corner + z * PLANE, thread);
    end_group();
  };
#else
  alignas(8) __shared__ unsigned long long barriers[SLOTS];
  if (thread == 0) make_barriers(barriers);
  __syncthreads();
  auto start_plane = [&](int z, int slot) {
    if (thread == 0 && z < end + RADIUS) {
      start_copy(tiles + slot * SLOT, &map, field, barriers + slot, PAD + x0 - SIDE, y0, z + RADIUS);
    }
  };
#endif
  for (int n = 0; n < RADIUS + AHEAD; ++n) start_plane(begin + n, n);

  const long long first = FIRST + y * (long long)PITCH + x;
  const int place = (threadIdx.y + RADIUS) * WIDTH + threadIdx.x + SIDE;  // of the first cell in a tile
  REAL queue[ROWS][2 * RADIUS + 1];                                       // planes z - RADIUS to z + RADIUS
#pragma unroll
  for (int row = 0; row < ROWS; ++row) {
#pragma unroll
    for (int d = 0; d < RADIUS; ++d) {
      queue[row][d] = field[first + row * BLOCK_Y * PITCH + (begin + d - RADIUS) * PLANE];
    }
  }
#if VARIANT == ASYNC
  wait_for_groups<AHEAD>();
  __syncthreads();
#endif
#pragma unroll
  for (int d = 0; d < RADIUS; ++d) {
#if VARIANT == TMA
    wait_for_slot(barriers + d, 0);
#endif
    const REAL* tile = reinterpret_cast<const REAL*>(tiles + d * SLOT);
#pragma unroll
    for (int row = 0; row < ROWS; ++row) queue[row][RADIUS + d] = tile[place + row * BLOCK_Y * WIDTH];
  }

  int slot = 0, newest = RADIUS, parity = 0;  // slots of the planes z and z + RADIUS, parity of the latter
  for (int z = begin; z < end; ++z) {
#if VARIANT == ASYNC
    wait_for_groups<AHEAD - 1>();
#else
    wait_for_slot(barriers + newest, parity);
#endif
    __syncthreads();  // all threads have read the plane z - 1, whose slot is used again
    start_plane(z + RADIUS + AHEAD, slot == 0 ? SLOTS - 1 : slot - 1);
    const REAL* tile = reinterpret_cast<const REAL*>(tiles + slot * SLOT) + place;
    const REAL* newest_tile = reinterpret_cast<const REAL*>(tiles + newest * SLOT) + place;
#pragma unroll
    for (int row = 0; row < ROWS; ++row) {
      const REAL* at = tile + row * BLOCK_Y * WIDTH;
      queue[row][2 * RADIUS] = newest_tile[row * BLOCK_Y * WIDTH];
      REAL sums[RADIUS];
#pragma unroll
      for (int r = 1; r <= RADIUS; ++r) {
        sums[r - 1] = (at[-r] + at[r]) + (at[-r * WIDTH] + at[r * WIDTH]) +
                      (queue[row][RADIUS - r] + queue[row][RADIUS + r]);
      }
      const REAL result = update(queue[row][RADIUS], sums, factor);
      if (inside(x, y + row * BLOCK_Y)) next[first + row * BLOCK_Y * PITCH + z * PLANE] = result;
#pragma unroll
      for (int d = 0; d < 2 * RADIUS; ++d) queue[row][d] = queue[row][d + 1];
    }
    slot = slot + 1 == SLOTS ? 0 : slot + 1;
    newest = newest + 1 == SLOTS ? 0 : newest + 1;
    if (newest == 0) parity ^= 1;
  }
}
#endif
