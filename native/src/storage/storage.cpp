#include "storage/storage.hpp"

#include <cstdint>
#include <limits>
#include <utility>

namespace halocline {

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kPage = 4096;
// Vectors along a row may begin one cache line before the row and end two cache lines after it (lanes.hpp).
// This also applies to the first and the last row.
constexpr int64_t kBefore = kLine, kAfter = 2 * kLine;
constexpr size_t kMostAddresses = size_t{1} << 46;
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// Return a distance that is a multiple of a cache line, but not of a page.
int64_t unaliased(int64_t bytes) { return bytes % kPage == 0 ? bytes + kLine : bytes; }

}  // namespace

Storage::Storage(const Index& shape, const Index& lower, const Index& upper, size_t itemsize, size_t index,
                 bool shared, bool sparse)
    : shape_(shape), lower_(lower), upper_(upper), itemsize_(itemsize) {
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
  // The estimate is a floating-point number, since the product may exceed 64 bits for invalid input.
  double estimate = static_cast<double>(size);
  for (size_t axis = 0; axis < 3; ++axis) {
    estimate *= static_cast<double>(shape[axis]) + static_cast<double>(lower[axis]) +
                static_cast<double>(upper[axis]);
  }
  const std::string name = "storage of shape " + text(shape);
  // For a sparse storage, the plan has counted the memory that will be touched.
  const size_t available = sparse ? kMostAddresses : available_memory();
  if (estimate > static_cast<double>(available)) {
    throw OutOfMemory(name, estimate < 1e18 ? static_cast<size_t>(estimate) : kUnlimited, available);
  }
  const int64_t lead = round_up(lower[2] * size, kLine);
  pitch_[1] = unaliased(lead + round_up((shape[2] + upper[2]) * size, kLine));
  pitch_[0] = unaliased(pitch_[1] * (lower[1] + shape[1] + upper[1]));
  const int64_t planes = lower[0] + shape[0] + upper[0];
  // Offsets within a page differ by five cache lines, so an offset recurs only after 64 storages.
  const int64_t stagger = static_cast<int64_t>(index * 5 % (kPage / kLine)) * kLine;
  const auto required = static_cast<size_t>(kBefore + stagger + planes * pitch_[0] + kAfter);
  if (required > available) throw OutOfMemory(name, required, available);
  memory_ = std::make_shared<Memory>(required, shared, sparse);
  origin_ = memory_->data() + kBefore + stagger + lower[0] * pitch_[0] + lower[1] * pitch_[1] + lead;
}

Storage::Storage(const StorageHandle& handle)
    : shape_(handle.shape),
      lower_(handle.lower),
      upper_(handle.upper),
      itemsize_(handle.itemsize),
      pitch_(handle.pitch),
      memory_(std::make_shared<Memory>(handle.memory)),
      origin_(memory_->data() + handle.origin) {}

StorageHandle Storage::handle() const {
  return {memory_->handle(), origin_ - memory_->data(), pitch_, shape_, lower_, upper_, itemsize_};
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
         itemsize_ == other.itemsize_;
}

void Storage::swap(Storage& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(origin_, other.origin_);
}

void Storage::touch(Index lo, Index hi) const {
  for (size_t axis = 0; axis < 3; ++axis) {
    if (lo[axis] <= 0) lo[axis] = -lower_[axis];
    if (hi[axis] >= shape_[axis]) hi[axis] = shape_[axis] + upper_[axis];
  }
  for (int64_t i = lo[0]; i < hi[0]; ++i) {
    for (int64_t j = lo[1]; j < hi[1]; ++j) {
      char* const end = at({i, j, hi[2]});
      for (char* byte = at({i, j, lo[2]}); byte < end;
           byte += kPage - reinterpret_cast<uintptr_t>(byte) % kPage) {
        __atomic_fetch_add(byte, 0, __ATOMIC_RELAXED);
      }
    }
  }
}

}  // namespace halocline
