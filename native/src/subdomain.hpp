// What all operations of an engine work on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "communicator.hpp"
#include "exchange.hpp"
#include "halocline/abi.h"
#include "library.hpp"
#include "storage.hpp"

namespace halocline {

struct Subdomain {
  Library library;
  Storages storages;
  double* scalars;
  size_t scalar_count;
  Index origin, shape;  // global index of cell (0, 0, 0), global shape of the grid
  int threads;
  std::unique_ptr<Communicator> communicator;  // none: one rank, and no call of MPI
  std::vector<hc_box> patches;
  std::vector<int> owners;  // the thread of each patch
  double timeout;           // seconds without a message after which the run is given up

  bool alone() const { return !communicator || communicator->size() == 1; }
  // The number itself; throws std::invalid_argument where there is no such storage or scalar.
  uint32_t check_storage(int64_t number) const;
  size_t check_scalar(int64_t number) const;
};

// A kernel with the storages that it works on.
class Call {
 public:
  Call(const Subdomain& subdomain, const std::string& kernel, const std::vector<int64_t>& operands);

  // Takes the present addresses of the storages; they change with swaps.
  void bind();
  void operator()(hc_accumulator* reductions, void* scratch, const hc_box& box) const {
    const hc_arguments arguments{fields_.data(),
                                 strides_.data(),
                                 subdomain_.scalars,
                                 subdomain_.origin.data(),
                                 subdomain_.shape.data(),
                                 reductions,
                                 scratch};
    kernel_(&arguments, &box);
  }

 private:
  const Subdomain& subdomain_;
  hc_kernel kernel_;
  std::vector<uint32_t> operands_;
  std::vector<void*> fields_;
  std::vector<int64_t> strides_;
};

}  // namespace halocline
