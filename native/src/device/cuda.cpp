// CUDA devices through the driver's interface.

#include "device.hpp"

namespace halocline::device {

const std::vector<std::shared_ptr<Device>>& cuda_devices() {
  static const std::vector<std::shared_ptr<Device>> none;
  return none;
}

const std::string& why_no_cuda() {
  static const std::string why = "this build of Halocline does not drive CUDA devices";
  return why;
}

}  // namespace halocline::device
