#include "sweep/host_sweep.hpp"

#include <algorithm>
#include <stdexcept>

#include "exchange/move.hpp"
#include "ranks/reduction.hpp"

namespace halocline {

HostSweep::HostSweep(const Rank& rank, const SweepPlan& plan, int32_t number)
    : Sweep(plan.reductions),
      rank_(rank),
      number_(number),
      swaps_(plan.swaps),
      scratch_bytes_(plan.scratch_bytes),
      in_place_(plan.in_place) {
  if (plan.shares.size() != rank.subdomains.size()) {
    throw std::invalid_argument("sweep " + plan.kernel + ": " + std::to_string(plan.shares.size()) +
                                " shares, expected one for each of " +
                                std::to_string(rank.subdomains.size()) + " subdomains");
  }
  for (size_t n = 0; n < rank.subdomains.size(); ++n) {
    const Subdomain& subdomain = rank.subdomains[n];
    parts_.push_back(std::make_unique<Part>(subdomain, Call(rank, subdomain, plan.kernel, plan.operands)));
    add(*parts_.back(), plan.shares[n], plan);
    for (const auto& [a, b] : swaps_) {
      if (!subdomain.storages[a]->same_layout(*subdomain.storages[b])) {
        throw std::invalid_argument("sweep " + plan.kernel + " swaps storages " + std::to_string(a) +
                                    " and " + std::to_string(b) +
                                    ", which differ in shape, halo or itemsize");
      }
    }
  }
  add_opening(plan);
  add_items(plan);
}

void HostSweep::add(Part& part, const Share& share, const SweepPlan& plan) {
  const size_t patches = part.subdomain.patches.size();
  if (plan.halo_kernel) {
    part.halo_kernel = std::make_unique<Call>(rank_, part.subdomain, *plan.halo_kernel, plan.operands);
  }
  part.halo_boxes = share.halo_boxes;
  if (!share.halo_boxes.empty() && !plan.halo_kernel) {
    throw std::invalid_argument("halo boxes without a halo kernel");
  }
  if (share.halo_needs.size() != share.halo_boxes.size() ||
      (!share.needs.empty() && share.needs.size() != patches)) {
    throw std::invalid_argument(
        "sweep " + plan.kernel + ": dependencies of " + std::to_string(share.needs.size()) + " patches and " +
        std::to_string(share.halo_needs.size()) + " halo boxes, expected one entry for each of " +
        std::to_string(patches) + " and " + std::to_string(share.halo_boxes.size()));
  }
  if (!share.sends.empty() || !share.receives.empty()) {
    if (!rank_.communicator)
      throw std::invalid_argument("sweep " + plan.kernel + " has messages, but there is only one rank");
    part.exchange = std::make_unique<Exchange>(rank_, part.subdomain, share.sends, share.receives, number_);
  }
  add_fills(part, share.fills, part.fills);
  add_fills(part, share.rims, part.rims);
  for (size_t n = 0; n < share.rims.size(); ++n) {
    part.closing.add(1, n == 0 || share.rims[n].axis != share.rims[n - 1].axis || share.rims[n].axis < 0);
  }
}

void HostSweep::add_fills(Part& part, const std::vector<Fill>& fills, Fills& bound) const {
  for (const Fill& fill : fills) {
    hc_box box{};
    std::copy(fill.lo.begin(), fill.lo.end(), box.lo);
    std::copy(fill.hi.begin(), fill.hi.end(), box.hi);
    bound.push_back({Call(rank_, part.subdomain, fill.kernel, fill.operands), box});
  }
}

void HostSweep::add_copies(const Share& share, size_t part, const std::string& kernel) {
  for (const Copy& whole : share.copies) {
    const auto ends = [&](const Index& lo) {
      return Index{lo[0] + whole.extent[0], lo[1] + whole.extent[1], lo[2] + whole.extent[2]};
    };
    if (whole.source >= rank_.subdomains.size()) {
      throw std::invalid_argument("sweep " + kernel + ": copy from subdomain " +
                                  std::to_string(whole.source) + ", expected a number below " +
                                  std::to_string(rank_.subdomains.size()));
    }
    const Storage& to = *rank_.subdomains[part].storages[whole.storage];
    const Storage& from = *rank_.subdomains[whole.source].storages[whole.storage];
    if (!from.holds(whole.from, ends(whole.from)) || !to.holds(whole.to, ends(whole.to))) {
      throw std::invalid_argument("sweep " + kernel + ": copy of " + text(whole.extent) + " cells from " +
                                  text(whole.from) + " to " + text(whole.to) + " is not within storage " +
                                  std::to_string(whole.storage));
    }
    cut(whole.from, whole.extent, to.itemsize(), [&](const Index& lo, const Index& extent) {
      Index target = whole.to;
      for (size_t axis = 0; axis < 3; ++axis) target[axis] += lo[axis] - whole.from[axis];
      copies_.push_back({part, {whole.storage, whole.source, lo, target, extent}});
    });
  }
}

void HostSweep::add_opening(const SweepPlan& plan) {
  // Packing comes first, since other ranks wait for the messages.
  for (size_t n = 0; n < parts_.size(); ++n) {
    const size_t pieces = parts_[n]->exchange ? parts_[n]->exchange->pieces() : 0;
    for (size_t piece = 0; piece < pieces; ++piece) tasks_.push_back({Task::Kind::kPack, n, piece});
  }
  for (size_t n = 0; n < parts_.size(); ++n) add_copies(plan.shares[n], n, plan.kernel);
  for (size_t n = 0; n < copies_.size(); ++n) tasks_.push_back({Task::Kind::kCopy, copies_[n].first, n});
  opening_.add(tasks_.size(), false);

  // Fills of different subdomains run in parallel: first the fills of stage 1 of all subdomains, then the
  // fills of stage 2, and so on.
  std::vector<size_t> next(parts_.size(), 0);
  for (bool more = true; more;) {
    more = false;
    bool new_stage = true;
    for (size_t n = 0; n < parts_.size(); ++n) {
      const std::vector<Fill>& fills = plan.shares[n].fills;
      const size_t first = next[n];
      while (next[n] < fills.size() &&
             (next[n] == first || (fills[next[n]].axis == fills[first].axis && fills[first].axis >= 0))) {
        tasks_.push_back({Task::Kind::kFill, n, next[n]});
        opening_.add(1, new_stage);
        new_stage = false;
        ++next[n];
      }
      more = more || next[n] < fills.size();
    }
  }
}

void HostSweep::add_items(const SweepPlan& plan) {
  std::vector<Condition> conditions;
  std::vector<int> owners;
  int32_t patches = 0, halos = 0;
  for (size_t n = 0; n < parts_.size(); ++n) {
    const Part& part = *parts_[n];
    const Share& share = plan.shares[n];
    const auto number = static_cast<uint32_t>(n);
    uint32_t known = 0;
    for (size_t m = 0; m < share.receives.size(); ++m) known |= uint32_t{1} << m;
    const auto add_item = [&](const Call& kernel, const hc_box& box, uint32_t needs, bool rims, int owner) {
      if ((needs & ~known) != 0) {
        throw std::invalid_argument("sweep " + plan.kernel +
                                    ": a patch needs a message that is not received");
      }
      const bool halo = &kernel != &part.kernel;
      items_.push_back(
          {&kernel, &box, halo ? EventKind::kHalo : EventKind::kPatch, halo ? halos++ : patches++, number});
      conditions.push_back({number, needs, rims && !part.rims.empty()});
      owners.push_back(owner);
    };
    for (size_t p = 0; p < part.subdomain.patches.size(); ++p) {
      const Needs needs = share.needs.empty() ? Needs{} : share.needs[p];
      add_item(part.kernel, part.subdomain.patches[p], needs.messages, needs.rims, part.subdomain.owners[p]);
    }
    for (size_t h = 0; h < part.halo_boxes.size(); ++h) {
      add_item(*part.halo_kernel, part.halo_boxes[h], share.halo_needs[h], true,
               static_cast<int>(h * static_cast<size_t>(rank_.threads) / part.halo_boxes.size()));
    }
  }
  work_ = std::make_unique<Work>(rank_.threads, owners, conditions, plan.backward, rank_.schedule);
}

void HostSweep::start() {
  for (const auto& part : parts_) {
    part->kernel.bind();
    if (part->halo_kernel) part->halo_kernel->bind();
    for (Fills* fills : {&part->fills, &part->rims}) {
      for (BoundFill& fill : *fills) fill.call.bind();
    }
    part->closing.start();
    // The list of earlier loans must be complete before the exchange starts and creates new loans.
    part->owed.clear();
    for (const Loan& loan : part->subdomain.loans) {
      const uint64_t lent_count = part->subdomain.lent_count(loan);
      if (!part->subdomain.returned(loan, lent_count)) part->owed.emplace_back(&loan, lent_count);
    }
    part->free.store(part->owed.empty(), std::memory_order_relaxed);
  }
  opening_.start();
  work_->start();
  for (const auto& part : parts_) {
    if (part->exchange) rank_.messages ? part->exchange->start() : part->exchange->skip();
  }
}

void HostSweep::opening(size_t task, Worker& worker) {
  const Task& t = tasks_[task];
  Part& part = *parts_[t.part];
  switch (t.kind) {
    case Task::Kind::kPack:
      worker.clock.enter(Activity::kExchange);
      if (!rank_.messages) break;
      {
        const Span span(worker.trace.get(), EventKind::kPack, number_, static_cast<int32_t>(t.number));
        part.exchange->pack(t.number);
      }
      part.exchange->progress(worker.thread);
      break;
    case Task::Kind::kCopy: {
      worker.clock.enter(Activity::kExchange);
      if (!rank_.messages) break;
      const Span span(worker.trace.get(), EventKind::kCopy, number_, static_cast<int32_t>(t.number));
      const Copy& c = copies_[t.number].second;
      copy(*rank_.subdomains[c.source].storages[c.storage], c.from, *part.subdomain.storages[c.storage], c.to,
           c.extent);
      break;
    }
    case Task::Kind::kFill:
      run_fill(part.fills[t.number], worker);
      break;
  }
}

void HostSweep::run_fill(const BoundFill& fill, Worker& worker) const {
  worker.clock.enter(Activity::kCompute);
  if (!rank_.kernels) return;
  const Span span(worker.trace.get(), EventKind::kFill, number_, 0);
  fill.call(nullptr, worker.scratch, fill.box);
}

void HostSweep::run_item(uint32_t item, Worker& worker) const {
  worker.clock.enter(Activity::kCompute);
  if (!rank_.kernels) return;
  const Item& i = items_[item];
  const Span span(worker.trace.get(), i.kind, number_, i.number);
  if (worker.seconds.empty()) {
    (*i.kernel)(worker.reductions, worker.scratch, *i.box);
    return;
  }
  const double begun = now();
  (*i.kernel)(worker.reductions, worker.scratch, *i.box);
  worker.seconds[i.part] += now() - begun;
}

bool HostSweep::ready(const Condition& condition) const {
  const Part& part = *parts_[condition.part];
  if (!part.free.load(std::memory_order_acquire)) return false;
  if (!rank_.overlap && !all_arrived()) return false;
  if (!part.exchange) return !condition.rims || part.closing.complete();
  return (condition.needs & ~part.exchange->arrived()) == 0 && (!condition.rims || part.closing.complete()) &&
         (!in_place_ || part.exchange->all_sent());
}

bool HostSweep::all_complete() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->complete(); });
}

