// Run of an engine: the operations of the first thread, and the work that it publishes for the other threads.
#include <omp.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "engine/engine.hpp"
#include "engine/requests.hpp"

namespace halocline {

namespace {

// Number of passes after which ranks agree on a stop, if the body of a loop has no reduction.
constexpr int64_t kAgreeEvery = 64;

}  // namespace

void Engine::prepare(const RunSettings& settings) {
  if (!open_.empty()) throw std::invalid_argument("a loop has no end()");
  if (settings.resumed && !paused_at_) throw std::invalid_argument("no run has paused that could be resumed");
  if (settings.passes < 0) {
    throw std::invalid_argument(std::to_string(settings.passes) + " passes, expected at least 0");
  }
  size_t reductions = 0, scratch = 0;
  result_ = {};
  recorded_.reset();
  passes_left_ = settings.passes;
  size_t depth = 0, recorded_depth = 0;
  for (const Operation& operation : operations_) {
    if (const auto* sweep = std::get_if<std::unique_ptr<Sweep>>(&operation)) {
      (*sweep)->executions = 0;
      (*sweep)->seconds = 0;
      reductions = std::max(reductions, (*sweep)->reductions().size());
      scratch = std::max(scratch, (*sweep)->scratch_bytes());
    } else if (const auto* begin = std::get_if<Begin>(&operation)) {
      if (!loops_[begin->loop].record.empty() && (!recorded_ || depth < recorded_depth)) {
        recorded_ = begin->loop;
        recorded_depth = depth;
      }
      ++depth;
    } else if (std::holds_alternative<End>(operation)) {
      --depth;
    }
  }
  if (recorded_) result_.columns = loops_[*recorded_].record.size();
  if (!settings.resumed) {
    paused_at_.reset();
    for (Loop& loop : loops_) loop.ended.clear();
    progress_.store(0, std::memory_order_relaxed);
  }
  outermost_since_.reset();
  known_requests_ = 0;
  reducing_ = nullptr;
  allreduce_begun_ = false;
  accumulators_ = std::make_unique<Accumulators>(team_.size(), reductions);
  if (scratch != 0 && (scratch_.empty() || scratch_.front()->bytes() < scratch)) {
    scratch_.clear();
    for (int thread = 0; thread < team_.size(); ++thread)
      scratch_.push_back(std::make_unique<Memory>(scratch));
  }
  for (int thread = 0; thread < team_.size(); ++thread) {
    const auto n = static_cast<size_t>(thread);
    workers_[n].thread = thread;
    workers_[n].reductions = accumulators_->of(thread);
    workers_[n].scratch = scratch_.empty() ? nullptr : scratch_[n]->data();
    workers_[n].seconds.assign(settings.measured ? rank_.subdomains.size() : 0, 0.0);
  }
}

Result Engine::run(const RunSettings& settings) {
  if (running_.exchange(true)) throw std::runtime_error("this engine is running already");
  rank_.messages = settings.messages;
  rank_.kernels = settings.kernels;
  rank_.overlap = settings.overlap;
  barriers_ = settings.barriers;
  rank_.asynchronous = async_run_ && settings.asynchronous && settings.messages && settings.kernels &&
                       settings.passes == 0 && !settings.resumed && !settings.barriers;
  const struct Release {
    std::atomic<bool>& flag;
    ~Release() { flag.store(false); }
  } release{running_};
  const auto several = !rank_.alone();
  team_.attempt([&] {
    prepare(settings);
    begin_trace(settings.traced);
  });
  double start_time = 0;
  if (!team_.failed()) {
    if (rank_.mailboxes != nullptr) prepare_mailboxes();
    if (several) barrier("the barrier before the run");
    start_time = now();
    workers_[0].clock.start();
#pragma omp parallel num_threads(team_.size())
    {
      const int thread = omp_get_thread_num();
      const uint32_t number = team_.number();  // read before the first thread can publish work
      const PunctualSleep punctual;
      team_.attempt([&] {
        if (omp_get_num_threads() != team_.size()) {
          throw std::runtime_error("OpenMP started " + std::to_string(omp_get_num_threads()) +
                                   " threads, expected " + std::to_string(team_.size()));
        }
        check_arithmetic(thread);
      });
#pragma omp barrier
      const bool sound = !team_.failed();
#pragma omp barrier  // before kernels can fail, since all threads must make the same decision
      if (sound) {
        Worker& worker = workers_[static_cast<size_t>(thread)];
        if (thread == 0) {
          team_.attempt([&] { execute(worker); });
          current_ = nullptr;
          team_.publish();
        } else {
          serve(worker, number);
        }
      }
    }
    workers_[0].clock.stop();
  }
  if (team_.failed()) {
    const std::exception_ptr failure = team_.take_failure();
    finish_devices();
    if (!several) std::rethrow_exception(failure);
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      rank_.communicator->abort(error.what());
    } catch (...) {
      rank_.communicator->abort("a kernel threw an unknown exception");
    }
  }

