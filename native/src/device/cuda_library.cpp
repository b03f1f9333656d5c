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
      return "use more devices or a smaller grid, or end what else uses the device (nvidia-smi lists it)";
    case kNotInitialized:
      return "a process that was forked from one that used devices cannot use them: start new processes "
             "instead "
             "(multiprocessing: the method 'spawn')";
    case kDeinitialized:
      return "the process is about to end";
    case kDeviceUnavailable:
      return "another process holds the device for itself alone: end it, or set the compute mode to default "
             "(nvidia-smi -c 0)";
    case kNoDevice:
      return "check CUDA_VISIBLE_DEVICES, and nvidia-smi -L, which lists the devices";
    case kInvalidImage:
    case kNoBinaryForDevice:
    case kInvalidPtx:
    case kUnsupportedPtxVersion:
      return "the code was compiled for another device, or by a newer compiler than the driver knows: remove "
             "the "
             "cache of compiled kernels, and renew the driver or take an older nvidia-cuda-nvrtc";
    case kLaunchOutOfResources:
      return "the kernel needs more registers or local memory than a thread block of this size can have: "
             "choose a smaller "
             "thread block";
    case kUncorrectableEcc:
    case kUncorrectableLink:
    case kContained:
    case kHardwareStackError:
      return "the device's hardware failed: start anew on another device, and have this one checked "
             "(nvidia-smi -q -d ECC; dmesg shows Xid messages)";
    case kLaunchTimeout:
      return "a display's watchdog ended a kernel that ran too long: use a device without a display; the "
             "process "
             "must be started anew";
    case kIllegalAddress:
    case kAssert:
    case kIllegalInstruction:
    case kMisalignedAddress:
    case kInvalidAddressSpace:
    case kInvalidProgramCounter:
    case kLaunchFailed:
      return "a kernel failed, maybe one that was launched before this call; the process must be started "
             "anew. "
             "compute-sanitizer, put before the command, names the kernel";
    case kSystemNotReady:
      return "a service that the devices need does not run: start nvidia-fabricmanager";
    case kSystemDriverMismatch:
      return "the driver's library and its kernel module are of different versions: start the machine anew";
    case kUnknown:
      return "the device is lost: the process must be started anew; dmesg shows Xid messages that say why";
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
