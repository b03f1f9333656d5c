// Functions of OpenCL 1.2, located at run time, so that a build needs neither its headers nor its library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::device::cl {

using Int = int32_t;
using UInt = uint32_t;
using Bits = uint64_t;
using Property = intptr_t;

using Platform = struct PlatformObject*;
using DeviceId = struct DeviceObject*;
using Context = struct ContextObject*;
using CommandQueue = struct CommandQueueObject*;
using Memory = struct MemoryObject*;
using Program = struct ProgramObject*;
using Kernel = struct KernelObject*;
using Event = struct EventObject*;

// Constants of the interface, with the names of its standard.
inline constexpr Int kSuccess = 0;
inline constexpr Int kMemObjectAllocationFailure = -4;
inline constexpr Int kOutOfResources = -5;
inline constexpr Int kOutOfHostMemory = -6;
inline constexpr Int kExecStatusErrorForEventsInWaitList = -14;
inline constexpr Int kInvalidContext = -34;
inline constexpr Int kInvalidKernelName = -46;
inline constexpr Int kInvalidBufferSize = -61;
inline constexpr Int kComplete = 0;
inline constexpr UInt kTrue = 1;
inline constexpr UInt kFalse = 0;

inline constexpr UInt kPlatformName = 0x0902;
inline constexpr Bits kDeviceTypeCpu = 1 << 1;
inline constexpr Bits kDeviceTypeGpu = 1 << 2;
inline constexpr Bits kDeviceTypeAccelerator = 1 << 3;
inline constexpr UInt kDeviceType = 0x1000;
inline constexpr UInt kDeviceMaxComputeUnits = 0x1002;
inline constexpr UInt kDeviceMaxWorkGroupSize = 0x1004;
inline constexpr UInt kDeviceMaxParameterSize = 0x1017;
inline constexpr UInt kDeviceMaxMemAllocSize = 0x1010;
inline constexpr UInt kDeviceGlobalMemSize = 0x101F;
inline constexpr UInt kDeviceLocalMemSize = 0x1023;
inline constexpr UInt kDeviceAvailable = 0x1027;
inline constexpr UInt kDeviceCompilerAvailable = 0x1028;
inline constexpr UInt kDeviceName = 0x102B;
inline constexpr UInt kDriverVersion = 0x102D;
inline constexpr UInt kDeviceVersion = 0x102F;
inline constexpr UInt kDeviceExtensions = 0x1030;
inline constexpr UInt kDeviceSingleFpConfig = 0x101B;
inline constexpr UInt kDeviceDoubleFpConfig = 0x1032;
inline constexpr Bits kFpDenorm = 1 << 0;
inline constexpr Bits kFpInfNan = 1 << 1;
inline constexpr Bits kFpRoundToNearest = 1 << 2;
inline constexpr Bits kFpFma = 1 << 5;
inline constexpr Bits kFpDivideSqrt = 1 << 7;  // correctly rounded
inline constexpr Property kContextPlatform = 0x1084;
inline constexpr Bits kQueueProperties = 0x1093;
inline constexpr Bits kQueueProfilingEnable = 1 << 1;
inline constexpr Bits kQueuePriority = 0x1096;
inline constexpr Bits kQueuePriorityHigh = 1 << 0;
inline constexpr Bits kMemReadWrite = 1 << 0;
inline constexpr Bits kMemAllocHostPtr = 1 << 4;
inline constexpr Bits kMapRead = 1 << 0;
inline constexpr Bits kMapWrite = 1 << 1;
inline constexpr UInt kProgramBuildLog = 0x1183;
inline constexpr UInt kKernelNumArgs = 0x1191;
inline constexpr UInt kKernelWorkGroupSize = 0x11B0;
inline constexpr UInt kEventCommandExecutionStatus = 0x11D3;
inline constexpr UInt kProfilingCommandStart = 0x1282;
inline constexpr UInt kProfilingCommandEnd = 0x1283;

