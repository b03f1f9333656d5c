// One pass over all cells of a rank, with the messages and boundary conditions before it.
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

// One thread of a run.
struct Worker {
  int thread = 0;
  hc_accumulator* reductions = nullptr;
  void* scratch = nullptr;
  Stopwatch clock;                 // runs in the first thread only
  std::unique_ptr<Trace> trace{};  // of a run that is traced
  std::vector<double> seconds{};   // in kernels, by subdomain, where these are measured
};

class Sweep {
 public:
  explicit Sweep(std::vector<Reduction> reductions) : reductions_(std::move(reductions)) {}
  virtual ~Sweep() = default;
  Sweep(const Sweep&) = delete;
  Sweep& operator=(const Sweep&) = delete;

  const std::vector<Reduction>& reductions() const { return reductions_; }
  virtual size_t scratch_bytes() const { return 0; }  // of each thread

  // First thread, alone: prepares an execution and starts the receives.
  virtual void start() = 0;
  // All threads: returns when there is nothing left to take; the others may still be at work.
  virtual void work(Worker& worker, Team& team) = 0;
  // First thread, alone, when all are done: exchanges the memory of swapped storages.
  virtual void finish() = 0;
  // First thread: whether this rank's part of the reductions is known; on devices, puts it into `reductions`.
  virtual bool reduced(hc_accumulator*) { return true; }

  // See Exchange.
  virtual std::vector<std::pair<size_t, size_t>> mailboxes(size_t) const { return {}; }
  virtual std::vector<Loan> loans(size_t) const { return {}; }

  int64_t executions = 0;  // in the present run
  double seconds = 0;

 private:
  std::vector<Reduction> reductions_;
};

}  // namespace halocline
