#include "engine/engine.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace halocline {

namespace {

std::atomic<bool> stop_everything{false};
std::atomic<int> last_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "signal handlers need lock-free flags");

// Without a reduction in the body of a loop, ranks agree on stopping once in this many passes.
constexpr int64_t kAgreeEvery = 64;

double timeout_from_environment() {
  const char* value = std::getenv("HALOCLINE_TIMEOUT");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  if (value == nullptr || *value == '\0') return 300;
  char* rest = nullptr;
  const double seconds = std::strtod(value, &rest);
  if (*rest != '\0' || !(seconds > 0)) {
    throw std::invalid_argument(std::string("HALOCLINE_TIMEOUT is ") + value + ", expected seconds above 0");
  }
  return seconds;
}

bool checks_from_environment() {
  const char* value = std::getenv("HALOCLINE_CHECK");  // NOLINT(concurrency-mt-unsafe): nobody writes it
  const std::string words = value == nullptr ? "" : value;
  if (words.empty() || words == "0") return false;
  if (words != "1") throw std::invalid_argument("HALOCLINE_CHECK is " + words + ", expected 0 or 1");
  return true;
}

}  // namespace

void request_stop() noexcept { stop_everything.store(true, std::memory_order_relaxed); }
void note_signal(int number) noexcept { last_signal.store(number, std::memory_order_relaxed); }
int noted_signal() noexcept { return last_signal.load(std::memory_order_relaxed); }
void forget_signal() noexcept { last_signal.store(0, std::memory_order_relaxed); }
bool forget_stop() noexcept { return stop_everything.exchange(false, std::memory_order_relaxed); }

Engine::Engine(const std::string& library, std::vector<Subdomain> subdomains,
               std::vector<Neighbour> neighbours, double* scalars, size_t scalar_count, const Index& shape,
               int threads, uint32_t spins, std::optional<int> communicator, size_t mailboxes,
               Schedule schedule)
    : rank_{Library(library),
            scalars,
            scalar_count,
            shape,
            threads,
            timeout_from_environment(),
            schedule,
            checks_from_environment(),
            std::move(subdomains),
            std::move(neighbours)},
      team_(std::max(threads, 1), spins),
      workers_(static_cast<size_t>(std::max(threads, 1))) {
  check();
  rank_.storage_count = rank_.subdomains.front().storages.size();
  place();
  if (communicator) {
    rank_.communicator = std::make_unique<Communicator>(*communicator);
    if (!rank_.alone()) allreduce_ = std::make_unique<Allreduce>(*rank_.communicator);
    rank_.mailbox_plan.boxes = mailboxes;
    rank_.mailbox_plan.capacity.resize(Signals::kDirections * rank_.subdomains.size());
    if (mailboxes != 0) rank_.mailboxes = &Mailboxes::of(*rank_.communicator);
  }
}

Engine::Engine(const std::string& library, device::Subdomains subdomains, double* scalars,
               size_t scalar_count, const Index& shape, uint32_t spins, std::optional<int> communicator)
    : rank_{Library(library),
            scalars,
            scalar_count,
            shape,
            1,
            timeout_from_environment(),
            Schedule::kStatic,
            checks_from_environment(),
            {},
            {}},
      devices_(std::move(subdomains)),
      team_(1, spins),
      workers_(1) {
  if (devices_.empty()) throw std::invalid_argument("no subdomain, expected at least one");
  rank_.storage_count = devices_.front()->storages().size();
  for (const auto& subdomain : devices_) {
    if (subdomain->storages().size() != rank_.storage_count)
      throw std::invalid_argument("subdomains with different numbers of storages");
  }
  if (communicator) {
    rank_.communicator = std::make_unique<Communicator>(*communicator);
    if (!rank_.alone()) allreduce_ = std::make_unique<Allreduce>(*rank_.communicator);
  }
  if (devices_.size() == 1 && rank_.alone()) {
    ahead_ = std::make_unique<device::Ahead>(*devices_.front(), scalar_count);
  }
}