// Functions of the interface: NAME is clNAME of the standard.
struct Library {
  Int (*GetPlatformIDs)(UInt, Platform*, UInt*);
  Int (*GetPlatformInfo)(Platform, UInt, size_t, void*, size_t*);
  Int (*GetDeviceIDs)(Platform, Bits, UInt, DeviceId*, UInt*);
  Int (*GetDeviceInfo)(DeviceId, UInt, size_t, void*, size_t*);
  Context (*CreateContext)(const Property*, UInt, const DeviceId*,
                           void (*)(const char*, const void*, size_t, void*), void*, Int*);
  CommandQueue (*CreateCommandQueue)(Context, DeviceId, Bits, Int*);
  Int (*ReleaseCommandQueue)(CommandQueue);
  Memory (*CreateBuffer)(Context, Bits, size_t, void*, Int*);
  Int (*ReleaseMemObject)(Memory);
  Program (*CreateProgramWithSource)(Context, UInt, const char**, const size_t*, Int*);
  Int (*BuildProgram)(Program, UInt, const DeviceId*, const char*, void (*)(Program, void*), void*);
  Int (*GetProgramBuildInfo)(Program, DeviceId, UInt, size_t, void*, size_t*);
  Int (*ReleaseProgram)(Program);
  Kernel (*CreateKernel)(Program, const char*, Int*);
  Int (*GetKernelInfo)(Kernel, UInt, size_t, void*, size_t*);
  Int (*GetKernelWorkGroupInfo)(Kernel, DeviceId, UInt, size_t, void*, size_t*);
  Int (*SetKernelArg)(Kernel, UInt, size_t, const void*);
  Int (*ReleaseKernel)(Kernel);
  Int (*EnqueueNDRangeKernel)(CommandQueue, Kernel, UInt, const size_t*, const size_t*, const size_t*, UInt,
                              const Event*, Event*);
  Int (*EnqueueCopyBuffer)(CommandQueue, Memory, Memory, size_t, size_t, size_t, UInt, const Event*, Event*);
  Int (*EnqueueCopyBufferRect)(CommandQueue, Memory, Memory, const size_t*, const size_t*, const size_t*,
                               size_t, size_t, size_t, size_t, UInt, const Event*, Event*);
  Int (*EnqueueWriteBufferRect)(CommandQueue, Memory, UInt, const size_t*, const size_t*, const size_t*,
                                size_t, size_t, size_t, size_t, const void*, UInt, const Event*, Event*);
  Int (*EnqueueReadBufferRect)(CommandQueue, Memory, UInt, const size_t*, const size_t*, const size_t*,
                               size_t, size_t, size_t, size_t, void*, UInt, const Event*, Event*);
  Int (*EnqueueWriteBuffer)(CommandQueue, Memory, UInt, size_t, size_t, const void*, UInt, const Event*,
                            Event*);
  Int (*EnqueueReadBuffer)(CommandQueue, Memory, UInt, size_t, size_t, void*, UInt, const Event*, Event*);
  Int (*EnqueueFillBuffer)(CommandQueue, Memory, const void*, size_t, size_t, size_t, UInt, const Event*,
                           Event*);
  void* (*EnqueueMapBuffer)(CommandQueue, Memory, UInt, Bits, size_t, size_t, UInt, const Event*, Event*,
                            Int*);
  Int (*EnqueueUnmapMemObject)(CommandQueue, Memory, void*, UInt, const Event*, Event*);
  Int (*EnqueueMarkerWithWaitList)(CommandQueue, UInt, const Event*, Event*);
  Int (*EnqueueBarrierWithWaitList)(CommandQueue, UInt, const Event*, Event*);
  Int (*WaitForEvents)(UInt, const Event*);
  Int (*GetEventInfo)(Event, UInt, size_t, void*, size_t*);
  Int (*GetEventProfilingInfo)(Event, UInt, size_t, void*, size_t*);
  Int (*RetainEvent)(Event);
  Int (*ReleaseEvent)(Event);
  Int (*Flush)(CommandQueue);
  Int (*Finish)(CommandQueue);
  // Function of OpenCL 2.0; null if the loader is older.
  CommandQueue (*CreateCommandQueueWithProperties)(Context, DeviceId, const Bits*, Int*);
};

// Return the library, which is loaded at the first call. If there is none, return null and set `explanation`.
const Library* library(std::string& explanation);

// Return the standard name of an error, with its number.
std::string name_of(Int error);
// Return advice for the user, or an empty string.
std::string advice_on(Int error);

}  // namespace halocline::device::cl
