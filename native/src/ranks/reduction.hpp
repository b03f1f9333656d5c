// Reductions over threads and ranks. No result depends on the order, so any tree will do.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "halocline/reduce.hpp"
#include "ranks/communicator.hpp"

namespace halocline {

struct Reduction {
  hc_kind kind;
  size_t scalar;
};

// The accumulators of all threads, each thread's in cache lines of its own.
class Accumulators {
 public:
  Accumulators(int threads, size_t reductions);

  hc_accumulator* of(int thread) const { return slots_.get() + static_cast<size_t>(thread) * reductions_; }
  static void reset(hc_accumulator* accumulators, const std::vector<Reduction>& reductions);
  static void merge(hc_accumulator* into, const hc_accumulator* from, size_t n);

 private:
  size_t reductions_;
  std::unique_ptr<hc_accumulator[]> slots_;
};

// What a rank wishes while it runs, as bits.
using Wishes = uint64_t;
constexpr Wishes kPause = 1;  // to pause between two passes of the outermost loop
constexpr Wishes kStop = 2;   // to stop, within a pass too

// One message that merges accumulators over all ranks, and with them their wishes.
class Allreduce {
 public:
  explicit Allreduce(const Communicator& communicator);
  ~Allreduce();
  Allreduce(const Allreduce&) = delete;
  Allreduce& operator=(const Allreduce&) = delete;

  // Prepares for that many accumulators, so that start() allocates nothing.
  void reserve(size_t n);
  void start(const hc_accumulator* accumulators, size_t n, Wishes wishes);
  // Whether the result is there.
  bool test();
  const hc_accumulator* result() const;
  // What any rank wished.
  Wishes wishes() const;

 private:
  const Communicator& communicator_;
  MPI_Op operation_ = MPI_OP_NULL;
  std::map<size_t, MPI_Datatype> types_;
  std::vector<hc_accumulator> buffer_;  // the first holds the wishes
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace halocline
