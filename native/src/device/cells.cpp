#include "device/cells.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "device/subdomain.hpp"

namespace halocline::device {

namespace {

constexpr uint32_t kThreads = 128;
constexpr size_t kMaxThreadBlocks = 1024;

}  // namespace

std::vector<char> read_cells(const Module& module, const Storage& storage, std::span<const Index> cells) {
  std::vector<int64_t> numbers;
  numbers.reserve(cells.size());
  for (const Index& cell : cells) {
    if (!storage.holds(cell, {cell[0] + 1, cell[1] + 1, cell[2] + 1})) {
      throw std::invalid_argument("cell " + text(cell) + " is not within storage of shape " +
                                  text(storage.shape()));
    }
    numbers.push_back(storage.at(cell));
  }
  std::vector<char> values(cells.size() * storage.itemsize());
  if (cells.empty()) return values;
  Device& device = *storage.device();
  const auto kernel = kernel_for(device, module, "hc_read_cells", kThreads);
  const auto number_buffer = device.allocate(numbers.size() * sizeof(int64_t));
  const auto value_buffer = device.allocate(values.size());
  const auto queue = device.queue(false);  // destroyed before the buffers, and waits for the kernel
  const auto count = static_cast<int64_t>(cells.size()), itemsize = static_cast<int64_t>(storage.itemsize());
  queue->upload(*number_buffer, 0, numbers.data(), numbers.size() * sizeof(int64_t));
  const std::array<Argument, 5> arguments{&storage.buffer(), number_buffer.get(), value(count),
                                          value(itemsize), value_buffer.get()};
  const size_t thread_blocks = std::min((cells.size() + kThreads - 1) / kThreads, kMaxThreadBlocks);
  queue->launch(*kernel, {static_cast<uint32_t>(thread_blocks), 1, 1}, {kThreads, 1, 1}, arguments);
  queue->download(values.data(), *value_buffer, 0, values.size());
  queue->finish();
  return values;
}

}  // namespace halocline::device
