// Computation of one kernel in all cells of a rank, including messages and boundary fills.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ranks/rank.hpp"
#include "ranks/reduction.hpp"
#include "threads/clock.hpp"
#include "threads/team.hpp"

namespace halocline {

// State of one thread of a run.
struct Worker {
  int thread = 0;
  hc_accumulator* reductions = nullptr;
  void* scratch = nullptr;
  Stopwatch clock;                 // runs only in the first thread
  std::unique_ptr<Trace> trace{};  // set if the run is traced
  std::vector<double> seconds{};   // kernel time per subdomain, if measured
};

class Sweep {
 public:
  explicit Sweep(std::vector<Reduction> reductions) : reductions_(std::move(reductions)) {}
  virtual ~Sweep() = default;
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  const std::vector<Reduction>& reductions() const { return reductions_; }
  virtual size_t scratch_bytes() const { return 0; }  // per thread

  // Prepare an execution and start the receives. Only the first thread calls it.
  virtual void start() = 0;
  // Execute work items. All threads call it. A thread returns if no item is left, even if other threads still
  // run items.
  virtual void work(Worker& worker, Team& team) = 0;
  // Exchange the memory of swapped storages. Only the first thread calls it, after all threads have finished.
  virtual void finish() = 0;
  // Return true if the contribution of this rank to the reductions is complete. A sweep on devices then
  // copies the contribution to the accumulators. Only the first thread calls this function.
  virtual bool take_reductions(hc_accumulator*) { return true; }

  // See Exchange.
  virtual std::vector<std::pair<size_t, size_t>> mailboxes(size_t) const { return {}; }
  virtual std::vector<Loan> loans(size_t) const { return {}; }

  int64_t executions = 0;  // in the current run
  double seconds = 0;

 private:
  std::vector<Reduction> reductions_;
};

}  // namespace halocline