bool HostSweep::all_arrived() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->arrived(); });
}

bool HostSweep::all_closed() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->arrived() && part->closing.complete(); });
}

void HostSweep::communicate(Worker& worker, Team& team) {
  if (rank_.allreduce != nullptr && worker.thread == 0) {
    if (const auto permission = rank_.communicator->mpi_permission(worker.thread)) rank_.allreduce->test();
  }
  for (const auto& part : parts_) {
    if (!part->free.load(std::memory_order_acquire)) free_if_read(*part);
    const bool exchange_complete = part->complete() && (!in_place_ || part->sent());
    if (exchange_complete && part->arrived()) continue;
    worker.clock.enter(Activity::kExchange);
    if (!exchange_complete) part->exchange->progress(worker.thread);
    for (bool more = true; more;) {
      more = false;
      team.attempt([&] { more = part->exchange->unpack(worker.trace.get()); });
    }
  }
}

void HostSweep::free_if_read(Part& part) {
  for (const auto& [loan, times] : part.owed) {
    if (!part.subdomain.returned(*loan, times)) return;
  }
  part.free.store(true, std::memory_order_release);
}

std::vector<std::pair<size_t, size_t>> HostSweep::mailboxes(size_t subdomain) const {
  const Part& part = *parts_[subdomain];
  return part.exchange ? part.exchange->mailboxes() : std::vector<std::pair<size_t, size_t>>{};
}

