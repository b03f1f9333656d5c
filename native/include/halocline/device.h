// Language layer of generated kernels: common names for CUDA C++, HIP and OpenCL C 1.2.
//
// The source of a kernel is this header, further headers of this kind and the kernel, concatenated
// (compile/targets/source.py). The compiler must evaluate + - * / sqrt and conversions as in IEEE 754,
// without contraction. The options of NVRTC are --fmad=false, --ftz=false, --prec-div=true and
// --prec-sqrt=true. The options of OpenCL are -cl-std=CL1.2 and -cl-fp32-correctly-rounded-divide-sqrt,
// without -cl-denorms-are-zero. The options of HIP are -ffp-contract=off,
// -fhip-fp32-correctly-rounded-divide-sqrt and -fno-gpu-flush-denormals-to-zero.
//
// Dimension 0 of a launch runs along the contiguous axis of memory, which is axis 2 of a field.
#pragma once

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

#define HC_KERNEL __kernel void
// A kernel with a fixed thread block shape. The compiler then knows the number of registers per thread.
#define HC_KERNEL_FIXED_BLOCK(x, y, z) __kernel __attribute__((reqd_work_group_size(x, y, z))) void
// A kernel with at most `threads` threads per block and at least `blocks` blocks resident on a
// multiprocessor.
#define HC_KERNEL_LAUNCH_BOUNDS(threads, blocks) __kernel void
#define HC_UNROLL(times)
#define HC_GLOBAL __global  // address space of the target of a pointer
#define HC_LOCAL __local
#define HC_SHARED __local  // array of a kernel in shared memory, one for all threads of a block
#define HC_RESTRICT restrict
#define HC_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
// Functions are inlined early. Otherwise PoCL 3.1 may give all thread blocks the same memory for an HC_SHARED
// array that functions use.
#define HC_FUNCTION static inline __attribute__((always_inline))
#define HC_RARE static __attribute__((noinline))
#define HC_TABLE __constant
#define HC_ALIGNED(bytes)
// Values in constant memory, which the kernel `fill_SYMBOL` computes: declaration, argument and use.
#define HC_INVARIANTS(symbol, count)
#define HC_CONSTANT __constant
#define HC_INVARIANT(symbol, place) invariants[place]

// Vectors of adjacent cells of a row. Their types have the same names in all languages.
#define HC_DOUBLE2(a, b) ((double2)(a, b))
#define HC_FLOAT2(a, b) ((float2)(a, b))
#define HC_FLOAT4(a, b, c, d) ((float4)(a, b, c, d))
#define HC_ALIGNED_VECTORS __attribute__((aligned(16)))

typedef int hc_int32;
typedef uint hc_uint32;
typedef long hc_int64;
typedef ulong hc_uint64;

HC_FUNCTION hc_uint64 hc_bits(double x) { return as_ulong(x); }
HC_FUNCTION double hc_from_bits(hc_uint64 bits) { return as_double(bits); }
HC_FUNCTION hc_uint32 hc_bitsf(float x) { return as_uint(x); }
HC_FUNCTION float hc_from_bitsf(hc_uint32 bits) { return as_float(bits); }
HC_FUNCTION double hc_fma(double a, double b, double c) { return fma(a, b, c); }
HC_FUNCTION float hc_fmaf(float a, float b, float c) { return fma(a, b, c); }
HC_FUNCTION double hc_sqrt(double x) { return sqrt(x); }
HC_FUNCTION float hc_sqrtf(float x) { return sqrt(x); }
HC_FUNCTION double hc_floor(double x) { return floor(x); }
HC_FUNCTION hc_uint64 hc_multiply_high(hc_uint64 a, hc_uint64 b) { return mul_hi(a, b); }
HC_FUNCTION int hc_leading_zeros(hc_uint64 bits) { return (int)clz(bits); }

HC_FUNCTION hc_int64 hc_block(int dimension) { return (hc_int64)get_group_id((uint)dimension); }
HC_FUNCTION hc_int64 hc_blocks(int dimension) { return (hc_int64)get_num_groups((uint)dimension); }
HC_FUNCTION hc_int64 hc_thread(int dimension) { return (hc_int64)get_local_id((uint)dimension); }
HC_FUNCTION hc_int64 hc_block_size(int dimension) { return (hc_int64)get_local_size((uint)dimension); }

