// A sweep on devices: one thread of a rank queues the work of all its devices.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/exchange.hpp"
#include "sweep/sweep.hpp"

namespace halocline::device {

// Patch, or box of halo cells that the sweep also computes.
struct Item {
  uint32_t needs = 0;  // bit m: the item waits for receive m
  bool rims = false;   // the item waits for the rims
  bool halo = false;   // a box in the halo
  std::vector<Launch> launches;
};

// Cells to copy from a subdomain of this rank, which may be the same subdomain.
struct Copy {
  uint32_t storage, source;  // source: number of the subdomain
  Index from, to, extent;
};

// Reductions of one kernel: their numbers in the sweep, and the total number of thread blocks of its
// launches.
struct Partials {
  std::string kernel;
  std::vector<size_t> reductions;
  size_t total_blocks = 0;
};

// Part of a sweep in one subdomain.
struct Share {
  std::vector<Message> sends, receives;
  std::vector<Copy> copies;
  std::vector<Launch> invariants;  // kernels that compute invariants, before all other kernels
  std::vector<Launch> fills;       // boundary fills that run before the patches
  std::vector<Launch> rims;        // boundary fills that run after all messages have arrived
  std::vector<Item> items;
  std::vector<Partials> partials;
};

struct SweepPlan {
  std::string name;
  std::vector<Share> shares;  // per subdomain
  std::vector<Reduction> reductions;
  std::vector<std::pair<uint32_t, uint32_t>> swaps;
  size_t scratch_bytes = 0;
};

using Subdomains = std::vector<std::shared_ptr<Subdomain>>;

class Sweep : public halocline::Sweep {
 public:
  // Throws std::invalid_argument or DeviceError if the plan is invalid.
  Sweep(const Rank& rank, const Subdomains& subdomains, const SweepPlan& plan, int32_t number);

  void start() override;
  void work(Worker& worker, Team& team) override;
  void finish() override;
  bool take_reductions(hc_accumulator* reductions) override;
  // Return true if messages are copied row by row, without kernels.
  bool copies_rows() const;

 private:
  struct BoundItem {
    uint32_t needs;
    bool rims;
    EventKind kind;
    std::vector<std::pair<BoundLaunch, const Buffer*>> launches;
    bool queued = false;
  };
  // Partial results of the reductions of one kernel, and the launch that merges them.
  struct Reducer {
    std::vector<size_t> reductions;
    std::string kernel;
    size_t total_blocks = 0;
    std::unique_ptr<Buffer> partials, kinds, targets, accumulators;
    std::unique_ptr<Kernel> finish;
    std::unique_ptr<Pinned> results;
  };
  // Cells from another subdomain. If this device can access the memory of the source, one launch copies them.
  // Otherwise the source packs them, and this device copies and unpacks them.
  struct Peer {
    size_t source;
    bool direct;
    std::unique_ptr<Moves> moves, packing;
    std::unique_ptr<Buffer> sent, received;
    std::shared_ptr<Event> packed{};
  };
  // State of the sweep in one subdomain.
  struct Part {
    explicit Part(Subdomain& domain) : subdomain(domain), periodic_copies(domain) {}

    Subdomain& subdomain;
    std::unique_ptr<Exchange> exchange;
    Moves periodic_copies;
    std::vector<Peer> peers;
    std::vector<BoundLaunch> invariants, fills, rims;
    std::vector<BoundItem> items;
    std::vector<Reducer> reducers;
    std::shared_ptr<Event> begun, copied, reduced;
    uint32_t awaited = 0;  // receives for which the computing queue waits
    bool rims_queued = false;

    bool arrived() const { return !exchange || exchange->all_arrived(); }
    bool complete() const { return !exchange || exchange->complete(); }
  };

  void add(Part& part, const Share& share, const SweepPlan& plan, const Subdomains& subdomains);
  void add_copies(Part& part, size_t number, const Share& share, const Subdomains& subdomains);
  void add_reducers(Part& part, const Share& share);
  void copy_halos();
  // Queue ready items. Return true if all items are queued.
  bool queue_items(Part& part);
  void queue_rims(Part& part);
  // Make the computing queue wait for all messages that have arrived.
  static void await_all(Part& part);
  // Queue the work that follows all patches.
  void conclude();
  void reduce(Part& part);
  bool all_arrived() const;

  const Rank& rank_;
  std::string name_;
  int32_t number_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<std::pair<uint32_t, uint32_t>> swaps_;
};

}  // namespace halocline::device
