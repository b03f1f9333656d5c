// Memory of a field of one subdomain on a device.
#pragma once

#include <functional>
#include <memory>

#include "device/device.hpp"
#include "halocline/frame.h"
#include "storage/box.hpp"
#include "storage/storage.hpp"

namespace halocline::device {

// Array of one field with its halo. Cell (., ., 0) of every row is aligned to a memory segment, the unit of
// one memory transaction.
class Storage {
 public:
  // Create an array of zeros. Throws std::invalid_argument for an invalid shape, and OutOfMemory.
  Storage(std::shared_ptr<Device> device, const Index& shape, const Index& lower, const Index& upper,
          size_t itemsize);

  const std::shared_ptr<Device>& device() const { return device_; }
  const Index& shape() const { return shape_; }
  size_t itemsize() const { return itemsize_; }
  size_t bytes() const { return buffer_->bytes(); }
  Buffer& buffer() const { return *buffer_; }
  // Owner of the memory, which arrays of other libraries keep alive.
  const std::shared_ptr<Buffer>& shared_buffer() const { return buffer_; }
  const hc_layout& layout() const { return layout_; }
  // Index of the element of a cell.
  int64_t at(const Index& cell) const {
    return layout_.at + cell[0] * layout_.s0 + cell[1] * layout_.s1 + cell[2];
  }

  bool holds(const Index& lo, const Index& hi) const;
  bool same_layout(const Storage& other) const;
  void swap(Storage& other) noexcept { buffer_.swap(other.buffer_); }

  // Copy the cells without halo to host memory, or from host memory. Both functions wait for the device.
  std::shared_ptr<halocline::Storage> fetch() const;
  void store(const halocline::Storage& from);

 private:
  // Call `use` with the first cell of every row and a copy of the row. If `back` is true, copy the row back
  // to the device. The values in halos do not change.
  void by_rows(bool back, const std::function<void(const Index&, char*)>& use) const;

  std::shared_ptr<Device> device_;
  Index shape_, lower_, upper_;
  size_t itemsize_;
  hc_layout layout_{};
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace halocline::device
