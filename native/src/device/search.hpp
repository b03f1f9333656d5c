// Search for non-finite values on the device, which avoids copies of the fields to the host.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/storage.hpp"

namespace halocline::device {

class Search {
 public:
  using Boxes = std::vector<std::pair<Index, Index>>;

  // Queue the search of boxes in storages of one device, without waiting. `module` contains device_find.h.
  // Throws std::invalid_argument for a box that is not inside its storage.
  Search(std::shared_ptr<Module> module, std::vector<std::shared_ptr<Storage>> storages,
         const std::vector<Boxes>& boxes);

  // Wait, and return for each storage true if a value in its boxes is not finite.
  std::vector<bool> has_nonfinite();

 private:
  void queue_box(size_t number, const Index& lo, const Index& hi);

  std::shared_ptr<Module> module_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::shared_ptr<Storage>> storages_;
  std::unique_ptr<Buffer> flags_;  // one integer per storage
  std::unique_ptr<Queue> queue_;   // destroyed first: it waits
};

}  // namespace halocline::device
