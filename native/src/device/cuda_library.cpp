#include "device/cuda_library.hpp"

namespace halocline::device::cuda {

const Library& library() {
  static const Library library;
  return library;
}

namespace {

// Return advice for the user, or an empty string if the driver message is sufficient.
const char* advice(Status status) {
  switch (status) {
    case kOutOfMemory:
      return "use more devices or a smaller grid, or end other processes on the device (nvidia-smi lists "
             "them)";
    case kNotInitialized:
      return "a process cannot use devices if it was forked from a process that used devices. Start new "
             "processes instead (multiprocessing: method 'spawn')";
    case kDeinitialized:
      return "the process is about to end";
    case kDeviceUnavailable:
      return "another process uses the device exclusively. End this process, or set the compute mode to "
             "default (nvidia-smi -c 0)";
    case kNoDevice:
      return "check CUDA_VISIBLE_DEVICES, and the list of devices of nvidia-smi -L";
    case kInvalidImage:
    case kNoBinaryForDevice:
    case kInvalidPtx:
    case kUnsupportedPtxVersion:
      return "the code was compiled for another device, or by a compiler that is newer than the driver. "
             "Remove the cache of kernels, and update the driver or install an older nvidia-cuda-nvrtc";
    case kLaunchOutOfResources:
      return "the kernel needs more registers or local memory than a thread block of this size can have. Use "
             "a smaller thread block";
    case kUncorrectableEcc:
    case kUncorrectableLink:
    case kContained:
    case kHardwareStackError:
      return "the hardware of the device failed. Restart on another device, and check the failed device "
             "(nvidia-smi -q -d ECC, Xid messages in dmesg)";
    case kLaunchTimeout:
      return "the watchdog of a display ended a kernel that ran too long. Restart the process on a device "
             "without a display";
    case kIllegalAddress:
    case kAssert:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidProgramCounter:
    case kLaunchFailed:
      return "a kernel failed, possibly one that was launched before this call. Restart the process. To find "
             "the kernel, run the command with compute-sanitizer";
    case kSystemNotReady:
      return "a service that the devices need is not running. Start nvidia-fabricmanager";
    case kSystemDriverMismatch:
      return "the library and the kernel module of the driver have different versions. Reboot the machine";
    case kUnknown:
      return "the device is lost. Restart the process; Xid messages in dmesg give the reason";
    default:
      return "";
  }
}

}  // namespace

std::string described(Status status) {
  const char* name = nullptr;
  const char* words = nullptr;
  if (library().error_name != nullptr) library().error_name(status, &name);
  if (library().error_string != nullptr) library().error_string(status, &words);
  std::string text = name == nullptr ? "CUDA error " + std::to_string(status) : name;
  if (words != nullptr) text += std::string(" (") + words + ")";
  if (*advice(status) != 0) text += std::string(": ") + advice(status);
  return text;
}

}  // namespace halocline::device::cuda
