#include "device/async_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>

namespace halocline::device {

namespace {

constexpr size_t kUnits = 16;      // units in flight
constexpr size_t kGraphs = 4;      // graphs in flight
constexpr size_t kLongPeriod = 8;  // passes; a longer graph would contain too many kernels
constexpr size_t kOrders = 8;      // orders of buffers for which a unit keeps graphs
constexpr double kFarAhead = 0.2;  // seconds of queued work: the maximum delay of a stop

// End a failed recording. Otherwise the queue would record forever.
void abandon(Queue& queue) {
  try {
    queue.end_capture();
  } catch (const DeviceError&) {  // NOLINT(bugprone-empty-catch): the first failure is reported
  }
}

}  // namespace

AsyncRun::AsyncRun(Subdomain& subdomain, size_t scalars)
    : subdomain_(subdomain), scalar_count_(scalars), units_(kUnits) {
  const size_t row = std::max<size_t>(scalars, 1) * sizeof(double);
  notes_ = subdomain.device().allocate(kLongPeriod * row);
  for (Unit& unit : units_) unit.notes = subdomain.device().pinned(sizeof(hc_control) + kLongPeriod * row);
}

void AsyncRun::sweep(halocline::Sweep& sweep, std::vector<std::pair<uint32_t, uint32_t>> swaps) {
  operations_.emplace_back(SweepOf{&sweep, std::move(swaps)});
}

void AsyncRun::scalars(const std::string& kernel) {
  operations_.emplace_back(Statement{subdomain_.module().kernel(kernel)});
}

void AsyncRun::stop(const std::string& kernel, const std::string& reason) {
  reasons_.push_back(reason);
  stops_.push_back(operations_.size());
  operations_.emplace_back(
      Stop{subdomain_.module().kernel(kernel), reason, -static_cast<int64_t>(reasons_.size())});
}

void AsyncRun::loop(const std::string& kernel, size_t count, std::optional<size_t> limit, size_t interval) {
  Loop loop;
  loop.kernel = subdomain_.module().kernel(kernel);
  loop.number = loops_.size();
  const auto number = static_cast<int64_t>(loop.number), code = 3 * number + 1;
  loop.plan = {number,
               0,
               static_cast<int64_t>(count),
               limit ? static_cast<int64_t>(*limit) : -1,
               code,
               code + 1,
               code + 2,
               static_cast<int64_t>(scalar_count_),
               1};
  loop.body = operations_.size() + 1;
  loop.interval = static_cast<int64_t>(interval);
  loop.expected_over = interval != 0;
  if (!open_.empty()) {
    loop.around = open_.back();
    loop_at(open_.back()).inside.push_back(operations_.size());
  }
  loops_.push_back(operations_.size());
  open_.push_back(operations_.size());
  operations_.emplace_back(std::move(loop));
}

void AsyncRun::end() {
  operations_.emplace_back(End{});
  Loop& loop = loop_at(open_.back());
  loop.after = operations_.size();
  loop.period = period_of(loop);
  open_.pop_back();
}

size_t AsyncRun::period_of(const Loop& loop) const {
  std::vector<size_t> places(subdomain_.storages().size());
  std::iota(places.begin(), places.end(), size_t{0});
  for (size_t period = 1; period <= kLongPeriod; ++period) {
    for (const SweepOf* swept : sweeps(loop.body, operations_.size())) {
      for (const auto& [a, b] : swept->swaps) std::swap(places[a], places[b]);
    }
    if (std::is_sorted(places.begin(), places.end())) return period;
  }
  return 0;  // the period is too long for a graph
}

std::string AsyncRun::run(double* scalars, Worker& worker, Team& team, const Listener& listener) {
  worker_ = &worker;
  team_ = &team;
  listener_ = &listener;
  reason_.clear();
  graph_launches_ = 0;
  Queue& queue = of_scalars();
  queue.clear(subdomain_.control(), 0, sizeof(hc_control));
  if (!loops_.empty()) {
    const size_t bytes = loops_.size() * sizeof(int64_t);
    if (!ends_) ends_ = subdomain_.device().allocate(bytes);
    queue.clear(*ends_, 0, bytes);
  }
  subdomain_.update(scalars);
  const bool all = run(0, operations_.size());
  subdomain_.forget();
  char* const last = units_.front().notes->data();
  mark_scalars();
  queue.download(last, subdomain_.control(), 0, sizeof(hc_control));
  queue.finish();
  hc_control control;
  std::memcpy(&control, last, sizeof control);
  if (reason_.empty() && control.skip < 0) {
    reason_ = reasons_[static_cast<size_t>(-control.skip - 1)];
    if (all) revert_sweeps(after_stop(control.skip), operations_.size());
  }
  std::vector<int64_t> ends(loops_.size());
  if (ends_) queue.download(ends.data(), *ends_, 0, ends.size() * sizeof(int64_t));
  queue.download(scalars, subdomain_.scalars(), 0, scalar_count_ * sizeof(double));
  queue.clear(subdomain_.control(), 0, sizeof(hc_control));  // for later runs in which the host waits
  queue.finish();
  report(ends);
  return reason_;
}

void AsyncRun::report(const std::vector<int64_t>& ends) {
  for (const size_t at : loops_) {
    const Loop& loop = loop_at(at);
    const int64_t end = ends[loop.number];
    if (end != 0) listener_->ended(loop.number, end == loop.plan.condition ? "condition" : "limit");
  }
}

bool AsyncRun::run(size_t from, size_t to) {
  for (size_t at = from; at < to;) {
    Operation& operation = operations_[at];
    if (auto* loop = std::get_if<Loop>(&operation)) {
      if (!run(*loop)) return false;
      at = loop->after;
    } else {
      queue(operation);
      if (auto* swept = std::get_if<SweepOf>(&operation)) swept->sweep->executions += 1;
      ++at;
    }
  }
  return true;
}

void AsyncRun::queue(Operation& operation) {
  if (auto* swept = std::get_if<SweepOf>(&operation)) {
    swept->sweep->start();
    swept->sweep->work(*worker_, *team_);
    if (team_->failed()) std::rethrow_exception(team_->take_failure());
    swept->sweep->finish();
  } else if (auto* statement = std::get_if<Statement>(&operation)) {
    const std::array<Argument, 2> arguments{&subdomain_.scalars(), &subdomain_.control()};
    launch(*statement->kernel, arguments);
  } else if (auto* stop = std::get_if<Stop>(&operation)) {
    const std::array<Argument, 3> arguments{&subdomain_.scalars(), &subdomain_.control(), value(stop->skip)};
    launch(*stop->kernel, arguments);
  }
}

void AsyncRun::queue_pass(Loop& loop) {
  for (size_t at = loop.body; at < loop.after;) {
    if (const auto* inner = std::get_if<Loop>(&operations_[at])) {
      queue_test(*inner, Test::kBeginExpectedOver);
      at = inner->after;
    } else {
      queue(operations_[at++]);
    }
  }
  queue_test(loop, Test::kAfterPass);
}

void AsyncRun::launch(const Kernel& kernel, std::span<const Argument> arguments) {
  of_scalars().launch(kernel, {1, 1, 1}, {1, 1, 1}, arguments);
}

void AsyncRun::mark_scalars() const { subdomain_.compute_queue().mark(EventKind::kScalars); }

Queue& AsyncRun::of_scalars() const {
  mark_scalars();
  return subdomain_.compute_queue();
}

void AsyncRun::queue_test(const Loop& loop, Test test) {
  hc_loop plan = loop.plan;
  plan.begins = test == Test::kAfterPass ? 0 : 1;
  if (test != Test::kBeginExpectedOver) plan.mispredicted = 0;
  const std::array<Argument, 5> arguments{&subdomain_.scalars(), &subdomain_.control(), notes_.get(),
                                          ends_.get(), value(plan)};
  launch(*loop.kernel, arguments);
}

void AsyncRun::clear_notes() {
  of_scalars().clear(subdomain_.control(), offsetof(hc_control, notes), sizeof(int64_t));
}

void AsyncRun::clear_skip() {
  of_scalars().clear(subdomain_.control(), offsetof(hc_control, skip), sizeof(int64_t));
}

void AsyncRun::queue_notes(Unit& unit, size_t passes) {
  Queue& computing = of_scalars();
  computing.download(unit.notes->data(), subdomain_.control(), 0, sizeof(hc_control));
  const size_t rows = passes * scalar_count_ * sizeof(double);
  if (rows != 0) computing.download(unit.notes->data() + sizeof(hc_control), *notes_, 0, rows);
}

int64_t AsyncRun::read_notes(Loop& loop, const Unit& unit, size_t passes, int64_t& next_pass) {
  hc_control control;
  std::memcpy(&control, unit.notes->data(), sizeof control);
  const size_t bytes = scalar_count_ * sizeof(double);
  std::vector<double> row(scalar_count_);
  for (; next_pass < control.notes; ++next_pass) {
    const size_t place = static_cast<size_t>(next_pass) % passes;
    std::memcpy(row.data(), unit.notes->data() + sizeof control + place * bytes, bytes);
    loop.passes += 1;
    listener_->passed(loop.number, row.data());
  }
  return control.skip;
}

bool AsyncRun::run(Loop& loop) {
  listener_->begins(loop.number);
  loop.passes = 0;
  for (const size_t at : loop.inside) loop_at(at).due.reset();
  clear_notes();
  queue_test(loop, Test::kBegin);
  for (bool known = false;; known = true) {  // true: a pass is known to run
    if (expects_no_loop_inside(loop)) {
      const int64_t skip = run_loop(loop);
      Loop* const inner = mispredicted(loop, skip);
      if (inner == nullptr) return conclude(loop, skip);
      clear_skip();
      if (!run(*inner) || !run(inner->after, loop.after)) return false;
    } else {
      const int64_t skip = known ? 0 : await_notes(loop, loop.body - 1);
      if (skip != 0 || (!known && listener_->stop_wanted(loop.number))) return conclude(loop, skip);
      if (!run(loop.body, loop.after)) return false;
    }
    clear_notes();
    queue_test(loop, Test::kAfterPass);
    const int64_t skip = await_notes(loop, loop.after);
    if (skip != 0 || listener_->stop_wanted(loop.number)) return conclude(loop, skip);
    clear_notes();
  }
}

bool AsyncRun::conclude(Loop& loop, int64_t skip) {
  if (skip < 0) return false;  // a stop
  if (skip == 0) {
    reason_ = "interrupted";
    return false;
  }
  listener_->ended(loop.number, skip == loop.plan.condition ? "condition" : "limit");
  clear_skip();
  loop.expected_over = loop.interval != 0 || loop.passes == 0;
  if (loop.around && loop.interval != 0 && loop.passes != 0)
    loop.due = loop_at(*loop.around).passes + loop.interval;
  return true;
}

int64_t AsyncRun::await_notes(Loop& loop, size_t reached) {
  Unit& unit = units_.front();
  loop.plan.rows = 1;
  queue_notes(unit, 1);
  subdomain_.compute_queue().finish();
  int64_t next_pass = 0;
  const int64_t skip = read_notes(loop, unit, 1, next_pass);
  if (skip < 0) revert_sweeps(after_stop(skip), reached);
  return skip;
}

bool AsyncRun::expects_no_loop_inside(const Loop& loop) {
  return std::all_of(loop.inside.begin(), loop.inside.end(),
                     [&](size_t at) { return loop_at(at).expected_over; });
}

int64_t AsyncRun::passes_until_due(const Loop& loop) {
  int64_t passes = std::numeric_limits<int64_t>::max();
  for (const size_t at : loop.inside) {
    if (const auto due = loop_at(at).due) passes = std::min(passes, *due + 1 - loop.passes);
  }
  return passes;
}

AsyncRun::Loop* AsyncRun::mispredicted(const Loop& loop, int64_t skip) {
  for (const size_t at : loop.inside) {
    Loop& inner = loop_at(at);
    if (skip == inner.plan.mispredicted) return &inner;
  }
  return nullptr;
}

std::vector<const Buffer*> AsyncRun::buffers() const {
  std::vector<const Buffer*> storage_buffers;
  for (const auto& storage : subdomain_.storages()) storage_buffers.push_back(&storage->buffer());
  return storage_buffers;
}

const Graph& AsyncRun::recorded(Loop& loop, size_t number, size_t passes) {
  std::vector<Recorded>& graphs = loop.recorded[number];
  const std::vector<const Buffer*> present = buffers();
  for (const Recorded& known : graphs) {
    if (known.buffers == present) return *known.graph;
  }
  if (graphs.size() == kOrders) graphs.erase(graphs.begin());
  Queue& computing = subdomain_.compute_queue();
  computing.begin_capture();
  try {
    for (size_t pass = 0; pass < passes; ++pass) queue_pass(loop);
    queue_notes(units_[number], passes);
  } catch (...) {
    abandon(computing);
    throw;
  }
  graphs.push_back({computing.end_capture(), present});
  return *graphs.back().graph;
}

void AsyncRun::queue_unit(Loop& loop, size_t number, size_t passes, bool captured) {
  Queue& computing = subdomain_.compute_queue();
  Unit& unit = units_[number];
  if (captured) {
    computing.launch(recorded(loop, number, passes));
    ++graph_launches_;
  } else {
    for (size_t pass = 0; pass < passes; ++pass) queue_pass(loop);
    queue_notes(unit, passes);
  }
  unit.done = computing.record();
  unit.queued_at = now();
  computing.flush();
}

int64_t AsyncRun::run_loop(Loop& loop) {
  // A graph is one command, so a trace could not show its parts.
  const bool captured = loop.period != 0 && subdomain_.device().captures() && !subdomain_.traced();
  const size_t passes = captured ? loop.period : 1, most = captured ? kGraphs : kUnits;
  loop.plan.rows = static_cast<int64_t>(passes);
  if (captured) loop.recorded.resize(most);
  const int64_t due = passes_until_due(loop);
  int64_t queued = 0, next_pass = 0, skip = 0;
  size_t first = 0, under_way = 0, allowed = 2;
  for (bool continuing = true;;) {
    continuing = continuing && skip == 0 && !listener_->stop_wanted(loop.number);
    const bool near_due = queued >= due && next_pass <= due;  // the body of an inner loop may run soon
    for (; continuing && under_way < (near_due ? 1 : allowed); ++under_way) {
      queue_unit(loop, (first + under_way) % most, passes, captured);
      queued += static_cast<int64_t>(passes);
    }
    if (under_way == 0) break;
    const Unit& unit = units_[first];
    for (Backoff backoff = team_->backoff(); !unit.done->done();) backoff();
    const double unit_seconds = (now() - unit.queued_at) / static_cast<double>(under_way);
    allowed = static_cast<size_t>(
        std::clamp(kFarAhead / std::max(unit_seconds, 1e-9), 2.0, static_cast<double>(most)));
    if (skip == 0) skip = read_notes(loop, unit, passes, next_pass);
    first = (first + 1) % most;
    --under_way;
  }
  if (queued == 0) {  // interrupted, unless earlier work has ended the loop
    queue_notes(units_.front(), 1);
    subdomain_.compute_queue().finish();
    skip = read_notes(loop, units_.front(), 1, next_pass);
  }
  revert_passes(loop, next_pass, queued, skip);
  return skip;
}

size_t AsyncRun::first_skipped(const Loop& loop, int64_t skip) {
  if (skip < 0) return after_stop(skip);
  const Loop* const inner = mispredicted(loop, skip);
  return inner == nullptr ? loop.body : inner->after;
}

void AsyncRun::revert_passes(const Loop& loop, int64_t ran, int64_t queued, int64_t skip) {
  for (const SweepOf* swept : sweeps(loop.body, loop.after)) swept->sweep->executions += queued;
  // Pass number `ran` ran only in part. A stop before the loop may be detected only here.
  const size_t first_lost = first_skipped(loop, skip);
  for (int64_t pass = queued; pass-- > ran;)
    revert_sweeps(pass == ran ? std::max(first_lost, loop.body) : loop.body, loop.after);
  if (skip < 0) revert_sweeps(first_lost, loop.body - 1);
}

std::vector<const AsyncRun::SweepOf*> AsyncRun::sweeps(size_t from, size_t to) const {
  std::vector<const SweepOf*> result;
  for (size_t at = from; at < to;) {
    if (const auto* loop = std::get_if<Loop>(&operations_[at])) {
      at = loop->after;
      continue;
    }
    if (const auto* swept = std::get_if<SweepOf>(&operations_[at])) result.push_back(swept);
    ++at;
  }
  return result;
}

void AsyncRun::revert_sweeps(size_t from, size_t to) {
  const auto& storages = subdomain_.storages();
  const std::vector<const SweepOf*> lost_sweeps = sweeps(from, to);
  for (auto swept = lost_sweeps.rbegin(); swept != lost_sweeps.rend(); ++swept) {
    (*swept)->sweep->executions -= 1;
    const auto& swaps = (*swept)->swaps;
    for (auto pair = swaps.rbegin(); pair != swaps.rend(); ++pair)
      storages[pair->first]->swap(*storages[pair->second]);
  }
}

}  // namespace halocline::device
