// Functions of the CUDA driver, which are located at run time, so that a build needs no CUDA package. Names,
// types and numbers are from the binary interface of the driver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/symbols.hpp"

namespace halocline::device::cuda {

using Address = unsigned long long;  // in device memory
using Context = struct ContextOfDriver*;
using Stream = struct StreamOfDriver*;
using EventOfStream = struct EventOfDriver*;
using Code = struct ModuleOfDriver*;
using Function = struct FunctionOfDriver*;
using Recording = struct GraphOfDriver*;
using Executable = struct ExecutableOfDriver*;
struct Uuid {
  std::array<unsigned char, 16> bytes;
};
struct IpcHandle {  // of memory and of events
  std::array<char, 64> bytes;
};

enum Status : int {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kDeviceUnavailable = 46,
  kNoDevice = 100,
  kInvalidImage = 200,
  kNoBinaryForDevice = 209,
  kUncorrectableEcc = 214,
  kInvalidPtx = 218,
  kUncorrectableLink = 220,
  kUnsupportedPtxVersion = 222,
  kContained = 226,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kPeerAccessAlreadyEnabled = 704,
  kAssert = 710,
  kTooManyPeers = 711,
  kHardwareStackError = 714,
  kIllegalInstruction = 715,
  kMisalignedAddress = 716,
  kInvalidAddressSpace = 717,
  kInvalidProgramCounter = 718,
  kLaunchFailed = 719,
  kSystemNotReady = 802,
  kSystemDriverMismatch = 803,
  kUnknown = 999,
};

enum DeviceAttribute : int {
  kMaxThreadsPerBlock = 1,
  kMultiprocessorCount = 16,
  kUnifiedAddressing = 41,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerBlockOptIn = 97,
  kIpcEventSupported = 125,
};

enum PointerAttribute : int { kPointerDeviceOrdinal = 9 };

enum FunctionAttribute : int {
  kFunctionMaxThreadsPerBlock = 0,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicSharedBytes = 8,
};

enum JitOption : int {
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6,
};

constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;  // with timing
constexpr unsigned kEventDisableTiming = 2;
constexpr unsigned kEventInterprocess = 4;
constexpr unsigned kHostPortable = 1;
constexpr unsigned kIpcLazyPeerAccess = 1;
constexpr int kCaptureThreadLocal = 1;

// CUDA_MEMCPY2D_v2
enum MemoryKind : int { kMemoryHost = 1, kMemoryDevice = 2 };

struct RowsCopy {
  size_t source_x = 0, source_y = 0;
  MemoryKind source_kind = kMemoryHost;
  const void* source_host = nullptr;
  Address source = 0;
  void* source_array = nullptr;
  size_t source_pitch = 0;
  size_t target_x = 0, target_y = 0;
  MemoryKind target_kind = kMemoryHost;
  void* target_host = nullptr;
  Address target = 0;
  void* target_array = nullptr;
  size_t target_pitch = 0;
  size_t bytes = 0, rows = 0;
};

struct Library {
  Symbols symbols{{"libcuda.so.1"}};

  Status (*init)(unsigned) = symbols["cuInit"];
  Status (*driver_version)(int*) = symbols["cuDriverGetVersion"];
  Status (*error_name)(Status, const char**) = symbols["cuGetErrorName"];
  Status (*error_string)(Status, const char**) = symbols["cuGetErrorString"];

  Status (*device_count)(int*) = symbols["cuDeviceGetCount"];
  Status (*device_get)(int*, int) = symbols["cuDeviceGet"];
  Status (*device_name)(char*, int, int) = symbols["cuDeviceGetName"];
  Status (*device_uuid)(Uuid*, int) = symbols["cuDeviceGetUuid_v2"];
  Status (*device_memory)(size_t*, int) = symbols["cuDeviceTotalMem_v2"];
  Status (*device_attribute)(int*, DeviceAttribute, int) = symbols["cuDeviceGetAttribute"];
  Status (*can_access_peer)(int*, int, int) = symbols["cuDeviceCanAccessPeer"];

  Status (*primary_context)(Context*, int) = symbols["cuDevicePrimaryCtxRetain"];
  Status (*set_context)(Context) = symbols["cuCtxSetCurrent"];
  Status (*synchronize)() = symbols["cuCtxSynchronize"];
  Status (*enable_peer)(Context, unsigned) = symbols["cuCtxEnablePeerAccess"];
  Status (*priorities)(int*, int*) = symbols["cuCtxGetStreamPriorityRange"];

