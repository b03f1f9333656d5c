// A sweep on the host: threads take patches.
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

// From a subdomain of this rank to another, or around a periodic axis to itself.
struct Copy {
  uint32_t storage, source;  // source: number of the subdomain
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

// What must be there before a patch can run.
struct Needs {
  uint32_t messages = 0;  // bit m: receive m
  bool rims = false;      // the boundary conditions that wait for messages
};

// What a sweep does in one subdomain.
struct Share {
  std::vector<Message> sends, receives;
  std::vector<Copy> copies;
  std::vector<Fill> fills;   // before the patches
  std::vector<Fill> rims;    // once all messages have arrived
  std::vector<Needs> needs;  // per patch; all none where there are no entries
  std::vector<hc_box> halo_boxes;
  std::vector<uint32_t> halo_needs;  // per halo box; all wait for the rims
};

// A sweep as the plan describes it.
struct SweepPlan {
  std::string kernel;
  std::vector<int64_t> operands;
  std::vector<Share> shares;  // by subdomain
  std::vector<Reduction> reductions;
  std::optional<std::string> halo_kernel;
  std::vector<std::pair<uint32_t, uint32_t>> swaps;
  size_t scratch_bytes = 0;
  bool backward = false;
  bool in_place = false;  // it overwrites cells that it sends: patches wait until they are sent
};

class HostSweep : public Sweep {
 public:
  // Throws std::invalid_argument and std::runtime_error for what the plan has wrong.
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

  // The sweep in one subdomain.
  struct Part {
    Part(const Subdomain& where, const Call& call) : subdomain(where), kernel(call) {}

    const Subdomain& subdomain;
    Call kernel;
    std::unique_ptr<Call> halo_kernel;
    std::vector<hc_box> halo_boxes;
    std::unique_ptr<Exchange> exchange;
    Fills fills, rims;
    Chain closing;  // rims
    // What earlier sweeps have lent and was not returned when this one began: no patch runs before.
    std::vector<std::pair<const Loan*, uint64_t>> owed;
    std::atomic<bool> free{true};

    bool arrived() const { return !exchange || exchange->all_arrived(); }
    bool complete() const { return !exchange || exchange->complete(); }
    bool sent() const { return !exchange || exchange->all_sent(); }
  };
  // One call of a kernel.
  struct Item {
    const Call* kernel;
    const hc_box* box;
    Doing doing;
    int32_t number;  // of the patch or halo box, over all subdomains
    uint32_t part;   // its subdomain
  };
  // What a task of the opening chain does, and where.
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
  // Takes a rim of any subdomain whose messages have all arrived.
  template <typename Wait>
  bool take_rim(Worker& worker, Team& team, Wait&& wait);
  bool ready(const Condition& condition) const;
  bool all_complete() const;
  bool all_arrived() const;
  bool all_closed() const;
  static void settle(Part& part);
  // Polls for messages and unpacks what has come.
  void communicate(Worker& worker, Team& team);
  void idle(Worker& worker, Team& team, Backoff& backoff, Watchdog& watchdog);

  const Rank& rank_;
  int32_t number_;  // of this sweep
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::pair<size_t, Copy>> copies_;  // the part that they go to
  std::vector<std::pair<uint32_t, uint32_t>> swaps_;
  size_t scratch_bytes_;
  bool in_place_;
  std::vector<Item> items_;
  std::unique_ptr<Work> work_;
  Chain opening_;  // packing and copies, then fills
  std::vector<Task> tasks_;
};

}  // namespace halocline
