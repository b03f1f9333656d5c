// The ranks of a run.
#pragma once

#include <mpi.h>

#include <mutex>
#include <string>

namespace halocline {

// The engine's own duplicate of a communicator. It is made once per communicator, kept as an attribute
// of it and freed with it, so that engines come and go without collective calls.
class Communicator {
 public:
  // Collective at first use of `parent`. Throws std::runtime_error where MPI is not running.
  explicit Communicator(MPI_Fint parent);

  MPI_Comm handle() const { return handle_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Of messages; the one above it is that of roll calls.
  int largest_tag() const { return largest_tag_; }
  int roll_call_tag() const { return largest_tag_ + 1; }
  // The right of a thread to call MPI now, where MPI lets it: any thread at any time, one at a time, or the
  // first alone.
  class Turn {
   public:
    // Where MPI is not called.
    static Turn any() { return Turn(true); }
    explicit operator bool() const { return given_; }

   private:
    friend class Communicator;
    explicit Turn(bool given) : given_(given) {}

    bool given_;
    std::unique_lock<std::mutex> lock_;
  };
  Turn turn(int thread) const;

  // Ends the run on all ranks, with "rank R: reason" on standard error.
  [[noreturn]] void abort(const std::string& reason) const;
  // Aborts after having waited that long for something, and names the ranks that stand still.
  [[noreturn]] void give_up(double seconds, const std::string& something) const;
  // Aborts unless the MPI function `call` succeeded.
  void check(int code, const char* call) const {
    if (code != MPI_SUCCESS) fail(code, call);
  }

 private:
  [[noreturn]] void fail(int code, const char* call) const;

  MPI_Comm handle_;
  int rank_, size_, largest_tag_;
  int level_;  // what MPI allows threads
};

// Whether MPI objects can still be freed.
bool mpi_running();

}  // namespace halocline