  conclude(now() - start_time);
  const Stopwatch& clock = workers_[0].clock;
  result_.compute = clock.seconds(Activity::kCompute);
  result_.exchange = clock.seconds(Activity::kExchange);
  result_.reduction = clock.seconds(Activity::kReduction);
  result_.subdomain_seconds.assign(rank_.subdomains.size() + devices_.size(), 0.0);
  for (const Worker& worker : workers_) {
    for (size_t n = 0; n < worker.seconds.size(); ++n) result_.subdomain_seconds[n] += worker.seconds[n];
  }
  if (settings.traced) take_events(start_time);
  if (result_.reason.empty()) result_.reason = "completed";
  for (const Loop& loop : loops_) result_.loops.push_back(loop.ended);
  for (const Operation& operation : operations_) {
    if (const auto* sweep = std::get_if<std::unique_ptr<Sweep>>(&operation)) {
      result_.sweep_counts.push_back((*sweep)->executions);
      result_.sweep_seconds.push_back((*sweep)->seconds);
    }
  }
  return std::exchange(result_, {});
}

void Engine::finish_devices() noexcept {
  // Queued work must end first, since the caller may free memory that this work uses. In addition, the flag
  // by which kernels are skipped must be cleared before the next run.
  for (const auto& subdomain : devices_) {
    try {
      subdomain->finish();
      subdomain->end_trace();
      subdomain->compute_queue().clear(subdomain->control(), 0, sizeof(hc_control));
      subdomain->finish();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the first failure is reported
    }
  }
}

void Engine::begin_trace(bool traced) {
  rank_.messages_trace = traced ? std::make_unique<Trace>() : nullptr;
  for (Worker& worker : workers_) worker.trace = traced ? std::make_unique<Trace>() : nullptr;
  rank_.launches_trace = devices_.empty() ? nullptr : workers_.front().trace.get();
  times_ = traced ? std::make_unique<device::Times>(devices_) : nullptr;
}

void Engine::take_events(double start_time) {
  for (Worker& worker : workers_) result_.events.push_back(worker.trace->take());
  result_.events.push_back(rank_.messages_trace->take());
  size_t subdomain = 0;
  for (std::vector<device::Lane>& lanes : times_->take()) {
    for (device::Lane& lane : lanes) {
      result_.lanes.push_back({subdomain, lane.role, lane.direction});
      result_.events.push_back(std::move(lane.events));
    }
    ++subdomain;
  }
  result_.clock_error = times_->error();
  times_.reset();
  for (std::vector<TraceEvent>& events : result_.events) {
    for (TraceEvent& event : events) {
      event.begin -= start_time;
      event.end -= start_time;
    }
  }
}

