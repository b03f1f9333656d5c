// Memory of a process, of its own or shared with the processes of its node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace halocline {

// There is less memory than asked for.
class OutOfMemory : public std::runtime_error {
 public:
  // `advice`: what to do; by default where it is the host's memory.
  OutOfMemory(const std::string& what, size_t needed, size_t available,
              const std::string& advice = "use more nodes, fewer ranks a node or a smaller grid");
};

// Bytes that the processes of this machine can still take: what the system says is available, or what is left
// of the memory limit of its control group, whichever is less.
size_t available_memory();

// The same for this process, whose address space may have a limit of its own (ulimit -v).
size_t available_to_process();

// Bytes that are free in the file system where MPI keeps what processes of a node share; all bits where there
// is none.
size_t available_shared_memory();

// Where another process of the node finds shared memory.
struct Handle {
  int64_t process, file;  // its numbers
  uint64_t inode;         // of the file, so that another file is not taken for it
  uint64_t bytes;
  bool sparse;
};

// Zeroed pages that cost nothing until they are touched; huge pages where the system has them.
//
// Shared memory is an anonymous file (memfd), not a window of MPI: its pages can be huge ones, the file
// system for shared memory sets it no limit, and each process frees its own when it likes (decision 9).
//
// Sparse memory has small pages, so that what is never touched in the midst of it takes none.
class Memory {
 public:
  explicit Memory(size_t bytes, bool shared = false, bool sparse = false);
  // What another process shares, to be read only. Throws std::runtime_error where it is out of reach.
  explicit Memory(const Handle& handle);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool shared() const { return file_ >= 0; }
  bool sparse() const { return sparse_; }
  // Throws std::logic_error for memory that is not shared.
  Handle handle() const;

  // Before its pages are touched: gives shared memory huge pages, which lie at the threads that call this,
  // each for its share of `threads`.
  void settle(int thread, int threads) const;

  bool placed = false;  // its pages were touched by the threads that work on them

 private:
  char* data_;
  size_t bytes_;
  bool sparse_ = false;
  int file_ = -1;
};

// Whether shared memory gets huge pages here (Linux 6.1 and later).
bool shared_pages_are_huge();

}  // namespace halocline
