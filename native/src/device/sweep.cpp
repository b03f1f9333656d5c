#include "device/sweep.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

namespace halocline::device {

namespace {

constexpr uint32_t kFinishThreads = 256;
constexpr size_t kPartialBytes = 5 * sizeof(int64_t);  // hc_partial of device_reduce.h

}  // namespace

Sweep::Sweep(const Rank& rank, const Subdomains& subdomains, const SweepPlan& plan, int32_t number)
    : halocline::Sweep(plan.reductions), rank_(rank), name_(plan.name), number_(number), swaps_(plan.swaps) {
  if (plan.shares.size() != subdomains.size()) {
    throw std::invalid_argument("sweep " + name_ + ": " + std::to_string(plan.shares.size()) +
                                " shares, expected one for each of " + std::to_string(subdomains.size()) +
                                " subdomains");
  }
  for (const auto& subdomain : subdomains) parts_.push_back(std::make_unique<Part>(*subdomain));
  for (size_t n = 0; n < subdomains.size(); ++n) {
    subdomains[n]->reserve_scratch(plan.scratch_bytes);
    add_copies(*parts_[n], n, plan.shares[n], subdomains);
    add(*parts_[n], plan.shares[n], plan, subdomains);
  }
}

void Sweep::add(Part& part, const Share& share, const SweepPlan& plan, const Subdomains&) {
  add_reducers(part, share);
  for (const Launch& launch : share.invariants) part.invariants.emplace_back(part.subdomain, launch);
  for (const Launch& fill : share.fills) part.fills.emplace_back(part.subdomain, fill);
  for (const Launch& rim : share.rims) part.rims.emplace_back(part.subdomain, rim);
  uint32_t known = 0;
  for (size_t m = 0; m < share.receives.size(); ++m) known |= uint32_t{1} << m;
  for (const Item& item : share.items) {
    if ((item.needs & ~known) != 0) {
      throw std::invalid_argument("sweep " + name_ + ": a patch needs a message that is not received");
    }
    BoundItem bound{
        item.needs, item.rims && !share.rims.empty(), item.halo ? EventKind::kHalo : EventKind::kPatch, {}};
    for (const Launch& launch : item.launches) {
      const Buffer* partials = nullptr;
      for (const Reducer& reducer : part.reducers) {
        if (reducer.kernel == launch.kernel) partials = reducer.partials.get();
      }
      if (launch.partials && partials == nullptr) {
        throw std::invalid_argument("sweep " + name_ + ": no memory for the partial results of kernel " +
                                    launch.kernel);
      }
      bound.launches.emplace_back(BoundLaunch(part.subdomain, launch), partials);
    }
    part.items.push_back(std::move(bound));
  }
  for (const auto& [a, b] : plan.swaps) {
    if (!part.subdomain.storages()[a]->same_layout(*part.subdomain.storages()[b])) {
      throw std::invalid_argument("sweep " + name_ + " swaps storages " + std::to_string(a) + " and " +
                                  std::to_string(b) + ", which differ in shape, halo or itemsize");
    }
  }
  if (share.sends.empty() && share.receives.empty()) return;
  if (!rank_.communicator)
    throw std::invalid_argument("sweep " + name_ + " has messages, but there is only one rank");
  part.exchange = std::make_unique<Exchange>(rank_, part.subdomain, share.sends, share.receives, number_);
}

void Sweep::add_copies(Part& part, size_t number, const Share& share, const Subdomains& subdomains) {
  std::map<size_t, std::vector<const Copy*>> copies_by_source;
  for (const Copy& copy : share.copies) {
    if (copy.source >= subdomains.size()) {
      throw std::invalid_argument("sweep " + name_ + ": copy from subdomain " + std::to_string(copy.source) +
                                  ", expected a number below " + std::to_string(subdomains.size()));
    }
    if (copy.source == number) {
      part.periodic_copies.copy(part.subdomain, copy.storage, copy.from, copy.to, copy.extent);
    } else {
      copies_by_source[copy.source].push_back(&copy);
    }
  }
  part.periodic_copies.close();
  part.periodic_copies.upload();
  for (const auto& [source, copies] : copies_by_source) {
    Subdomain& source_domain = *subdomains[source];
    Peer peer{source, false, std::make_unique<Moves>(part.subdomain), std::make_unique<Moves>(source_domain),
              {},     {}};
    peer.direct = &source_domain.device() == &part.subdomain.device() ||
                  part.subdomain.device().reaches(source_domain.device());
    size_t bytes = 0;
    for (const size_t itemsize : {size_t{8}, size_t{4}}) {  // so that every cell is aligned
      for (const Copy* copy : copies) {
        if (source_domain.storages()[copy->storage]->itemsize() != itemsize) continue;
        if (peer.direct) {
          peer.moves->copy(source_domain, copy->storage, copy->from, copy->to, copy->extent);
        } else {
          peer.packing->pack(copy->storage, copy->from, copy->extent, bytes);
          peer.moves->unpack(copy->storage, copy->to, copy->extent, bytes);
        }
        bytes += static_cast<size_t>(cells(copy->extent)) * itemsize;
      }
    }
    for (Moves* moves : {peer.moves.get(), peer.packing.get()}) {
      moves->close();
      moves->upload();
    }
    if (!peer.direct) {
      peer.sent = source_domain.device().allocate(bytes);
      peer.received = part.subdomain.device().allocate(bytes);
    }
    part.peers.push_back(std::move(peer));
  }
}

void Sweep::add_reducers(Part& part, const Share& share) {
  Device& device = part.subdomain.device();
  for (const Partials& plan : share.partials) {
    Reducer reducer;
    reducer.reductions = plan.reductions;
    reducer.kernel = plan.kernel;
    reducer.total_blocks = plan.total_blocks;
    const size_t count = plan.reductions.size();
    reducer.partials = device.allocate(std::max<size_t>(plan.total_blocks * count, 1) * kPartialBytes);
    reducer.accumulators = device.allocate(count * sizeof(hc_accumulator));
    reducer.kinds = device.allocate(count * sizeof(int32_t));
    reducer.targets = device.allocate(count * sizeof(int32_t));
    reducer.results = device.pinned(count * sizeof(hc_accumulator));
    reducer.finish = part.subdomain.kernel("hc_finish", kFinishThreads);
    std::vector<int32_t> kinds, targets;
    for (const size_t number : plan.reductions) {
      kinds.push_back(reductions().at(number).kind);
      targets.push_back(static_cast<int32_t>(reductions()[number].scalar));
    }
    const auto queue = device.queue(false);
    queue->upload(*reducer.kinds, 0, kinds.data(), count * sizeof(int32_t));
    queue->upload(*reducer.targets, 0, targets.data(), count * sizeof(int32_t));
    queue->finish();
    part.reducers.push_back(std::move(reducer));
  }
}

void Sweep::start() {
  const Span span(rank_.launches_trace, EventKind::kLaunch, number_, -1);
  for (const auto& part : parts_) {
    if (!rank_.asynchronous) part->subdomain.update(rank_.scalars);
    part->begun = part->subdomain.compute_queue().record();
    part->subdomain.compute_queue().flush();
    part->awaited = 0;
    part->rims_queued = false;
    for (BoundItem& item : part->items) item.queued = false;
  }
  // Messages come first, since other ranks wait for them.
  for (const auto& part : parts_) {
    if (part->exchange) rank_.messages ? part->exchange->start(part->begun) : part->exchange->skip();
  }
  if (rank_.messages) copy_halos();
  for (const auto& part : parts_) {
    Queue& computing = part->subdomain.compute_queue();
    // Packing must finish before the patches occupy the device and overwrite the cells that
    // packing reads.
    if (part->exchange && part->exchange->packed()) computing.wait(part->exchange->packed());
    if (rank_.messages && part->copied) computing.wait(part->copied);
    if (!rank_.kernels) continue;
    computing.mark(EventKind::kFill, number_);
    for (const BoundLaunch& launch : part->invariants) launch.compute_invariants(computing);
    for (const BoundLaunch& fill : part->fills) fill(computing);
  }
}

void Sweep::copy_halos() {
  for (const auto& part : parts_) {
    for (Peer& peer : part->peers) {
      if (peer.direct) continue;
      Part& source_part = *parts_[peer.source];
      Queue& packing = source_part.subdomain.packing_queue();
      packing.wait(source_part.begun);
      packing.mark(EventKind::kPack, number_);
      (*peer.packing)(packing, 0, nullptr, peer.sent.get());
      peer.packed = packing.record();
      packing.flush();
      source_part.subdomain.compute_queue().wait(peer.packed);
    }
  }
  for (const auto& part : parts_) {
    part->copied.reset();
    if (part->periodic_copies.pieces() == 0 && part->peers.empty()) continue;
    Queue& packing = part->subdomain.packing_queue();
    packing.wait(part->begun);
    packing.mark(EventKind::kCopy, number_);
    part->periodic_copies(packing, 0, nullptr, nullptr);
    for (Peer& peer : part->peers) {
      if (peer.direct) {
        packing.wait(parts_[peer.source]->begun);
        (*peer.moves)(packing, 0, &parts_[peer.source]->subdomain, nullptr);
      } else {
        packing.wait(peer.packed);
        packing.copy(*peer.received, 0, *peer.sent, 0, peer.received->bytes());
        packing.mark(EventKind::kUnpack, number_);
        (*peer.moves)(packing, 0, nullptr, peer.received.get());
        packing.mark(EventKind::kCopy, number_);
      }
    }
    part->copied = packing.record();
    packing.flush();
    // No other subdomain may overwrite cells before this copy has read them.
    for (const Peer& peer : part->peers) parts_[peer.source]->subdomain.compute_queue().wait(part->copied);
  }
}

bool Sweep::all_arrived() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->arrived(); });
}