#else  // CUDA C++ and HIP

#define HC_PRAGMA(words) _Pragma(#words)
#define HC_UNROLL(times) HC_PRAGMA(unroll times)
#define HC_GLOBAL
#define HC_LOCAL
#define HC_RESTRICT __restrict__
#define HC_ALIGNED(bytes)
#define HC_CONSTANT
#define HC_INVARIANT(symbol, place) symbol[place]

typedef int hc_int32;
typedef unsigned int hc_uint32;
typedef long long hc_int64;
typedef unsigned long long hc_uint64;

#define HC_BY_DIMENSION(x, y, z) (dimension == 0 ? (x) : dimension == 1 ? (y) : (z))

#ifdef __HIP__

// Attributes and built-in functions of Clang, so that the text needs neither headers nor libraries of HIP.
#if __clang_major__ < 18
#error "halocline: older compilers do not round square roots correctly; use LLVM 18 or ROCm 6.2, or newer"
#endif
#pragma clang fp contract(off)

// Without a bound, the compiler would reserve registers for blocks of 1024 threads. The number of resident
// blocks applies to NVIDIA's multiprocessors only, and is ignored here.
#define HC_KERNEL_LAUNCH_BOUNDS(threads, blocks) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, threads))) void
#define HC_KERNEL HC_KERNEL_LAUNCH_BOUNDS(256, 1)
#define HC_KERNEL_FIXED_BLOCK(x, y, z) \
  extern "C" __attribute__((global, amdgpu_flat_work_group_size((x) * (y) * (z), (x) * (y) * (z)))) void
#define HC_SHARED __attribute__((shared))
#define HC_BARRIER() hc_barrier()
#define HC_FUNCTION static inline __attribute__((device, always_inline))
#define HC_RARE static __attribute__((device, noinline))
#define HC_TABLE static __attribute__((device)) const
#define HC_INVARIANTS(symbol, count) __attribute__((constant)) double symbol[count];
#define HC_DOUBLE2(a, b) ((double2){a, b})
#define HC_FLOAT2(a, b) ((float2){a, b})
#define HC_FLOAT4(a, b, c, d) ((float4){a, b, c, d})
#define HC_ALIGNED_VECTORS __attribute__((aligned(16)))

typedef double double2 __attribute__((ext_vector_type(2)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));

HC_FUNCTION void hc_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

HC_FUNCTION hc_uint64 hc_bits(double x) { return __builtin_bit_cast(hc_uint64, x); }
HC_FUNCTION double hc_from_bits(hc_uint64 bits) { return __builtin_bit_cast(double, bits); }
HC_FUNCTION hc_uint32 hc_bitsf(float x) { return __builtin_bit_cast(hc_uint32, x); }
HC_FUNCTION float hc_from_bitsf(hc_uint32 bits) { return __builtin_bit_cast(float, bits); }
HC_FUNCTION double hc_fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
HC_FUNCTION float hc_fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HC_FUNCTION double hc_sqrt(double x) { return __builtin_sqrt(x); }
HC_FUNCTION float hc_sqrtf(float x) { return __builtin_sqrtf(x); }
HC_FUNCTION double hc_floor(double x) { return __builtin_floor(x); }
HC_FUNCTION hc_uint64 hc_multiply_high(hc_uint64 a, hc_uint64 b) {
  return (hc_uint64)((unsigned __int128)a * b >> 64);
}
HC_FUNCTION int hc_leading_zeros(hc_uint64 bits) { return __builtin_clzll(bits); }

