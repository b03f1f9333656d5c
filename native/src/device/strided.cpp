#include "device/strided.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "device/subdomain.hpp"

namespace halocline::device {

namespace {

constexpr std::array<uint32_t, 3> kBlockShape{32, 8, 1};
constexpr int64_t kMaxBlocks = 1024;  // along an axis

uint32_t block_count(int64_t cells, uint32_t threads) {
  return static_cast<uint32_t>(std::clamp<int64_t>((cells + threads - 1) / threads, 1, kMaxBlocks));
}

// Elements with strides, from element `layout.at` of an array on.
struct Side {
  Argument array;
  hc_layout layout;
};

void copy(Device& device, const Module& module, const Side& to, const Side& from, int64_t step,
          const Index& extent, size_t bytes) {
  const auto kernel = kernel_for(device, module, "hc_copy_strided", size_t{kBlockShape[0]} * kBlockShape[1]);
  const auto queue = device.queue(false);
  const auto [planes, rows, row] = extent;
  const auto itemsize = static_cast<int64_t>(bytes);
  const std::array<Argument, 9> arguments{to.array,           value(to.layout), from.array,
                                          value(from.layout), value(step),      value(planes),
                                          value(rows),        value(row),       value(itemsize)};
  queue->launch(*kernel, {block_count(row, kBlockShape[0]), block_count(planes * rows, kBlockShape[1]), 1},
                kBlockShape, arguments);
  queue->finish();
}

// Addresses of the first byte of elements, and of the byte after the last one.
std::pair<uint64_t, uint64_t> range(const Elements& elements, const Index& extent, size_t itemsize) {
  const auto bytes = static_cast<int64_t>(itemsize);
  int64_t first = 0, last = bytes;
  for (size_t axis = 0; axis < 3; ++axis) {
    const int64_t distance = (extent[axis] - 1) * elements.strides[axis] * bytes;
    (distance < 0 ? first : last) += distance;
  }
  return {elements.address + static_cast<uint64_t>(first), elements.address + static_cast<uint64_t>(last)};
}

uint64_t address(const Buffer& buffer) { return reinterpret_cast<uint64_t>(buffer.address()); }

hc_layout contiguous(const Index& extent) { return {0, extent[1] * extent[2], extent[2]}; }

}  // namespace

void assign(const Module& module, const Storage& storage, const Index& lo, const Index& hi,
            const Elements& from) {
  if (!storage.holds(lo, hi)) {
    throw std::invalid_argument("box " + text(lo) + " to " + text(hi) + " is not within storage of shape " +
                                text(storage.shape()));
  }
  Device& device = *storage.device();
  const uint64_t begin = address(storage.buffer()), end = begin + storage.buffer().bytes();
  if (begin == 0) throw std::invalid_argument("memory of this interface has no addresses");
  const Index box = extent(lo, hi);
  if (cells(box) == 0) return;
  const size_t itemsize = storage.itemsize();
  const Side source{value(from.address), {0, from.strides[0], from.strides[1]}};
  hc_layout layout = storage.layout();
  layout.at = storage.at(lo);
  const Side target{&storage.buffer(), layout};
  const auto [first, last] = range(from, box, itemsize);
  if (last <= begin || end <= first) {
    copy(device, module, target, source, from.strides[2], box, itemsize);
    return;
  }
  // The elements are cells of this storage: read all of them before any cell changes.
  const auto copied = device.allocate(static_cast<size_t>(cells(box)) * itemsize);
  const Side between{copied.get(), contiguous(box)};
  copy(device, module, between, source, from.strides[2], box, itemsize);
  copy(device, module, target, between, 1, box, itemsize);
}

std::shared_ptr<Buffer> compact(const Module& module, const Storage& storage) {
  const Index& shape = storage.shape();
  Device& device = *storage.device();
  std::shared_ptr<Buffer> copied = device.allocate(static_cast<size_t>(cells(shape)) * storage.itemsize());
  copy(device, module, {copied.get(), contiguous(shape)}, {&storage.buffer(), storage.layout()}, 1, shape,
       storage.itemsize());
  return copied;
}

}  // namespace halocline::device
