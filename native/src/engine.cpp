#include "engine.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace halocline {

namespace {

std::atomic<bool> stop_everything{false};
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers need lock-free flags");

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

}  // namespace

void request_stop() noexcept { stop_everything.store(true, std::memory_order_relaxed); }
bool forget_stop() noexcept { return stop_everything.exchange(false, std::memory_order_relaxed); }

Engine::Engine(const std::string& library, const Storages& storages, double* scalars, size_t scalar_count,
               const Index& origin, const Index& shape, int threads, uint32_t spins,
               std::optional<int> communicator, std::vector<hc_box> patches, std::vector<int> owners)
    : subdomain_{Library(library),
                 storages,
                 scalars,
                 scalar_count,
                 origin,
                 shape,
                 threads,
                 {},
                 std::move(patches),
                 std::move(owners),
                 timeout_from_environment()},
      team_(std::max(threads, 1), spins),
      workers_(static_cast<size_t>(std::max(threads, 1))) {
  if (threads < 1) throw std::invalid_argument(std::to_string(threads) + " threads, expected at least 1");
  for (const hc_box& patch : subdomain_.patches) {
    for (int axis = 0; axis < 3; ++axis) {
      if (patch.lo[axis] >= patch.hi[axis]) throw std::invalid_argument("a patch without cells");
    }
  }
  if (subdomain_.owners.size() != subdomain_.patches.size()) {
    throw std::invalid_argument(std::to_string(subdomain_.owners.size()) + " owners for " +
                                std::to_string(subdomain_.patches.size()) + " patches");
  }
  for (const int owner : subdomain_.owners) {
    if (owner < 0 || owner >= threads) {
      throw std::invalid_argument("a patch of thread " + std::to_string(owner) + ", expected 0 to " +
                                  std::to_string(threads - 1));
    }
  }

  size_t needed = 0;
  for (const auto& storage : subdomain_.storages) {
    if (!storage->memory()->placed) needed += storage->bytes();
  }
  if (const size_t available = available_memory(); needed > available) {
    throw OutOfMemory("all fields of a rank together", needed, available);
  }
  omp_set_dynamic(0);
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    team_.attempt([&] {
      if (omp_get_num_threads() != threads) {
        throw std::runtime_error("OpenMP gives " + std::to_string(omp_get_num_threads()) +
                                 " threads, expected " + std::to_string(threads) +
                                 ": see OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS");
      }
      check_arithmetic(thread);
      for (const auto& storage : subdomain_.storages) {
        if (storage->memory()->placed) continue;
        for (size_t n = 0; n < subdomain_.patches.size(); ++n) {
          const hc_box& patch = subdomain_.patches[n];
          if (subdomain_.owners[n] == thread) {
            storage->touch({patch.lo[0], patch.lo[1], patch.lo[2]}, {patch.hi[0], patch.hi[1], patch.hi[2]});
          }
        }
      }
    });
  }
  if (team_.failed()) std::rethrow_exception(team_.take_failure());
  for (const auto& storage : subdomain_.storages) storage->memory()->placed = true;

  if (communicator) {
    subdomain_.communicator = std::make_unique<Communicator>(*communicator);
    if (!subdomain_.alone()) allreduce_ = std::make_unique<Allreduce>(*subdomain_.communicator);
  }
}

void Engine::sweep(const SweepPlan& plan) {
  auto sweep = std::make_unique<Sweep>(subdomain_, plan);
  if (allreduce_) allreduce_->reserve(plan.reductions.size());
  if (!open_.empty() && !plan.reductions.empty()) loops_[open_.back()].agrees = true;
  operations_.emplace_back(std::move(sweep));
}

void Engine::scalars(const std::string& function) {
  operations_.emplace_back(subdomain_.library.function<hc_scalars>(function));
}

void Engine::stop(const std::string& condition, const std::string& reason) {
  operations_.emplace_back(Stop{subdomain_.library.function<hc_condition>(condition), reason});
}

void Engine::loop(const std::optional<std::string>& until, std::optional<int64_t> limit, int64_t count,
                  const std::vector<int64_t>& record) {
  Loop loop;
  loop.until = until ? subdomain_.library.function<hc_condition>(*until) : nullptr;
  if (limit) loop.limit = subdomain_.check_scalar(*limit);
  if (!until && !limit) throw std::invalid_argument("a loop without condition and limit never ends");
  loop.count = subdomain_.check_scalar(count);
  for (const int64_t scalar : record) loop.record.push_back(subdomain_.check_scalar(scalar));
  loop.outermost = open_.empty();
  operations_.emplace_back(Begin{loops_.size()});
  loop.body = operations_.size();
  open_.push_back(loops_.size());
  loops_.push_back(std::move(loop));
}

void Engine::end() {
  if (open_.empty()) throw std::invalid_argument("end() without a loop");
  operations_.emplace_back(End{open_.back()});
  loops_[open_.back()].after = operations_.size();
  open_.pop_back();
}

