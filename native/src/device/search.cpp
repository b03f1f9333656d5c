#include "device/search.hpp"

#include <algorithm>
#include <array>

#include "device/subdomain.hpp"

namespace halocline::device {

namespace {

constexpr std::array<uint32_t, 3> kBlockShape{32, 8, 1};
constexpr int64_t kCells = 8;         // per thread along an axis; more in large boxes
constexpr int64_t kMaxBlocks = 1024;  // along an axis

uint32_t block_count(int64_t cells, uint32_t threads) {
  const int64_t cells_per_block = kCells * threads;
  return static_cast<uint32_t>(
      std::clamp<int64_t>((cells + cells_per_block - 1) / cells_per_block, 1, kMaxBlocks));
}

}  // namespace

Search::Search(std::shared_ptr<Module> module, std::vector<std::shared_ptr<Storage>> storages,
               const std::vector<Boxes>& boxes)
    : module_(std::move(module)), storages_(std::move(storages)) {
  if (storages_.empty() || boxes.size() != storages_.size()) {
    throw std::invalid_argument("boxes for " + std::to_string(boxes.size()) +
                                " storages, expected boxes for " + std::to_string(storages_.size()) +
                                " storages and at least one storage");
  }
  Device& device = *storages_.front()->device();
  kernel_ = kernel_for(device, *module_, "hc_find_nonfinite", size_t{kBlockShape[0]} * kBlockShape[1]);
  flags_ = device.allocate(storages_.size() * sizeof(int64_t));
  queue_ = device.queue(false);
  for (size_t number = 0; number < boxes.size(); ++number) {
    for (const auto& [lo, hi] : boxes[number]) queue_box(number, lo, hi);
  }
  queue_->flush();
}

void Search::queue_box(size_t number, const Index& lo, const Index& hi) {
  const Storage& storage = *storages_[number];
  if (!storage.holds(lo, hi)) {
    throw std::invalid_argument("box " + text(lo) + " to " + text(hi) + " is not within storage of shape " +
                                text(storage.shape()));
  }
  const int64_t planes = hi[0] - lo[0], rows = hi[1] - lo[1], row = hi[2] - lo[2];
  if (planes * rows * row == 0) return;
  hc_layout first = storage.layout();
  first.at = storage.at(lo);
  const auto itemsize = static_cast<int64_t>(storage.itemsize()), flag = static_cast<int64_t>(number);
  const std::array<Argument, 8> arguments{&storage.buffer(), value(first),    value(planes), value(rows),
                                          value(row),        value(itemsize), flags_.get(),  value(flag)};
  queue_->launch(*kernel_, {block_count(row, kBlockShape[0]), block_count(planes * rows, kBlockShape[1]), 1},
                 kBlockShape, arguments);
}

std::vector<bool> Search::has_nonfinite() {
  std::vector<int64_t> flags(storages_.size());
  queue_->download(flags.data(), *flags_, 0, flags.size() * sizeof(int64_t));
  queue_->finish();
  return {flags.begin(), flags.end()};
}

}  // namespace halocline::device
