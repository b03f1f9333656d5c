// Memory of a process: private, or shared with the processes of its node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace halocline {

// Less memory is available than required.
class OutOfMemory : public std::runtime_error {
 public:
  // `advice`: remedy for the user; the default applies to host memory.
  OutOfMemory(const std::string& purpose, size_t required, size_t available,
              const std::string& advice = "use more nodes, fewer ranks per node or a smaller grid");
};

// Return the bytes that the processes of this machine can still allocate. The result is the minimum of the
// available system memory and the remaining memory of the control group.
size_t available_memory();

// Return the bytes that this process can still allocate, limited also by its address space (ulimit -v).
size_t available_to_process();

// Return the free bytes of /dev/shm, in which MPI stores shared memory of a node, or SIZE_MAX if /dev/shm
// does not exist.
size_t available_shared_memory();

// Location of shared memory, for other processes of the node.
struct Handle {
  int64_t process, file;  // process ID and file descriptor
  uint64_t inode;         // inode of the file, to detect that the descriptor belongs to another file
  uint64_t bytes;
  bool sparse;
};

// Zeroed pages that use no memory until they are touched. They are huge pages if the system has them.
//
// Shared memory is an anonymous file (memfd), not an MPI window. It can have huge pages, it is not limited by
// the size of /dev/shm, and each process can free its memory at any time (decision 9).
//
// Sparse memory has small pages, so that untouched parts in its interior use no memory.
class Memory {
 public:
  explicit Memory(size_t bytes, bool shared = false, bool sparse = false);
  // Attach shared memory of another process, read-only. Throws std::runtime_error if it is not accessible.
  explicit Memory(const Handle& handle);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  bool shared() const { return file_ >= 0; }
  bool sparse() const { return sparse_; }
  // Return the handle. Throws std::logic_error if the memory is not shared.
  Handle handle() const;

  // Create huge pages for shared memory, before its pages are touched. Each of `threads` threads calls this
  // function, which places the pages of its share in the memory of its NUMA node (first touch).
  void place_pages(int thread, int threads) const;

  bool placed = false;  // the pages were touched by the threads that work on them

 private:
  char* data_;
  size_t bytes_;
  bool sparse_ = false;
  int file_ = -1;
};

// Return true if shared memory has huge pages on this machine (Linux 6.1 and later).
bool shared_pages_are_huge();

}  // namespace halocline
