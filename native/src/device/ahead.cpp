#include "device/ahead.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>

namespace halocline::device {

namespace {

constexpr size_t kUnits = 16;      // under way at a time
constexpr size_t kGraphs = 4;      // the same of graphs
constexpr size_t kLongPeriod = 8;  // passes; a graph would hold too many kernels
constexpr double kFarAhead = 0.2;  // seconds: a run can be stopped that soon

// Ends a recording that failed: the queue records for ever else.
void abandon(Queue& queue) {
  try {
    queue.end_capture();
  } catch (const DeviceError&) {  // NOLINT(bugprone-empty-catch): what failed before is told
  }
}

}  // namespace

Ahead::Ahead(Subdomain& where, size_t scalars) : where_(where), scalar_count_(scalars), units_(kUnits) {
  const size_t row = std::max<size_t>(scalars, 1) * sizeof(double);
  notes_ = where.device().allocate(kLongPeriod * row);
  for (Unit& unit : units_) unit.notes = where.device().pinned(sizeof(hc_control) + kLongPeriod * row);
}

void Ahead::sweep(halocline::Sweep& sweep, std::vector<std::pair<uint32_t, uint32_t>> swaps) {
  operations_.emplace_back(SweepOf{&sweep, std::move(swaps)});
}

void Ahead::scalars(const std::string& kernel) {
  operations_.emplace_back(Statement{where_.module().kernel(kernel)});
}

void Ahead::stop(const std::string& kernel, const std::string& reason) {
  reasons_.push_back(reason);
  stops_.push_back(operations_.size());
  operations_.emplace_back(
      Stop{where_.module().kernel(kernel), reason, -static_cast<int64_t>(reasons_.size())});
}

void Ahead::loop(const std::string& kernel, size_t count, std::optional<size_t> limit) {
  Loop loop;
  loop.kernel = where_.module().kernel(kernel);
  loop.number = loops_++;
  const auto code = static_cast<int64_t>(2 * loop.number + 1);
  loop.plan = {0,
               static_cast<int64_t>(count),
               limit ? static_cast<int64_t>(*limit) : -1,
               code,
               code + 1,
               static_cast<int64_t>(scalar_count_),
               1};
  loop.body = operations_.size() + 1;
  for (const size_t outer : open_) std::get<Loop>(operations_[outer]).innermost = false;
  open_.push_back(operations_.size());
  operations_.emplace_back(std::move(loop));
}

void Ahead::end() {
  operations_.emplace_back(End{});
  auto& loop = std::get<Loop>(operations_[open_.back()]);
  loop.after = operations_.size();
  loop.period = period_of(loop);
  open_.pop_back();
}

size_t Ahead::period_of(const Loop& loop) const {
  std::vector<size_t> places(where_.storages().size());
  std::iota(places.begin(), places.end(), size_t{0});
  for (size_t period = 1; period <= kLongPeriod; ++period) {
    for (size_t at = loop.body; at < operations_.size(); ++at) {
      if (const auto* swept = std::get_if<SweepOf>(&operations_[at])) {
        for (const auto& [a, b] : swept->swaps) std::swap(places[a], places[b]);
      }
    }
    if (std::is_sorted(places.begin(), places.end())) return period;
  }
  return 0;  // too long
}

std::string Ahead::run(double* scalars, Worker& worker, Team& team, const Listener& listener) {
  worker_ = &worker;
  team_ = &team;
  listener_ = &listener;
  reason_.clear();
  graph_launches_ = 0;
  Queue& queue = of_scalars();
  queue.clear(where_.control(), 0, sizeof(hc_control));
  where_.update(scalars);
  counting_ = true;
  const bool all = run(0, operations_.size());
  where_.forget();
  char* const last = units_.front().notes->data();
  mark_scalars();
  queue.download(last, where_.control(), 0, sizeof(hc_control));
  queue.finish();
  hc_control control;
  std::memcpy(&control, last, sizeof control);
  if (reason_.empty() && control.skip < 0) {
    reason_ = reasons_[static_cast<size_t>(-control.skip - 1)];
    if (all) take_back(after_stop(control.skip), operations_.size());
  }
  queue.download(scalars, where_.scalars(), 0, scalar_count_ * sizeof(double));
  queue.clear(where_.control(), 0, sizeof(hc_control));  // for runs that the host waits for
  queue.finish();
  return reason_;
}

bool Ahead::run(size_t from, size_t to) {
  for (size_t at = from; at < to;) {
    Operation& operation = operations_[at];
    if (auto* swept = std::get_if<SweepOf>(&operation)) {
      swept->sweep->start();
      swept->sweep->work(*worker_, *team_);
      if (team_->failed()) std::rethrow_exception(team_->take_failure());
      swept->sweep->finish();
      if (counting_) swept->sweep->executions += 1;
    } else if (auto* statement = std::get_if<Statement>(&operation)) {
      const std::array<Argument, 2> arguments{&where_.scalars(), &where_.control()};
      launch(*statement->kernel, arguments);
    } else if (auto* stop = std::get_if<Stop>(&operation)) {
      const std::array<Argument, 3> arguments{&where_.scalars(), &where_.control(), value(stop->why)};
      launch(*stop->kernel, arguments);
    } else if (auto* loop = std::get_if<Loop>(&operation)) {
      if (!run(*loop)) return false;
      at = loop->after;
      continue;
    }
    ++at;
  }
  return true;
}

void Ahead::launch(const Kernel& kernel, std::span<const Argument> arguments) {
  of_scalars().launch(kernel, {1, 1, 1}, {1, 1, 1}, arguments);
}

void Ahead::mark_scalars() const { where_.computing().mark(Doing::kScalars); }

Queue& Ahead::of_scalars() const {
  mark_scalars();
  return where_.computing();
}

void Ahead::test(const Loop& loop, bool begins) {
  hc_loop plan = loop.plan;
  plan.begins = begins ? 1 : 0;
  const std::array<Argument, 4> arguments{&where_.scalars(), &where_.control(), notes_.get(), value(plan)};
  launch(*loop.kernel, arguments);
}

void Ahead::clear_notes() {
  of_scalars().clear(where_.control(), offsetof(hc_control, notes), sizeof(int64_t));
}

void Ahead::clear_skip() {
  of_scalars().clear(where_.control(), offsetof(hc_control, skip), sizeof(int64_t));
}

void Ahead::queue_notes(Unit& unit, size_t passes) {
  Queue& computing = of_scalars();
  computing.download(unit.notes->data(), where_.control(), 0, sizeof(hc_control));
  const size_t rows = passes * scalar_count_ * sizeof(double);
  if (rows != 0) computing.download(unit.notes->data() + sizeof(hc_control), *notes_, 0, rows);
}

int64_t Ahead::take(const Loop& loop, const Unit& unit, size_t passes, int64_t& seen) {
  hc_control control;
  std::memcpy(&control, unit.notes->data(), sizeof control);
  const size_t bytes = scalar_count_ * sizeof(double);
  std::vector<double> row(scalar_count_);
  for (; seen < control.notes; ++seen) {
    const size_t place = static_cast<size_t>(seen) % passes;
    std::memcpy(row.data(), unit.notes->data() + sizeof control + place * bytes, bytes);
    listener_->passed(loop.number, row.data());
  }
  return control.skip;
}

bool Ahead::run(Loop& loop) {
  listener_->begins(loop.number);
  clear_notes();
  test(loop, true);
  return loop.innermost ? run_innermost(loop) : run_outer(loop);
}

bool Ahead::conclude(const Loop& loop, int64_t skip) {
  if (skip < 0) return false;  // a stop
  if (skip != 0) {
    listener_->ended(loop.number, skip == loop.plan.condition ? "condition" : "limit");
    clear_skip();
    return true;
  }
  reason_ = "interrupted";
  return false;
}

bool Ahead::run_outer(Loop& loop) {
  loop.plan.rows = 1;
  Unit& unit = units_.front();
  for (size_t reached = loop.body - 1;; reached = loop.after) {
    queue_notes(unit, 1);
    where_.computing().finish();
    int64_t seen = 0;
    const int64_t skip = take(loop, unit, 1, seen);
    if (skip < 0) take_back(after_stop(skip), reached);
    if (skip != 0 || listener_->stop_wanted(loop.number)) return conclude(loop, skip);
    if (!run(loop.body, loop.after)) return false;
    clear_notes();
    test(loop, false);
  }
}

std::vector<const Buffer*> Ahead::buffers() const {
  std::vector<const Buffer*> found;
  for (const auto& storage : where_.storages()) found.push_back(&storage->buffer());
  return found;
}

void Ahead::queue(Loop& loop, size_t number, size_t passes) {
  Queue& computing = where_.computing();
  Unit& unit = units_[number];
  const auto pass_all = [&] {
    for (size_t pass = 0; pass < passes; ++pass) {
      run(loop.body, loop.after);
      test(loop, false);
    }
    queue_notes(unit, passes);
  };
  if (loop.recorded.empty()) {
    pass_all();
  } else {
    Recorded& recorded = loop.recorded[number];
    if (!recorded.graph || recorded.buffers != buffers()) {
      recorded.graph.reset();
      recorded.buffers = buffers();
      computing.begin_capture();
      try {
        pass_all();
      } catch (...) {
        abandon(computing);
        throw;
      }
      recorded.graph = computing.end_capture();
    }
    computing.launch(*recorded.graph);
    ++graph_launches_;
  }
  unit.done = computing.record();
  unit.queued_at = now();
  computing.flush();
}

bool Ahead::run_innermost(Loop& loop) {
  // a graph is one command, of which a trace would not tell the parts
  const bool captured = loop.period != 0 && where_.device().captures() && !where_.traced();
  const size_t passes = captured ? loop.period : 1, most = captured ? kGraphs : kUnits;
  loop.plan.rows = static_cast<int64_t>(passes);
  if (captured) loop.recorded.resize(most);
  counting_ = false;
  int64_t queued = 0, seen = 0, skip = 0;
  size_t first = 0, under_way = 0, allowed = 2;
  for (bool wanted = true;;) {
    wanted = wanted && skip == 0 && !listener_->stop_wanted(loop.number);
    for (; wanted && under_way < allowed; ++under_way) {
      queue(loop, (first + under_way) % most, passes);
      queued += static_cast<int64_t>(passes);
    }
    if (under_way == 0) break;
    const Unit& unit = units_[first];
    for (Backoff backoff = team_->backoff(); !unit.done->done();) backoff();
    const double each = (now() - unit.queued_at) / static_cast<double>(under_way);
    allowed =
        static_cast<size_t>(std::clamp(kFarAhead / std::max(each, 1e-9), 2.0, static_cast<double>(most)));
    if (skip == 0) skip = take(loop, unit, passes, seen);
    first = (first + 1) % most;
    --under_way;
  }
  if (queued == 0) {  // it is interrupted, unless what came before has ended it
    queue_notes(units_.front(), 1);
    where_.computing().finish();
    skip = take(loop, units_.front(), 1, seen);
  }
  settle(loop, seen, queued, skip);
  counting_ = true;
  return conclude(loop, skip);
}

void Ahead::settle(const Loop& loop, int64_t ran, int64_t queued, int64_t skip) {
  for (size_t at = loop.body; at < loop.after; ++at) {
    if (const auto* swept = std::get_if<SweepOf>(&operations_[at])) swept->sweep->executions += queued;
  }
  // the pass that a stop is in ran up to there; one before the loop is known here first
  const size_t kept = skip < 0 ? after_stop(skip) : loop.body;
  for (int64_t pass = queued; pass-- > ran;)
    take_back(pass == ran ? std::max(kept, loop.body) : loop.body, loop.after);
  if (skip < 0) take_back(kept, loop.body - 1);
}

void Ahead::take_back(size_t from, size_t to) {
  const auto& storages = where_.storages();
  for (size_t at = to; at-- > from;) {
    const auto* swept = std::get_if<SweepOf>(&operations_[at]);
    if (swept == nullptr) continue;
    swept->sweep->executions -= 1;
    for (const auto& [a, b] : swept->swaps) storages[a]->swap(*storages[b]);
  }
}

}  // namespace halocline::device
