// Bindings of the engine: operations, runs and stop requests.

#include "engine/engine.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "engine/requests.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {

hc_kind kind_of(const std::string& name) {
  if (name == "sum") return HC_SUM;
  if (name == "min") return HC_MIN;
  if (name == "max") return HC_MAX;
  if (name == "count") return HC_COUNT;
  if (name == "value") return HC_VALUE;
  throw std::invalid_argument("unknown kind '" + name +
                              "' of a reduction, expected sum, min, max, count or value");
}

namespace {

using Scalars = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Schedule schedule_of(const std::string& name) {
  if (name == "static") return Schedule::kStatic;
  if (name == "dynamic") return Schedule::kDynamic;
  if (name == "guided") return Schedule::kGuided;
  throw std::invalid_argument("unknown schedule '" + name + "', expected static, dynamic or guided");
}

// Engine that keeps the array of its scalars alive.
class BoundEngine : public Engine {
 public:
  BoundEngine(const std::filesystem::path& library, std::vector<Subdomain> subdomains, Scalars scalars,
              const Index& shape, int threads, uint32_t spins, std::optional<int> communicator,
              std::vector<Neighbour> neighbours, size_t mailboxes, const std::string& schedule)
      : Engine(library.string(), std::move(subdomains), std::move(neighbours), scalars.data(),
               scalars.shape(0), shape, threads, spins, communicator, mailboxes, schedule_of(schedule)),
        scalars_(std::move(scalars)) {}
  BoundEngine(const std::filesystem::path& library, device::Subdomains subdomains, Scalars scalars,
              const Index& shape, uint32_t spins, std::optional<int> communicator)
      : Engine(library.string(), std::move(subdomains), scalars.data(), scalars.shape(0), shape, spins,
               communicator),
        scalars_(std::move(scalars)) {}

 private:
  Scalars scalars_;
};

void append_sweep(BoundEngine& engine, const std::string& kernel, const std::vector<int64_t>& operands,
                  const std::vector<Share>& shares,
                  const std::vector<std::pair<std::string, int64_t>>& reductions,
                  const std::optional<std::string>& halo_kernel,
                  const std::vector<std::pair<int64_t, int64_t>>& swaps, size_t scratch_bytes, bool backward,
                  bool in_place) {
  const Rank& rank = engine.rank();
  SweepPlan plan;
  plan.kernel = kernel;
  plan.operands = operands;
  plan.shares = shares;
  for (const Share& share : shares) {
    for (const Copy& copy : share.copies) rank.check_storage(copy.storage);
  }
  for (const auto& [kind, scalar] : reductions) {
    plan.reductions.push_back({kind_of(kind), rank.check_scalar(scalar)});
  }
  plan.halo_kernel = halo_kernel;
  for (const auto& [a, b] : swaps) plan.swaps.emplace_back(rank.check_storage(a), rank.check_storage(b));
  plan.scratch_bytes = scratch_bytes;
  plan.backward = backward;
  plan.in_place = in_place;
  engine.sweep(plan);
}

void append_device_sweep(BoundEngine& engine, const std::string& name,
                         const std::vector<device::Share>& shares,
                         const std::vector<std::pair<std::string, int64_t>>& reductions,
                         const std::vector<std::pair<int64_t, int64_t>>& swaps, size_t scratch_bytes) {
  const Rank& rank = engine.rank();
  device::SweepPlan plan{name, shares, {}, {}, scratch_bytes};
  for (const device::Share& share : shares) {
    for (const device::Copy& copy : share.copies) rank.check_storage(copy.storage);
  }
  for (const auto& [kind, scalar] : reductions) {
    plan.reductions.push_back({kind_of(kind), rank.check_scalar(scalar)});
  }
  for (const auto& [a, b] : swaps) plan.swaps.emplace_back(rank.check_storage(a), rank.check_storage(b));
  engine.sweep(plan);
}

// Return one row per event: activity (EventKind), sweep, patch or peer, tag, begin and end.
nb::ndarray<nb::numpy, double> as_array(const std::vector<TraceEvent>& events) {
  constexpr size_t kColumns = 6;
  auto* rows = new std::vector<double>;
  rows->reserve(events.size() * kColumns);
  for (const TraceEvent& e : events) {
    for (const double value : {static_cast<double>(e.kind), static_cast<double>(e.sweep),
                               static_cast<double>(e.subject), static_cast<double>(e.tag), e.begin, e.end}) {
      rows->push_back(value);
    }
  }
  const nb::capsule owner(rows, [](void* held) noexcept { delete static_cast<std::vector<double>*>(held); });
  const size_t shape[2] = {events.size(), kColumns};
  return nb::ndarray<nb::numpy, double>(rows->data(), 2, shape, owner);
}

nb::dict run(BoundEngine& engine, bool messages, bool kernels, bool traced, bool overlap, int64_t passes,
             bool resumed, bool asynchronous, bool measured, bool barriers) {
  Result result;
  {
    const nb::gil_scoped_release release;
    result =
        engine.run({messages, kernels, traced, overlap, asynchronous, passes, resumed, measured, barriers});
  }
  nb::dict report;
  report["reason"] = result.reason;
  nb::list loops;
  for (const std::string& ended : result.loops) {
    if (ended.empty()) {
      loops.append(nb::none());
    } else {
      loops.append(ended);
    }
  }
  report["loops"] = loops;
  report["stopped"] = result.stopped;
  report["stopped_process"] = result.stopped_process;
  auto* history = new std::vector<double>(std::move(result.history));
  const nb::capsule owner(history,
                          [](void* rows) noexcept { delete static_cast<std::vector<double>*>(rows); });
  const size_t shape[2] = {result.columns == 0 ? 0 : history->size() / result.columns, result.columns};
  report["history"] = nb::ndarray<nb::numpy, double>(history->data(), 2, shape, owner);
  report["seconds"] = result.seconds;
  report["loop_seconds"] = result.loop_seconds;
  report["compute"] = result.compute;
  report["exchange"] = result.exchange;
  report["reduction"] = result.reduction;
  report["graph_launches"] = result.graph_launches;
  report["sweep_counts"] = result.sweep_counts;
  report["sweep_seconds"] = result.sweep_seconds;
  report["subdomain_seconds"] = result.subdomain_seconds;
  nb::list events;
  for (const std::vector<TraceEvent>& event_list : result.events) events.append(as_array(event_list));
  report["events"] = events;
  nb::list lanes;
  for (const Result::Lane& lane : result.lanes) {
    lanes.append(nb::make_tuple(lane.subdomain, lane.role, lane.direction));
  }
  report["lanes"] = lanes;
  report["clock_error"] = result.clock_error;
  return report;
}

void on_signals(const std::vector<int>& signals, void (*handler)(int), int more) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | more;
  for (const int signal : signals) {
    if (sigaction(signal, &action, nullptr) != 0) {
      throw std::invalid_argument("signal " + std::to_string(signal) + " cannot be caught");
    }
  }
}