void Engine::conclude(double seconds) {
  // Stop requests are merged together with the maximum times. All ranks thus learn of a request even if the
  // run has no loop, or if its last pass has ended.
  // If ranks have different signals, all ranks follow the signal with the largest number.
  const int process_request = stop_requested();
  std::array<double, 4> slowest{seconds, result_.loop_seconds,
                                (known_requests_ | stop_requests()) != 0 ? 1.0 : 0.0,
                                static_cast<double>(process_request)};
  if (!rank_.alone()) {
    MPI_Request request = MPI_REQUEST_NULL;
    // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): wait() tests the request until it is done
    rank_.communicator->check(MPI_Iallreduce(MPI_IN_PLACE, slowest.data(), 4, MPI_DOUBLE, MPI_MAX,
                                             rank_.communicator->handle(), &request),
                              "MPI_Iallreduce");
    wait(request, "the end of the run on all ranks");
  }
  result_.seconds = slowest[0];  // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
  result_.loop_seconds = slowest[1];
  result_.stopped = slowest[2] != 0;
  result_.stopped_process = slowest[3] != 0;
  // The request that all ranks know is cleared. A signal that arrived in the meantime applies to the next
  // run.
  if (result_.stopped) pause_requested_.store(false, std::memory_order_relaxed);
  if (result_.stopped_process) follow_stop(static_cast<int>(slowest[3]));
}

void Engine::execute_asynchronously(Worker& worker) {
  const device::AsyncRun::Listener listener{
      [&](size_t number) {
        if (loops_[number].outermost) outermost_since_ = now();
      },
      [&](size_t number, const double* scalars) {
        const Loop& loop = loops_[number];
        if (loop.outermost) progress_.fetch_add(1, std::memory_order_relaxed);
        if (recorded_ != number) return;
        for (const size_t scalar : loop.record) result_.history.push_back(scalars[scalar]);
      },
      [&](size_t number, const char* ending) {
        loops_[number].ended = ending;
        if (loops_[number].outermost) leave_outermost();
      },
      [&](size_t number) { return (stop_requests() & requests_that_end(loops_[number])) != 0; }};
  result_.reason = async_run_->run(rank_.scalars, worker, team_, listener);
  result_.graph_launches = async_run_->graph_launches();
  leave_outermost();
}

void Engine::compute_constants() {
  if (!rank_.kernels) return;
  for (size_t n = 0; n < constants_.size(); ++n) {
    if (constants_[n].empty()) continue;
    devices_[n]->update(rank_.scalars);
    device::Queue& computing = devices_[n]->compute_queue();
    computing.mark(EventKind::kScalars);
    for (const device::BoundLaunch& launch : constants_[n]) launch.compute_invariants(computing);
  }
}

void Engine::execute(Worker& worker) {
  compute_constants();
  if (rank_.asynchronous) {
    execute_asynchronously(worker);
    return;
  }
  size_t at = paused_at_.value_or(0);
  if (paused_at_) outermost_since_ = now();
  paused_at_.reset();
  while (at < operations_.size()) {
    at = std::visit([&](auto& operation) { return step(operation, at, worker); }, operations_[at]);
  }
  step(Await{}, at, worker);
  for (const auto& subdomain : devices_) subdomain->finish();
  await_loans();
  await_mailboxes();
}

void Engine::prepare_mailboxes() {
  Mailboxes& mailboxes = *rank_.mailboxes;
  // The mailboxes of an earlier run remain valid unless the window has changed. All ranks make the same
  // decision.
  if (mailboxes.generation() == 0 || mailbox_generation_ != mailboxes.generation()) {
    mailboxes.reserve(rank_.subdomains.size(), rank_.mailbox_plan);
    mailbox_generation_ = mailboxes.generation();
  }
  mailboxes.reset();
}

void Engine::await_mailboxes() {
  if (rank_.mailboxes == nullptr) return;
  Backoff backoff = team_.backoff();
  Watchdog watchdog(rank_.timeout);
  while (!rank_.mailboxes->empty()) {
    backoff();
    if (watchdog.expired()) rank_.communicator->abort_after_wait(rank_.timeout, "a mailbox to be emptied");
  }
}

