// Counters of one rank that the other ranks of its node read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "storage/memory.hpp"

namespace halocline {

// Counters in shared memory, each in its own cache line, initially zero.
class Counters {
 public:
  explicit Counters(size_t count) : memory_(count * sizeof(Line), true) {}
  // Attach the counters of another process, which are read-only.
  explicit Counters(const Handle& handle) : memory_(handle) {}

  size_t size() const { return memory_.bytes() / sizeof(Line); }
  Handle handle() const { return memory_.handle(); }
  std::atomic<uint64_t>& operator[](size_t n) const {
    return reinterpret_cast<Line*>(memory_.data())[n].number;
  }

 private:
  struct alignas(64) Line {
    std::atomic<uint64_t> number;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free,
                "atomics with a lock do not work between processes");

  Memory memory_;
};

}  // namespace halocline
