// Looking for values that are not finite where fields lie, so that these need not leave the device.
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

  // Queues the search through boxes of each of some storages of one device, and does not wait for it.
  // `module` has device_find.h. Throws std::invalid_argument for a box that is not within its storage.
  Search(std::shared_ptr<Module> module, std::vector<std::shared_ptr<Storage>> storages,
         const std::vector<Boxes>& boxes);

  // Waits, and tells of each storage whether a value in its boxes is not finite.
  std::vector<bool> found();

 private:
  void look(size_t number, const Index& lo, const Index& hi);

  std::shared_ptr<Module> module_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::shared_ptr<Storage>> storages_;
  std::unique_ptr<Buffer> found_;  // an integer for each storage
  std::unique_ptr<Queue> queue_;   // destroyed first: it waits
};

}  // namespace halocline::device
