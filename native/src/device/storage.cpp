#include "storage.hpp"

#include <cstring>
#include <vector>

namespace halocline::device {

namespace {

constexpr int64_t kSegment = 128;  // bytes

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Storage::Storage(std::shared_ptr<Device> device, const Index& shape, const Index& lower, const Index& upper,
                 size_t itemsize)
    : device_(std::move(device)), shape_(shape), lower_(lower), upper_(upper), itemsize_(itemsize) {
  if (itemsize != 4 && itemsize != 8) {
    throw std::invalid_argument("itemsize is " + std::to_string(itemsize) + ", expected 4 or 8");
  }
  for (size_t axis = 0; axis < 3; ++axis) {
    if (shape[axis] < 1 || lower[axis] < 0 || upper[axis] < 0) {
      throw std::invalid_argument("storage of shape " + text(shape) + " with halo " + text(lower) +
                                  " below and " + text(upper) +
                                  " above: expected at least one cell and no negative halo");
    }
  }
  const auto size = static_cast<int64_t>(itemsize);
  const int64_t lead = round_up(lower[2] * size, kSegment);
  const int64_t row = lead + round_up((shape[2] + upper[2]) * size, kSegment);
  layout_.s1 = row / size;
  layout_.s0 = layout_.s1 * (lower[1] + shape[1] + upper[1]);
  layout_.at = lower[0] * layout_.s0 + lower[1] * layout_.s1 + lead / size;
  const int64_t planes = lower[0] + shape[0] + upper[0];
  buffer_ = device_->allocate(static_cast<size_t>(planes) * plane_bytes());
}

bool Storage::holds(const Index& lo, const Index& hi) const {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (lo[axis] > hi[axis] || lo[axis] < -lower_[axis] || hi[axis] > shape_[axis] + upper_[axis])
      return false;
  }
  return true;
}

bool Storage::same_layout(const Storage& other) const {
  return shape_ == other.shape_ && lower_ == other.lower_ && upper_ == other.upper_ &&
         itemsize_ == other.itemsize_ && device_ == other.device_;
}

std::shared_ptr<halocline::Storage> Storage::fetch() const {
  auto host = std::make_shared<halocline::Storage>(shape_, Index{}, Index{}, itemsize_, 0);
  const auto queue = device_->queue(false);
  std::vector<char> plane(plane_bytes());
  const size_t row = static_cast<size_t>(shape_[2]) * itemsize_;
  for (int64_t i = 0; i < shape_[0]; ++i) {
    const int64_t first = at({i, 0, 0}) - layout_.at % layout_.s0;  // the plane's first element
    queue->download(plane.data(), *buffer_, static_cast<size_t>(first) * itemsize_, plane.size());
    queue->finish();
    for (int64_t j = 0; j < shape_[1]; ++j) {
      const int64_t element = at({i, j, 0}) - first;
      std::memcpy(host->at({i, j, 0}), plane.data() + static_cast<size_t>(element) * itemsize_, row);
    }
  }
  return host;
}

void Storage::store(const halocline::Storage& from) {
  if (from.shape() != shape_ || from.itemsize() != itemsize_) {
    throw std::invalid_argument("a storage of shape " + text(from.shape()) + ", expected " + text(shape_) +
                                " and the same itemsize");
  }
  const auto queue = device_->queue(false);
  const size_t row = static_cast<size_t>(shape_[2]) * itemsize_;
  std::vector<char> plane(plane_bytes());
  for (int64_t i = 0; i < shape_[0]; ++i) {
    const int64_t first = at({i, 0, 0}) - layout_.at % layout_.s0;
    const size_t offset = static_cast<size_t>(first) * itemsize_;
    queue->download(plane.data(), *buffer_, offset, plane.size());  // what lies in the halo stays
    queue->finish();
    for (int64_t j = 0; j < shape_[1]; ++j) {
      const int64_t element = at({i, j, 0}) - first;
      std::memcpy(plane.data() + static_cast<size_t>(element) * itemsize_, from.at({i, j, 0}), row);
    }
    queue->upload(*buffer_, offset, plane.data(), plane.size());
    queue->finish();
  }
}

}  // namespace halocline::device