void Engine::check() const {
  const auto expect = [](bool good, const std::string& words) {
    if (!good) throw std::invalid_argument(words);
  };
  expect(rank_.threads >= 1, std::to_string(rank_.threads) + " threads, expected at least 1");
  expect(!rank_.subdomains.empty(), "no subdomain, expected at least one");
  const size_t fields = rank_.subdomains.front().storages.size();
  for (const Neighbour& neighbour : rank_.neighbours) {
    expect(neighbour.storages.size() == fields && neighbour.signals.counters,
           "a neighbour with " + std::to_string(neighbour.storages.size()) + " storages, expected " +
               std::to_string(fields) + ", and its counters");
  }
  for (const Subdomain& subdomain : rank_.subdomains) {
    expect(subdomain.storages.size() == fields, "subdomains with different numbers of storages");
    expect(subdomain.owners.size() == subdomain.patches.size(),
           std::to_string(subdomain.owners.size()) + " owners for " +
               std::to_string(subdomain.patches.size()) + " patches");
    for (const hc_box& patch : subdomain.patches) {
      for (int axis = 0; axis < 3; ++axis) expect(patch.lo[axis] < patch.hi[axis], "a patch without cells");
    }
    for (const int owner : subdomain.owners) {
      expect(0 <= owner && owner < rank_.threads, "a patch of thread " + std::to_string(owner) +
                                                      ", expected 0 to " + std::to_string(rank_.threads - 1));
    }
  }
}

void Engine::place() {
  size_t needed = 0;
  std::vector<std::pair<const Subdomain*, const Storage*>> fresh;
  for (const Subdomain& subdomain : rank_.subdomains) {
    for (const auto& storage : subdomain.storages) {
      if (storage->memory()->placed) continue;
      fresh.emplace_back(&subdomain, storage.get());
      if (!storage->memory()->sparse()) needed += storage->bytes();  // else a part that the plan has counted
    }
  }
  if (const size_t available = available_memory(); needed > available) {
    throw OutOfMemory("all fields of a rank together", needed, available);
  }
  omp_set_dynamic(0);
#pragma omp parallel num_threads(rank_.threads)
  {
    const int thread = omp_get_thread_num();
    team_.attempt([&] {
      if (omp_get_num_threads() != rank_.threads) {
        throw std::runtime_error("OpenMP gives " + std::to_string(omp_get_num_threads()) +
                                 " threads, expected " + std::to_string(rank_.threads) +
                                 ": see OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS");
      }
      check_arithmetic(thread);
      for (const auto& [subdomain, storage] : fresh) {
        storage->memory()->settle(thread, rank_.threads);
        for (size_t n = 0; n < subdomain->patches.size(); ++n) {
          const hc_box& patch = subdomain->patches[n];
          if (subdomain->owners[n] == thread) {
            storage->touch({patch.lo[0], patch.lo[1], patch.lo[2]}, {patch.hi[0], patch.hi[1], patch.hi[2]});
          }
        }
      }
    });
  }
  if (team_.failed()) std::rethrow_exception(team_.take_failure());
  for (const auto& [subdomain, storage] : fresh) storage->memory()->placed = true;
}

void Engine::sweep(const SweepPlan& plan) {
  auto sweep = std::make_unique<HostSweep>(rank_, plan, sweeps_++);
  for (size_t n = 0; n < rank_.subdomains.size(); ++n) {
    for (const auto& [entry, bytes] : sweep->mailboxes(n)) {
      size_t& most = rank_.mailbox_plan.capacity[n * Signals::kDirections + entry];
      most = std::max(most, bytes);
    }
    std::vector<Loan>& known = rank_.subdomains[n].loans;
    for (const Loan& loan : sweep->loans(n)) {
      if (std::find(known.begin(), known.end(), loan) == known.end()) known.push_back(loan);
    }
  }
  add(std::move(sweep));
}

void Engine::sweep(const device::SweepPlan& plan) {
  auto sweep = std::make_unique<device::Sweep>(rank_, devices_, plan);
  // A device that runs ahead skips the kernels of passes that are not to be, but no copies.
  if (sweep->copies_rows()) ahead_.reset();
  if (ahead_) ahead_->sweep(*sweep, plan.swaps);
  add(std::move(sweep));
}

void Engine::add(std::unique_ptr<Sweep> sweep) {
  const size_t reductions = sweep->reductions().size();
  if (allreduce_) allreduce_->reserve(reductions);
  if (!open_.empty() && reductions != 0) loops_[open_.back()].agrees = true;
  operations_.emplace_back(std::move(sweep));
}

