#include "storage.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

namespace halocline {

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

// A distance in whole cache lines that is not a multiple of a page.
int64_t unaliased(int64_t bytes) { return bytes % kPage == 0 ? bytes + kLine : bytes; }

std::string in_words(size_t bytes) {
  std::ostringstream out;
  out.precision(3);
  if (bytes >= size_t{1} << 30) {
    out << static_cast<double>(bytes) / (1 << 30) << " GiB";
  } else {
    out << static_cast<double>(bytes) / (1 << 20) << " MiB";
  }
  return out.str();
}

// The number that a file starts with; all bits where there is none ("max" is no limit).
size_t number_in(const std::string& path) {
  std::ifstream file(path);
  size_t value = 0;
  return file >> value ? value : kUnlimited;
}

// The number after `key` in a file of lines "key number".
size_t number_after(const std::string& path, const std::string& key, size_t otherwise) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    size_t value = 0;
    if (words >> word && word == key && words >> value) return value;
  }
  return otherwise;
}

// What is left in a control group and in all above it. Cached file pages can be given back.
size_t left_in_group(const std::string& mount, std::string group, const char* limit, const char* usage,
                     const char* cached) {
  size_t left = kUnlimited;
  for (;;) {
    const std::string folder = mount + group + "/";
    const size_t most = number_in(folder + limit);
    const size_t used = number_in(folder + usage);
    if (most != kUnlimited && used != kUnlimited) {
      const size_t held = used - std::min(used, number_after(folder + "memory.stat", cached, 0));
      left = std::min(left, most - std::min(most, held));
    }
    if (group.empty() || group == "/") return left;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

OutOfMemory::OutOfMemory(const std::string& what, size_t needed, size_t available)
    : std::runtime_error(what + " needs " + std::to_string(needed) + " bytes (" + in_words(needed) +
                         "), but only " + std::to_string(available) + " bytes (" + in_words(available) +
                         ") are available: use more nodes, fewer ranks a node or a smaller grid") {}

size_t available_memory() {
  size_t left = number_after("/proc/meminfo", "MemAvailable:", kUnlimited);
  if (left != kUnlimited) left *= 1024;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // hierarchy:controllers:group
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
        left = std::min(left, left_in_group(mount, group, "memory.max", "memory.current", "inactive_file"));
      }
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_group("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                                          "memory.usage_in_bytes", "total_inactive_file"));
    }
  }
  return left;
}

Memory::Memory(size_t bytes) : bytes_(bytes) {
  // Huge pages need their own alignment: take more and give the ends back.
  const size_t slack = bytes >= kHugePage ? kHugePage : 0;
  const size_t mapped = static_cast<size_t>(round_up(static_cast<int64_t>(bytes), kPage)) + slack;
  void* address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw OutOfMemory("the memory of a field", bytes, available_memory());
  data_ = static_cast<char*>(address);
  if (slack != 0) {
    const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(address) % kHugePage) % kHugePage;
    if (head != 0) munmap(address, head);
    if (slack != head) munmap(data_ + mapped - (slack - head), slack - head);
    data_ += head;
    madvise(data_, mapped - slack, MADV_HUGEPAGE);  // only advice: it may be refused
  }
}

Memory::~Memory() { munmap(data_, static_cast<size_t>(round_up(static_cast<int64_t>(bytes_), kPage))); }

Storage::Storage(const Index& shape, const Index& lower, const Index& upper, size_t itemsize, size_t index)
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
  // As floating-point numbers, since the product of wrong input may exceed 64 bits.
  double estimate = static_cast<double>(size);
  for (size_t axis = 0; axis < 3; ++axis) {
    estimate *= static_cast<double>(shape[axis]) + static_cast<double>(lower[axis]) +
                static_cast<double>(upper[axis]);
  }
  const std::string name = "storage of shape " + text(shape);
  const size_t available = available_memory();
  if (estimate > static_cast<double>(available)) {
    throw OutOfMemory(name, estimate < 1e18 ? static_cast<size_t>(estimate) : kUnlimited, available);
  }
  const int64_t lead = round_up(lower[2] * size, kLine);
  pitch_[1] = unaliased(lead + round_up((shape[2] + upper[2]) * size, kLine));
  pitch_[0] = unaliased(pitch_[1] * (lower[1] + shape[1] + upper[1]));
  const int64_t planes = lower[0] + shape[0] + upper[0];
  // Five lines are 320 bytes: 64 storages pass before an offset comes again.
  const int64_t stagger = static_cast<int64_t>(index * 5 % (kPage / kLine)) * kLine;
  const auto needed = static_cast<size_t>(stagger + planes * pitch_[0] + kLine);
  if (needed > available) throw OutOfMemory(name, needed, available);
  memory_ = std::make_shared<Memory>(needed);
  origin_ = memory_->data() + stagger + lower[0] * pitch_[0] + lower[1] * pitch_[1] + lead;
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
