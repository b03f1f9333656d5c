// OpenCL devices of this process: their properties, and the contexts of their platforms.

#include "device/opencl.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

namespace halocline::device {
namespace opencl {

const cl::Library& api() {
  std::string why;
  return *cl::library(why);
}

std::string described(cl::Int error) {
  const std::string advice = cl::advice_on(error);
  return cl::name_of(error) + (advice.empty() ? "" : ": " + advice);
}

[[noreturn]] void fail(const std::string& device, const std::string& doing, cl::Int error) {
  throw DeviceError(device + ": " + doing + " failed with " + described(error));
}

namespace {

template <typename Value>
Value device_info(cl::DeviceId device, cl::UInt what) {
  Value value{};
  return api().GetDeviceInfo(device, what, sizeof value, &value, nullptr) == cl::kSuccess ? value : Value{};
}

std::string device_text(cl::DeviceId device, cl::UInt what) {
  return text([&](size_t bytes, void* to, size_t* needed) {
    return api().GetDeviceInfo(device, what, bytes, to, needed);
  });
}

// The version of OpenCL that a device provides, as 100 * major + minor: "OpenCL 1.2 words of the driver's".
int version_of(cl::DeviceId device) {
  std::istringstream words(device_text(device, cl::kDeviceVersion));
  std::string opencl;
  int major = 0, minor = 0;
  char point = 0;
  return words >> opencl >> major >> point >> minor ? 100 * major + minor : 0;
}

// float64 as the promise of equal bits needs it: with fma, subnormals, infinities and NaNs.
bool has_doubles(cl::DeviceId device) {
  constexpr cl::Bits kNeeded = cl::kFpDenorm | cl::kFpInfNan | cl::kFpRoundToNearest | cl::kFpFma;
  return (device_info<cl::Bits>(device, cl::kDeviceDoubleFpConfig) & kNeeded) == kNeeded;
}

// The same of float32, but for subnormals, which are outside the promise.
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
  Description found;
  found.interface = "opencl";
  found.name = device_text(device, cl::kDeviceName);
  found.driver = device_text(device, cl::kDriverVersion);
  found.memory = device_info<cl::Bits>(device, cl::kDeviceGlobalMemSize);
  found.local_memory = device_info<cl::Bits>(device, cl::kDeviceLocalMemSize);
  found.largest_group = device_info<size_t>(device, cl::kDeviceMaxWorkGroupSize);
  found.parameters = device_info<size_t>(device, cl::kDeviceMaxParameterSize);
  found.units = static_cast<int>(device_info<cl::UInt>(device, cl::kDeviceMaxComputeUnits));
  found.doubles = has_doubles(device);
  found.singles = has_singles(device);
  return found;
}

// Why a device cannot be used; null where it can.
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
  return text([&](size_t bytes, void* to, size_t* needed) {
    return api().GetPlatformInfo(platform, cl::kPlatformName, bytes, to, needed);
  });
}

// The devices of a platform, with a context for all of them; none adds a reason to `why`.
std::vector<Candidate> devices_of(cl::Platform platform, const std::string& name, std::string& why) {
  const auto note = [&](const std::string& reason) {
    if (!why.empty()) why += "; ";
    why += "the platform " + name + reason;
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
    note(" gives no context: " + cl::name_of(error));
    return {};
  }
  std::vector<Candidate> found;
  std::map<std::string, int> same;  // devices of equal names are told apart by their order
  for (const cl::DeviceId device : devices) {
    const std::string model = device_text(device, cl::kDeviceName);
    std::string identity = name;
    identity.append(": ").append(model).append(" #").append(std::to_string(same[model]++));
    found.push_back({device, context, name, std::move(identity)});
  }
  return found;
}

struct Found {
  std::vector<std::shared_ptr<Device>> devices;
  std::string why;
};

Found search() {
  Found found;
  if (cl::library(found.why) == nullptr) return found;
  cl::UInt count = 0;
  if (api().GetPlatformIDs(0, nullptr, &count) != cl::kSuccess || count == 0) {
    found.why =
        "OpenCL has no platform: install a driver for the device (for the processor, Debian: "
        "pocl-opencl-icd)";
    return found;
  }
  std::vector<cl::Platform> platforms(count);
  api().GetPlatformIDs(count, platforms.data(), nullptr);
  std::vector<Candidate> candidates;
  std::map<std::string, int> same;  // platforms of equal names too
  for (const cl::Platform platform : platforms) {
    std::string name = platform_name(platform);
    if (const int before = same[name]++; before > 0) name += " #" + std::to_string(before);
    std::ranges::copy(devices_of(platform, name, found.why), std::back_inserter(candidates));
  }
  std::ranges::stable_sort(candidates, {}, [](const Candidate& each) {  // GPUs first
    return (device_info<cl::Bits>(each.device, cl::kDeviceType) & cl::kDeviceTypeGpu) == 0;
  });
  for (const Candidate& each : candidates) {
    Description description = describe(each.device);
    description.index = static_cast<int>(found.devices.size());
    description.platform = each.platform;
    description.identity = each.identity;
    found.devices.push_back(std::make_shared<ClDevice>(std::move(description), each.device, each.context));
  }
  if (!found.devices.empty()) found.why.clear();
  return found;
}

// Never destroyed: drivers may be gone before this is when the process ends.
const Found& all() {
  static const auto* found = new Found(search());
  return *found;
}

}  // namespace
}  // namespace opencl

const std::vector<std::shared_ptr<Device>>& opencl_devices() { return opencl::all().devices; }
const std::string& why_no_opencl() { return opencl::all().why; }

}  // namespace halocline::device
