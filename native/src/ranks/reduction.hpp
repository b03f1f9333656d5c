// Reductions over threads and ranks. The results do not depend on the order of the merges, so any reduction
// tree is valid.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "halocline/reduce.hpp"
#include "mpi/standard.hpp"
#include "ranks/communicator.hpp"

namespace halocline {

struct Reduction {
  hc_kind kind;
  size_t scalar;
};

// Accumulators of all threads. Different threads use different cache lines.
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

// Requests of a rank during a run, as bits.
using StopRequests = uint64_t;
constexpr StopRequests kPause = 1;  // pause between two passes of the outermost loop
constexpr StopRequests kStop = 2;   // stop of the run, also within a pass

// Non-blocking reduction that merges accumulators and requests over all ranks in one message.
class Allreduce {
 public:
  explicit Allreduce(const Communicator& communicator);
  ~Allreduce();
  Allreduce(const Allreduce&) = delete;
  Allreduce& operator=(const Allreduce&) = delete;

  // Prepare for n accumulators, so that start() allocates nothing.
  void reserve(size_t n);
  void start(const hc_accumulator* accumulators, size_t n, StopRequests stop_requests);
  // Return true if the result has arrived.
  bool test();
  const hc_accumulator* result() const;
  // Union of the requests of all ranks.
  StopRequests stop_requests() const;

 private:
  const Communicator& communicator_;
  MPI_Op operation_ = MPI_OP_NULL;
  std::map<size_t, MPI_Datatype> types_;
  std::vector<hc_accumulator> buffer_;  // the first element holds the header
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace halocline