HC_FUNCTION hc_int64 hc_block(int dimension) {
  return HC_BY_DIMENSION(__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                         __builtin_amdgcn_workgroup_id_z());
}
HC_FUNCTION hc_int64 hc_thread(int dimension) {
  return HC_BY_DIMENSION(__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
                         __builtin_amdgcn_workitem_id_z());
}
HC_FUNCTION hc_int64 hc_block_size(int dimension) {
  return HC_BY_DIMENSION(__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
                         __builtin_amdgcn_workgroup_size_z());
}
// A grid has the size of all its threads. HIP launches whole thread blocks only.
HC_FUNCTION hc_int64 hc_blocks(int dimension) {
  return HC_BY_DIMENSION(__builtin_amdgcn_grid_size_x(), __builtin_amdgcn_grid_size_y(),
                         __builtin_amdgcn_grid_size_z()) /
         (hc_uint32)hc_block_size(dimension);
}

#else

#ifdef __CUDACC_RTC__
#pragma nv_diag_suppress 177  // most kernels use few of the functions in this file
#endif

#define HC_KERNEL extern "C" __global__ void
#define HC_KERNEL_FIXED_BLOCK(x, y, z) extern "C" __global__ void __launch_bounds__((x) * (y) * (z))
#define HC_KERNEL_LAUNCH_BOUNDS(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define HC_SHARED __shared__
#define HC_BARRIER() __syncthreads()
#define HC_FUNCTION static __device__ __forceinline__
#define HC_RARE static __device__ __noinline__
#define HC_TABLE static __device__ const
#define HC_INVARIANTS(symbol, count) __constant__ double symbol[count];
#define HC_DOUBLE2(a, b) make_double2(a, b)
#define HC_FLOAT2(a, b) make_float2(a, b)
#define HC_FLOAT4(a, b, c, d) make_float4(a, b, c, d)
#define HC_ALIGNED_VECTORS __align__(16)

HC_FUNCTION hc_uint64 hc_bits(double x) { return (hc_uint64)__double_as_longlong(x); }
HC_FUNCTION double hc_from_bits(hc_uint64 bits) { return __longlong_as_double((hc_int64)bits); }
HC_FUNCTION hc_uint32 hc_bitsf(float x) { return __float_as_uint(x); }
HC_FUNCTION float hc_from_bitsf(hc_uint32 bits) { return __uint_as_float(bits); }
HC_FUNCTION double hc_fma(double a, double b, double c) { return __fma_rn(a, b, c); }
HC_FUNCTION float hc_fmaf(float a, float b, float c) { return __fmaf_rn(a, b, c); }
HC_FUNCTION double hc_sqrt(double x) { return __dsqrt_rn(x); }
HC_FUNCTION float hc_sqrtf(float x) { return __fsqrt_rn(x); }
HC_FUNCTION double hc_floor(double x) { return floor(x); }
HC_FUNCTION hc_uint64 hc_multiply_high(hc_uint64 a, hc_uint64 b) { return __umul64hi(a, b); }
HC_FUNCTION int hc_leading_zeros(hc_uint64 bits) { return __clzll((hc_int64)bits); }

HC_FUNCTION hc_int64 hc_block(int dimension) { return HC_BY_DIMENSION(blockIdx.x, blockIdx.y, blockIdx.z); }
HC_FUNCTION hc_int64 hc_blocks(int dimension) { return HC_BY_DIMENSION(gridDim.x, gridDim.y, gridDim.z); }
HC_FUNCTION hc_int64 hc_thread(int dimension) {
  return HC_BY_DIMENSION(threadIdx.x, threadIdx.y, threadIdx.z);
}
HC_FUNCTION hc_int64 hc_block_size(int dimension) {
  return HC_BY_DIMENSION(blockDim.x, blockDim.y, blockDim.z);
}

#endif  // HIP
#endif

// Tile of a kernel in shared memory, `offset` bytes after the first tile. A launch with CUDA reserves the
// memory of the tiles, which may exceed the 48 KiB of arrays.
#ifdef HC_TILE  // defined before this header, for a host that runs kernels
#elif defined(__CUDACC__) && !defined(__HIP__)
extern __shared__ __align__(128) char hc_tiles[];
#define HC_TILE(type, name, count, offset) type* const name = (type*)(hc_tiles + (offset))
#else
#define HC_TILE(type, name, count, offset) HC_SHARED HC_ALIGNED_VECTORS type name[count]
#endif