void Engine::await_loans() {
  Backoff backoff = team_.backoff();
  Watchdog watchdog(rank_.timeout);
  for (const Subdomain& subdomain : rank_.subdomains) {
    for (const Loan& loan : subdomain.loans) {
      while (!subdomain.returned(loan, subdomain.lent_count(loan))) {
        backoff();
        if (watchdog.expired()) {
          rank_.communicator->abort_after_wait(rank_.timeout,
                                               "rank " + std::to_string(loan.rank) + " to read a halo");
        }
      }
    }
  }
}

void Engine::serve(Worker& worker, uint32_t number) {
  for (;;) {
    number = team_.await(number);
    if (current_ == nullptr) return;
    current_->work(worker, team_);
    team_.join(worker.thread, number, [&](int below) {
      Accumulators::merge(worker.reductions, accumulators_->of(below), current_->reductions().size());
    });
  }
}

size_t Engine::step(std::unique_ptr<Sweep>& sweep, size_t at, Worker& worker) {
  const double start_time = now();
  sweep->start();
  current_ = sweep.get();
  rank_.meanwhile = nullptr;
  if (!devices_.empty() && allreduce_ && reducing_ != nullptr) {
    // The reduction of the previous sweep over ranks starts as soon as the devices have completed the sweep.
    rank_.meanwhile = [this, &worker] {
      if (allreduce_begun_) {
        allreduce_->test();
      } else if (reducing_->take_reductions(worker.reductions)) {
        begin_allreduce(worker);
      }
    };
  }
  rank_.allreduce = reducing_ != nullptr && allreduce_begun_ ? allreduce_.get() : nullptr;
  team_.publish();
  sweep->work(worker, team_);
  const size_t reductions = sweep->reductions().size();
  team_.join(0, team_.number(), [&](int below) {
    Accumulators::merge(worker.reductions, accumulators_->of(below), reductions);
  });
  if (team_.failed()) std::rethrow_exception(team_.take_failure());
  sweep->finish();
  if (barriers_) synchronise();
  sweep->executions += 1;
  sweep->seconds += now() - start_time;
  if (reductions == 0) return at + 1;
  if (reducing_ != nullptr) step(Await{}, at, worker);
  reducing_ = sweep.get();
  allreduce_begun_ = false;
  if (sweep->take_reductions(worker.reductions)) begin_allreduce(worker);
  return at + 1;
}

void Engine::begin_allreduce(Worker& worker) {
  const std::vector<Reduction>& reductions = reducing_->reductions();
  if (allreduce_) {
    allreduce_->start(worker.reductions, reductions.size(), stop_requests());
    allreduce_begun_ = true;
  } else {
    take_results(reductions, worker.reductions);
    reducing_ = nullptr;
  }
}

void Engine::take_results(const std::vector<Reduction>& reductions, const hc_accumulator* merged) {
  for (size_t n = 0; n < reductions.size(); ++n) rank_.scalars[reductions[n].scalar] = hc_result(&merged[n]);
}

size_t Engine::step(Await, size_t at, Worker& worker) {
  if (reducing_ == nullptr) return at + 1;  // on a single rank on the host, the results are already known
  worker.clock.enter(Activity::kReduction);
  const std::vector<Reduction>& reductions = reducing_->reductions();
  const Span span(worker.trace.get(), EventKind::kReduction, -1, static_cast<int32_t>(reductions.size()));
  if (!allreduce_begun_) {
    for (Backoff backoff = team_.backoff(); !reducing_->take_reductions(worker.reductions);) backoff();
    begin_allreduce(worker);
  }
  if (reducing_ != nullptr) {
    await_allreduce();
    take_results(reductions, allreduce_->result());
    reducing_ = nullptr;
  }
  worker.clock.enter(Activity::kCompute);
  return at + 1;
}

void Engine::await_allreduce() {
  Backoff backoff = team_.backoff();
  Watchdog watchdog(rank_.timeout);
  while (!allreduce_->test()) {
    backoff();
    if (watchdog.expired()) rank_.communicator->abort_after_wait(rank_.timeout, "a reduction over all ranks");
  }
  known_requests_ |= allreduce_->stop_requests();
}

