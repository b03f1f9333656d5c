// Runs of one subdomain on one device that the host does not wait for: scalars, stops and loops are kernels
// too.
//
// The host queues passes of a loop before it knows whether they will run. A loop that ends sets
// hc_control::skip, and kernels that are queued behind it do nothing; the host learns of it later, from the
// notes that the loop makes after each pass, and takes back the swaps of passes that did not run. A stop
// skips the rest of its pass in the same way.
//
// The passes may have loops inside. If the host expects all of them to end before their first pass, it queues
// only their tests. If such a loop does not end, its test sets hc_control::skip: the host takes back the
// rest of that pass and all later passes, runs the loop, completes the pass, and queues passes again.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/sweep.hpp"

namespace halocline::device {

class Ahead {
 public:
  Ahead(Subdomain& where, size_t scalars);

  // Append operations, as to an engine; scalar statements and conditions are kernels.
  void sweep(halocline::Sweep& sweep, std::vector<std::pair<uint32_t, uint32_t>> swaps);
  void scalars(const std::string& kernel);
  void stop(const std::string& kernel, const std::string& reason);
  // `interval`: the body of this loop is expected to run in one of so many passes of the loop around it; 0:
  // not known, the loop is expected to end at once where it did so the last time.
  void loop(const std::string& kernel, size_t count, std::optional<size_t> limit, size_t interval);
  void end();

  // What is told of a run while it goes on, by the thread that runs it.
  struct Listener {
    std::function<void(size_t loop)> begins;
    std::function<void(size_t loop, const double* scalars)> passed;  // once for each pass, in order
    std::function<void(size_t loop, const char* how)> ended;
    std::function<bool(size_t loop)> stop_wanted;
  };

  // Runs all operations; the reason why it ended early, or empty. `scalars` are those before and after.
  std::string run(double* scalars, Worker& worker, Team& team, const Listener& listener);
  // In the present or last run.
  int64_t graph_launches() const { return graph_launches_; }

 private:
  // A graph of passes, good for as long as storages have the buffers that they had.
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
    int64_t why;
  };
  struct Loop {
    std::unique_ptr<Kernel> kernel;
    hc_loop plan;
    size_t number, body, after = 0;  // operations: first of the body, first behind the loop
    std::optional<size_t> around{};  // operation: the loop whose body this one is in
    std::vector<size_t> inside{};    // operations: the loops directly in the body
    int64_t interval = 0;
    // Passes after which all storages are where they were, if no loop inside runs; 0: too many for a graph.
    size_t period = 1;
    std::vector<std::vector<Recorded>> recorded{};  // by unit

    int64_t passes = 0;            // in the present or last run of this loop
    bool expected_over = false;    // before its first pass, when it is reached again
    std::optional<int64_t> due{};  // pass of the loop around in which the body is expected to run
  };
  struct SweepOf {
    halocline::Sweep* sweep;
    std::vector<std::pair<uint32_t, uint32_t>> swaps;
  };
  struct End {};
  using Operation = std::variant<SweepOf, Statement, Stop, Loop, End>;

  // Passes that are queued together, and what the host will know of them.
  struct Unit {
    std::unique_ptr<Pinned> notes;  // an hc_control, then a row of scalars for each pass
    std::shared_ptr<Event> done;
    double queued_at = 0;
  };

  enum class Test { kBegin, kBeginExpectedOver, kAfterPass };

  // Each returns false where the run ends. Loops inside are waited for.
  bool run(size_t from, size_t to);
  bool run(Loop& loop);
  bool conclude(Loop& loop, int64_t skip);
  // Queues passes until the loop ends, or stops, or a loop inside does not end as expected; returns what
  // `skip` is then, 0 where the run is to be interrupted.
  int64_t run_ahead(Loop& loop);
  // Waits for what is queued; returns what `skip` is then. `reached`: the first operation that is not queued.
  int64_t await_notes(Loop& loop, size_t reached);
  // Queues a sweep, a scalar statement or a stop.
  void queue(Operation& operation);
  void queue_pass(Loop& loop);
  void queue_unit(Loop& loop, size_t unit, size_t passes, bool captured);
  void queue_notes(Unit& unit, size_t passes);
  void queue_test(const Loop& loop, Test test);
  // The graph of these passes for this unit and the present buffers; recorded where there is none yet.
  const Graph& recorded(Loop& loop, size_t unit, size_t passes);
  void clear_notes();
  void clear_skip();
  // Takes the notes of passes that are done, from number `seen` on; returns what `skip` was then.
  int64_t take(Loop& loop, const Unit& unit, size_t passes, int64_t& seen);
  // Swaps back what passes that did not run have swapped, and counts those that did; `skip` as take() found
  // it.
  void settle(const Loop& loop, int64_t ran, int64_t queued, int64_t skip);
  // Swaps back, and does not count, sweeps that were queued in one pass and did not run: from <= number < to.
  void take_back(size_t from, size_t to);
  // Sweeps from <= number < to that are in no loop that begins there.
  std::vector<const SweepOf*> sweeps(size_t from, size_t to) const;
  // The first operation that does not run once this stop has set `skip`.
  size_t after_stop(int64_t skip) const { return stops_[static_cast<size_t>(-skip - 1)] + 1; }
  // The same for a stop or a mispredicted loop in the body of this loop.
  size_t first_skipped(const Loop& loop, int64_t skip);
  Loop& loop_at(size_t at) { return std::get<Loop>(operations_[at]); }
  // The loop in the body of this one that set `skip` because it does not end as predicted; or null.
  Loop* mispredicted(const Loop& loop, int64_t skip);
  bool expects_no_loop_inside(const Loop& loop);
  // Passes to queue up to the one in which the body of a loop inside is expected to run.
  int64_t passes_until_due(const Loop& loop);
  // Reports how each loop ended, also those that the host did not wait for. `ends`: the contents of ends_.
  void report(const std::vector<int64_t>& ends);
  size_t period_of(const Loop& loop) const;
  std::vector<const Buffer*> buffers() const;
  void launch(const Kernel& kernel, std::span<const Argument> arguments);
  // Marks the next commands of the computing queue as work on scalars.
  void mark_scalars() const;
  // Returns the computing queue, marked for work on scalars.
  Queue& of_scalars() const;

  Subdomain& where_;
  size_t scalar_count_;
  std::vector<Operation> operations_;
  std::vector<size_t> open_;   // operations: loops that have begun
  std::vector<size_t> loops_;  // operations
  std::vector<std::string> reasons_;
  std::vector<size_t> stops_;  // operations
  std::unique_ptr<Buffer> notes_;
  std::unique_ptr<Buffer> ends_;  // by loop: the value of `skip` with which it ended last, or 0
  std::vector<Unit> units_;

  // of the present run
  Worker* worker_ = nullptr;
  Team* team_ = nullptr;
  const Listener* listener_ = nullptr;
  std::string reason_;
  int64_t graph_launches_ = 0;
};

}  // namespace halocline::device
