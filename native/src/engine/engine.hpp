// Runs a plan: sweeps, scalar statements, stop conditions and loops, in program order.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/ahead.hpp"
#include "device/times.hpp"
#include "ranks/rank.hpp"
#include "ranks/reduction.hpp"
#include "sweep/host_sweep.hpp"
#include "threads/team.hpp"

namespace halocline {

struct Result {
  std::string reason;              // "completed", "paused", "interrupted" or the reason of a stop
  std::vector<std::string> loops;  // how each ended: "condition", "limit", or "" where it did not
  std::vector<double> history;     // one row of `columns` scalars a pass
  size_t columns = 0;
  bool stopped = false;  // a rank wished to stop, whether or not that cut the run short; all ranks agree
  bool stopped_process = false;  // and with it all engines of a process, as signals do
  double seconds = 0;            // the whole run, and the outermost loops in it: the slowest rank's
  double loop_seconds = 0;
  double compute = 0, exchange = 0, reduction = 0;  // this rank's first thread
  int64_t graph_launches = 0;                       // of a device that runs ahead
  std::vector<int64_t> sweep_counts;
  std::vector<double> sweep_seconds;
  std::vector<double> subdomain_seconds;  // of this rank's threads in kernels, where measured; else 0
  // By thread, then those of messages, then those of `lanes`; times since the run began.
  std::vector<std::vector<TraceEvent>> events;
  struct Lane {  // of a queue of a device
    size_t subdomain;
    std::string role;
    int direction;
  };
  std::vector<Lane> lanes;
  double clock_error = 0;  // of the times of devices, in seconds
};

// How operations are run; no bit of the result depends on it while there are messages and kernels.
struct Running {
  bool messages = true, kernels = true;  // without them the rest runs as it would, to be measured
  bool traced = false;                   // the result holds what threads and messages did
  bool overlap = true;                   // patches that need no message run before all have come
  bool ahead = true;                     // one device alone runs without waiting for the host
  int64_t passes = 0;    // of an outermost loop after which the run pauses, if that goes on; 0: it never does
  bool resumed = false;  // goes on where the run before has paused
  bool measured = false;  // the result holds the time of each subdomain
  bool barriers = false;  // after each sweep devices finish and all ranks meet, to be measured
};

class Engine {
 public:
  // Throws std::invalid_argument, std::runtime_error and OutOfMemory before any call of MPI.
  Engine(const std::string& library, std::vector<Subdomain> subdomains, std::vector<Neighbour> neighbours,
         double* scalars, size_t scalar_count, const Index& shape, int threads, uint32_t spins,
         std::optional<int> communicator, size_t mailboxes = 0, Schedule schedule = Schedule::kGuided);
  // The same where the subdomains lie on devices: one thread looks after these.
  Engine(const std::string& library, device::Subdomains subdomains, double* scalars, size_t scalar_count,
         const Index& shape, uint32_t spins, std::optional<int> communicator);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Rank& rank() const { return rank_; }

  // Append operations.
  void sweep(const SweepPlan& plan);
  void sweep(const device::SweepPlan& plan);
  void scalars(const std::string& function);
  // Waits for the reductions of the last sweep that has any, which go on until then.
  void await_results();
  void stop(const std::string& condition, const std::string& reason);
  // `kernel`: the loop's test on a device. `interval`: see device::Ahead::loop().
  void loop(const std::optional<std::string>& until, std::optional<int64_t> limit, int64_t count,
            const std::vector<int64_t>& record, const std::string& kernel = "", size_t interval = 0);
  void end();

