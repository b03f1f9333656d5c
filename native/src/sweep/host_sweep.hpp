// Sweep on the host. Threads run its patches.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exchange/exchange.hpp"
#include "sweep/call.hpp"
#include "sweep/sweep.hpp"
#include "threads/chain.hpp"
#include "threads/work.hpp"

namespace halocline {

// Copy of cells from one subdomain of this rank to another subdomain, or around a periodic axis to the same
// subdomain.
struct Copy {
  uint32_t storage, source;  // source: number of the subdomain
  Index from, to, extent;
};

// Boundary fill of one box. Consecutive fills of a list with the same axis (not -1) may run in parallel.
// Otherwise, each fill runs after the previous one.
struct Fill {
  std::string kernel;
  std::vector<int64_t> operands;
  Index lo, hi;
  int axis;
};

// Dependencies of a patch.
struct Needs {
  uint32_t messages = 0;  // bit m: the patch waits for receive m
  bool rims = false;      // the patch waits for the rims
};

// Part of a sweep in one subdomain.
struct Share {
  std::vector<Message> sends, receives;
  std::vector<Copy> copies;
  std::vector<Fill> fills;   // boundary fills that run before the patches
  std::vector<Fill> rims;    // boundary fills that run after all messages have arrived
  std::vector<Needs> needs;  // per patch; empty: no patch has dependencies
  std::vector<hc_box> halo_boxes;
  std::vector<uint32_t> halo_needs;  // per halo box; all boxes also wait for the rims
};

// Description of a sweep in the plan.
struct SweepPlan {
  std::string kernel;
  std::vector<int64_t> operands;
  std::vector<Share> shares;  // per subdomain
  std::vector<Reduction> reductions;
  std::optional<std::string> halo_kernel;
  std::vector<std::pair<uint32_t, uint32_t>> swaps;
  size_t scratch_bytes = 0;
  bool backward = false;
  bool in_place = false;  // the sweep overwrites cells that it sends, so patches wait for the sends
};

class HostSweep : public Sweep {
 public:
  // Throws std::invalid_argument or std::runtime_error if the plan is invalid.
  HostSweep(const Rank& rank, const SweepPlan& plan, int32_t number);

  size_t scratch_bytes() const override { return scratch_bytes_; }
  void start() override;
  void work(Worker& worker, Team& team) override;
  void finish() override;
  std::vector<std::pair<size_t, size_t>> mailboxes(size_t subdomain) const override;
  std::vector<Loan> loans(size_t subdomain) const override;

 private:
  struct BoundFill {
    Call call;
    hc_box box;
  };
  using Fills = std::vector<BoundFill>;

  // State of the sweep in one subdomain.
  struct Part {
    Part(const Subdomain& domain, const Call& call) : subdomain(domain), kernel(call) {}

    const Subdomain& subdomain;
    Call kernel;
    std::unique_ptr<Call> halo_kernel;
    std::vector<hc_box> halo_boxes;
    std::unique_ptr<Exchange> exchange;
    Fills fills, rims;
    Chain closing;  // rims
    // Loans of earlier sweeps that were not returned when this sweep began. Patches wait for their return.
    std::vector<std::pair<const Loan*, uint64_t>> owed;
    std::atomic<bool> free{true};

    bool arrived() const { return !exchange || exchange->all_arrived(); }
    bool complete() const { return !exchange || exchange->complete(); }
    bool sent() const { return !exchange || exchange->all_sent(); }
  };
  // One kernel call.
  struct Item {
    const Call* kernel;
    const hc_box* box;
    EventKind kind;
    int32_t number;  // number among the patches, or among the halo boxes, of all subdomains
    uint32_t part;   // number of its subdomain
  };
  // Task of the opening chain: its kind, subdomain and number.
  struct Task {
    enum class Kind { kPack, kCopy, kFill } kind;
    size_t part, number;
  };

  void add(Part& part, const Share& share, const SweepPlan& plan);
  void add_copies(const Share& share, size_t part, const std::string& kernel);
  void add_fills(Part& part, const std::vector<Fill>& fills, Fills& bound) const;
  void add_opening(const SweepPlan& plan);
  void add_items(const SweepPlan& plan);
  void opening(size_t task, Worker& worker);
  void run_fill(const BoundFill& fill, Worker& worker) const;
  void run_item(uint32_t item, Worker& worker) const;
  // Run a rim of any subdomain whose messages have all arrived. Return false if there is no such rim.
  template <typename Wait>
  bool take_rim(Worker& worker, Team& team, Wait&& wait);
  bool ready(const Condition& condition) const;
  bool all_complete() const;
  bool all_arrived() const;
  bool all_closed() const;
  static void free_if_read(Part& part);
  // Poll for messages and unpack those that have arrived.
  void communicate(Worker& worker, Team& team);
  void idle(Worker& worker, Team& team, Backoff& backoff, Watchdog& watchdog);

  const Rank& rank_;
  int32_t number_;  // number of this sweep
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::pair<size_t, Copy>> copies_;  // number of the receiving subdomain, and the copy
  std::vector<std::pair<uint32_t, uint32_t>> swaps_;
  size_t scratch_bytes_;
  bool in_place_;
  std::vector<Item> items_;
  std::unique_ptr<Work> work_;
  Chain opening_;  // packing and copies, then fills
  std::vector<Task> tasks_;
};

}  // namespace halocline