void Engine::wait(MPI_Request& request, const char* name) const {
  Backoff backoff = team_.backoff();
  Watchdog watchdog(rank_.timeout);
  for (int done = 0;;) {
    rank_.communicator->check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    backoff();
    if (watchdog.expired()) rank_.communicator->abort_after_wait(rank_.timeout, name);
  }
}

void Engine::barrier(const char* name) const {
  MPI_Request request = MPI_REQUEST_NULL;
  rank_.communicator->check(MPI_Ibarrier(rank_.communicator->handle(), &request), "MPI_Ibarrier");
  wait(request, name);
}

void Engine::synchronise() const {
  for (const auto& subdomain : devices_) subdomain->finish();
  if (!rank_.alone()) barrier("the barrier after a sweep");
}

StopRequests Engine::stop_requests() const {
  const bool pause = pause_requested_.load(std::memory_order_relaxed);
  return (pause ? kPause : 0) | (stop_requested() != 0 ? kStop : 0);
}

size_t Engine::step(hc_scalars function, size_t at, Worker&) {
  function(rank_.scalars);
  return at + 1;
}

size_t Engine::step(const Stop& stop, size_t at, Worker&) {
  if (stop.condition(rank_.scalars) == 0) return at + 1;
  result_.reason = stop.reason;
  leave_outermost();
  return operations_.size();
}

size_t Engine::step(const Begin& begin, size_t, Worker& worker) {
  Loop& loop = loops_[begin.loop];
  rank_.scalars[loop.count] = 0;
  if (loop.outermost) outermost_since_ = now();
  return test(loop, worker);
}

size_t Engine::step(const End& end, size_t, Worker& worker) {
  Loop& loop = loops_[end.loop];
  rank_.scalars[loop.count] += 1;
  if (loop.outermost) progress_.fetch_add(1, std::memory_order_relaxed);
  if (recorded_ == end.loop) {
    for (const size_t scalar : loop.record) result_.history.push_back(rank_.scalars[scalar]);
  }
  const size_t next = test(loop, worker);
  return loop.outermost && next == loop.body ? pause_before(next) : next;
}

size_t Engine::pause_before(size_t next) {
  if (passes_left_ == 0) return next;
  passes_left_ -= 1;
  if (passes_left_ != 0) return next;
  result_.reason = "paused";
  paused_at_ = next;
  leave_outermost();
  return operations_.size();
}

size_t Engine::test(Loop& loop, Worker& worker) {
  const double* scalars = rank_.scalars;
  size_t next = loop.body;
  if (loop.until != nullptr && loop.until(scalars) != 0) {
    loop.ended = "condition";
    next = loop.after;
  } else if (loop.limit && scalars[loop.count] >= scalars[*loop.limit]) {
    loop.ended = "limit";
    next = loop.after;
  } else if (stop_agreed(loop, worker)) {
    result_.reason = "interrupted";
    leave_outermost();
    next = operations_.size();
  }
  if (loop.outermost && next != loop.body) leave_outermost();
  return next;
}

void Engine::leave_outermost() {
  if (!outermost_since_) return;
  for (const auto& subdomain : devices_) subdomain->finish();  // queued passes may not have run yet
  result_.loop_seconds += now() - *outermost_since_;
  outermost_since_.reset();
}

bool Engine::stop_agreed(const Loop& loop, Worker& worker) {
  if (!allreduce_) return (stop_requests() & requests_that_end(loop)) != 0;
  if (!loop.agrees && static_cast<int64_t>(rank_.scalars[loop.count]) % kAgreeEvery == kAgreeEvery - 1) {
    worker.clock.enter(Activity::kReduction);
    allreduce_->start(nullptr, 0, stop_requests());
    await_allreduce();
    worker.clock.enter(Activity::kCompute);
  }
  return (known_requests_ & requests_that_end(loop)) != 0;
}

}  // namespace halocline
