// The memory of the fields of one subdomain.
#pragma once

#include <cstddef>
#include <memory>

#include "storage/box.hpp"
#include "storage/memory.hpp"

namespace halocline {

// Where another process of the node finds a storage.
struct StorageHandle {
  Handle memory;
  int64_t origin;  // byte of cell (0, 0, 0)
  std::array<int64_t, 2> pitch;
  Index shape, lower, upper;
  size_t itemsize;
};

// One array with its halo.
//
// Cell (., ., 0) of every row starts a cache line. Rows and planes are whole cache lines apart, but not
// a multiple of 4096 bytes, and equal cells of storages with different `index` lie at different
// offsets within 4096 bytes: a store would otherwise hold up loads from other rows and fields.
class Storage {
 public:
  // Throws std::invalid_argument for a bad shape and OutOfMemory.
  Storage(const Index& shape, const Index& lower, const Index& upper, size_t itemsize, size_t index,
          bool shared = false, bool sparse = false);
  // A view of another process's storage, to be read only; it follows no swap of that. Throws
  // std::runtime_error where it is out of reach.
  explicit Storage(const StorageHandle& handle);

  // Throws std::logic_error where the memory is not shared.
  StorageHandle handle() const;

  const Index& shape() const { return shape_; }
  const Index& lower() const { return lower_; }
  const Index& upper() const { return upper_; }
  size_t itemsize() const { return itemsize_; }
  size_t bytes() const { return memory_->bytes(); }
  const std::shared_ptr<Memory>& memory() const { return memory_; }

  // Address of cell (0, 0, 0).
  char* origin() const { return origin_; }
  // Bytes between neighbours on axis 0 and 1.
  const std::array<int64_t, 2>& pitch() const { return pitch_; }
  char* at(const Index& cell) const {
    return origin_ + cell[0] * pitch_[0] + cell[1] * pitch_[1] + cell[2] * static_cast<int64_t>(itemsize_);
  }

  // Whether the box lies within the array and its halo.
  bool holds(const Index& lo, const Index& hi) const;
  bool same_layout(const Storage& other) const;
  // Exchanges the memory of two storages, which must have the same layout.
  void swap(Storage& other) noexcept;

  // Touches every page of a box without changing a value, so that the pages come to lie at the calling
  // thread; boxes that end at the edge of the subdomain include the halo there. Any number of threads.
  void touch(Index lo, Index hi) const;

 private:
  Index shape_, lower_, upper_;
  size_t itemsize_;
  std::array<int64_t, 2> pitch_;
  std::shared_ptr<Memory> memory_;
  char* origin_;
};

}  // namespace halocline
