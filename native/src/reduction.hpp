// Reductions over threads and ranks. No result depends on the order, so any tree will do.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "communicator.hpp"
#include "halocline/reduce.hpp"

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

// One message that merges accumulators over all ranks, and with them the wish to stop.
class Allreduce {
 public:
  explicit Allreduce(const Communicator& communicator);
  ~Allreduce();
  Allreduce(const Allreduce&) = delete;
  Allreduce& operator=(const Allreduce&) = delete;

  // Prepares for that many accumulators, so that start() allocates nothing.
  void reserve(size_t n);
  void start(const hc_accumulator* accumulators, size_t n, bool stop);
  // Whether the result is there.
  bool test();
  const hc_accumulator* result() const;
  // Whether any rank wished to stop.
  bool stop() const;

 private:
  const Communicator& communicator_;
  MPI_Op operation_ = MPI_OP_NULL;
  std::map<size_t, MPI_Datatype> types_;
  std::vector<hc_accumulator> buffer_;  // the first holds the wish to stop
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace halocline
