// OpenCL devices of this process: their properties, and the contexts of their platforms.

#include "device/opencl.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

namespace halocline::device {
namespace opencl {

const cl::Library& api() {
  std::string reason;
  return *cl::library(reason);
}

std::string described(cl::Int error) {
  const std::string advice = cl::advice_on(error);
  return cl::name_of(error) + (advice.empty() ? "" : ": " + advice);
}

[[noreturn]] void fail(const std::string& device, const std::string& operation, cl::Int error) {
  throw DeviceError(device + ": " + operation + " failed with " + described(error));
}

namespace {

template <typename Value>
Value device_info(cl::DeviceId device, cl::UInt parameter) {
  Value value{};
  return api().GetDeviceInfo(device, parameter, sizeof value, &value, nullptr) == cl::kSuccess ? value
                                                                                               : Value{};
}

std::string device_text(cl::DeviceId device, cl::UInt parameter) {
  return text([&](size_t bytes, void* to, size_t* required) {
    return api().GetDeviceInfo(device, parameter, bytes, to, required);
  });
}

// Return the OpenCL version of a device as 100 * major + minor, from a text such as "OpenCL 1.2 words of the
// driver".
int version_of(cl::DeviceId device) {
  std::istringstream words(device_text(device, cl::kDeviceVersion));
  std::string opencl;
  int major = 0, minor = 0;
  char point = 0;
  return words >> opencl >> major >> point >> minor ? 100 * major + minor : 0;
}

// Return true if float64 has fma, subnormals, infinities and NaNs, which bit-for-bit identical results
// require.
bool has_doubles(cl::DeviceId device) {
  constexpr cl::Bits kNeeded = cl::kFpDenorm | cl::kFpInfNan | cl::kFpRoundToNearest | cl::kFpFma;
  return (device_info<cl::Bits>(device, cl::kDeviceDoubleFpConfig) & kNeeded) == kNeeded;
}

// Return true if float32 has fma, infinities, NaNs, and correctly rounded division and square root.
// The guarantee of bit-for-bit identical results does not include subnormals of float32.
bool has_singles(cl::DeviceId device) {
  constexpr cl::Bits kNeeded = cl::kFpInfNan | cl::kFpRoundToNearest | cl::kFpFma | cl::kFpDivideSqrt;
  return (device_info<cl::Bits>(device, cl::kDeviceSingleFpConfig) & kNeeded) == kNeeded;
}

}  // namespace

ClDevice::ClDevice(Description description, cl::DeviceId device, cl::Context context)
    : description_(std::move(description)), state_(std::make_shared<State>(device, context)) {
  state_->label = "OpenCL device " + std::to_string(description_.index) + " (" + description_.name + ")";
  largest_buffer_ = device_info<cl::Bits>(device, cl::kDeviceMaxMemAllocSize);
  const std::string extensions = " " + device_text(device, cl::kDeviceExtensions) + " ";
  state_->priorities = version_of(device) >= 200 && api().CreateCommandQueueWithProperties != nullptr &&
                       extensions.find(" cl_khr_priority_hints ") != std::string::npos;
  setup_ = make_queue(*state_, false, false);
}

namespace {

Description describe(cl::DeviceId device) {
  Description description;
  description.interface = "opencl";
  description.name = device_text(device, cl::kDeviceName);
  description.driver = device_text(device, cl::kDriverVersion);
  description.memory = device_info<cl::Bits>(device, cl::kDeviceGlobalMemSize);
  description.local_memory = device_info<cl::Bits>(device, cl::kDeviceLocalMemSize);
  description.max_threads_per_block = device_info<size_t>(device, cl::kDeviceMaxWorkGroupSize);
  description.parameters = device_info<size_t>(device, cl::kDeviceMaxParameterSize);
  description.units = static_cast<int>(device_info<cl::UInt>(device, cl::kDeviceMaxComputeUnits));
  description.doubles = has_doubles(device);
  description.singles = has_singles(device);
  return description;
}

// Return the missing feature that makes a device unusable, or null.
const char* lack_of(cl::DeviceId device) {
  if (version_of(device) < 102) return "OpenCL 1.2";
  if (device_info<cl::UInt>(device, cl::kDeviceAvailable) == 0) return "availability";
  if (device_info<cl::UInt>(device, cl::kDeviceCompilerAvailable) == 0) return "a compiler";
  return nullptr;
}

struct Candidate {
  cl::DeviceId device;
  cl::Context context;
  std::string platform, identity;
};

std::string platform_name(cl::Platform platform) {
  return text([&](size_t bytes, void* to, size_t* required) {
    return api().GetPlatformInfo(platform, cl::kPlatformName, bytes, to, required);
  });
}

// Return the devices of a platform, with a context for all of them. If there are none, add a reason to
// `reasons`.
std::vector<Candidate> devices_of(cl::Platform platform, const std::string& name, std::string& reasons) {
  const auto note = [&](const std::string& reason) {
    if (!reasons.empty()) reasons += "; ";
    reasons += "the platform " + name + reason;
  };
  constexpr cl::Bits kTypes = cl::kDeviceTypeCpu | cl::kDeviceTypeGpu | cl::kDeviceTypeAccelerator;
  cl::UInt count = 0;
  if (api().GetDeviceIDs(platform, kTypes, 0, nullptr, &count) != cl::kSuccess || count == 0) {
    note(" has no device");
    return {};
  }
  std::vector<cl::DeviceId> devices(count);
  api().GetDeviceIDs(platform, kTypes, count, devices.data(), nullptr);
  std::erase_if(devices, [&](cl::DeviceId device) {
    const char* lack = lack_of(device);
    if (lack != nullptr) note(" has the device " + device_text(device, cl::kDeviceName) + " without " + lack);
    return lack != nullptr;
  });
  if (devices.empty()) return {};
  const cl::Property properties[] = {cl::kContextPlatform, reinterpret_cast<cl::Property>(platform), 0};
  cl::Int error = cl::kSuccess;
  const cl::Context context = api().CreateContext(properties, static_cast<cl::UInt>(devices.size()),
                                                  devices.data(), nullptr, nullptr, &error);
  if (error != cl::kSuccess) {
    note(" cannot create a context: " + cl::name_of(error));
    return {};
  }
  std::vector<Candidate> candidates;
  std::map<std::string, int> same;  // devices of equal names are distinguished by their order
  for (const cl::DeviceId device : devices) {
    const std::string model = device_text(device, cl::kDeviceName);
    std::string identity = name;
    identity.append(": ").append(model).append(" #").append(std::to_string(same[model]++));
    candidates.push_back({device, context, name, std::move(identity)});
  }
  return candidates;
}

struct Discovery {
  std::vector<std::shared_ptr<Device>> devices;
  std::string reason;
};

Discovery discover() {
  Discovery result;
  if (cl::library(result.reason) == nullptr) return result;
  cl::UInt count = 0;
  if (api().GetPlatformIDs(0, nullptr, &count) != cl::kSuccess || count == 0) {
    result.reason =
        "OpenCL has no platform: install a driver for the device (for CPUs on Debian: "
        "pocl-opencl-icd)";
    return result;
  }
  std::vector<cl::Platform> platforms(count);
  api().GetPlatformIDs(count, platforms.data(), nullptr);
  std::vector<Candidate> candidates;
  std::map<std::string, int> same;  // platforms of equal names are distinguished by their order
  for (const cl::Platform platform : platforms) {
    std::string name = platform_name(platform);
    if (const int before = same[name]++; before > 0) name += " #" + std::to_string(before);
    std::ranges::copy(devices_of(platform, name, result.reason), std::back_inserter(candidates));
  }
  std::ranges::stable_sort(candidates, {}, [](const Candidate& candidate) {  // GPUs first
    return (device_info<cl::Bits>(candidate.device, cl::kDeviceType) & cl::kDeviceTypeGpu) == 0;
  });
  for (const Candidate& candidate : candidates) {
    Description description = describe(candidate.device);
    description.index = static_cast<int>(result.devices.size());
    description.platform = candidate.platform;
    description.identity = candidate.identity;
    result.devices.push_back(
        std::make_shared<ClDevice>(std::move(description), candidate.device, candidate.context));
  }
  if (!result.devices.empty()) result.reason.clear();
  return result;
}

// Never destroyed: drivers may be unloaded earlier at the end of the process.
const Discovery& discovery() {
  static const auto* instance = new Discovery(discover());
  return *instance;
}

}  // namespace
}  // namespace opencl

const std::vector<std::shared_ptr<Device>>& opencl_devices() { return opencl::discovery().devices; }
const std::string& why_no_opencl() { return opencl::discovery().reason; }

}  // namespace halocline::device
