// Code of CUDA devices: modules and their kernels.

#include <array>
#include <utility>

#include "device/cuda.hpp"

namespace halocline::device::cuda {

CudaKernel::CudaKernel(const CudaDevice& device, Function function, std::string name)
    : device(device),
      function(function),
      name(std::move(name)),
      threads_(attribute(kFunctionMaxThreadsPerBlock)),
      registers_(attribute(kFunctionRegisters)),
      spilled_(attribute(kFunctionLocalBytes)) {
  if (library().function_parameter == nullptr) return;
  size_t offset = 0;
  for (size_t size = 0; library().function_parameter(function, sizes_.size(), &offset, &size) == kSuccess;) {
    sizes_.push_back(size);
  }
  sized_ = true;
}

void CudaKernel::reserve_tiles(size_t bytes) {
  tile_bytes_ = bytes;
  device.use();
  const Status status =
      library().set_function_attribute(function, kFunctionMaxDynamicSharedBytes, static_cast<int>(bytes));
  if (status != kSuccess) {
    fail(status, device.label(),
         "reservation of " + std::to_string(bytes) + " bytes of shared memory for kernel " + name);
  }
}

void CudaKernel::check_arguments(std::span<const Argument> arguments) const {
  if (!sized_) return;
  if (arguments.size() != sizes_.size()) {
    throw std::invalid_argument("kernel " + name + ": " + std::to_string(arguments.size()) +
                                " arguments, expected " + std::to_string(sizes_.size()));
  }
  for (size_t n = 0; n < sizes_.size(); ++n) {
    const auto* value = std::get_if<std::span<const std::byte>>(&arguments[n]);
    const size_t size = value == nullptr ? sizeof(Address) : value->size();
    if (size != sizes_[n]) {
      throw std::invalid_argument("kernel " + name + ": argument " + std::to_string(n) + " has " +
                                  std::to_string(size) + " bytes, expected " + std::to_string(sizes_[n]));
    }
  }
}

int CudaKernel::attribute(FunctionAttribute attribute) const {
  int value = 0;
  device.check(library().function_attribute(&value, attribute, function), "query of a kernel attribute");
  return value;
}

namespace {

class CudaModule : public Module {
 public:
  CudaModule(const CudaDevice& device, Code code) : device_(device), code_(code) {}
  ~CudaModule() override {
    try {
      device_.use();
    } catch (const DeviceError&) {
      return;
    }
    library().module_unload(code_);
  }

  std::unique_ptr<Kernel> kernel(const std::string& name) const override {
    device_.use();
    Function function = nullptr;
    const Status status = library().module_function(&function, code_, name.c_str());
    if (status == kNotFound) {
      throw DeviceError(device_.label() + ": the code has no kernel " + name +
                        " (a kernel is extern \"C\" __global__)");
    }
    device_.check(status, "lookup of a kernel");
    return std::make_unique<CudaKernel>(device_, function, name);
  }

  std::unique_ptr<Buffer> symbol(const std::string& name) const override {
    device_.use();
    Address address = 0;
    size_t bytes = 0;
    device_.check(library().module_global(&address, &bytes, code_, name.c_str()), "lookup of a symbol");
    return std::make_unique<CudaBuffer>(device_, address, bytes, CudaBuffer::Owner::kModule);
  }

 private:
  const CudaDevice& device_;
  Code code_;
};

}  // namespace

std::unique_ptr<Module> CudaDevice::load(const std::string& code, const std::string& options) {
  if (!options.empty()) {
    throw std::invalid_argument(label() + ": options '" + options +
                                "' for compiled code, expected no options");
  }
  use();
  std::array<char, 4096> log{};
  // Values of options are passed in place of pointers.
  std::array<JitOption, 2> names{kJitErrorLog, kJitErrorLogBytes};
  std::array<void*, 2> values{log.data(),
                              reinterpret_cast<void*>(log.size() - 1)};  // NOLINT(performance-no-int-to-ptr)
  Code loaded = nullptr;
  const Status status =
      library().module_load(&loaded, code.c_str(), names.size(), names.data(), values.data());
  if (status != kSuccess) {
    std::string operation = "loading code";
    if (log[0] != 0) operation += std::string(" (") + log.data() + ")";
    fail(status, label(), operation + " for " + description_.architecture);
  }
  return std::make_unique<CudaModule>(*this, loaded);
}

}  // namespace halocline::device::cuda
