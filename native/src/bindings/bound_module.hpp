// Python object for compiled device code.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "device/device.hpp"

namespace halocline {

// Module with its kernels. A kernel is created at its first use.
class BoundModule {
 public:
  explicit BoundModule(std::shared_ptr<device::Module> module) : module_(std::move(module)) {}
  BoundModule(const BoundModule&) = delete;
  BoundModule& operator=(const BoundModule&) = delete;

  const std::shared_ptr<device::Module>& shared() const { return module_; }
  const device::Kernel& kernel(const std::string& name) {
    std::unique_ptr<device::Kernel>& slot = kernels_[name];
    if (!slot) slot = module_->kernel(name);
    return *slot;
  }

 private:
  std::shared_ptr<device::Module> module_;  // outlives its kernels
  std::map<std::string, std::unique_ptr<device::Kernel>> kernels_;
};

}  // namespace halocline
