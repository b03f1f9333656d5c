// CUDA C++ beyond C++, for a host: the stand-in for NVRTC puts this header before a kernel's source.
//
// The threads of a thread block run one after another. If the source has barriers, each thread is a fibre,
// and a barrier switches to the other fibres. A barrier that not all threads reach is an error, as in OpenCL.
// Shared memory of a thread block is local to the host thread that runs the block.
#pragma once

#include <ucontext.h>

#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900
#define __CUDACC_VER_MAJOR__ 12
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __constant__  // the driver finds these variables by their names
#define __shared__ static thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint3 {
  unsigned x, y, z;
};
using dim3 = uint3;

struct __align__(16) double2 {
  double x, y;
};
struct __align__(8) float2 {
  float x, y;
};
struct __align__(16) float4 {
  float x, y, z, w;
};
static inline double2 make_double2(double x, double y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace standin {

struct Kernel {
  const char* name;
  size_t count;
  const size_t* sizes;  // sizes of the parameters
  unsigned threads;     // maximum of a thread block
  // Returns true if all threads of each thread block reach the same barriers.
  bool (*run)(const uint3& grid_dim, const uint3& block_dim, void** parameters);
};

struct Fibre {
  ucontext_t context;
  std::vector<char> stack;
  bool ended = false;
};

static thread_local Fibre* current = nullptr;
static thread_local ucontext_t scheduler;

static inline void barrier() {
  if (current != nullptr) swapcontext(&current->context, &scheduler);
}

// Bulk copies to shared memory. A barrier contains the number of threads of a group, the number of threads
// whose copies are not complete, and the parity of the group. Every other row is copied at once, so that a
// copy that comes too early overwrites values. The remaining rows are copied when a thread waits for the
// group.
struct Copies {
  uint16_t threads, missing;
  uint32_t parity;
};
static_assert(sizeof(Copies) == sizeof(uint64_t));

static inline void bulk_init(void* memory, int threads) {
  const Copies copies{static_cast<uint16_t>(threads), static_cast<uint16_t>(threads), 0};
  std::memcpy(memory, &copies, sizeof copies);
}

struct Row {
  void* to;
  const void* from;
  size_t bytes;
  const void* barrier;
};
static inline std::vector<Row>& late_rows() {
  static thread_local std::vector<Row> rows;
  return rows;
}

static inline void bulk_row(void* to, const void* from, size_t bytes, const void* memory) {
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | bytes) % 16 != 0) std::abort();
  if (threadIdx.x % 2 == 0) {
    std::memcpy(to, from, bytes);
  } else {
    late_rows().push_back({to, from, bytes, memory});
  }
}

static inline void bulk_end(void* memory) {
  auto* copies = static_cast<Copies*>(memory);
  if (--copies->missing != 0) return;
  copies->missing = copies->threads;
  copies->parity ^= 1;
}

// After all other threads of the block have run up to their wait, the group must be complete.
static inline void bulk_wait(const void* memory, int parity) {
  barrier();
  if (static_cast<const Copies*>(memory)->parity == static_cast<uint32_t>(parity)) std::abort();
  std::vector<Row> remaining;
  for (const Row& row : late_rows()) {
    if (row.barrier == memory) {
      std::memcpy(row.to, row.from, row.bytes);
    } else {
      remaining.push_back(row);
    }
  }
  late_rows() = remaining;
}

template <typename Call>
struct Thread {
  static thread_local const Call* call;
  static void body() {
    (*call)();
    current->ended = true;
    swapcontext(&current->context, &scheduler);
  }
};
template <typename Call>
thread_local const Call* Thread<Call>::call = nullptr;

template <typename Call>
bool block_of_fibres(const Call& call) {
  const size_t count = size_t{blockDim.x} * blockDim.y * blockDim.z;
  static thread_local std::vector<Fibre> fibres;
  if (fibres.size() < count) fibres.resize(count);
  Thread<Call>::call = &call;
  for (size_t n = 0; n < count; ++n) {
    Fibre& fibre = fibres[n];
    fibre.stack.resize(size_t{64} << 10);
    fibre.ended = false;
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.data();
    fibre.context.uc_stack.ss_size = fibre.stack.size();
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, &Thread<Call>::body, 0);
  }
  size_t ended = 0;
  while (ended == 0) {
    for (size_t n = 0; n < count; ++n) {
      current = &fibres[n];
      threadIdx = {static_cast<unsigned>(n % blockDim.x), static_cast<unsigned>(n / blockDim.x % blockDim.y),
                   static_cast<unsigned>(n / blockDim.x / blockDim.y)};
      swapcontext(&scheduler, &fibres[n].context);
      if (fibres[n].ended) ++ended;
    }
  }
  current = nullptr;
  return ended == count;
}

template <typename Call>
bool all_blocks(const uint3& grid_dim, const uint3& block_dim, bool barriers, const Call& call) {
  gridDim = grid_dim;
  blockDim = block_dim;
  for (blockIdx.z = 0; blockIdx.z < grid_dim.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < grid_dim.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < grid_dim.x; ++blockIdx.x) {
        if (barriers) {
          if (!block_of_fibres(call)) return false;
          continue;
        }
        for (threadIdx.z = 0; threadIdx.z < block_dim.z; ++threadIdx.z) {
          for (threadIdx.y = 0; threadIdx.y < block_dim.y; ++threadIdx.y) {
            for (threadIdx.x = 0; threadIdx.x < block_dim.x; ++threadIdx.x) call();
          }
        }
      }
    }
  }
  return true;
}