void Engine::prepare() {
  if (!open_.empty()) throw std::invalid_argument("a loop has no end()");
  size_t reductions = 0, scratch = 0;
  result_ = {};
  recorded_.reset();
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
  for (Loop& loop : loops_) loop.ended.clear();
  if (recorded_) result_.columns = loops_[*recorded_].record.size();
  progress_.store(0, std::memory_order_relaxed);
  outermost_since_.reset();
  stop_known_ = false;
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

Result Engine::run() {
  if (running_.exchange(true)) throw std::runtime_error("this engine is running already");
  const struct Release {
    std::atomic<bool>& flag;
    ~Release() { flag.store(false); }
  } release{running_};
  const auto several = !subdomain_.alone();
  team_.attempt([&] { prepare(); });
  double begun = 0;
  if (!team_.failed()) {
    if (several) {
      MPI_Request barrier = MPI_REQUEST_NULL;
      subdomain_.communicator->check(MPI_Ibarrier(subdomain_.communicator->handle(), &barrier),
                                     "MPI_Ibarrier");
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
    if (!several) std::rethrow_exception(failure);
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& error) {
      subdomain_.communicator->abort(error.what());
    } catch (...) {
      subdomain_.communicator->abort("a kernel threw something unknown");
    }
  }

  conclude(now() - begun);
  const Stopwatch& clock = workers_[0].clock;
  result_.compute = clock.seconds(Activity::kCompute);
  result_.exchange = clock.seconds(Activity::kExchange);
  result_.reduction = clock.seconds(Activity::kReduction);
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

void Engine::conclude(double seconds) {
  // The wish to stop goes with the slowest rank's times: it reaches a run without a loop too, and one whose
  // last pass is over.
  std::array<double, 3> slowest{seconds, result_.loop_seconds, stop_known_ || stop_wanted() ? 1.0 : 0.0};
  if (!subdomain_.alone()) {
    MPI_Request request = MPI_REQUEST_NULL;
    // NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker): wait() tests the request until it is done
    subdomain_.communicator->check(MPI_Iallreduce(MPI_IN_PLACE, slowest.data(), 3, MPI_DOUBLE, MPI_MAX,
                                                  subdomain_.communicator->handle(), &request),
                                   "MPI_Iallreduce");
    wait(request, "the end of the run on all ranks");
  }
  result_.seconds = slowest[0];  // NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker)
  result_.loop_seconds = slowest[1];
  result_.stopped = slowest[2] != 0;
  if (result_.stopped) {  // the wish is spent
    stop_requested_.store(false, std::memory_order_relaxed);
    forget_stop();
  }
}

void Engine::conduct(Worker& worker) {
  size_t at = 0;
  while (at < operations_.size()) {
    at = std::visit([&](auto& operation) { return step(operation, at, worker); }, operations_[at]);
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
  if (reductions != 0) reduce(sweep->reductions(), worker);
  return at + 1;
}

void Engine::reduce(const std::vector<Reduction>& reductions, Worker& worker) {
  worker.clock.enter(Activity::kReduction);
  const hc_accumulator* merged = worker.reductions;
  if (allreduce_) {
    allreduce(merged, reductions.size());
    merged = allreduce_->result();
  }
  for (size_t n = 0; n < reductions.size(); ++n)
    subdomain_.scalars[reductions[n].scalar] = hc_result(&merged[n]);
  worker.clock.enter(Activity::kCompute);
}

namespace {

// All ranks wait where one misses a message; that one is to give up first, since it knows the cause.
constexpr double kOthersPatience = 2;

}  // namespace

void Engine::allreduce(const hc_accumulator* accumulators, size_t n) {
  allreduce_->start(accumulators, n, stop_wanted());
  Backoff backoff = team_.backoff();
  const double patience = kOthersPatience * subdomain_.timeout;
  Watchdog watchdog(patience);
  while (!allreduce_->test()) {
    backoff();
    if (watchdog.expired()) allreduce_->communicator().give_up(patience, "a reduction over all ranks");
  }
  stop_known_ = stop_known_ || allreduce_->stop();
}

void Engine::wait(MPI_Request& request, const char* name) const {
  Backoff backoff = team_.backoff();
  const double patience = kOthersPatience * subdomain_.timeout;
  Watchdog watchdog(patience);
  for (int done = 0;;) {
    subdomain_.communicator->check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    backoff();
    if (watchdog.expired()) subdomain_.communicator->give_up(patience, name);
  }
}

bool Engine::stop_wanted() const {
  return stop_requested_.load(std::memory_order_relaxed) || stop_everything.load(std::memory_order_relaxed);
}

size_t Engine::step(hc_scalars function, size_t at, Worker&) {
  function(subdomain_.scalars);
  return at + 1;
}

size_t Engine::step(const Stop& stop, size_t at, Worker&) {
  if (stop.condition(subdomain_.scalars) == 0) return at + 1;
  result_.reason = stop.reason;
  leave_outermost();
  return operations_.size();
}

size_t Engine::step(const Begin& begin, size_t, Worker& worker) {
  Loop& loop = loops_[begin.loop];
  subdomain_.scalars[loop.count] = 0;
  if (loop.outermost) outermost_since_ = now();
  return test(loop, worker);
}

size_t Engine::step(const End& end, size_t, Worker& worker) {
  Loop& loop = loops_[end.loop];
  subdomain_.scalars[loop.count] += 1;
  if (loop.outermost) progress_.fetch_add(1, std::memory_order_relaxed);
  if (recorded_ == end.loop) {
    for (const size_t scalar : loop.record) result_.history.push_back(subdomain_.scalars[scalar]);
  }
  return test(loop, worker);
}

size_t Engine::test(Loop& loop, Worker& worker) {
  const double* scalars = subdomain_.scalars;
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
  result_.loop_seconds += now() - *outermost_since_;
  outermost_since_.reset();
}

bool Engine::stop_agreed(const Loop& loop, Worker& worker) {
  if (!allreduce_) return stop_wanted();
  if (!loop.agrees && static_cast<int64_t>(subdomain_.scalars[loop.count]) % kAgreeEvery == kAgreeEvery - 1) {
    worker.clock.enter(Activity::kReduction);
    allreduce(nullptr, 0);
    worker.clock.enter(Activity::kCompute);
  }
  return stop_known_;
}

}  // namespace halocline
