#include "device/storage.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace halocline::device {

namespace {

constexpr int64_t kSegment = 128;             // bytes
constexpr int64_t kRowsAfter = 3;             // a thread may compute four rows, of which the box has one
constexpr int64_t kPiece = int64_t{4} << 20;  // bytes per copy to or from the host

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
  // Threads compute complete rows and vectors of cells, and discard the results beyond the box.
  const int64_t after = kRowsAfter * layout_.s1 + kSegment / size;
  buffer_ = device_->allocate(static_cast<size_t>(planes * layout_.s0 + after) * itemsize);
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

// The copies use pinned memory. While the device copies one piece, the host processes the previous one.
void Storage::by_rows(bool back, const std::function<void(const Index&, char*)>& use) const {
  const int64_t between = layout_.s0 / layout_.s1, lead = layout_.at % layout_.s1;
  const int64_t begin = lower_[0] * between + lower_[1];
  const int64_t end = (lower_[0] + shape_[0] - 1) * between + lower_[1] + shape_[1];
  const size_t row = static_cast<size_t>(layout_.s1) * itemsize_;
  const int64_t rows = std::clamp<int64_t>(kPiece / static_cast<int64_t>(row), 1, end - begin);
  const int64_t pieces = (end - begin + rows - 1) / rows;
  const auto staging = device_->pinned(static_cast<size_t>(std::min<int64_t>(pieces, 2) * rows) * row);
  const auto queue =
      device_->queue(false);  // destroyed before the memory, since the destructor waits for the copies
  struct Piece {
    int64_t first, last;
    char* data;
  };
  const auto piece = [&](int64_t n) {
    const int64_t first = begin + n * rows;
    return Piece{first, std::min(first + rows, end),
                 staging->data() + static_cast<size_t>(n % 2 * rows) * row};
  };
  const auto at = [&](int64_t number) { return static_cast<size_t>(number) * row; };
  std::array<std::shared_ptr<Event>, 2> downloads;
  for (int64_t n = 0; n <= pieces; ++n) {
    if (n < pieces) {
      const auto [first, last, data] = piece(n);
      queue->download(data, *buffer_, at(first), at(last - first));
      downloads[n % 2] = queue->record();
    }
    if (n == 0) continue;
    const auto [first, last, data] = piece(n - 1);
    downloads[(n - 1) % 2]->wait();
    for (int64_t number = first; number < last; ++number) {
      const Index cell{number / between - lower_[0], number % between - lower_[1], 0};
      if (cell[1] < 0 || cell[1] >= shape_[1]) continue;
      use(cell, data + at(number - first) + static_cast<size_t>(lead) * itemsize_);
    }
    if (back) queue->upload(*buffer_, at(first), data, at(last - first));
  }
  queue->finish();
}

std::shared_ptr<halocline::Storage> Storage::fetch() const {
  auto host = std::make_shared<halocline::Storage>(shape_, Index{}, Index{}, itemsize_, 0);
  const size_t bytes = static_cast<size_t>(shape_[2]) * itemsize_;
  by_rows(false, [&](const Index& cell, const char* row) { std::memcpy(host->at(cell), row, bytes); });
  return host;
}

void Storage::store(const halocline::Storage& from) {
  if (from.shape() != shape_ || from.itemsize() != itemsize_) {
    throw std::invalid_argument("a storage of shape " + text(from.shape()) + ", expected shape " +
                                text(shape_) + " and an equal itemsize");
  }
  const size_t bytes = static_cast<size_t>(shape_[2]) * itemsize_;
  by_rows(true, [&](const Index& cell, char* row) { std::memcpy(row, from.at(cell), bytes); });
}

}  // namespace halocline::device