std::vector<Loan> HostSweep::loans(size_t subdomain) const {
  const Part& part = *parts_[subdomain];
  return part.exchange ? part.exchange->loans() : std::vector<Loan>{};
}

void HostSweep::idle(Worker& worker, Team& team, Backoff& backoff, Watchdog& watchdog) {
  if (!rank_.alone()) worker.clock.enter(Activity::kExchange);
  communicate(worker, team);
  backoff();
  // It is sufficient that the first thread checks the clock, since it waits whenever a message is missing.
  if (rank_.alone() || worker.thread != 0 || !watchdog.expired()) return;
  for (const auto& part : parts_) {
    if (!part->complete() || (in_place_ && !part->sent())) part->exchange->abort_after_wait(rank_.timeout);
    for (const auto& [owed, times] : part->owed) {
      if (part->subdomain.returned(*owed, times)) continue;
      const Loan& loan = *owed;
      rank_.communicator->abort_after_wait(rank_.timeout,
                                           "rank " + std::to_string(loan.rank) + " to read a halo");
    }
  }
}

template <typename Wait>
bool HostSweep::take_rim(Worker& worker, Team& team, Wait&& wait) {
  for (const auto& part : parts_) {
    if (part->closing.size() == 0 || !part->arrived()) continue;
    const auto rim = [&](size_t task) { team.attempt([&] { run_fill(part->rims[task], worker); }); };
    if (part->closing.take(rim, wait)) return true;
  }
  return false;
}