void Engine::scalars(const std::string& function) {
  operations_.emplace_back(rank_.library.function<hc_scalars>(function));
  if (ahead_) ahead_->scalars(function);
}

void Engine::await_results() { operations_.emplace_back(Await{}); }

void Engine::stop(const std::string& condition, const std::string& reason) {
  operations_.emplace_back(Stop{rank_.library.function<hc_condition>(condition), reason});
  if (ahead_) ahead_->stop(condition, reason);
}

void Engine::loop(const std::optional<std::string>& until, std::optional<int64_t> limit, int64_t count,
                  const std::vector<int64_t>& record, const std::string& kernel) {
  Loop loop;
  loop.until = until ? rank_.library.function<hc_condition>(*until) : nullptr;
  if (limit) loop.limit = rank_.check_scalar(*limit);
  if (!until && !limit) throw std::invalid_argument("a loop without condition and limit never ends");
  loop.count = rank_.check_scalar(count);
  for (const int64_t scalar : record) loop.record.push_back(rank_.check_scalar(scalar));
  loop.outermost = open_.empty();
  if (ahead_) ahead_->loop(kernel, loop.count, loop.limit);
  operations_.emplace_back(Begin{loops_.size()});
  loop.body = operations_.size();
  open_.push_back(loops_.size());
  loops_.push_back(std::move(loop));
}

void Engine::end() {
  if (open_.empty()) throw std::invalid_argument("end() without a loop");
  if (ahead_) ahead_->end();
  operations_.emplace_back(End{open_.back()});
  loops_[open_.back()].after = operations_.size();
  open_.pop_back();
}

void Engine::prepare(const Running& how) {
  if (!open_.empty()) throw std::invalid_argument("a loop has no end()");
  if (how.resumed && !paused_at_) throw std::invalid_argument("no run has paused that could be resumed");
  if (how.passes < 0) {
    throw std::invalid_argument(std::to_string(how.passes) + " passes, expected at least 0");
  }
  size_t reductions = 0, scratch = 0;
  result_ = {};
  recorded_.reset();
  passes_left_ = how.passes;
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
  if (!how.resumed) {
    paused_at_.reset();
    for (Loop& loop : loops_) loop.ended.clear();
    progress_.store(0, std::memory_order_relaxed);
  }
  outermost_since_.reset();
  known_ = 0;
  reducing_ = nullptr;
  passed_on_ = false;
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
  }
}

Result Engine::run(const Running& how) {
  if (running_.exchange(true)) throw std::runtime_error("this engine is running already");
  rank_.messages = how.messages;
  rank_.kernels = how.kernels;
  rank_.overlap = how.overlap;
  rank_.ahead = ahead_ && how.ahead && how.messages && how.kernels && how.passes == 0 && !how.resumed;
  rank_.messages_trace = how.traced ? std::make_unique<Trace>() : nullptr;
  for (Worker& worker : workers_) worker.trace = how.traced ? std::make_unique<Trace>() : nullptr;
  const struct Release {
    std::atomic<bool>& flag;
    ~Release() { flag.store(false); }
  } release{running_};
  const auto several = !rank_.alone();
  team_.attempt([&] { prepare(how); });
  double begun = 0;
  if (!team_.failed()) {
    if (rank_.mailboxes != nullptr) prepare_mailboxes();
    if (several) {
      MPI_Request barrier = MPI_REQUEST_NULL;
      rank_.communicator->check(MPI_Ibarrier(rank_.communicator->handle(), &barrier), "MPI_Ibarrier");
      wait(barrier, "the barrier before the run");
    }
    begun = now();
    workers_[0].clock.start();
#pragma omp parallel num_threads(team_.size())
    {
      const int thread = omp_get_thread_num();
      const uint32_t seen = team_.number();  // before the first thread can publish
      const PunctualSleep punctual;
      team_.attempt([&] {
        if (omp_get_num_threads() != team_.size()) {
          throw std::runtime_error("OpenMP gives " + std::to_string(omp_get_num_threads()) +
                                   " threads, expected " + std::to_string(team_.size()));
        }
        check_arithmetic(thread);
      });
#pragma omp barrier
      const bool sound = !team_.failed();
#pragma omp barrier  // before kernels can fail: all threads must decide alike
      if (sound) {
        Worker& worker = workers_[static_cast<size_t>(thread)];
        if (thread == 0) {
          team_.attempt([&] { conduct(worker); });
          current_ = nullptr;
          team_.publish();
        } else {
          serve(worker, seen);
        }
      }
    }
    workers_[0].clock.stop();
  }
  if (team_.failed()) {
    const std::exception_ptr failure = team_.take_failure();
    settle_devices();
    if (!several) std::rethrow_exception(failure);
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      rank_.communicator->abort(error.what());
    } catch (...) {
      rank_.communicator->abort("a kernel threw something unknown");
    }
  }

  conclude(now() - begun);
  const Stopwatch& clock = workers_[0].clock;
  result_.compute = clock.seconds(Activity::kCompute);
  result_.exchange = clock.seconds(Activity::kExchange);
  result_.reduction = clock.seconds(Activity::kReduction);
  if (how.traced) take_events(begun);
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

