// Runs of one subdomain on one device that the host does not wait for: scalars, stops and loops are kernels
// too.
//
// The host queues passes of a loop before it knows whether they will run. A loop that ends sets
// hc_control::skip, and kernels that are queued behind it do nothing; the host learns of it later, from the
// notes that the loop makes after each pass, and takes back the swaps of passes that did not run. A stop
// skips the rest of its pass in the same way.
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
  void loop(const std::string& kernel, size_t count, std::optional<size_t> limit);
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
    size_t period = 1;  // passes after which all storages are where they were; 0: too many for a graph
    bool innermost = true;
    std::vector<Recorded> recorded{};  // by unit
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

  // Each returns whether the run goes on.
  bool run(size_t from, size_t to);
  bool run(Loop& loop);
  // A loop with loops inside, which are waited for.
  bool run_outer(Loop& loop);
  bool run_innermost(Loop& loop);
  bool conclude(const Loop& loop, int64_t skip);
  void queue(Loop& loop, size_t unit, size_t passes);
  void queue_notes(Unit& unit, size_t passes);
  void test(const Loop& loop, bool begins);
  void clear_notes();
  void clear_skip();
  // Takes the notes of passes that are done, from number `seen` on; what `skip` was then.
  int64_t take(const Loop& loop, const Unit& unit, size_t passes, int64_t& seen);
  // Swaps back what passes that did not run have swapped, and counts those that did; `skip` as take() found
  // it.
  void settle(const Loop& loop, int64_t ran, int64_t queued, int64_t skip);
  // Swaps back, and does not count, sweeps that were queued in one pass and did not run: from <= number < to.
  void take_back(size_t from, size_t to);
  // The first operation that does not run once this stop has set `skip`.
  size_t after_stop(int64_t skip) const { return stops_[static_cast<size_t>(-skip - 1)] + 1; }
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
  std::vector<size_t> open_;  // operations: loops that have begun
  size_t loops_ = 0;
  std::vector<std::string> reasons_;
  std::vector<size_t> stops_;  // operations
  std::unique_ptr<Buffer> notes_;
  std::vector<Unit> units_;

  // of the present run
  Worker* worker_ = nullptr;
  Team* team_ = nullptr;
  const Listener* listener_ = nullptr;
  std::string reason_;
  bool counting_ = true;  // sweeps are counted as they are queued
  int64_t graph_launches_ = 0;
};

}  // namespace halocline::device
