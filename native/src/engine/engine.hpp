// Engine that runs a plan: sweeps, scalar statements, stop conditions and loops, in program order.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/async_run.hpp"
#include "device/times.hpp"
#include "ranks/rank.hpp"
#include "ranks/reduction.hpp"
#include "sweep/host_sweep.hpp"
#include "threads/team.hpp"

namespace halocline {

struct Result {
  std::string reason;              // "completed", "paused", "interrupted" or the reason of a stop
  std::vector<std::string> loops;  // reason of the end of each loop: "condition", "limit", or "" for no end
  std::vector<double> history;     // one row of `columns` scalars per pass
  size_t columns = 0;
  bool stopped = false;  // any rank requested a stop, even if too late for this run; equal on all ranks
  bool stopped_process = false;  // the request applied to all engines of a process, for example a signal
  double seconds = 0;            // time of the run, maximum over the ranks
  double loop_seconds = 0;
  double compute = 0, exchange = 0, reduction = 0;  // seconds of the first thread of this rank
  int64_t graph_launches = 0;                       // launches of graphs in an asynchronous run of a device
  std::vector<int64_t> sweep_counts;
  std::vector<double> sweep_seconds;
  std::vector<double> subdomain_seconds;  // kernel time of the threads of this rank if measured, otherwise 0
  // Events of each thread, then of messages, then of `lanes`. Times are relative to the start of the run.
  std::vector<std::vector<TraceEvent>> events;
  struct Lane {  // queue of a device
    size_t subdomain;
    std::string role;
    int direction;
  };
  std::vector<Lane> lanes;
  double clock_error = 0;  // maximum error of the times of devices, in seconds
};

// Settings of a run. If messages and kernels are enabled, the results do not depend on the settings.
struct RunSettings {
  bool messages = true, kernels = true;  // if false, the run omits this part, to measure the rest
  bool traced = false;                   // the result contains the events of threads and messages
  bool overlap = true;                   // patches that need no message run before all messages have arrived
  bool asynchronous = true;              // a single device runs asynchronously, without waiting for the host
  int64_t passes = 0;     // number of passes of an outermost loop before the run pauses; 0: no pause
  bool resumed = false;   // continue after the pause of the previous run
  bool measured = false;  // the result contains the time of each subdomain
  bool barriers = false;  // after each sweep, devices finish and ranks wait for each other, for measurements
};

class Engine {
 public:
  // Throws std::invalid_argument, std::runtime_error and OutOfMemory before any call of MPI.
  Engine(const std::string& library, std::vector<Subdomain> subdomains, std::vector<Neighbour> neighbours,
         double* scalars, size_t scalar_count, const Index& shape, int threads, uint32_t spins,
         std::optional<int> communicator, size_t mailboxes = 0, Schedule schedule = Schedule::kGuided);
  // Create an engine whose subdomains are on devices. One thread queues the work of the devices.
  Engine(const std::string& library, device::Subdomains subdomains, double* scalars, size_t scalar_count,
         const Index& shape, uint32_t spins, std::optional<int> communicator);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Rank& rank() const { return rank_; }

  // Append operations.
  void sweep(const SweepPlan& plan);
  void sweep(const device::SweepPlan& plan);
  // Set the kernels that compute invariants at the start of each run, for each subdomain.
  void constants(const std::vector<std::vector<device::Launch>>& launches);
  void scalars(const std::string& function);
  // Append a wait for the results of the last sweep with reductions. The reductions overlap with the
  // operations before this wait.
  void await_results();
  void stop(const std::string& condition, const std::string& reason);
  // `kernel`: test of the loop on a device. `interval`: see device::AsyncRun::loop().
  void loop(const std::optional<std::string>& until, std::optional<int64_t> limit, int64_t count,
            const std::vector<int64_t>& record, const std::string& kernel = "", size_t interval = 0);
  void end();

  // Run all operations. All ranks call this function. With one rank, a failure throws an exception.
  // Otherwise, a failure ends all ranks.
  Result run(const RunSettings& settings = {});
  // Return the number of passes of the outermost loops in the current or last run. Any thread may call it.
  int64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  // Request a pause of this run on all ranks between two passes of the outermost loop. Any thread may call
  // it.
  void request_pause() { pause_requested_.store(true, std::memory_order_relaxed); }