void stop_on_signals(const std::vector<int>& signals) {
  // Restore the default at the first signal, so that a second one ends the process.
  on_signals(signals, stop_on_signal, static_cast<int>(SA_RESETHAND));
}

void note_signals(const std::vector<int>& signals) { on_signals(signals, note_signal, 0); }

}  // namespace

void bind_engine(nb::module_& m) {
  nb::class_<BoundEngine>(
      m, "Engine",
      "Engine that runs the plan of one rank, in program order, with `threads` threads.\n\n"
      "Parameters\n"
      "----------\n"
      "library : str\n"
      "    Path of the compiled kernel library.\n"
      "subdomains : list of Subdomain\n"
      "scalars : float64 array\n"
      "    Shared array that the engine reads and writes.\n"
      "shape : three int\n"
      "    Global shape of the grid.\n"
      "spins : int\n"
      "    Number of polls of a waiting thread before it sleeps between polls.\n"
      "communicator : int or None\n"
      "    Fortran handle of an MPI communicator. All its ranks must create their engines in the same\n"
      "    order. With None, the engine has one rank and does not call MPI.\n"
      "neighbours : list of Neighbour\n"
      "    Subdomains of other processes for colocated messages, in the order of their numbers.\n"
      "mailboxes : int\n"
      "    Number of mailboxes per one-sided message; 0 if no rank has one-sided messages.\n"
      "schedule : str\n"
      "    Thread that runs a patch. 'static': the owner. 'dynamic': the next free thread. 'guided': the\n"
      "    owner, or a thread that has completed its own patches.")
      .def(nb::init<const std::filesystem::path&, std::vector<Subdomain>, Scalars, const Index&, int,
                    uint32_t, std::optional<int>, std::vector<Neighbour>, size_t, const std::string&>(),
           "library"_a, "subdomains"_a, "scalars"_a.noconvert(), "shape"_a, "threads"_a, "spins"_a,
           "communicator"_a.none(), "neighbours"_a = nb::list(), "mailboxes"_a = 0, "schedule"_a = "guided")
      .def("sweep", &append_sweep, "kernel"_a, "operands"_a, "shares"_a, "reductions"_a = nb::list(),
           "halo_kernel"_a = nb::none(), "swaps"_a = nb::list(), "scratch_bytes"_a = 0, "backward"_a = false,
           "in_place"_a = false,
           "Append a sweep, which runs `kernel` on all patches.\n\n"
           "Copies, packing and sends start first, then the fills run. Patches run when these are complete\n"
           "and the required messages have arrived. The rims of a subdomain run when all its messages have\n"
           "arrived, before the patches with needs_rims and before the halo boxes. At the end, the swaps\n"
           "exchange memory, and the reductions over all threads and ranks are written to their scalars.\n\n"
           "Parameters\n"
           "----------\n"
           "operands : list of int\n"
           "    Storage numbers.\n"
           "shares : list of Share\n"
           "    One per subdomain.\n"
           "reductions : list of (kind, scalar)\n"
           "    Kind: 'sum', 'min', 'max', 'count' or 'value'.\n"
           "swaps : list of (storage, storage)\n"
           "scratch_bytes : int\n"
           "    Bytes per thread.\n"
           "backward : bool\n"
           "    True if threads run their patches in descending order. They then begin with data that the\n"
           "    previous sweep left in the cache.\n"
           "in_place : bool\n"
           "    True if the kernel overwrites cells that are sent. Patches then wait until the receivers\n"
           "    have read these cells.")
      .def_static(
          "on_devices",
          [](const std::filesystem::path& library, const device::Subdomains& subdomains,
             const Scalars& scalars, const Index& shape, uint32_t spins, std::optional<int> communicator) {
            return std::make_unique<BoundEngine>(library, subdomains, scalars, shape, spins, communicator);
          },
          "library"_a, "subdomains"_a, "scalars"_a.noconvert(), "shape"_a, "spins"_a, "communicator"_a.none(),
          "Return an engine whose subdomains (DeviceSubdomain) are on devices.\n\n"
          "Sweeps are appended with device_sweep().")
      .def("device_sweep", &append_device_sweep, "name"_a, "shares"_a, "reductions"_a, "swaps"_a,
           "scratch_bytes"_a,
           "Append a sweep on devices, with a DeviceShare for each subdomain; see sweep().")
      .def("constants", &BoundEngine::constants, "launches"_a,
           "Set the kernels that run once at the start of each run, for each subdomain.\n\n"
           "They compute invariants that do not change during a run. `launches` contains a list of Launch\n"
           "for each subdomain.")
      .def("scalars", &BoundEngine::scalars, "function"_a, "Append a sequence of scalar statements.")
      .def("await_results", &BoundEngine::await_results,
           "Append a wait for the results of the last sweep with reductions.\n\n"
           "Before this wait, the scalars of these reductions still have their old values.")
      .def("stop", &BoundEngine::stop, "condition"_a, "reason"_a,
           "Append a test that ends the run with `reason` if the condition holds.")
      .def("loop", &BoundEngine::loop, "until"_a.none(), "limit"_a.none(), "count"_a,
           "record"_a = std::vector<int64_t>{}, "kernel"_a = "", "interval"_a = 0,
           "Begin a loop over the operations that are appended up to end().\n\n"
           "The scalar `count` is set to 0 and counts the passes. Before each pass, the loop ends if the\n"
           "condition `until` holds or `count` has reached the scalar `limit`. After each pass, the scalars\n"
           "in `record` are appended to the history.\n\n"
           "Parameters\n"
           "----------\n"
           "kernel : str\n"
           "    Kernel that tests the conditions of the loop on a device.\n"
           "interval : int\n"
           "    Expected number of passes of the outer loop between two executions of this loop; 0 if\n"
           "    unknown. A single device queues passes of the outer loop on the assumption that this loop\n"
           "    ends before its first pass, and waits only if the body runs.")
      .def("end", &BoundEngine::end, "End the innermost open loop.")
      .def(
          "run", &run, "messages"_a = true, "kernels"_a = true, "traced"_a = false, "overlap"_a = true,
          "passes"_a = 0, "resumed"_a = false, "asynchronous"_a = true, "measured"_a = false,
          "barriers"_a = false,
          "Run all operations; collective. Other Python threads run in the meantime.\n\n"
          "If `messages` or `kernels` is False, the run omits this part, to measure the time of the rest.\n\n"
          "Parameters\n"
          "----------\n"
          "overlap : bool\n"
          "    True if patches that need no message run before all messages have arrived.\n"
          "passes : int\n"
          "    Number of passes of an outermost loop after which the run pauses, if the loop continues; 0: "
          "no\n"
          "    pause.\n"
          "resumed : bool\n"
          "    True if the run continues after the pause of the previous run. Fields and scalars must not\n"
          "    change between the two runs.\n"
          "asynchronous : bool\n"
          "    True if a single device runs asynchronously, without waiting for the host.\n"
          "measured : bool\n"
          "    True if the time of each subdomain is measured.\n"
          "barriers : bool\n"
          "    True if devices finish and all ranks wait for each other after each sweep.\n\n"
          "Returns\n"
          "-------\n"
          "dict\n"
          "    reason : 'completed', 'paused', 'interrupted' or the reason of a stop.\n"
          "    loops : for each loop 'condition' or 'limit', or None if the loop did not end.\n"
          "    stopped : True if any rank received a stop request, even if too late to shorten the run.\n"
          "        The value is equal on all ranks. The request is cleared.\n"
          "    stopped_process : True if the request came from a signal or from `request_stop`.\n"
          "    history : float64 array (passes, len(record)) of the outermost loop that records.\n"
          "    seconds, loop_seconds : times of the run and of its outermost loops, maximum over the ranks.\n"
          "    compute, exchange, reduction : seconds of the first thread of this rank. `exchange` is the\n"
          "        time that computation does not hide: packing, polling, waiting for messages. `reduction`\n"
          "        is the time of the merge over ranks, including the wait for it.\n"
          "    graph_launches : number of launches of recorded graphs in an asynchronous run of a device.\n"
          "    sweep_counts, sweep_seconds : executions and time of each sweep, in program order.\n"
          "    subdomain_seconds : kernel time of all threads in each subdomain if measured, otherwise 0.\n"
          "    events : in a traced run, one array for each thread, one for all messages, and one for each\n"
          "        of `lanes`. The columns are activity, sweep, patch or peer, tag of the message, begin\n"
          "        and end in seconds of the run. Activities: 0 patch, 1 halo box, 2 boundary condition, 3 "
          "copy,\n"
          "        4 packing, 5 unpacking, 6 reduction, 7 message, 8 send, 9 copy to the host, 10 copy from\n"
          "        the host, 11 scalars, 12 the host queues work.\n"
          "    lanes : in a traced run, the queues of devices: number of the subdomain, role ('computing',\n"
          "        'packing', 'outgoing' or 'incoming'), and the direction of the messages or -1.\n"
          "    clock_error : maximum error of the times of devices relative to the host, in seconds.\n\n"
          "Raises\n"
          "------\n"
          "RuntimeError\n"
          "    The run fails, and there is only one rank. With several ranks, a failure ends all ranks, "
          "with\n"
          "    'rank R: reason' on standard error.")
      .def("progress", &BoundEngine::progress,
           "Return the passes of the outermost loops so far.\n\n"
           "Another thread may call this function during run().")
      .def(
          "request_pause", [](BoundEngine& engine) { engine.request_pause(); },
          "Request the end of the run on all ranks, between two passes of the outermost loop.");

  m.def(
      "request_stop", [](int signal) { signal != 0 ? stop_on_signal(signal) : request_stop(); },
      "signal"_a = 0,
      "Request a stop of the engines of this process, at the same pass on all ranks.\n\n"
      "A `signal` other than 0 is recorded as the cause.");
  m.def("forget_stop", &forget_stop,
        "Clear a stop request that no run has processed yet. Return True if there was a request.");
  m.def("note_signals", &note_signals, "signals"_a,
        "Install handlers that record these signals for `noted_signal`.\n\n"
        "`signal.signal` restores other handlers.");
  m.def("noted_signal", &noted_signal, "Return the last recorded signal, or 0 if there is none.");
  m.def("forget_signal", &forget_signal, "Clear the recorded signal.");
  m.def("stopping_signal", &stopping_signal,
        "Return the signal that caused the last stop, or 0 if the cause was not a signal.");
  m.def(
      "stop_on_signals", &stop_on_signals, "signals"_a,
      "Install handlers by which these signals request a stop, also while run() occupies the main thread.\n\n"
      "A second signal ends the process. `signal.signal` restores other handlers.");
}

}  // namespace halocline