bool Sweep::copies_rows() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part->exchange && part->exchange->copies_rows(); });
}

void Sweep::await_all(Part& part) {
  if (!part.exchange) return;
  part.exchange->await(part.subdomain.compute_queue(), part.exchange->arrived() & ~part.awaited);
  part.awaited |= part.exchange->arrived();
}

void Sweep::queue_rims(Part& part) {
  if (part.rims_queued || !part.arrived()) return;
  part.rims_queued = true;
  if (part.rims.empty()) return;
  Queue& computing = part.subdomain.compute_queue();
  await_all(part);
  if (!rank_.kernels) return;
  computing.mark(EventKind::kFill, number_);
  for (const BoundLaunch& rim : part.rims) rim(computing);
}

bool Sweep::queue_items(Part& part) {
  const double start_time = rank_.launches_trace == nullptr ? 0.0 : now();
  queue_rims(part);
  Queue& computing = part.subdomain.compute_queue();
  const uint32_t arrived = part.exchange ? part.exchange->arrived() : 0;
  bool all = true, any = false;
  for (size_t n = 0; n < part.items.size(); ++n) {
    BoundItem& item = part.items[n];
    if (item.queued) continue;
    const bool ready =
        (item.needs & ~arrived) == 0 && (!item.rims || part.rims_queued) && (rank_.overlap || all_arrived());
    all = all && ready;
    if (!ready) continue;
    if (part.exchange) part.exchange->await(computing, item.needs & ~part.awaited);
    part.awaited |= item.needs;
    item.queued = any = true;
    if (!rank_.kernels) continue;
    computing.mark(item.kind, number_, static_cast<int32_t>(n));
    for (const auto& [launch, partials] : item.launches) launch(computing, partials);
  }
  if (any) computing.flush();
  if (any && rank_.launches_trace != nullptr) {
    rank_.launches_trace->add({EventKind::kLaunch, number_, -1, -1, start_time, now()});
  }
  return all && part.rims_queued;
}