  // All ranks. Throws what went wrong on a run of one rank; of several, ends them all.
  Result run(const Running& how = {});
  // Passes of the outermost loops in the present or last run; any thread.
  int64_t progress() const { return progress_.load(std::memory_order_relaxed); }
  // Asks this run to pause on all ranks between two passes of the outermost loop; any thread.
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
    size_t body = 0, after = 0;  // operations: first of the body, first behind the loop
    bool outermost = false;
    bool agrees = false;  // a reduction of each pass carries the wish to stop
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
  // Touches the memory of all fields, each page by the thread that works on it.
  void place();
  void prepare(const Running& how);
  // All ranks, at the end: what they tell each other of the run, which took this one `seconds`.
  void conclude(double seconds);
  void begin_trace(bool traced);
  // After a failure: waits for what devices still do.
  void settle_devices() noexcept;
  void take_events(double begun);
  // First thread: goes through the operations.
  void conduct(Worker& worker);
  // The same where one device knows all scalars.
  void conduct_ahead(Worker& worker);
  // First thread: from then on all cells may be overwritten, by anybody.
  void await_loans();
  void prepare_mailboxes();
  void await_mailboxes();
  // Others: do what the first thread publishes after piece of work `seen`, until the run is over.
  void serve(Worker& worker, uint32_t seen);
  // Each runs one operation and returns the number of the next.
  size_t step(std::unique_ptr<Sweep>& sweep, size_t at, Worker& worker);
  size_t step(hc_scalars function, size_t at, Worker& worker);
  size_t step(Await, size_t at, Worker& worker);
  size_t step(const Stop& stop, size_t at, Worker& worker);
  size_t step(const Begin& begin, size_t at, Worker& worker);
  size_t step(const End& end, size_t at, Worker& worker);
  size_t test(Loop& loop, Worker& worker);
  bool stop_agreed(const Loop& loop, Worker& worker);
  // Behind the outermost loop, if the run is in one: its time counts.
  void leave_outermost();
  // Where a pass of an outermost loop goes on at operation `next`: the same, or the end where the run pauses.
  size_t pause_before(size_t next);
  void take_results(const std::vector<Reduction>& reductions, const hc_accumulator* merged);
  void await_allreduce();
  void wait(MPI_Request& request, const char* name) const;
  // Waits for all ranks.
  void barrier(const char* name) const;
  // Waits until the devices of all ranks have finished.
  void synchronise() const;
  Wishes wishes() const;
  static Wishes that_end(const Loop& loop) { return loop.outermost ? kPause | kStop : kStop; }

  // First thread: this rank's part of a reduction is known, and goes on to the other ranks.
  void pass_on_results(Worker& worker);

  Rank rank_;
  device::Subdomains devices_;
  std::unique_ptr<device::Times> times_;  // of the present run, where it is traced
  bool barriers_ = false;                 // in the present run, after each sweep
  std::unique_ptr<device::Ahead> ahead_;  // one device, and no other rank
  std::vector<Operation> operations_;
  std::vector<Loop> loops_;
  std::vector<size_t> open_;  // loops that have begun and not ended
  std::optional<size_t> recorded_;
  int32_t sweeps_ = 0;

  Team team_;
  std::unique_ptr<Allreduce> allreduce_;
  size_t mailbox_generation_ = 0;  // of the window that this engine has found large enough
  std::unique_ptr<Accumulators> accumulators_;
  std::vector<std::unique_ptr<Memory>> scratch_;  // per thread
  std::vector<Worker> workers_;

  // of the present run
  Result result_;
  int64_t passes_left_ = 0;                // before it pauses, where it does
  std::optional<size_t> paused_at_;        // the operation that the next run may go on with
  Sweep* current_ = nullptr;               // null: the run is over
  Sweep* reducing_ = nullptr;              // the results of its reductions are not known yet
  bool passed_on_ = false;                 // they are on their way between ranks
  std::optional<double> outermost_since_;  // when the outermost loop began that the run is in
  Wishes known_ = 0;                       // what all ranks know that one of them wishes
  std::atomic<int64_t> progress_{0};
  std::atomic<bool> pause_requested_{false};
  std::atomic<bool> running_{false};
};

}  // namespace halocline
