// Asynchronous runs of one subdomain on one device. The host does not wait for results, since kernels also
// compute scalars and test stops and loops.
//
// The host queues passes of a loop before it is known that they will run. A loop that ends sets
// hc_control::skip, and the kernels that are queued after it do nothing. After each pass, the device writes
// notes (hc_control and the scalars). The host reads the notes later to determine the pass in which the loop
// ended. The host then reverts the swaps of passes that did not run. A stop skips the rest of its pass in the
// same way.
//
// The passes may contain inner loops. If the host expects all inner loops to end before their first pass, it
// queues only their tests. If an inner loop does not end, its test sets hc_control::skip. The host then
// reverts the rest of this pass and all later passes, runs the inner loop, completes the pass, and queues
// passes again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/sweep.hpp"

namespace halocline::device {

class AsyncRun {
 public:
  AsyncRun(Subdomain& subdomain, size_t scalars);

  // Append operations, as the functions of Engine do. Scalar statements and conditions are kernels.
  void sweep(halocline::Sweep& sweep, std::vector<std::pair<uint32_t, uint32_t>> swaps);
  void scalars(const std::string& kernel);
  void stop(const std::string& kernel, const std::string& reason);
  // `interval`: expected number of passes of the outer loop between two executions of this loop. If it is 0
  // (unknown), the loop is expected to end before its first pass if it did so the last time.
  void loop(const std::string& kernel, size_t count, std::optional<size_t> limit, size_t interval);
  void end();

  // Callbacks during a run, called by the thread that runs it.
  struct Listener {
    std::function<void(size_t loop)> begins;
    std::function<void(size_t loop, const double* scalars)> passed;  // once per pass, in order
    std::function<void(size_t loop, const char* ending)> ended;
    std::function<bool(size_t loop)> stop_wanted;
  };

  // Run all operations. Return the reason of an early end, or an empty string. `scalars` contains the values
  // before the run and receives the values after it.
  std::string run(double* scalars, Worker& worker, Team& team, const Listener& listener);
  // Number of graph launches in the current or last run.
  int64_t graph_launches() const { return graph_launches_; }

 private:
  // Graph of passes. It is valid as long as the storages have the same buffers.
  struct Recorded {
    std::unique_ptr<Graph> graph;
    std::vector<const Buffer*> buffers;
  };
  struct Statement {
    std::unique_ptr<Kernel> kernel;
  };
  struct Stop {
    std::unique_ptr<Kernel> kernel;
    std::string reason;
    int64_t skip;  // value of hc_control::skip after the stop
  };
  struct Loop {
    std::unique_ptr<Kernel> kernel;
    hc_loop plan;
    size_t number, body, after = 0;  // loop number; operations: first of the body, first after the loop
    std::optional<size_t> around{};  // operation: the outer loop, whose body contains this loop
    std::vector<size_t> inside{};    // operations: the loops of the body, except loops in inner loops
    int64_t interval = 0;
    // Number of passes after which all storages have their initial buffers, if no inner loop runs; 0 if the
    // number is too large for a graph.
    size_t period = 1;
    std::vector<std::vector<Recorded>> recorded{};  // by unit

    int64_t passes = 0;            // in the current or last run of this loop
    bool expected_over = false;    // the loop is expected to end before its first pass
    std::optional<int64_t> due{};  // pass of the outer loop in which the body is expected to run
  };
  struct SweepOf {
    halocline::Sweep* sweep;
    std::vector<std::pair<uint32_t, uint32_t>> swaps;
  };
  struct End {};
  using Operation = std::variant<SweepOf, Statement, Stop, Loop, End>;

  // Passes that are queued together, with their notes.
  struct Unit {
    std::unique_ptr<Pinned> notes;  // an hc_control, then a row of scalars for each pass
    std::shared_ptr<Event> done;
    double queued_at = 0;
  };

  enum class Test { kBegin, kBeginExpectedOver, kAfterPass };

  // Run operations. Each overload returns false if the run ends. The host waits for the tests of inner loops.
  bool run(size_t from, size_t to);
  bool run(Loop& loop);
  bool conclude(Loop& loop, int64_t skip);
  // Queue passes until the loop ends or stops, or until an inner loop does not end as expected. Return the
  // final value of `skip`, or 0 if the run is to be interrupted.
  int64_t run_loop(Loop& loop);
  // Wait for queued work and return the value of `skip`. `reached`: the first operation that is not queued.
  int64_t await_notes(Loop& loop, size_t reached);
  // Queue a sweep, a scalar statement or a stop.
  void queue(Operation& operation);
  void queue_pass(Loop& loop);
  void queue_unit(Loop& loop, size_t unit, size_t passes, bool captured);
  void queue_notes(Unit& unit, size_t passes);
  void queue_test(const Loop& loop, Test test);
  // Return the graph of these passes for this unit and the current buffers. Record it if there is none.
  const Graph& recorded(Loop& loop, size_t unit, size_t passes);
  void clear_notes();
  void clear_skip();
  // Read the notes of completed passes, from number `next_pass` on. Return the value of `skip` in the notes.
  int64_t read_notes(Loop& loop, const Unit& unit, size_t passes, int64_t& next_pass);
  // Revert the swaps of passes that did not run, and count the passes that ran. `skip`: result of
  // read_notes().
  void revert_passes(const Loop& loop, int64_t ran, int64_t queued, int64_t skip);
  // Revert the swaps and counts of sweeps from <= number < to that were queued in one pass and did not run.
  void revert_sweeps(size_t from, size_t to);
  // Return the sweeps from <= number < to that are in no loop that begins in this range.
  std::vector<const SweepOf*> sweeps(size_t from, size_t to) const;
  // Return the first operation that does not run after this stop has set `skip`.
  size_t after_stop(int64_t skip) const { return stops_[static_cast<size_t>(-skip - 1)] + 1; }
  // Return the first skipped operation, for a stop or a mispredicted loop in the body of this loop.
  size_t first_skipped(const Loop& loop, int64_t skip);
  Loop& loop_at(size_t at) { return std::get<Loop>(operations_[at]); }
  // Return the loop in the body of this loop that set `skip` because it does not end as predicted, or null.
  Loop* mispredicted(const Loop& loop, int64_t skip);
  bool expects_no_loop_inside(const Loop& loop);
  // Return the number of passes up to, and including, the pass in which an inner loop is expected to run.
  int64_t passes_until_due(const Loop& loop);
  // Report the end of each loop, including loops for which the host did not wait. `ends`: contents of ends_.
  void report(const std::vector<int64_t>& ends);
  size_t period_of(const Loop& loop) const;
  std::vector<const Buffer*> buffers() const;
  void launch(const Kernel& kernel, std::span<const Argument> arguments);
  // Mark the next commands of the computing queue as work on scalars.
  void mark_scalars() const;
  // Return the computing queue, marked for work on scalars.
  Queue& of_scalars() const;

  Subdomain& subdomain_;
  size_t scalar_count_;
  std::vector<Operation> operations_;
  std::vector<size_t> open_;   // operations: loops that have begun
  std::vector<size_t> loops_;  // operations
  std::vector<std::string> reasons_;
  std::vector<size_t> stops_;  // operations
  std::unique_ptr<Buffer> notes_;
  std::unique_ptr<Buffer> ends_;  // per loop: value of `skip` with which it last ended, or 0
  std::vector<Unit> units_;

  // State of the current run.
  Worker* worker_ = nullptr;
  Team* team_ = nullptr;
  const Listener* listener_ = nullptr;
  std::string reason_;
  int64_t graph_launches_ = 0;
};

}  // namespace halocline::device
