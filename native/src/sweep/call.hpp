// Call of a generated kernel on the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halocline/abi.h"
#include "ranks/rank.hpp"

namespace halocline {

// Kernel with the storages of its operands in one subdomain.
class Call {
 public:
  Call(const Rank& rank, const Subdomain& subdomain, const std::string& kernel,
       const std::vector<int64_t>& operands);

  // Read the current addresses of the storages, which change with swaps.
  void bind();
  void operator()(hc_accumulator* reductions, void* scratch, const hc_box& box) const {
    const hc_arguments arguments{fields_.data(), strides_.data(), scalars_, subdomain_.origin.data(),
                                 shape_.data(),  reductions,      scratch};
    kernel_(&arguments, &box);
  }

 private:
  const Subdomain& subdomain_;
  const double* scalars_;
  const Index& shape_;
  hc_kernel kernel_;
  std::vector<uint32_t> operands_;
  std::vector<void*> fields_;
  std::vector<int64_t> strides_;
};

}  // namespace halocline
