#include "storage/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <sstream>
#include <system_error>

namespace halocline {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

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

// Return the number at the beginning of a file, or kUnlimited if there is none ("max" means no limit).
size_t number_in(const std::string& path) {
  std::ifstream file(path);
  size_t value = 0;
  return file >> value ? value : kUnlimited;
}

// Return the number after `key` in a file with lines of the form "key number".
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

// Return the remaining memory of a control group and of all its ancestors. Cached file pages can be
// reclaimed.
size_t left_in_group(const std::string& mount, std::string group, const char* limit, const char* usage,
                     const char* cached) {
  size_t left = kUnlimited;
  for (;;) {
    const std::string folder = mount + group + "/";
    const size_t most = number_in(folder + limit);
    const size_t usage_bytes = number_in(folder + usage);
    if (most != kUnlimited && usage_bytes != kUnlimited) {
      const size_t held =
          usage_bytes - std::min(usage_bytes, number_after(folder + "memory.stat", cached, 0));
      left = std::min(left, most - std::min(most, held));
    }
    if (group.empty() || group == "/") return left;
    group.resize(group.rfind('/'));
  }
}

// Return the remaining address space of the process (ulimit -v).
size_t left_of_address_space() {
  rlimit most{};
  if (getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return kUnlimited;
  const size_t mapped_bytes = 1024 * number_after("/proc/self/status", "VmSize:", 0);
  return most.rlim_cur - std::min<size_t>(most.rlim_cur, mapped_bytes);
}

}  // namespace

OutOfMemory::OutOfMemory(const std::string& purpose, size_t required, size_t available,
                         const std::string& advice)
    : std::runtime_error(purpose + " needs " + std::to_string(required) + " bytes (" + in_words(required) +
                         "), but only " + std::to_string(available) + " bytes (" + in_words(available) +
                         ") are available: " + advice) {}

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

size_t available_to_process() { return std::min(available_memory(), left_of_address_space()); }

size_t available_shared_memory() {
  struct statvfs file_system{};
  if (statvfs("/dev/shm", &file_system) != 0) return kUnlimited;
  return static_cast<size_t>(file_system.f_bavail) * file_system.f_frsize;
}

namespace {

size_t in_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Map memory. A mapping of at least one huge page is aligned to huge pages: the function maps more memory and
// unmaps both ends.
char* map(size_t bytes, int protection, int file, bool sparse) {
  const size_t slack = bytes >= kHugePage && !sparse ? kHugePage : 0;
  const size_t mapped = in_pages(bytes) + slack;
  void* address = mmap(nullptr, mapped, file < 0 ? protection : PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | (file < 0 && !sparse ? 0 : MAP_NORESERVE), -1, 0);
  if (address == MAP_FAILED) return nullptr;
  char* data = static_cast<char*>(address);
  if (slack != 0) {
    const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(address) % kHugePage) % kHugePage;
    if (head != 0) munmap(address, head);
    data += head;
    if (slack != head) munmap(data + in_pages(bytes), slack - head);
  }
  if (file >= 0 && mmap(data, in_pages(bytes), protection, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    munmap(data, in_pages(bytes));
    return nullptr;
  }
  // madvise may fail without consequences.
  if (slack != 0 || sparse) madvise(data, in_pages(bytes), sparse ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  return data;
}

// Replace the small pages of a touched range by a huge page, independent of the system policy for shared
// memory.
bool collapse(char* data) {
#if !defined(MADV_COLLAPSE)
  constexpr int MADV_COLLAPSE = 25;
#endif
  return madvise(data, kHugePage, MADV_COLLAPSE) == 0;
}

}  // namespace

Memory::Memory(size_t bytes, bool shared, bool sparse) : bytes_(bytes), sparse_(sparse) {
  if (shared) {
    file_ = memfd_create("halocline", MFD_CLOEXEC);
    if (file_ < 0 || ftruncate(file_, static_cast<off_t>(in_pages(bytes))) != 0) {
      if (file_ >= 0) close(file_);
      throw std::runtime_error(std::string("shared memory cannot be created: ") +
                               std::generic_category().message(errno));
    }
  }
  data_ = map(bytes, PROT_READ | PROT_WRITE, file_, sparse);
  if (data_ == nullptr) {
    if (shared) close(file_);
    throw OutOfMemory("the memory of a field", bytes, available_to_process());
  }
}

Memory::Memory(const Handle& handle) : bytes_(handle.bytes), sparse_(handle.sparse) {
  const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  struct stat info{};
  if (file_ < 0 || fstat(file_, &info) != 0 || info.st_ino != handle.inode ||
      static_cast<uint64_t>(info.st_size) < in_pages(handle.bytes)) {
    const std::string reason =
        file_ < 0 ? std::generic_category().message(errno) : "its file descriptor belongs to another file";
    if (file_ >= 0) close(file_);
    throw std::runtime_error("the memory of process " + std::to_string(handle.process) +
                             " is not accessible: " + reason);
  }
  data_ = map(bytes_, PROT_READ, file_, sparse_);
  if (data_ == nullptr) {
    close(file_);
    throw OutOfMemory("a view of a neighbour's memory", bytes_, available_to_process());
  }
  close(file_);  // the mapping persists, and file descriptors are limited
  file_ = -1;
  placed = true;
}

Memory::~Memory() {
  munmap(data_, in_pages(bytes_));
  if (file_ >= 0) close(file_);
}

Handle Memory::handle() const {
  if (file_ < 0) throw std::logic_error("this memory is not shared");
  struct stat info{};
  fstat(file_, &info);
  return {getpid(), file_, info.st_ino, bytes_, sparse_};
}

void Memory::place_pages(int thread, int threads) const {
  if (file_ < 0 || sparse_) return;
  const size_t chunks = bytes_ / kHugePage, wide = static_cast<size_t>(threads);
  const auto begin = [&](size_t t) { return t * chunks / wide; };
  const auto index = static_cast<size_t>(thread);
  for (size_t chunk = begin(index); chunk < begin(index + 1); ++chunk) {
    char* data = data_ + chunk * kHugePage;
    __atomic_fetch_add(data, 0, __ATOMIC_RELAXED);  // an untouched range has no page to collapse
    if (!collapse(data)) return;
  }
}

bool shared_pages_are_huge() {
  static const bool huge = [] {
    try {
      const Memory memory(kHugePage, true);
      *memory.data() = 1;
      return collapse(memory.data());
    } catch (const std::runtime_error&) {
      return false;
    }
  }();
  return huge;
}

}  // namespace halocline
