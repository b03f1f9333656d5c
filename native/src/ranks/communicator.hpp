// Communicator of the ranks of a run.
#pragma once

#include <mutex>
#include <string>

#include "mpi/standard.hpp"

namespace halocline {

// Duplicate of a communicator for the engine. The duplicate is created once, stored as an attribute of the
// original communicator, and freed with the original. The creation and deletion of engines then needs no
// collective call.
class Communicator {
 public:
  // `parent`: handle in Fortran. Collective at its first use. Throws std::runtime_error if MPI is not
  // running.
  explicit Communicator(int parent);

  MPI_Comm handle() const { return handle_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Largest tag of messages. The next larger tag is reserved for roll calls.
  int largest_tag() const { return largest_tag_; }
  int roll_call_tag() const { return largest_tag_ + 1; }
  // Permission of a thread to call MPI now. Depending on the thread level of MPI, any thread may call MPI at
  // any time, one thread at a time, or only the first thread.
  class MpiPermission {
   public:
    // Permission for a caller that does not use MPI.
    static MpiPermission not_needed() { return MpiPermission(true); }
    explicit operator bool() const { return granted_; }

   private:
    friend class Communicator;
    explicit MpiPermission(bool granted) : granted_(granted) {}

    bool granted_;
    std::unique_lock<std::mutex> lock_;
  };
  MpiPermission mpi_permission(int thread) const;

  // End the run on all ranks, with "rank R: reason" on standard error.
  [[noreturn]] void abort(const std::string& reason) const;
  // Abort after a wait of `seconds` for `something`, and name the ranks that do not respond.
  [[noreturn]] void abort_after_wait(double seconds, const std::string& something) const;
  // Abort if the MPI function `call` failed.
  void check(int code, const char* call) const {
    if (code != MPI_SUCCESS) fail(code, call);
  }

 private:
  [[noreturn]] void fail(int code, const char* call) const;

  MPI_Comm handle_;
  int rank_, size_, largest_tag_;
  int level_;  // thread level of MPI
};

// Return true while MPI objects can be freed.
bool mpi_running();

}  // namespace halocline
