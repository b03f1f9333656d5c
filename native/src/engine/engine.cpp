#include "engine/engine.hpp"

#include <omp.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace halocline {

namespace {

double timeout_from_environment() {
  const char* value = std::getenv("HALOCLINE_TIMEOUT");  // NOLINT(concurrency-mt-unsafe): no thread writes it
  if (value == nullptr || *value == '\0') return 300;
  double seconds = 0;
  const char* end = value + std::strlen(value);
  const auto read =
      std::from_chars(value, end, seconds);  // independent of the locale, which may not accept "0.5"
  if (read.ec != std::errc{} || read.ptr != end || !(seconds > 0)) {
    throw std::invalid_argument(std::string("HALOCLINE_TIMEOUT is ") + value +
                                ", expected a positive number of seconds");
  }
  return seconds;
}

bool checks_from_environment() {
  const char* value = std::getenv("HALOCLINE_CHECK");  // NOLINT(concurrency-mt-unsafe): no thread writes it
  const std::string words = value == nullptr ? "" : value;
  if (words.empty() || words == "0") return false;
  if (words != "1") throw std::invalid_argument("HALOCLINE_CHECK is " + words + ", expected 0 or 1");
  return true;
}

}  // namespace

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
  if (!rank_.subdomains.empty()) rank_.storage_count = rank_.subdomains.front().storages.size();
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
  if (!devices_.empty()) rank_.storage_count = devices_.front()->storages().size();
  for (const auto& subdomain : devices_) {
    if (subdomain->storages().size() != rank_.storage_count)
      throw std::invalid_argument("subdomains with different numbers of storages");
  }
  if (communicator) {
    rank_.communicator = std::make_unique<Communicator>(*communicator);
    if (!rank_.alone()) allreduce_ = std::make_unique<Allreduce>(*rank_.communicator);
  }
  if (devices_.size() == 1 && rank_.alone()) {
    async_run_ = std::make_unique<device::AsyncRun>(*devices_.front(), scalar_count);
  }
}

void Engine::check() const {
  const auto expect = [](bool good, const std::string& words) {
    if (!good) throw std::invalid_argument(words);
  };
  expect(rank_.threads >= 1, std::to_string(rank_.threads) + " threads, expected at least 1");
  if (rank_.subdomains.empty()) return;  // the rank only takes part in reductions
  const size_t fields = rank_.subdomains.front().storages.size();
  for (const Neighbour& neighbour : rank_.neighbours) {
    expect(neighbour.storages.size() == fields && neighbour.signals.counters,
           "a neighbour with " + std::to_string(neighbour.storages.size()) + " storages, expected " +
               std::to_string(fields) + " storages and counters");
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
  size_t required_bytes = 0;
  std::vector<std::pair<const Subdomain*, const Storage*>> fresh;
  for (const Subdomain& subdomain : rank_.subdomains) {
    for (const auto& storage : subdomain.storages) {
      if (storage->memory()->placed) continue;
      fresh.emplace_back(&subdomain, storage.get());
      if (!storage->memory()->sparse())
        required_bytes += storage->bytes();  // the plan has counted the used part of sparse memory
    }
  }
  if (const size_t available = available_memory(); required_bytes > available) {
    throw OutOfMemory("all fields of a rank together", required_bytes, available);
  }
  omp_set_dynamic(0);
#pragma omp parallel num_threads(rank_.threads)
  {
    const int thread = omp_get_thread_num();
    team_.attempt([&] {
      if (omp_get_num_threads() != rank_.threads) {
        throw std::runtime_error("OpenMP started " + std::to_string(omp_get_num_threads()) +
                                 " threads, expected " + std::to_string(rank_.threads) +
                                 ". Check OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS");
      }
      check_arithmetic(thread);
      for (const auto& [subdomain, storage] : fresh) {
        storage->memory()->place_pages(thread, rank_.threads);
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
  auto sweep = std::make_unique<device::Sweep>(rank_, devices_, plan, sweeps_++);
  // In an asynchronous run, a device can skip the kernels of passes that do not run, but not copies of rows.
  if (sweep->copies_rows()) async_run_.reset();
  if (async_run_) async_run_->sweep(*sweep, plan.swaps);
  add(std::move(sweep));
}

void Engine::constants(const std::vector<std::vector<device::Launch>>& launches) {
  if (launches.size() != devices_.size()) {
    throw std::invalid_argument("constants of " + std::to_string(launches.size()) + " subdomains, expected " +
                                std::to_string(devices_.size()));
  }
  constants_.clear();
  for (size_t n = 0; n < devices_.size(); ++n) {
    std::vector<device::BoundLaunch>& bound = constants_.emplace_back();
    for (const device::Launch& launch : launches[n]) {
      if (launch.invariants.second == 0) {
        throw std::invalid_argument("kernel " + launch.kernel + " computes no invariants");
      }
      bound.emplace_back(*devices_[n], launch);
    }
  }
}

void Engine::add(std::unique_ptr<Sweep> sweep) {
  const size_t reductions = sweep->reductions().size();
  if (allreduce_) allreduce_->reserve(reductions);
  if (!open_.empty() && reductions != 0) loops_[open_.back()].agrees = true;
  operations_.emplace_back(std::move(sweep));
}

void Engine::scalars(const std::string& function) {
  operations_.emplace_back(rank_.library.function<hc_scalars>(function));
  if (async_run_) async_run_->scalars(function);
}

void Engine::await_results() { operations_.emplace_back(Await{}); }

void Engine::stop(const std::string& condition, const std::string& reason) {
  operations_.emplace_back(Stop{rank_.library.function<hc_condition>(condition), reason});
  if (async_run_) async_run_->stop(condition, reason);
}

void Engine::loop(const std::optional<std::string>& until, std::optional<int64_t> limit, int64_t count,
                  const std::vector<int64_t>& record, const std::string& kernel, size_t interval) {
  Loop loop;
  loop.until = until ? rank_.library.function<hc_condition>(*until) : nullptr;
  if (limit) loop.limit = rank_.check_scalar(*limit);
  if (!until && !limit) throw std::invalid_argument("a loop has neither a condition nor a limit");
  loop.count = rank_.check_scalar(count);
  for (const int64_t scalar : record) loop.record.push_back(rank_.check_scalar(scalar));
  loop.outermost = open_.empty();
  if (async_run_) async_run_->loop(kernel, loop.count, loop.limit, interval);
  operations_.emplace_back(Begin{loops_.size()});
  loop.body = operations_.size();
  open_.push_back(loops_.size());
  loops_.push_back(std::move(loop));
}

void Engine::end() {
  if (open_.empty()) throw std::invalid_argument("end() without a loop");
  if (async_run_) async_run_->end();
  operations_.emplace_back(End{open_.back()});
  loops_[open_.back()].after = operations_.size();
  open_.pop_back();
}

}  // namespace halocline
