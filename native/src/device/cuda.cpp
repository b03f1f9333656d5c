// CUDA devices of this process: their properties, contexts and peers.

#include "device/cuda.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace halocline::device {
namespace cuda {

[[noreturn]] void fail(Status status, const std::string& device, const std::string& operation) {
  throw DeviceError(device + ": " + operation + " failed: " + described(status));
}

namespace {

std::string driver_version() {
  int version = 0;
  library().driver_version(&version);
  return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Return a UUID in the format of nvidia-smi -L.
std::string in_words(const Uuid& uuid, bool part) {
  std::string text = part ? "MIG" : "GPU";
  for (size_t n = 0; n < uuid.bytes.size(); ++n) {
    if (n == 0 || n == 4 || n == 6 || n == 8 || n == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(uuid.bytes[n]));
    text += digits.data();
  }
  return text;
}

}  // namespace

CudaDevice::CudaDevice(int number, int index) : number_(number) {
  description_.interface = "cuda";
  description_.index = index;
  std::array<char, 256> name{};
  check(library().device_name(name.data(), name.size() - 1, number), "query of the device name");
  description_.name = name.data();
  description_.driver = driver_version();
  Uuid uuid{};
  check(library().device_uuid(&uuid, number), "query of the UUID");
  description_.identity = in_words(uuid, description_.name.find(" MIG ") != std::string::npos);
  check(library().device_memory(&description_.memory, number), "query of the memory size");
  description_.architecture = "sm_" + std::to_string(attribute(kComputeCapabilityMajor)) +
                              std::to_string(attribute(kComputeCapabilityMinor));
  description_.local_memory = static_cast<size_t>(attribute(kMaxSharedMemoryPerBlockOptIn));
  description_.max_threads_per_block = static_cast<size_t>(attribute(kMaxThreadsPerBlock));
  description_.parameters = 4096;  // the limit is higher only with CUDA 12.1 or newer on sm_70 or newer
  description_.units = attribute(kMultiprocessorCount);
  description_.doubles = description_.singles = true;  // true for all devices since 2010
  // Drivers without this attribute support shared events.
  int events = 1;
  if (library().device_attribute(&events, kIpcEventSupported, number) != kSuccess) events = 1;
  shares_ = events != 0 && attribute(kUnifiedAddressing) != 0;
}

int CudaDevice::attribute(DeviceAttribute attribute) const {
  int value = 0;
  check(library().device_attribute(&value, attribute, number_), "query of a device attribute");
  return value;
}

std::string CudaDevice::label() const {
  std::string text = "device cuda:" + std::to_string(description_.index);
  if (!description_.name.empty()) text += " (" + description_.name + ")";
  return text;
}

Context CudaDevice::use() const {
  std::call_once(context_once_, [&] {
    Context context = nullptr;
    check(library().primary_context(&context, number_), "creation of a context");
    check(library().set_context(context), "creation of a context");
    check(library().stream_create(&clearing_, kStreamNonBlocking, 0), "creation of a context");
    context_ = context;
  });
  check(library().set_context(context_), "activation of the context");
  return context_;
}

bool CudaDevice::reaches(const Device& other) {
  if (&other == this) return true;
  const auto* peer = dynamic_cast<const CudaDevice*>(&other);
  if (peer == nullptr) return false;
  int reachable = 0;
  check(library().can_access_peer(&reachable, number_, peer->number_), "query of peer access");
  if (reachable == 0) return false;
  const Context peer_context = peer->use();
  use();
  const Status status = library().enable_peer(peer_context, 0);
  if (status == kTooManyPeers)
    return false;  // the number of peers is limited; copies between other devices also work
  if (status != kPeerAccessAlreadyEnabled) check(status, "activation of peer access");
  return true;
}

namespace {

struct Discovery {
  std::vector<std::shared_ptr<Device>> devices;
  std::string reason;
};

Discovery discover() {
  Discovery result;
  const Library& driver = library();
  if (!driver.symbols.loaded()) {
    result.reason = "no CUDA driver: " + driver.symbols.error();
    return result;
  }
  if (!driver.symbols.missing().empty()) {
    result.reason = "the CUDA driver is too old: it has no " + driver.symbols.missing().front() +
                    ". Install a driver for CUDA 11.4 or newer";
    return result;
  }
  int count = 0;
  Status status = driver.init(0);
  if (status == kSuccess) status = driver.device_count(&count);
  if (status == kSuccess && count == 0) status = kNoDevice;
  if (status != kSuccess) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");  // NOLINT(concurrency-mt-unsafe): at start
    result.reason = "no CUDA device";
    if (visible != nullptr) result.reason += std::string(" (CUDA_VISIBLE_DEVICES is '") + visible + "')";
    result.reason += ": " + described(status);
    return result;
  }
  try {
    for (int index = 0; index < count; ++index) {
      int number = 0;
      status = driver.device_get(&number, index);
      if (status != kSuccess) fail(status, "device cuda:" + std::to_string(index), "query of the device");
      result.devices.push_back(std::make_shared<CudaDevice>(number, index));
    }
  } catch (const DeviceError& error) {
    result.devices.clear();
    result.reason = error.what();
  }
  return result;
}

// Never destroyed: users of devices may outlive the static variables.
const Discovery& discovery() {
  static const Discovery* const instance = new Discovery(discover());
  return *instance;
}

}  // namespace

}  // namespace cuda

const std::vector<std::shared_ptr<Device>>& cuda_devices() { return cuda::discovery().devices; }
const std::string& why_no_cuda() { return cuda::discovery().reason; }

}  // namespace halocline::device
