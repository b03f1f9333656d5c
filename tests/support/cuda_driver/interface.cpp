// Compared with NVIDIA's own header at compile time: the engine's declarations of the driver. The test adds a
// line SAME_FUNCTION for each function.
#include <cuda.h>

#include <type_traits>

#include "device/cuda_library.hpp"

namespace ours = halocline::device::cuda;

// True for types that a caller and a callee in C pass in the same way.
template <typename A, typename B>
constexpr bool alike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using To = std::remove_pointer_t<A>;
    using Too = std::remove_pointer_t<B>;
    if constexpr (std::is_function_v<To> || std::is_void_v<To> || std::is_void_v<Too>) {
      return std::is_same_v<To, Too>;
    } else if constexpr (std::is_pointer_v<To> || std::is_pointer_v<Too>) {
      return alike<std::remove_cv_t<To>, std::remove_cv_t<Too>>();
    } else if constexpr (requires { sizeof(To); } != requires { sizeof(Too); }) {
      return false;
    } else if constexpr (requires { sizeof(To); }) {
      return sizeof(To) == sizeof(Too) && std::is_class_v<To> == std::is_class_v<Too>;
    } else {
      return true;  // handles: neither header declares their content
    }
  } else if constexpr (std::is_class_v<A> || std::is_class_v<B>) {
    return std::is_class_v<A> && std::is_class_v<B> && sizeof(A) == sizeof(B);
  } else {
    return std::is_pointer_v<A> == std::is_pointer_v<B> && sizeof(A) == sizeof(B);
  }
}

template <typename A, typename B>
struct Alike : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct Alike<R (*)(A...), S (*)(B...)> : std::bool_constant<(alike<R, S>() && ... && alike<A, B>())> {};

#define SAME_FUNCTION(member, function) \
  static_assert(Alike<decltype(ours::Library::member), decltype(&function)>::value, #function);
#define SAME(a, b) static_assert(static_cast<long>(ours::a) == static_cast<long>(b), #b);

SAME(kSuccess, CUDA_SUCCESS)
SAME(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY)
SAME(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED)
SAME(kDeinitialized, CUDA_ERROR_DEINITIALIZED)
SAME(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE)
SAME(kNoDevice, CUDA_ERROR_NO_DEVICE)
SAME(kInvalidImage, CUDA_ERROR_INVALID_IMAGE)
SAME(kNoBinaryForDevice, CUDA_ERROR_NO_BINARY_FOR_GPU)
SAME(kUncorrectableEcc, CUDA_ERROR_ECC_UNCORRECTABLE)
SAME(kInvalidPtx, CUDA_ERROR_INVALID_PTX)
SAME(kUncorrectableLink, CUDA_ERROR_NVLINK_UNCORRECTABLE)
SAME(kUnsupportedPtxVersion, CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
SAME(kContained, CUDA_ERROR_CONTAINED)
SAME(kNotFound, CUDA_ERROR_NOT_FOUND)
SAME(kNotReady, CUDA_ERROR_NOT_READY)
SAME(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS)
SAME(kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
SAME(kLaunchTimeout, CUDA_ERROR_LAUNCH_TIMEOUT)
SAME(kPeerAccessAlreadyEnabled, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
SAME(kAssert, CUDA_ERROR_ASSERT)
SAME(kTooManyPeers, CUDA_ERROR_TOO_MANY_PEERS)
SAME(kHardwareStackError, CUDA_ERROR_HARDWARE_STACK_ERROR)
SAME(kIllegalInstruction, CUDA_ERROR_ILLEGAL_INSTRUCTION)
SAME(kMisalignedAddress, CUDA_ERROR_MISALIGNED_ADDRESS)
SAME(kInvalidAddressSpace, CUDA_ERROR_INVALID_ADDRESS_SPACE)
SAME(kInvalidProgramCounter, CUDA_ERROR_INVALID_PC)
SAME(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED)
SAME(kSystemNotReady, CUDA_ERROR_SYSTEM_NOT_READY)
SAME(kSystemDriverMismatch, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
SAME(kUnknown, CUDA_ERROR_UNKNOWN)

SAME(kMaxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
SAME(kMaxSharedMemoryPerBlockOptIn, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
SAME(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
SAME(kUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)
SAME(kComputeCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
SAME(kComputeCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
SAME(kIpcEventSupported, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED)
SAME(kFunctionMaxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
SAME(kFunctionLocalBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
SAME(kPointerDeviceOrdinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
SAME(kFunctionRegisters, CU_FUNC_ATTRIBUTE_NUM_REGS)
SAME(kFunctionMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
SAME(kJitErrorLog, CU_JIT_ERROR_LOG_BUFFER)
SAME(kJitErrorLogBytes, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING)
SAME(kEventDefault, CU_EVENT_DEFAULT)
SAME(kEventDisableTiming, CU_EVENT_DISABLE_TIMING)
SAME(kEventInterprocess, CU_EVENT_INTERPROCESS)
SAME(kHostPortable, CU_MEMHOSTALLOC_PORTABLE)
SAME(kIpcLazyPeerAccess, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
SAME(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
SAME(kMemoryHost, CU_MEMORYTYPE_HOST)
SAME(kMemoryDevice, CU_MEMORYTYPE_DEVICE)
static_assert(sizeof(ours::Uuid) == sizeof(CUuuid) && sizeof(ours::IpcHandle) == sizeof(CUipcMemHandle) &&
              sizeof(ours::IpcHandle) == sizeof(CUipcEventHandle));
