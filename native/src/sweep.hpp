// One pass over all patches of a subdomain, with the messages and boundary conditions before it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chain.hpp"
#include "clock.hpp"
#include "exchange.hpp"
#include "reduction.hpp"
#include "subdomain.hpp"
#include "work.hpp"

namespace halocline {

// Periodic wrap within one subdomain.
struct Copy {
  uint32_t storage;
  Index from, to, extent;
};

// A boundary condition over one box. Neighbours in a list with the same axis (not -1) may run side by
// side; otherwise each runs after the one before.
struct Fill {
  std::string kernel;
  std::vector<int64_t> operands;
  Index lo, hi;
  int axis;
};

// A sweep as the plan describes it.
struct SweepPlan {
  std::string kernel;
  std::vector<int64_t> operands;
  std::vector<Reduction> reductions;
  std::vector<Message> sends, receives;
  std::vector<Copy> copies;
  std::vector<Fill> fills;            // before the patches
  std::vector<Fill> rims;             // once all messages have arrived
  std::vector<Condition> conditions;  // per patch
  std::optional<std::string> halo_kernel;
  std::vector<hc_box> halo_boxes;
  std::vector<uint32_t> halo_needs;  // per halo box; all wait for the rims
  std::vector<std::pair<uint32_t, uint32_t>> swaps;
  size_t scratch_bytes = 0;
  bool backward = false;
};

// One thread of a run.
struct Worker {
  int thread = 0;
  hc_accumulator* reductions = nullptr;
  void* scratch = nullptr;
  Stopwatch clock;  // runs in the first thread only
};

class Sweep {
 public:
  // Throws std::invalid_argument and std::runtime_error for what the plan has wrong.
  Sweep(const Subdomain& subdomain, const SweepPlan& plan);

  const std::vector<Reduction>& reductions() const { return reductions_; }
  size_t scratch_bytes() const { return scratch_bytes_; }

  // First thread, alone: prepares an execution and starts the receives.
  void start();
  // All threads: returns when there is nothing left to take; the others may still be at work.
  void work(Worker& worker, Team& team);
  // First thread, alone, when all are done: exchanges the memory of swapped storages.
  void finish();

  int64_t executions = 0;  // in the present run
  double seconds = 0;

 private:
  struct BoundFill {
    Call call;
    hc_box box;
  };

  void add_fills(const std::vector<Fill>& fills, std::vector<BoundFill>& bound, Chain& chain);
  void opening(size_t task, Worker& worker);
  void run_fill(const BoundFill& fill, Worker& worker) const;
  void run_item(uint32_t item, Worker& worker) const;
  // Polls for messages and unpacks what has come.
  void communicate(Worker& worker, Team& team);
  void idle(Worker& worker, Team& team, Backoff& backoff, Watchdog& watchdog);

  const Subdomain& subdomain_;
  Call kernel_;
  std::unique_ptr<Call> halo_kernel_;
  std::vector<hc_box> halo_boxes_;
  std::vector<Reduction> reductions_;
  std::unique_ptr<Exchange> exchange_;
  std::vector<Copy> copies_;
  std::vector<BoundFill> fills_, rims_;
  std::vector<std::pair<uint32_t, uint32_t>> swaps_;
  size_t scratch_bytes_;
  std::unique_ptr<Work> work_;
  Chain opening_;  // packing and copies, then fills
  Chain closing_;  // rims
};

}  // namespace halocline
