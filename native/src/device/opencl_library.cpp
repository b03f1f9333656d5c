#include "device/opencl_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

namespace halocline::device::cl {

namespace {

constexpr std::pair<Int, const char*> kNames[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-64, "CL_INVALID_PROPERTY"},
    {-66, "CL_INVALID_COMPILER_OPTIONS"},
    {-67, "CL_INVALID_LINKER_OPTIONS"},
    {-72, "CL_MAX_SIZE_RESTRICTION_EXCEEDED"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

template <typename Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

// Fill the table. Return the name of the first missing function, or null.
const char* fill(void* handle, Library& table) {
#define HC_FIND(NAME) \
  if (!find(handle, "cl" #NAME, table.NAME)) return "cl" #NAME
  HC_FIND(GetPlatformIDs);
  HC_FIND(GetPlatformInfo);
  HC_FIND(GetDeviceIDs);
  HC_FIND(GetDeviceInfo);
  HC_FIND(CreateContext);
  HC_FIND(CreateCommandQueue);
  HC_FIND(ReleaseCommandQueue);
  HC_FIND(CreateBuffer);
  HC_FIND(ReleaseMemObject);
  HC_FIND(CreateProgramWithSource);
  HC_FIND(BuildProgram);
  HC_FIND(GetProgramBuildInfo);
  HC_FIND(ReleaseProgram);
  HC_FIND(CreateKernel);
  HC_FIND(GetKernelInfo);
  HC_FIND(GetKernelWorkGroupInfo);
  HC_FIND(SetKernelArg);
  HC_FIND(ReleaseKernel);
  HC_FIND(EnqueueNDRangeKernel);
  HC_FIND(EnqueueCopyBuffer);
  HC_FIND(EnqueueCopyBufferRect);
  HC_FIND(EnqueueWriteBufferRect);
  HC_FIND(EnqueueReadBufferRect);
  HC_FIND(EnqueueWriteBuffer);
  HC_FIND(EnqueueReadBuffer);
  HC_FIND(EnqueueFillBuffer);
  HC_FIND(EnqueueMapBuffer);
  HC_FIND(EnqueueUnmapMemObject);
  HC_FIND(EnqueueMarkerWithWaitList);
  HC_FIND(EnqueueBarrierWithWaitList);
  HC_FIND(WaitForEvents);
  HC_FIND(GetEventInfo);
  HC_FIND(GetEventProfilingInfo);
  HC_FIND(RetainEvent);
  HC_FIND(ReleaseEvent);
  HC_FIND(Flush);
  HC_FIND(Finish);
#undef HC_FIND
  find(handle, "clCreateCommandQueueWithProperties", table.CreateCommandQueueWithProperties);
  return nullptr;
}

}  // namespace

const Library* library(std::string& explanation) {
  static Library table{};
  static const std::string failure = []() -> std::string {
    void* handle = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed: drivers have threads
    if (handle == nullptr) {
      const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe): each thread has its own
      return std::string("the OpenCL loader cannot be loaded (") +
             (reason == nullptr ? "no reason" : reason) +
             "): install it (Debian: ocl-icd-libopencl1) and a driver for the device";
    }
    const char* missing = fill(handle, table);
    return missing == nullptr ? ""
                              : std::string("libOpenCL.so.1 has no ") + missing +
                                    ": install a loader of OpenCL 1.2 or newer";
  }();
  explanation = failure;
  return failure.empty() ? &table : nullptr;
}

std::string name_of(Int error) {
  const auto* known_name = std::ranges::find(kNames, error, [](const auto& entry) { return entry.first; });
  const std::string name = known_name == std::end(kNames) ? "error" : known_name->second;
  return name + " (" + std::to_string(error) + ")";
}

std::string advice_on(Int error) {
  switch (error) {
    case -2:
    case -36:
      return "the device is lost or a kernel has failed. Check the system log and restart the process";
    case -3:
      return "install a driver with a compiler";
    case -4:
    case -6:
      return "use a smaller grid or more devices";
    case -5:
      return "a kernel has failed, or needs more registers or local memory than are available. Try smaller "
             "thread blocks or a smaller grid";
    case -14:
      return "a preceding operation has failed. See the earlier errors";
    case -34:
      return "use devices of one platform";
    case -43:
      return "the driver does not support one of the options. Try a newer driver";
    case -54:
    case -55:
      return "use fewer threads per thread block";
    default:
      return error < -1000 ? "the error is specific to the driver. See the documentation of the driver" : "";
  }
}

}  // namespace halocline::device::cl
