#include "sweep.hpp"

#include <algorithm>
#include <stdexcept>

#include "transfer.hpp"

namespace halocline {

Sweep::Sweep(const Subdomain& subdomain, const SweepPlan& plan)
    : subdomain_(subdomain),
      kernel_(subdomain, plan.kernel, plan.operands),
      halo_boxes_(plan.halo_boxes),
      reductions_(plan.reductions),
      swaps_(plan.swaps),
      scratch_bytes_(plan.scratch_bytes) {
  const Storages& storages = subdomain.storages;
  if (plan.halo_kernel) halo_kernel_ = std::make_unique<Call>(subdomain, *plan.halo_kernel, plan.operands);
  if (!halo_boxes_.empty() && !halo_kernel_) throw std::invalid_argument("halo boxes without a halo kernel");
  if (plan.halo_needs.size() != halo_boxes_.size() || plan.conditions.size() != subdomain.patches.size()) {
    throw std::invalid_argument(
        "sweep " + plan.kernel + ": needs of " + std::to_string(plan.conditions.size()) + " patches and " +
        std::to_string(plan.halo_needs.size()) + " halo boxes, expected " +
        std::to_string(subdomain.patches.size()) + " and " + std::to_string(halo_boxes_.size()));
  }
  for (const auto& [a, b] : swaps_) {
    if (!storages[a]->same_layout(*storages[b])) {
      throw std::invalid_argument("sweep " + plan.kernel + " swaps storages " + std::to_string(a) + " and " +
                                  std::to_string(b) + ", which differ in shape, halo or itemsize");
    }
  }
  if (!plan.sends.empty() || !plan.receives.empty()) {
    if (!subdomain.communicator)
      throw std::invalid_argument("sweep " + plan.kernel + " has messages, but one rank");
    exchange_ = std::make_unique<Exchange>(*subdomain.communicator, storages, plan.sends, plan.receives);
    opening_.add(exchange_->pieces(), false);
  }
  for (const Copy& whole : plan.copies) {
    const Storage& storage = *storages[whole.storage];
    const auto ends = [&](const Index& lo) {
      return Index{lo[0] + whole.extent[0], lo[1] + whole.extent[1], lo[2] + whole.extent[2]};
    };
    if (!storage.holds(whole.from, ends(whole.from)) || !storage.holds(whole.to, ends(whole.to))) {
      throw std::invalid_argument("sweep " + plan.kernel + ": copy of " + text(whole.extent) +
                                  " cells from " + text(whole.from) + " to " + text(whole.to) +
                                  " is not within storage " + std::to_string(whole.storage));
    }
    cut(whole.from, whole.extent, storage.itemsize(), [&](const Index& from, const Index& extent) {
      Index to = whole.to;
      for (size_t axis = 0; axis < 3; ++axis) to[axis] += from[axis] - whole.from[axis];
      copies_.push_back({whole.storage, from, to, extent});
    });
  }
  opening_.add(copies_.size(), false);
  add_fills(plan.fills, fills_, opening_);
  add_fills(plan.rims, rims_, closing_);

  uint32_t known = 0;
  for (size_t m = 0; m < plan.receives.size(); ++m) known |= uint32_t{1} << m;
  std::vector<Condition> conditions = plan.conditions;
  std::vector<int> owners = subdomain.owners;
  for (size_t n = 0; n < halo_boxes_.size(); ++n) {
    conditions.push_back({plan.halo_needs[n], !rims_.empty()});
    owners.push_back(static_cast<int>(n * static_cast<size_t>(subdomain.threads) / halo_boxes_.size()));
  }
  for (Condition& condition : conditions) {
    if ((condition.needs & ~known) != 0) {
      throw std::invalid_argument("sweep " + plan.kernel + ": a patch needs a message that is not received");
    }
    condition.rims = condition.rims && !rims_.empty();
  }
  work_ = std::make_unique<Work>(subdomain.threads, owners, conditions, plan.backward);
}

void Sweep::add_fills(const std::vector<Fill>& fills, std::vector<BoundFill>& bound, Chain& chain) {
  const Fill* before = nullptr;
  for (const Fill& fill : fills) {
    hc_box box{};
    std::copy(fill.lo.begin(), fill.lo.end(), box.lo);
    std::copy(fill.hi.begin(), fill.hi.end(), box.hi);
    bound.push_back({Call(subdomain_, fill.kernel, fill.operands), box});
    chain.add(1, before == nullptr || before->axis != fill.axis || fill.axis < 0);
    before = &fill;
  }
}

void Sweep::start() {
  kernel_.bind();
  if (halo_kernel_) halo_kernel_->bind();
  for (auto* fills : {&fills_, &rims_}) {
    for (BoundFill& fill : *fills) fill.call.bind();
  }
  opening_.start();
  closing_.start();
  work_->start();
  if (exchange_) exchange_->start();
}

void Sweep::opening(size_t task, Worker& worker) {
  const size_t packs = exchange_ ? exchange_->pieces() : 0;
  if (task < packs) {
    worker.clock.enter(Activity::kExchange);
    exchange_->pack(task);
    exchange_->progress(worker.thread);
  } else if (task < packs + copies_.size()) {
    worker.clock.enter(Activity::kExchange);
    const Copy& c = copies_[task - packs];
    copy(*subdomain_.storages[c.storage], c.from, c.to, c.extent);
  } else {
    run_fill(fills_[task - packs - copies_.size()], worker);
  }
}

void Sweep::run_fill(const BoundFill& fill, Worker& worker) const {
  worker.clock.enter(Activity::kCompute);
  fill.call(nullptr, worker.scratch, fill.box);
}

void Sweep::run_item(uint32_t item, Worker& worker) const {
  worker.clock.enter(Activity::kCompute);
  const size_t patches = subdomain_.patches.size();
  if (item < patches) {
    kernel_(worker.reductions, worker.scratch, subdomain_.patches[item]);
  } else {
    (*halo_kernel_)(worker.reductions, worker.scratch, halo_boxes_[item - patches]);
  }
}

void Sweep::communicate(Worker& worker, Team& team) {
  if (!exchange_ || (exchange_->complete() && exchange_->all_arrived())) return;
  worker.clock.enter(Activity::kExchange);
  if (!exchange_->complete()) exchange_->progress(worker.thread);
  for (bool more = true; more;) {
    more = false;
    team.attempt([&] { more = exchange_->unpack(); });
  }
}

void Sweep::idle(Worker& worker, Team& team, Backoff& backoff, Watchdog& watchdog) {
  if (exchange_) worker.clock.enter(Activity::kExchange);
  communicate(worker, team);
  backoff();
  // The first thread waits whenever a message is missing, so it alone needs to look at the clock.
  if (exchange_ && worker.thread == 0 && !exchange_->complete() && watchdog.expired()) {
    exchange_->give_up(subdomain_.timeout);
  }
}

void Sweep::work(Worker& worker, Team& team) {
  work_->refill(worker.thread);
  Accumulators::reset(worker.reductions, reductions_);
  Backoff backoff = team.backoff();
  Watchdog watchdog(subdomain_.timeout);
  const auto wait = [&] { idle(worker, team, backoff, watchdog); };

  if (opening_.size() != 0) {
    while (opening_.take([&](size_t task) { team.attempt([&] { opening(task, worker); }); }, wait)) {
    }
    while (!opening_.complete()) wait();
  }
  for (;;) {
    communicate(worker, team);
    const bool arrived = !exchange_ || exchange_->all_arrived();
    const auto rim = [&](size_t task) { team.attempt([&] { run_fill(rims_[task], worker); }); };
    if (arrived && closing_.size() != 0 && closing_.take(rim, wait)) continue;
    uint32_t item = 0;
    const Work::Found found =
        work_->take(worker.thread, exchange_ ? exchange_->arrived() : 0, closing_.complete(), item);
    if (found == Work::Found::kItem) {
      team.attempt([&] { run_item(item, worker); });
      backoff.reset();
      watchdog.reset();
      continue;
    }
    if (arrived && found == Work::Found::kNoneLeft && closing_.complete()) break;
    wait();
  }
  // Only now may the send buffers be packed again.
  while (worker.thread == 0 && exchange_ && !exchange_->complete()) wait();
  worker.clock.enter(Activity::kCompute);
}

void Sweep::finish() {
  for (const auto& [a, b] : swaps_) subdomain_.storages[a]->swap(*subdomain_.storages[b]);
}

}  // namespace halocline