  Status (*memory_info)(size_t*, size_t*) = symbols["cuMemGetInfo_v2"];
  Status (*pointer_attribute)(void*, PointerAttribute, Address) = symbols["cuPointerGetAttribute"];
  Status (*allocate)(Address*, size_t) = symbols["cuMemAlloc_v2"];
  Status (*free)(Address) = symbols["cuMemFree_v2"];
  Status (*allocate_host)(void**, size_t, unsigned) = symbols["cuMemHostAlloc"];
  Status (*free_host)(void*) = symbols["cuMemFreeHost"];
  Status (*set_bytes)(Address, unsigned char, size_t, Stream) = symbols["cuMemsetD8Async"];
  Status (*upload)(Address, const void*, size_t, Stream) = symbols["cuMemcpyHtoDAsync_v2"];
  Status (*download)(void*, Address, size_t, Stream) = symbols["cuMemcpyDtoHAsync_v2"];
  Status (*copy)(Address, Address, size_t, Stream) = symbols["cuMemcpyDtoDAsync_v2"];
  Status (*copy_rows)(const RowsCopy*, Stream) = symbols["cuMemcpy2DAsync_v2"];
  Status (*copy_peer)(Address, Context, Address, Context, size_t, Stream) = symbols["cuMemcpyPeerAsync"];

  Status (*stream_create)(Stream*, unsigned, int) = symbols["cuStreamCreateWithPriority"];
  Status (*stream_destroy)(Stream) = symbols["cuStreamDestroy_v2"];
  Status (*stream_wait)(Stream, EventOfStream, unsigned) = symbols["cuStreamWaitEvent"];
  Status (*stream_synchronize)(Stream) = symbols["cuStreamSynchronize"];
  Status (*event_create)(EventOfStream*, unsigned) = symbols["cuEventCreate"];
  Status (*event_destroy)(EventOfStream) = symbols["cuEventDestroy_v2"];
  Status (*event_record)(EventOfStream, Stream) = symbols["cuEventRecord"];
  Status (*event_query)(EventOfStream) = symbols["cuEventQuery"];
  Status (*event_elapsed)(float*, EventOfStream, EventOfStream) = symbols["cuEventElapsedTime"];
  Status (*event_synchronize)(EventOfStream) = symbols["cuEventSynchronize"];

  Status (*module_load)(Code*, const void*, unsigned, JitOption*, void**) = symbols["cuModuleLoadDataEx"];
  Status (*module_unload)(Code) = symbols["cuModuleUnload"];
  Status (*module_function)(Function*, Code, const char*) = symbols["cuModuleGetFunction"];
  Status (*module_global)(Address*, size_t*, Code, const char*) = symbols["cuModuleGetGlobal_v2"];
  Status (*function_attribute)(int*, FunctionAttribute, Function) = symbols["cuFuncGetAttribute"];
  Status (*set_function_attribute)(Function, FunctionAttribute, int) = symbols["cuFuncSetAttribute"];
  // since CUDA 12.4
  Status (*function_parameter)(Function, size_t, size_t*, size_t*) = symbols.optional("cuFuncGetParamInfo");
  Status (*launch)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream,
                   void**, void**) = symbols["cuLaunchKernel"];

  Status (*capture_begin)(Stream, int) = symbols["cuStreamBeginCapture_v2"];
  Status (*capture_end)(Stream, Recording*) = symbols["cuStreamEndCapture"];
  Status (*graph_instantiate)(Executable*, Recording,
                              unsigned long long) = symbols["cuGraphInstantiateWithFlags"];
  Status (*graph_destroy)(Recording) = symbols["cuGraphDestroy"];
  Status (*executable_destroy)(Executable) = symbols["cuGraphExecDestroy"];
  Status (*graph_launch)(Executable, Stream) = symbols["cuGraphLaunch"];

  Status (*ipc_memory_handle)(IpcHandle*, Address) = symbols["cuIpcGetMemHandle"];
  Status (*ipc_memory_open)(Address*, IpcHandle, unsigned) = symbols["cuIpcOpenMemHandle_v2"];
  Status (*ipc_memory_close)(Address) = symbols["cuIpcCloseMemHandle"];
  Status (*ipc_event_handle)(IpcHandle*, EventOfStream) = symbols["cuIpcGetEventHandle"];
  Status (*ipc_event_open)(EventOfStream*, IpcHandle) = symbols["cuIpcOpenEventHandle"];
};

// Return the library, which is loaded at the first call. Without a driver, its functions are null.
const Library& library();

// Return the name and the message of a driver error, with advice.
std::string described(Status status);

}  // namespace halocline::device::cuda