void Engine::settle_devices() noexcept {
  // What is queued still uses memory that the caller may free now; and the next run must not find kernels
  // that skip.
  for (const auto& subdomain : devices_) {
    try {
      subdomain->finish();
      subdomain->computing().clear(subdomain->control(), 0, sizeof(hc_control));
      subdomain->finish();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): what failed before is told
    }
  }
}

void Engine::take_events(double begun) {
  for (Worker& worker : workers_) result_.events.push_back(worker.trace->take());
  result_.events.push_back(rank_.messages_trace->take());
  for (std::vector<Event>& events : result_.events) {
    for (Event& event : events) {
      event.begin -= begun;
      event.end -= begun;
    }
  }
}

void Engine::conclude(double seconds) {
  // The wish to stop goes with the slowest rank's times: it reaches a run without a loop too, and one whose
  // last pass is over.
  const bool everything = stop_everything.load(std::memory_order_relaxed);
  std::array<double, 4> slowest{seconds, result_.loop_seconds, (known_ | wishes()) != 0 ? 1.0 : 0.0,
                                everything ? 1.0 : 0.0};
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
  // what all ranks know of is spent; a signal that came meanwhile is the next run's
  if (result_.stopped) pause_requested_.store(false, std::memory_order_relaxed);
  if (result_.stopped_process) forget_stop();
}

void Engine::conduct_ahead(Worker& worker) {
  const device::Ahead::Listener listener{
      [&](size_t number) {
        if (loops_[number].outermost) outermost_since_ = now();
      },
      [&](size_t number, const double* scalars) {
        const Loop& loop = loops_[number];
        if (loop.outermost) progress_.fetch_add(1, std::memory_order_relaxed);
        if (recorded_ != number) return;
        for (const size_t scalar : loop.record) result_.history.push_back(scalars[scalar]);
      },
      [&](size_t number, const char* how) {
        loops_[number].ended = how;
        if (loops_[number].outermost) leave_outermost();
      },
      [&](size_t number) { return (wishes() & that_end(loops_[number])) != 0; }};
  result_.reason = ahead_->run(rank_.scalars, worker, team_, listener);
  result_.graph_launches = ahead_->graph_launches();
  leave_outermost();
}

void Engine::conduct(Worker& worker) {
  if (rank_.ahead) {
    conduct_ahead(worker);
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
  // What had room before has room still, unless the window is another: all ranks decide alike.
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
    if (watchdog.expired()) rank_.communicator->give_up(rank_.timeout, "a mailbox to be emptied");
  }
}

void Engine::await_loans() {
  Backoff backoff = team_.backoff();
  Watchdog watchdog(rank_.timeout);
  for (const Subdomain& subdomain : rank_.subdomains) {
    for (const Loan& loan : subdomain.loans) {
      while (!subdomain.returned(loan, subdomain.given(loan))) {
        backoff();
        if (watchdog.expired()) {
          rank_.communicator->give_up(rank_.timeout, "rank " + std::to_string(loan.rank) + " to read a halo");
        }
      }
    }
  }
}