template <auto Function>
struct Entry;
template <typename... Parameters, void (*Function)(Parameters...)>
struct Entry<Function> {
  static constexpr size_t count = sizeof...(Parameters);
  static constexpr size_t sizes[count + 1] = {sizeof(Parameters)..., 0};

  template <size_t... N>
  static void call(void** parameters, std::index_sequence<N...>) {
    Function(*static_cast<std::remove_const_t<Parameters>*>(parameters[N])...);
  }
  template <bool Barriers>
  static bool run(const uint3& grid_dim, const uint3& block_dim, void** parameters) {
    return all_blocks(grid_dim, block_dim, Barriers,
                      [parameters] { call(parameters, std::make_index_sequence<count>()); });
  }
};

template <typename To, typename From>
To bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

template <typename T, typename Change>
T atomically(T* at, Change change) {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  auto* word = reinterpret_cast<Word*>(at);
  Word old_word = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    const Word new_word = bits<Word>(static_cast<T>(change(bits<T>(old_word))));
    if (__atomic_compare_exchange_n(word, &old_word, new_word, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return bits<T>(old_word);
    }
  }
}

}  // namespace standin

static inline void __syncthreads() { standin::barrier(); }
static inline void __syncwarp(unsigned = 0xffffffff) {}
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_block() { __threadfence(); }
static inline void __threadfence_system() { __threadfence(); }

// The second argument has the type of the first one, as in CUDA's overloads.
template <typename T>
using Same = std::common_type_t<T>;
template <typename T>
T atomicAdd(T* at, Same<T> value) {
  return standin::atomically(at, [=](T old) { return old + value; });
}
template <typename T>
T atomicSub(T* at, Same<T> value) {
  return standin::atomically(at, [=](T old) { return old - value; });
}
template <typename T>
T atomicMax(T* at, Same<T> value) {
  return standin::atomically(at, [=](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicMin(T* at, Same<T> value) {
  return standin::atomically(at, [=](T old) { return value < old ? value : old; });
}
template <typename T>
T atomicOr(T* at, Same<T> value) {
  return standin::atomically(at, [=](T old) { return old | value; });
}
template <typename T>
T atomicAnd(T* at, Same<T> value) {
  return standin::atomically(at, [=](T old) { return old & value; });
}
template <typename T>
T atomicExch(T* at, Same<T> value) {
  return standin::atomically(at, [=](T) { return value; });
}
template <typename T>
T atomicCAS(T* at, Same<T> expected, Same<T> value) {
  return standin::atomically(at, [=](T old) { return old == expected ? value : old; });
}

static inline long long __double_as_longlong(double x) { return standin::bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return standin::bits<double>(x); }
static inline int __float_as_int(float x) { return standin::bits<int>(x); }
static inline float __int_as_float(int x) { return standin::bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return standin::bits<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return standin::bits<float>(x); }
static inline int __double2hiint(double x) { return static_cast<int>(standin::bits<uint64_t>(x) >> 32); }
static inline int __double2loint(double x) { return static_cast<int>(standin::bits<uint64_t>(x)); }
static inline double __hiloint2double(int high, int low) {
  return standin::bits<double>(static_cast<uint64_t>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low));
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
static inline long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
static inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<uint64_t>(x)); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline double __dsqrt_rn(double x) { return sqrt(x); }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
template <typename T>
T __ldg(const T* at) {
  return *at;
}
template <typename T>
T min(T x, Same<T> y) {
  return y < x ? y : x;
}
template <typename T>
T max(T x, Same<T> y) {
  return x < y ? y : x;
}

// The tiles of a kernel, in the memory of the host thread that runs the thread block.
[[maybe_unused]] alignas(128) static thread_local char standin_tiles[227 << 10];
#define HC_TILE(type, name, count, offset) \
  type* const name = reinterpret_cast<type*>(standin_tiles + (offset))

// In place of instructions for the copies of generated kernels, see device.h.
#define HC_COPY(type, to, from) *(type*)(to) = *(const type*)(from)
#define HC_COPIES_END()
#define HC_COPIES_WAIT(groups)
#define HC_BULK_INIT(barrier, threads) standin::bulk_init(barrier, threads)
#define HC_BULK_ROW(to, from, bytes, barrier) standin::bulk_row(to, from, bytes, barrier)
#define HC_BULK_END(barrier) standin::bulk_end(barrier)
#define HC_BULK_WAIT(barrier, parity) standin::bulk_wait(barrier, parity)

// One line per kernel, after the kernel's source.
#define STANDIN_KERNEL(kernel, threads, barriers)                                    \
  extern "C" const standin::Kernel standin_##kernel;                                 \
  const standin::Kernel standin_##kernel = {#kernel, standin::Entry<&kernel>::count, \
                                            standin::Entry<&kernel>::sizes, threads, \
                                            &standin::Entry<&kernel>::run<barriers>};
