// Compiled code of a device, as Python holds it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "device/device.hpp"

namespace halocline {

// A module with its kernels, each made when it is first asked for.
class BoundModule {
 public:
  explicit BoundModule(std::shared_ptr<device::Module> module) : module_(std::move(module)) {}
  BoundModule(const BoundModule&) = delete;
  BoundModule& operator=(const BoundModule&) = delete;

  const std::shared_ptr<device::Module>& shared() const { return module_; }
  const device::Kernel& kernel(const std::string& name) {
    std::unique_ptr<device::Kernel>& made = kernels_[name];
    if (!made) made = module_->kernel(name);
    return *made;
  }

 private:
  std::shared_ptr<device::Module> module_;  // outlives its kernels
  std::map<std::string, std::unique_ptr<device::Kernel>> kernels_;
};

}  // namespace halocline