 private:
  struct Await {};
  struct Stop {
    hc_condition condition;
    std::string reason;
  };
  struct Loop {
    hc_condition until;  // or null
    std::optional<size_t> limit;
    size_t count;
    std::vector<size_t> record;
    size_t body = 0, after = 0;  // operations: the first of the body, the first after the loop
    bool outermost = false;
    bool agrees = false;  // a reduction of each pass also transfers the stop requests
    std::string ended;
  };
  struct Begin {
    size_t loop;
  };
  struct End {
    size_t loop;
  };
  using Operation = std::variant<std::unique_ptr<Sweep>, hc_scalars, Await, Stop, Begin, End>;

  void add(std::unique_ptr<Sweep> sweep);
  void check() const;
  // Touch the memory of all fields. Each thread touches the pages on which it works.
  void place();
  void prepare(const RunSettings& settings);
  // Merge the results of a run over all ranks. `seconds` is the time on this rank. All ranks call this
  // function at the end of a run.
  void conclude(double seconds);
  void begin_trace(bool traced);
  // Wait for the remaining work of devices after a failure.
  void finish_devices() noexcept;
  void take_events(double start_time);
  // Compute the invariants that do not change during a run.
  void compute_constants();
  // Execute the operations. Only the first thread calls it.
  void execute(Worker& worker);
  // Execute the operations in an asynchronous run of one device. Only the first thread calls it.
  void execute_asynchronously(Worker& worker);
  // Wait until all neighbours have read the cells on loan, so that these may be overwritten. Only the first
  // thread calls this function.
  void await_loans();
  void prepare_mailboxes();
  void await_mailboxes();
  // Execute the work that the first thread publishes after piece of work `number`, until the run ends. All
  // other threads call this function.
  void serve(Worker& worker, uint32_t number);
  // Each overload runs one operation and returns the number of the next operation.
  size_t step(std::unique_ptr<Sweep>& sweep, size_t at, Worker& worker);
  size_t step(hc_scalars function, size_t at, Worker& worker);
  size_t step(Await, size_t at, Worker& worker);
  size_t step(const Stop& stop, size_t at, Worker& worker);
  size_t step(const Begin& begin, size_t at, Worker& worker);
  size_t step(const End& end, size_t at, Worker& worker);
  size_t test(Loop& loop, Worker& worker);
  bool stop_agreed(const Loop& loop, Worker& worker);
  // Add the time of the outermost loop, if the run is in one.
  void leave_outermost();
  // Return the operation that follows a pass of an outermost loop: `next`, or the end of the program if the
  // run pauses.
  size_t pause_before(size_t next);
  void take_results(const std::vector<Reduction>& reductions, const hc_accumulator* merged);
  void await_allreduce();
  void wait(MPI_Request& request, const char* name) const;
  // Wait for all ranks.
  void barrier(const char* name) const;
  // Wait until the devices of all ranks have finished.
  void synchronise() const;
  StopRequests stop_requests() const;
  static StopRequests requests_that_end(const Loop& loop) { return loop.outermost ? kPause | kStop : kStop; }

  // Start the reduction over ranks with the contribution of this rank. Only the first thread calls it.
  void begin_allreduce(Worker& worker);

  Rank rank_;
  device::Subdomains devices_;
  std::vector<std::vector<device::BoundLaunch>> constants_;  // per subdomain
  std::unique_ptr<device::Times> times_;                     // times of the current run, if traced
  bool barriers_ = false;                                    // barriers after each sweep of the current run
  std::unique_ptr<device::AsyncRun> async_run_;              // set for one device and one rank
  std::vector<Operation> operations_;
  std::vector<Loop> loops_;
  std::vector<size_t> open_;  // loops that have begun and not ended
  std::optional<size_t> recorded_;
  int32_t sweeps_ = 0;

  Team team_;
  std::unique_ptr<Allreduce> allreduce_;
  size_t mailbox_generation_ = 0;  // generation of the window that was large enough for this engine
  std::unique_ptr<Accumulators> accumulators_;
  std::vector<std::unique_ptr<Memory>> scratch_;  // per thread
  std::vector<Worker> workers_;

  // State of the current run.
  Result result_;
  int64_t passes_left_ = 0;                // passes before a pause; 0: no pause
  std::optional<size_t> paused_at_;        // operation at which the next run may continue
  Sweep* current_ = nullptr;               // null: the run is over
  Sweep* reducing_ = nullptr;              // sweep whose reductions have no results yet
  bool allreduce_begun_ = false;           // these reductions are in progress between ranks
  std::optional<double> outermost_since_;  // start time of the current outermost loop
  StopRequests known_requests_ = 0;        // requests of any rank that are known to all ranks
  std::atomic<int64_t> progress_{0};
  std::atomic<bool> pause_requested_{false};
  std::atomic<bool> running_{false};
};

}  // namespace halocline