void Sweep::work(Worker& worker, Team& team) {
  if (worker.thread != 0) return;  // a rank with devices has one thread
  team.attempt([&] {
    Backoff backoff = team.backoff();
    Watchdog watchdog(rank_.timeout);
    for (;;) {
      bool done = true;
      for (const auto& part : parts_) {
        if (part->exchange && !part->complete()) part->exchange->progress(worker.thread);
        done = queue_items(*part) && part->complete() && done;
      }
      if (done) break;
      if (rank_.meanwhile) rank_.meanwhile();
      worker.clock.enter(Activity::kExchange);
      backoff();
      if (!watchdog.expired()) continue;
      for (const auto& part : parts_) {
        if (!part->complete()) part->exchange->abort_after_wait(rank_.timeout);
      }
    }
    worker.clock.enter(Activity::kCompute);
    conclude();
    for (const auto& part : parts_) {
      if (!rank_.asynchronous) part->subdomain.limit_queued_work();
    }
  });
}

void Sweep::conclude() {
  const Span span(rank_.launches_trace, EventKind::kLaunch, number_, -1);
  for (const auto& part : parts_) {
    await_all(*part);  // also messages that no patch needs, since later sweeps may overwrite their cells
    reduce(*part);
    part->subdomain.compute_queue().flush();
  }
}

void Sweep::reduce(Part& part) {
  if (reductions().empty()) return;
  Queue& computing = part.subdomain.compute_queue();
  computing.mark(EventKind::kReduction, number_);
  for (Reducer& reducer : part.reducers) {
    const auto count = static_cast<int64_t>(reducer.reductions.size());
    const auto total_blocks = static_cast<int64_t>(reducer.total_blocks);
    const int64_t write_scalars = rank_.asynchronous ? 1 : 0;
    const std::array<Argument, 10> arguments{&part.subdomain.control(),
                                             reducer.partials.get(),
                                             value(total_blocks),
                                             value(total_blocks),
                                             value(count),
                                             reducer.kinds.get(),
                                             reducer.targets.get(),
                                             reducer.accumulators.get(),
                                             &part.subdomain.scalars(),
                                             value(write_scalars)};
    computing.launch(*reducer.finish, {static_cast<uint32_t>(count), 1, 1}, {kFinishThreads, 1, 1},
                     arguments);
    if (rank_.asynchronous) continue;
    computing.download(reducer.results->data(), *reducer.accumulators, 0, reducer.accumulators->bytes());
  }
  if (!rank_.asynchronous) part.reduced = computing.record();
}

bool Sweep::take_reductions(hc_accumulator* results) {
  for (const auto& part : parts_) {
    if (!part->reduced->done()) return false;
  }
  Accumulators::reset(results, reductions());
  for (const auto& part : parts_) {
    for (const Reducer& reducer : part->reducers) {
      for (size_t n = 0; n < reducer.reductions.size(); ++n) {
        hc_accumulator accumulator;
        std::memcpy(&accumulator, reducer.results->data() + n * sizeof accumulator, sizeof accumulator);
        hc_merge(&results[reducer.reductions[n]], &accumulator);
      }
    }
  }
  return true;
}

void Sweep::finish() {
  for (const auto& part : parts_) {
    for (const auto& [a, b] : swaps_) part->subdomain.storages()[a]->swap(*part->subdomain.storages()[b]);
  }
}

}  // namespace halocline::device