void Engine::serve(Worker& worker, uint32_t seen) {
  for (;;) {
    seen = team_.await(seen);
    if (current_ == nullptr) return;
    current_->work(worker, team_);
    team_.join(worker.thread, seen, [&](int below) {
      Accumulators::merge(worker.reductions, accumulators_->of(below), current_->reductions().size());
    });
  }
}

size_t Engine::step(std::unique_ptr<Sweep>& sweep, size_t at, Worker& worker) {
  const double begun = now();
  sweep->start();
  current_ = sweep.get();
  rank_.meanwhile = nullptr;
  if (!devices_.empty() && allreduce_ && reducing_ != nullptr) {
    // The results of the sweep before travel as soon as its devices have them.
    rank_.meanwhile = [this, &worker] {
      if (passed_on_) {
        allreduce_->test();
      } else if (reducing_->reduced(worker.reductions)) {
        pass_on_results(worker);
      }
    };
  }
  rank_.allreduce = reducing_ != nullptr && passed_on_ ? allreduce_.get() : nullptr;
  team_.publish();
  sweep->work(worker, team_);
  const size_t reductions = sweep->reductions().size();
  team_.join(0, team_.number(), [&](int below) {
    Accumulators::merge(worker.reductions, accumulators_->of(below), reductions);
  });
  if (team_.failed()) std::rethrow_exception(team_.take_failure());
  sweep->finish();
  sweep->executions += 1;
  sweep->seconds += now() - begun;
  if (reductions == 0) return at + 1;
  if (reducing_ != nullptr) step(Await{}, at, worker);
  reducing_ = sweep.get();
  passed_on_ = false;
  if (sweep->reduced(worker.reductions)) pass_on_results(worker);
  return at + 1;
}

void Engine::pass_on_results(Worker& worker) {
  const std::vector<Reduction>& reductions = reducing_->reductions();
  if (allreduce_) {
    allreduce_->start(worker.reductions, reductions.size(), wishes());
    passed_on_ = true;
  } else {
    take_results(reductions, worker.reductions);
    reducing_ = nullptr;
  }
}

void Engine::take_results(const std::vector<Reduction>& reductions, const hc_accumulator* merged) {
  for (size_t n = 0; n < reductions.size(); ++n) rank_.scalars[reductions[n].scalar] = hc_result(&merged[n]);
}

size_t Engine::step(Await, size_t at, Worker& worker) {
  if (reducing_ == nullptr) return at + 1;  // one rank of a host has its results at once
  worker.clock.enter(Activity::kReduction);
  const std::vector<Reduction>& reductions = reducing_->reductions();
  const Span span(worker.trace.get(), Doing::kReduction, -1, static_cast<int32_t>(reductions.size()));
  if (!passed_on_) {
    for (Backoff backoff = team_.backoff(); !reducing_->reduced(worker.reductions);) backoff();
    pass_on_results(worker);
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
    if (watchdog.expired()) rank_.communicator->give_up(rank_.timeout, "a reduction over all ranks");
  }
  known_ |= allreduce_->wishes();
}

void Engine::wait(MPI_Request& request, const char* name) const {
  Backoff backoff = team_.backoff();
  Watchdog watchdog(rank_.timeout);
  for (int done = 0;;) {
    rank_.communicator->check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    backoff();
    if (watchdog.expired()) rank_.communicator->give_up(rank_.timeout, name);
  }
}

Wishes Engine::wishes() const {
  return (pause_requested_.load(std::memory_order_relaxed) ? kPause : 0) |
         (stop_everything.load(std::memory_order_relaxed) ? kStop : 0);
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
  for (const auto& subdomain : devices_) subdomain->finish();  // passes may only be queued yet
  result_.loop_seconds += now() - *outermost_since_;
  outermost_since_.reset();
}

bool Engine::stop_agreed(const Loop& loop, Worker& worker) {
  if (!allreduce_) return (wishes() & that_end(loop)) != 0;
  if (!loop.agrees && static_cast<int64_t>(rank_.scalars[loop.count]) % kAgreeEvery == kAgreeEvery - 1) {
    worker.clock.enter(Activity::kReduction);
    allreduce_->start(nullptr, 0, wishes());
    await_allreduce();
    worker.clock.enter(Activity::kCompute);
  }
  return (known_ & that_end(loop)) != 0;
}

}  // namespace halocline
