// Memory of the fields of one subdomain.
#pragma once

#include <cstddef>
#include <memory>

#include "storage/box.hpp"
#include "storage/memory.hpp"

namespace halocline {

// Location of a storage, for other processes of the node.
struct StorageHandle {
  Handle memory;
  int64_t origin;  // offset of cell (0, 0, 0) in bytes
  std::array<int64_t, 2> pitch;
  Index shape, lower, upper;
  size_t itemsize;
};

// Array of one field with its halo.
//
// Cell (., ., 0) of every row is aligned to a cache line. The distances between rows and between planes are
// multiples of a cache line, but not of a page of 4096 bytes. Equal cells of storages with different `index`
// have different offsets within a page. With equal offsets, a store would delay loads from other rows and
// fields (4K aliasing).
class Storage {
 public:
  // Throws std::invalid_argument for an invalid shape, and OutOfMemory.
  Storage(const Index& shape, const Index& lower, const Index& upper, size_t itemsize, size_t index,
          bool shared = false, bool sparse = false);
  // Attach a read-only view of a storage of another process. The view does not follow swaps in that process.
  // Throws std::runtime_error if the memory is not accessible.
  explicit Storage(const StorageHandle& handle);

  // Return the handle. Throws std::logic_error if the memory is not shared.
  StorageHandle handle() const;

  const Index& shape() const { return shape_; }
  const Index& lower() const { return lower_; }
  const Index& upper() const { return upper_; }
  size_t itemsize() const { return itemsize_; }
  size_t bytes() const { return memory_->bytes(); }
  const std::shared_ptr<Memory>& memory() const { return memory_; }

  // Address of cell (0, 0, 0).
  char* origin() const { return origin_; }
  // Bytes between adjacent cells along axes 0 and 1.
  const std::array<int64_t, 2>& pitch() const { return pitch_; }
  char* at(const Index& cell) const {
    return origin_ + cell[0] * pitch_[0] + cell[1] * pitch_[1] + cell[2] * static_cast<int64_t>(itemsize_);
  }

  // Return true if the box is inside the array and its halo.
  bool holds(const Index& lo, const Index& hi) const;
  bool same_layout(const Storage& other) const;
  // Exchange the memory of two storages, which must have the same layout.
  void swap(Storage& other) noexcept;

  // Touch every page of a box without changing a value. The system then places the pages in the memory of the
  // NUMA node of the calling thread (first touch). A box at the boundary of the subdomain includes the
  // adjacent halo. Several threads may call this function at once.
  void touch(Index lo, Index hi) const;

 private:
  Index shape_, lower_, upper_;
  size_t itemsize_;
  std::array<int64_t, 2> pitch_;
  std::shared_ptr<Memory> memory_;
  char* origin_;
};

}  // namespace halocline