void HostSweep::work(Worker& worker, Team& team) {
  work_->refill(worker.thread);
  Accumulators::reset(worker.reductions, reductions());
  Backoff backoff = team.backoff();
  Watchdog watchdog(rank_.timeout);
  const auto wait = [&] { idle(worker, team, backoff, watchdog); };

  if (opening_.size() != 0) {
    while (opening_.take([&](size_t task) { team.attempt([&] { opening(task, worker); }); }, wait)) {
    }
    while (!opening_.complete()) wait();
  }
  for (;;) {
    communicate(worker, team);
    if (take_rim(worker, team, wait)) continue;
    uint32_t item = 0;
    const Work::Outcome outcome =
        work_->take(worker.thread, [&](const Condition& c) { return ready(c); }, item);
    if (outcome == Work::Outcome::kItem) {
      team.attempt([&] { run_item(item, worker); });
      backoff.reset();
      watchdog.reset();
      continue;
    }
    if (outcome == Work::Outcome::kNoneLeft && all_closed()) break;
    wait();
  }
  // The buffers may be reused only after this wait.
  while (worker.thread == 0 && !all_complete()) wait();
  worker.clock.enter(Activity::kCompute);
}

void HostSweep::finish() {
  for (const auto& [a, b] : swaps_) {
    for (const Subdomain& subdomain : rank_.subdomains) subdomain.storages[a]->swap(*subdomain.storages[b]);
    for (const Neighbour& neighbour : rank_.neighbours) neighbour.storages[a]->swap(*neighbour.storages[b]);
  }
}

}  // namespace halocline
