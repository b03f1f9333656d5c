// Code of OpenCL devices: programs and their kernels.

#include <utility>

#include "device/opencl.hpp"

namespace halocline::device::opencl {

ClKernel::ClKernel(std::shared_ptr<State> state, cl::Kernel kernel, std::string name)
    : state_(std::move(state)), kernel_(kernel), name_("kernel " + std::move(name)) {
  check(state_->label, name_,
        api().GetKernelInfo(kernel_, cl::kKernelNumArgs, sizeof count_, &count_, nullptr));
}

size_t ClKernel::max_threads_per_block() const {
  size_t threads = 0;
  check(state_->label, name_,
        api().GetKernelWorkGroupInfo(kernel_, state_->device, cl::kKernelWorkGroupSize, sizeof threads,
                                     &threads, nullptr));
  return threads;
}

void ClKernel::set(std::span<const Argument> arguments) const {
  if (arguments.size() != count_) {
    throw std::invalid_argument(state_->label + ": " + name_ + " received " +
                                std::to_string(arguments.size()) + " arguments, expected " +
                                std::to_string(count_));
  }
  for (cl::UInt n = 0; n < count_; ++n) {
    cl::Int error = cl::kSuccess;
    if (const auto* buffer = std::get_if<const Buffer*>(&arguments[n])) {
      const cl::Memory memory = *buffer == nullptr ? nullptr : ours(*state_, **buffer).memory();
      error = api().SetKernelArg(kernel_, n, sizeof(cl::Memory), static_cast<const void*>(&memory));
    } else {
      const auto& value = std::get<std::span<const std::byte>>(arguments[n]);
      error = api().SetKernelArg(kernel_, n, value.size(), value.data());
    }
    check(state_->label, "argument " + std::to_string(n) + " of " + name_, error);
  }
}

namespace {

class ClModule : public Module {
 public:
  ClModule(std::shared_ptr<State> state, cl::Program program) : state_(std::move(state)), program_(program) {}
  ~ClModule() override { api().ReleaseProgram(program_); }

  std::unique_ptr<Kernel> kernel(const std::string& name) const override {
    cl::Int error = cl::kSuccess;
    const cl::Kernel created = api().CreateKernel(program_, name.c_str(), &error);
    if (error == cl::kInvalidKernelName) {
      throw DeviceError(state_->label + ": the code has no kernel " + name);
    }
    check(state_->label, "kernel " + name, error);
    return std::make_unique<ClKernel>(state_, created, name);
  }

 private:
  std::shared_ptr<State> state_;
  cl::Program program_;
};

}  // namespace

std::unique_ptr<Module> ClDevice::load(const std::string& code, const std::string& options) {
  const char* source = code.c_str();
  const size_t length = code.size();
  cl::Int error = cl::kSuccess;
  const cl::Program program = api().CreateProgramWithSource(state_->context, 1, &source, &length, &error);
  check(state_->label, "creation of a program", error);
  auto module = std::make_unique<ClModule>(state_, program);
  const std::string all = options + (options.empty() ? "" : " ") + "-cl-std=CL1.2";
  error = api().BuildProgram(program, 1, &state_->device, all.c_str(), nullptr, nullptr);
  if (error != cl::kSuccess) {
    const std::string log = text([&](size_t bytes, void* to, size_t* required) {
      return api().GetProgramBuildInfo(program, state_->device, cl::kProgramBuildLog, bytes, to, required);
    });
    throw DeviceError(state_->label + ": code does not compile with options '" + all + "', " +
                      described(error) + "\n" + (log.empty() ? "the compiler printed no message" : log));
  }
  return module;
}

}  // namespace halocline::device::opencl