// Copies from global to shared memory. A thread begins copies, ends a group of them, and waits until at most
// `groups` of its newest groups are incomplete. With HC_ASYNCHRONOUS_COPIES, the copies of CUDA devices from
// sm_80 on run while the thread computes (cp.async); otherwise the thread itself copies.
#ifdef HC_COPY  // defined before this header, for a host that runs kernels
#elif defined(HC_ASYNCHRONOUS_COPIES) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HC_COPY(type, to, from)                                                                           \
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), \
               "l"(from), "n"(sizeof(type))                                                               \
               : "memory")
#define HC_COPIES_END() asm volatile("cp.async.commit_group;" ::: "memory")
#define HC_COPIES_WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#else
#define HC_COPY(type, to, from) *(HC_LOCAL type*)(to) = *(HC_GLOBAL const type*)(from)
#define HC_COPIES_END()
#define HC_COPIES_WAIT(groups)
#endif

// Bulk copies of rows from global to shared memory by CUDA devices from sm_90 on (cp.async.bulk), in place of
// HC_COPY. Addresses and `bytes` are multiples of 16. Each group of copies has a barrier, which counts the
// threads that copy rows, and the bytes. All threads wait for the group, which alternates between two
// parities.
#if defined(HC_ASYNCHRONOUS_COPIES) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && \
    __CUDACC_VER_MAJOR__ >= 12
#define HC_BULK_COPIES
#ifndef HC_BULK_ROW
#define HC_SHARED_ADDRESS(pointer) ((unsigned)__cvta_generic_to_shared(pointer))
#define HC_BULK_INIT(barrier, threads)                                                            \
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.proxy.async.shared::cta;" ::"r"( \
                   HC_SHARED_ADDRESS(barrier)),                                                   \
               "r"(threads)                                                                       \
               : "memory")
#define HC_BULK_ROW(to, from, bytes, barrier)                                                          \
  asm volatile(                                                                                        \
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%3], %2;\n\t"                                   \
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"( \
          HC_SHARED_ADDRESS(to)),                                                                      \
      "l"(__cvta_generic_to_global(from)), "r"((int)(bytes)), "r"(HC_SHARED_ADDRESS(barrier))          \
      : "memory")
#define HC_BULK_END(barrier)                                                                       \
  asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"( \
                   HC_SHARED_ADDRESS(barrier))                                                     \
               : "memory")
#define HC_BULK_WAIT(barrier, parity) hc_bulk_wait(HC_SHARED_ADDRESS(barrier), parity)
HC_FUNCTION void hc_bulk_wait(unsigned barrier, int parity) {
  int done = 0;
  while (done == 0) {
    asm volatile(
        "{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.b32 %0, 1, 0, "
        "p;\n\t}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
}
#endif
#endif

// Linear indices over all dimensions: of a thread block in its launch, of a thread in its block.
HC_FUNCTION hc_int64 hc_block_number(void) {
  return (hc_block(2) * hc_blocks(1) + hc_block(1)) * hc_blocks(0) + hc_block(0);
}
HC_FUNCTION hc_int64 hc_thread_number(void) {
  return (hc_thread(2) * hc_block_size(1) + hc_thread(1)) * hc_block_size(0) + hc_thread(0);
}
HC_FUNCTION hc_int64 hc_block_threads(void) { return hc_block_size(0) * hc_block_size(1) * hc_block_size(2); }

HC_FUNCTION hc_int64 hc_min_index(hc_int64 a, hc_int64 b) { return a < b ? a : b; }
HC_FUNCTION hc_int64 hc_max_index(hc_int64 a, hc_int64 b) { return a > b ? a : b; }

// Return the index of cell `index` on a periodic axis of `count` cells, with the same bits as in rows.hpp.
HC_FUNCTION double hc_around(hc_int64 index, hc_int64 count) {
  double i = (double)(hc_int32)index, n = (double)(hc_int32)count;
  return i - n * hc_floor(i / n);
}

// Return the number of elements in a row of scratch memory: whole lines of 64 bytes, as in rows.hpp.
HC_FUNCTION hc_int64 hc_padded_row(hc_int64 count, hc_int64 item) {
  const hc_int64 line = 64 / item;
  return (count + line - 1) / line * line;
}
