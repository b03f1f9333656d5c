// The Python module halocline._native.

#include <dlfcn.h>
#include <mpi.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <omp.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "bindings/bindings.hpp"
#include "engine/engine.hpp"
#include "engine/requests.hpp"
#include "storage/bandwidth.hpp"
#include "storage/hash.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

using Boxes = nb::ndarray<const int64_t, nb::shape<-1, 9>, nb::c_contig, nb::device::cpu>;
using Masks = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Scalars = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<hc_box> boxes(const Boxes& rows) {
  std::vector<hc_box> result(rows.shape(0));
  for (size_t n = 0; n < result.size(); ++n) {
    for (size_t axis = 0; axis < 3; ++axis) {
      result[n].lo[axis] = rows(n, axis);
      result[n].hi[axis] = rows(n, 3 + axis);
      result[n].top[axis] = rows(n, 6 + axis);
    }
  }
  return result;
}

hc_kind kind_of(const std::string& name) {
  if (name == "sum") return HC_SUM;
  if (name == "min") return HC_MIN;
  if (name == "max") return HC_MAX;
  if (name == "count") return HC_COUNT;
  if (name == "value") return HC_VALUE;
  throw std::invalid_argument("reduction of kind '" + name + "', expected sum, min, max, count or value");
}

// The cells of a storage from `lo` on; the array keeps the memory alive, not the storage.
nb::ndarray<nb::numpy> array_over(const Storage& storage, const Index& lo, const Index& extent) {
  const auto itemsize = static_cast<int64_t>(storage.itemsize());
  const size_t shape[3] = {static_cast<size_t>(extent[0]), static_cast<size_t>(extent[1]),
                           static_cast<size_t>(extent[2])};
  const int64_t strides[3] = {storage.pitch()[0] / itemsize, storage.pitch()[1] / itemsize, 1};
  nb::capsule owner(new std::shared_ptr<Memory>(storage.memory()),
                    [](void* memory) noexcept { delete static_cast<std::shared_ptr<Memory>*>(memory); });
  const auto dtype = itemsize == 8 ? nb::dtype<double>() : nb::dtype<float>();
  return nb::ndarray<nb::numpy>(storage.at(lo), 3, shape, owner, strides, dtype);
}

nb::ndarray<nb::numpy> interior(const Storage& storage) {
  return array_over(storage, {0, 0, 0}, storage.shape());
}

nb::ndarray<nb::numpy> whole(const Storage& storage) {
  Index lo, extent;
  for (size_t axis = 0; axis < 3; ++axis) {
    lo[axis] = -storage.lower()[axis];
    extent[axis] = storage.lower()[axis] + storage.shape()[axis] + storage.upper()[axis];
  }
  return array_over(storage, lo, extent);
}

std::tuple<uint64_t, uint64_t> checksum_of(const Storage& storage, const Index& lo, const Index& hi,
                                           const Index& origin, const Index& shape, int threads) {
  const auto [first, second] = checksum(storage, lo, hi, origin, shape, threads);
  return {first, second};
}

std::optional<std::tuple<int64_t, int64_t, int64_t>> nonfinite(const Storage& storage, const Index& lo,
                                                               const Index& hi, int threads) {
  const std::optional<Index> found = first_nonfinite(storage, lo, hi, threads);
  if (!found) return std::nullopt;
  return std::tuple((*found)[0], (*found)[1], (*found)[2]);
}

std::tuple<int64_t, int64_t, int64_t> as_tuple(const Index& index) { return {index[0], index[1], index[2]}; }

std::tuple<int64_t, int64_t, uint64_t, uint64_t, bool> as_tuple(const Handle& h) {
  return {h.process, h.file, h.inode, h.bytes, h.sparse};
}
using HandleTuple = std::tuple<int64_t, int64_t, uint64_t, uint64_t, bool>;
Handle as_handle(const HandleTuple& t) {
  return {std::get<0>(t), std::get<1>(t), std::get<2>(t), std::get<3>(t), std::get<4>(t)};
}

using StorageTuple = std::tuple<HandleTuple, int64_t, std::array<int64_t, 2>, Index, Index, Index, size_t>;
StorageTuple storage_handle(const Storage& storage) {
  const StorageHandle h = storage.handle();
  return {as_tuple(h.memory), h.origin, h.pitch, h.shape, h.lower, h.upper, h.itemsize};
}
std::shared_ptr<Storage> attach_storage(const StorageTuple& t) {
  return std::make_shared<Storage>(StorageHandle{as_handle(std::get<0>(t)), std::get<1>(t), std::get<2>(t),
                                                 std::get<3>(t), std::get<4>(t), std::get<5>(t),
                                                 std::get<6>(t)});
}

Schedule schedule_of(const std::string& name) {
  if (name == "static") return Schedule::kStatic;
  if (name == "dynamic") return Schedule::kDynamic;
  if (name == "guided") return Schedule::kGuided;
  throw std::invalid_argument("schedule '" + name + "', expected static, dynamic or guided");
}

// An engine that keeps the array of its scalars alive.
class BoundEngine : public Engine {
 public:
  BoundEngine(const std::string& library, std::vector<Subdomain> subdomains, Scalars scalars,
              const Index& shape, int threads, uint32_t spins, std::optional<int> communicator,
              std::vector<Neighbour> neighbours, size_t mailboxes, const std::string& schedule)
      : Engine(library, std::move(subdomains), std::move(neighbours), scalars.data(), scalars.shape(0), shape,
               threads, spins, communicator, mailboxes, schedule_of(schedule)),
        scalars_(std::move(scalars)) {}
  BoundEngine(const std::string& library, device::Subdomains subdomains, Scalars scalars, const Index& shape,
              uint32_t spins, std::optional<int> communicator)
      : Engine(library, std::move(subdomains), scalars.data(), scalars.shape(0), shape, spins, communicator),
        scalars_(std::move(scalars)) {}

 private:
  Scalars scalars_;
};

void make_share(Share* self, const std::vector<Message>& sends, const std::vector<Message>& receives,
                const std::vector<std::tuple<uint32_t, Index, Index, Index, uint32_t>>& copies,
                const std::vector<Fill>& fills, const std::vector<Fill>& rims,
                const std::optional<Masks>& needs, const std::optional<Flags>& needs_rims,
                const std::optional<Boxes>& halo_boxes, const std::optional<Masks>& halo_needs) {
  new (self) Share{sends, receives, {}, fills, rims, {}, {}, {}};
  for (const auto& [storage, from, to, extent, source] : copies) {
    self->copies.push_back({storage, source, from, to, extent});
  }
  if (needs && needs_rims && needs->shape(0) != needs_rims->shape(0)) {
    throw std::invalid_argument("needs and needs_rims: expected one entry for each patch");
  }
  if (needs || needs_rims) self->needs.resize(needs ? needs->shape(0) : needs_rims->shape(0));
  for (size_t n = 0; n < self->needs.size(); ++n) {
    if (needs) self->needs[n].messages = (*needs)(n);
    if (needs_rims) self->needs[n].rims = (*needs_rims)(n);
  }
  if (halo_boxes) self->halo_boxes = boxes(*halo_boxes);
  if (halo_needs) {
    self->halo_needs.assign(halo_needs->data(), halo_needs->data() + halo_needs->shape(0));
  } else {
    self->halo_needs.assign(self->halo_boxes.size(), 0);
  }
}

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

// Rows of what was done (Doing), sweep, patch or peer, begin and end.
nb::ndarray<nb::numpy, double> as_array(const std::vector<Event>& events) {
  constexpr size_t kColumns = 5;
  auto* rows = new std::vector<double>;
  rows->reserve(events.size() * kColumns);
  for (const Event& e : events) {
    for (const double value : {static_cast<double>(e.doing), static_cast<double>(e.sweep),
                               static_cast<double>(e.what), e.begin, e.end}) {
      rows->push_back(value);
    }
  }
  const nb::capsule owner(rows, [](void* held) noexcept { delete static_cast<std::vector<double>*>(held); });
  const size_t shape[2] = {events.size(), kColumns};
  return nb::ndarray<nb::numpy, double>(rows->data(), 2, shape, owner);
}

nb::dict run(BoundEngine& engine, bool messages, bool kernels, bool traced, bool overlap, int64_t passes,
             bool resumed, bool ahead) {
  Result result;
  {
    const nb::gil_scoped_release release;
    result = engine.run({messages, kernels, traced, overlap, ahead, passes, resumed});
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
  nb::list events;
  for (const std::vector<Event>& each : result.events) events.append(as_array(each));
  report["events"] = events;
  return report;
}

// The file of the MPI library that native code calls. Python compares it with mpi4py's.
std::string mpi_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&MPI_Comm_rank), &info) == 0 || info.dli_fname == nullptr) return "";
  return info.dli_fname;
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
  // Back to the default at the first signal, so that a second one ends the process.
  on_signals(signals, [](int) { request_stop(); }, static_cast<int>(SA_RESETHAND));
}

void note_signals(const std::vector<int>& signals) { on_signals(signals, note_signal, 0); }

}  // namespace
}  // namespace halocline

NB_MODULE(_native, m) {
  using namespace halocline;
  // A traceback of the user's may keep engines alive until the process ends; that is no leak of ours.
  nb::set_leak_warnings(false);
  m.doc() = "The native engine of Halocline: executes plans, decides nothing.";

  const nb::exception<OutOfMemory> out_of_memory(m, "OutOfMemory", PyExc_MemoryError);

  nb::class_<Storage>(
      m, "Storage",
      "One array of one subdomain with its halo, in memory of its own: zeros that cost nothing until\n"
      "they are touched. Arrays have three axes; the last is contiguous in memory.\n\n"
      "Parameters\n----------\n"
      "shape, lower, upper : three int\n"
      "    Cells of the subdomain, halo layers below and above.\n"
      "itemsize : int\n    8 for float64, 4 for float32.\n"
      "index : int\n    Number of the field: equal cells of different numbers do not alias.\n"
      "shared : bool\n    Whether other processes of the node can read it.\n"
      "sparse : bool\n    Whether parts in the midst of it are never touched, and are to take no memory.\n\n"
      "Raises\n------\nOutOfMemory\n    With the bytes needed and available.")
      .def(nb::init<const Index&, const Index&, const Index&, size_t, size_t, bool, bool>(), "shape"_a,
           "lower"_a, "upper"_a, "itemsize"_a, "index"_a = 0, "shared"_a = false, "sparse"_a = false)
      .def_static("attach", &attach_storage, "handle"_a,
                  "A view of another process's storage, to be read only; RuntimeError where it is out of "
                  "reach.\nIt follows no swap of that.")
      .def("handle", &storage_handle,
           "What another process of the node needs to attach it: plain numbers. The storage must be shared.")
      .def("view", &interior,
           "The interior as an array without a copy. It keeps its memory, which is another's after a swap:\n"
           "take a new view after each run.")
      .def("whole", &whole, "Like view(), with the halo: cell (0, 0, 0) is at `lower`.")
      .def_prop_ro("shape", [](const Storage& storage) { return as_tuple(storage.shape()); })
      .def_prop_ro("lower", [](const Storage& storage) { return as_tuple(storage.lower()); })
      .def_prop_ro("upper", [](const Storage& storage) { return as_tuple(storage.upper()); })
      .def_prop_ro("itemsize", &Storage::itemsize)
      .def_prop_ro("bytes", &Storage::bytes, "Bytes of memory taken, padding included.")
      .def("checksum", &checksum_of, "lo"_a, "hi"_a, "origin"_a, "shape"_a, "threads"_a = 1,
           "Hash of the bits of the cells in a box, and of their places in the global grid.\n\n"
           "Two 64-bit words. Added up modulo 2**64 over boxes, subdomains and ranks they are the hash of "
           "the\n"
           "whole field, whatever the decomposition. NaNs count as one value.\n\n"
           "Parameters\n----------\n"
           "lo, hi : three int\n    The box, in the subdomain's indices.\n"
           "origin, shape : three int\n    Global index of cell (0, 0, 0), global shape.",
           nb::call_guard<nb::gil_scoped_release>())
      .def("first_nonfinite", &nonfinite, "lo"_a, "hi"_a, "threads"_a = 1,
           "Index of the first cell of a box, in memory order, that is NaN or infinite; None where all are "
           "finite.",
           nb::call_guard<nb::gil_scoped_release>());

  nb::class_<Streams>(
      m, "Streams",
      "Two arrays that threads sweep over, to measure what memory can do. Their pages are touched, and the\n"
      "threads started, before any pass.\n\n"
      "Parameters\n----------\n"
      "threads : int\n"
      "bytes : int\n    Of both arrays together.\n\n"
      "Raises\n------\nOutOfMemory\n    With the bytes needed and available.")
      .def(nb::init<int, size_t>(), "threads"_a, "bytes"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("triad", &Streams::triad, "passes"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Make passes of a += s * b; return the bytes that crossed memory, in three streams.")
      .def("copy", &Streams::copy, "passes"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Make passes of a copy with streaming stores; return the bytes that crossed memory, in two "
           "streams.");

  nb::class_<Counters>(
      m, "Counters",
      "Numbers in shared memory that tell the processes of a node how far this one is, 54 for each of its\n"
      "subdomains.")
      .def(
          "__init__",
          [](Counters* self, size_t subdomains) {
            new (self) Counters(2 * Signals::kDirections * subdomains);
          },
          "subdomains"_a)
      .def_static(
          "attach", [](const HandleTuple& handle) { return std::make_shared<Counters>(as_handle(handle)); },
          "handle"_a, "Those of another process, to be read only.")
      .def(
          "handle", [](const Counters& counters) { return as_tuple(counters.handle()); },
          "What another process of the node needs to attach them.");

  nb::class_<Subdomain>(
      m, "Subdomain",
      "One subdomain of a rank.\n\n"
      "Parameters\n----------\n"
      "storages : list of Storage\n    By number. Engines may share them.\n"
      "origin : three int\n    Global index of cell (0, 0, 0).\n"
      "patches : int64 array (P, 9)\n    lo, hi, top of each patch (hc_box), in memory order.\n"
      "owners : int32 array (P,)\n    The thread that touches each patch first, and takes it before others' "
      "patches.\n"
      "counters, number : Counters, int\n    Of this rank, and which of its subdomains this is there.")
      .def(
          "__init__",
          [](Subdomain* self, const Storages& storages, const Index& origin, const Boxes& patches,
             const Numbers& owners, std::shared_ptr<Counters> counters, size_t number) {
            new (self) Subdomain{storages,
                                 origin,
                                 boxes(patches),
                                 {owners.data(), owners.data() + owners.shape(0)},
                                 {std::move(counters), 2 * Signals::kDirections * number}};
          },
          "storages"_a, "origin"_a, "patches"_a, "owners"_a, "counters"_a = nb::none(), "number"_a = 0);

  nb::class_<Neighbour>(
      m, "Neighbour",
      "A subdomain of another process of the node: views of its storages, by number, and its counters.")
      .def(
          "__init__",
          [](Neighbour* self, int rank, const Storages& storages, std::shared_ptr<Counters> counters,
             size_t number) {
            new (self) Neighbour{rank, storages, {std::move(counters), 2 * Signals::kDirections * number}};
          },
          "rank"_a, "storages"_a, "counters"_a, "number"_a);

  nb::class_<Message>(
      m, "Message",
      "What goes to, or comes from, one subdomain in one sweep by MPI: parts (storage number, lo, hi), one\n"
      "after the other. Both sides list parts of equal shapes in the same order.")
      .def(
          "__init__",
          [](Message* self, int peer, int tag, const std::vector<std::tuple<uint32_t, Index, Index>>& parts,
             bool packed) {
            new (self) Message{Method::kMpi, peer, tag, {}, {}, packed};
            for (const auto& [storage, lo, hi] : parts) self->parts.push_back({storage, lo, hi});
          },
          "peer"_a, "tag"_a, "parts"_a, "packed"_a = true,
          "packed: else MPI takes the cells out of the fields and puts them there by derived datatypes, and\n"
          "devices copy them row by row.")
      .def_static(
          "rma",
          [](int peer, int tag, const std::vector<std::tuple<uint32_t, Index, Index>>& parts) {
            Message message{Method::kRma, peer, tag, {}};
            for (const auto& [storage, lo, hi] : parts) message.parts.push_back({storage, lo, hi});
            return message;
          },
          "peer"_a, "tag"_a, "parts"_a,
          "The same through mailboxes; tag: the direction (0 to 26), the same at both ends, and 27 times "
          "the\n"
          "number of the subdomain at the other end.")
      .def_static(
          "gpu_aware",
          [](int peer, int tag, const std::vector<std::tuple<uint32_t, Index, Index>>& parts, bool packed) {
            Message message{Method::kGpuAware, peer, tag, {}, {}, packed};
            for (const auto& [storage, lo, hi] : parts) message.parts.push_back({storage, lo, hi});
            return message;
          },
          "peer"_a, "tag"_a, "parts"_a, "packed"_a = true,
          "The same out of, and into, the memory of devices.")
      .def_static(
          "colocated",
          [](int neighbour, int direction,
             const std::vector<std::tuple<uint32_t, Index, Index, Index>>& parts) {
            Message message{Method::kColocated, neighbour, direction, {}};
            for (const auto& [storage, lo, hi, from] : parts)
              message.parts.push_back({storage, lo, hi, from});
            return message;
          },
          "neighbour"_a, "direction"_a, "parts"_a,
          "What the receiver copies out of the memory of a neighbour.\n\n"
          "Parameters\n----------\n"
          "neighbour : int\n    Its number.\n"
          "direction : int\n    0 to 26, the same at both ends, another for each message between the two.\n"
          "parts : list of (storage number, lo, hi, lo in the sender's storage)");

  nb::class_<Fill>(
      m, "Fill",
      "A boundary condition: `kernel` over the box of ghost cells from `lo` to `hi`. Neighbours in a\n"
      "list with one `axis` of 0, 1 or 2 may run side by side; otherwise each runs after the one before.")
      .def(
          "__init__",
          [](Fill* self, const std::string& kernel, const std::vector<int64_t>& operands, const Index& lo,
             const Index& hi, int axis) { new (self) Fill{kernel, operands, lo, hi, axis}; },
          "kernel"_a, "operands"_a, "lo"_a, "hi"_a, "axis"_a = -1);

  nb::class_<Share>(m, "Share",
                    "What a sweep does in one subdomain.\n\n"
                    "Parameters\n----------\n"
                    "sends, receives : list of Message\n    At most 64 and 32.\n"
                    "copies : list of (storage, source lo, destination lo, extent, subdomain)\n"
                    "    From a subdomain of this rank, or around a periodic axis from this one.\n"
                    "fills, rims : list of Fill\n"
                    "needs : uint32 array (P,), default none\n    Bit m: receives[m] must have arrived.\n"
                    "needs_rims : bool array (P,), default none\n"
                    "halo_boxes, halo_needs : int64 array (H, 9), uint32 array (H,)\n"
                    "    More work of the same sweep, with its halo kernel.")
      .def("__init__", &make_share, "sends"_a = nb::list(), "receives"_a = nb::list(),
           "copies"_a = nb::list(), "fills"_a = nb::list(), "rims"_a = nb::list(), "needs"_a = nb::none(),
           "needs_rims"_a = nb::none(), "halo_boxes"_a = nb::none(), "halo_needs"_a = nb::none());

  nb::class_<BoundEngine>(
      m, "Engine",
      "Runs the plan of one rank: operations in program order, with `threads` threads.\n\n"
      "Parameters\n----------\n"
      "library : str\n    File of the compiled kernels.\n"
      "subdomains : list of Subdomain\n"
      "scalars : float64 array\n    Shared: the engine reads and writes it.\n"
      "shape : three int\n    Global shape of the grid.\n"
      "spins : int\n    How often a thread that waits looks again at once, before it sleeps in between.\n"
      "communicator : int or None\n"
      "    Fortran handle. All its ranks must make their engines in the same order. None: one rank, and no\n"
      "    call of MPI, ever.\n"
      "neighbours : list of Neighbour\n    By number, for colocated messages.\n"
      "mailboxes : int\n    For each message by one-sided communication; 0 where there is none on any rank.\n"
      "schedule : str\n"
      "    Who runs which patch: 'static', its owner; 'dynamic', whoever comes first; 'guided', its owner, "
      "or\n"
      "    who has run all of its own.")
      .def(nb::init<const std::string&, std::vector<Subdomain>, Scalars, const Index&, int, uint32_t,
                    std::optional<int>, std::vector<Neighbour>, size_t, const std::string&>(),
           "library"_a, "subdomains"_a, "scalars"_a.noconvert(), "shape"_a, "threads"_a, "spins"_a,
           "communicator"_a.none(), "neighbours"_a = nb::list(), "mailboxes"_a = 0, "schedule"_a = "guided")
      .def(
          "sweep", &append_sweep, "kernel"_a, "operands"_a, "shares"_a, "reductions"_a = nb::list(),
          "halo_kernel"_a = nb::none(), "swaps"_a = nb::list(), "scratch_bytes"_a = 0, "backward"_a = false,
          "in_place"_a = false,
          "Append a sweep: `kernel` over all patches.\n\n"
          "Copies, packing and sends start first, then the fills run; patches run when these are done and "
          "the\n"
          "messages they need have arrived. The rims of a subdomain run when all its messages have arrived,\n"
          "before the patches with needs_rims and before the halo boxes. When all is done the swaps "
          "exchange\n"
          "memory, and the reductions, over all threads and ranks, are written to their scalars.\n\n"
          "Parameters\n----------\n"
          "operands : list of int\n    Storage numbers.\n"
          "shares : list of Share\n    By subdomain.\n"
          "reductions : list of (kind, scalar)\n"
          "    Kind: 'sum', 'min', 'max', 'count' or 'value'.\n"
          "swaps : list of (storage, storage)\n"
          "scratch_bytes : int\n    Per thread.\n"
          "backward : bool\n"
          "    Threads run their patches in descending order: what the sweep before left in the cache comes "
          "first.\n"
          "in_place : bool\n"
          "    The kernel overwrites cells that are sent: patches wait until the receivers have them.")
      .def_static(
          "on_devices",
          [](const std::string& library, const device::Subdomains& subdomains, const Scalars& scalars,
             const Index& shape, uint32_t spins, std::optional<int> communicator) {
            return std::make_unique<BoundEngine>(library, subdomains, scalars, shape, spins, communicator);
          },
          "library"_a, "subdomains"_a, "scalars"_a.noconvert(), "shape"_a, "spins"_a, "communicator"_a.none(),
          "An engine whose subdomains (DeviceSubdomain) lie on devices: sweeps are appended with "
          "device_sweep().")
      .def("device_sweep", &append_device_sweep, "name"_a, "shares"_a, "reductions"_a, "swaps"_a,
           "scratch_bytes"_a,
           "Append a sweep on devices, with a DeviceShare for each subdomain; see sweep().")
      .def("scalars", &BoundEngine::scalars, "function"_a, "Append a run of scalar statements.")
      .def("await_results", &BoundEngine::await_results,
           "Append a wait for the results of the last sweep with reductions: their scalars have old values "
           "before.")
      .def("stop", &BoundEngine::stop, "condition"_a, "reason"_a,
           "Append a test that ends the run with `reason` where the condition holds.")
      .def("loop", &BoundEngine::loop, "until"_a.none(), "limit"_a.none(), "count"_a,
           "record"_a = std::vector<int64_t>{}, "kernel"_a = "",
           "Begin a loop over what is appended up to end().\n\n"
           "The scalar `count` is set to 0 and counts passes. Before each pass the loop ends where the "
           "condition\n"
           "`until` holds, or where `count` has reached the scalar `limit`. After each pass the scalars in "
           "`record`\n"
           "are appended to the history. `kernel`: the test on devices.")
      .def("end", &BoundEngine::end, "End the innermost open loop.")
      .def("run", &run, "messages"_a = true, "kernels"_a = true, "traced"_a = false, "overlap"_a = true,
           "passes"_a = 0, "resumed"_a = false, "ahead"_a = true,
           "Run all operations; collective. Other Python threads run meanwhile. Without messages or kernels\n"
           "the rest takes the time that it would take.\n\n"
           "Parameters\n----------\n"
           "overlap : bool\n    Whether patches that need no message run before all messages have come.\n"
           "passes : int\n"
           "    Of an outermost loop after which the run pauses, where that goes on; 0: it does not pause.\n"
           "resumed : bool\n"
           "    Go on where the run before has paused. Nothing may change between the two.\n"
           "ahead : bool\n"
           "    Whether one device alone runs without waiting for the host.\n\n"
           "Returns\n-------\ndict\n"
           "    reason : 'completed', 'paused', 'interrupted' or the reason of a stop.\n"
           "    loops : per loop 'condition', 'limit' or None where it did not end.\n"
           "    stopped : whether a rank was asked to stop, also where that came too late to cut the run "
           "short;\n"
           "        the same on all ranks. The request is spent.\n"
           "    stopped_process : whether that was a signal, or `request_stop` of the module.\n"
           "    history : float64 array (passes, len(record)) of the outermost loop that records.\n"
           "    seconds, loop_seconds : the run and its outermost loops, the slowest rank's.\n"
           "    compute, exchange, reduction : seconds of this rank's first thread; exchange is what is not "
           "hidden:\n"
           "        packing, polling, waiting for messages; reduction is merging over ranks and waiting for "
           "it.\n"
           "    graph_launches : how many times a device that runs ahead was given recorded passes.\n"
           "    sweep_counts, sweep_seconds : executions and time of each sweep, in program order.\n"
           "    events : of a traced run, an array for each thread and one for all messages, with rows of "
           "what\n"
           "        was done (0 patch, 1 halo box, 2 boundary condition, 3 copy, 4 packing, 5 unpacking,\n"
           "        6 reduction, 7 message), sweep, patch or peer, begin and end in seconds of the run.\n\n"
           "Raises\n------\nRuntimeError\n"
           "    On one rank. On several a failure ends all ranks, with 'rank R: reason' on standard error.")
      .def("progress", &BoundEngine::progress,
           "Passes of the outermost loops so far; may be called from another thread during run().")
      .def(
          "request_pause", [](BoundEngine& engine) { engine.request_pause(); },
          "Ask all ranks to end the run between two passes of the outermost loop.");

  m.def("request_stop", &request_stop,
        "Ask the engines of this process to stop, at the same pass on all ranks.");
  m.def("forget_stop", &forget_stop,
        "Forget a request to stop that no run has followed yet; whether there was one.");
  m.def("note_signals", &note_signals, "signals"_a,
        "Let these signals be noted, for `noted_signal`. `signal.signal` takes them back.");
  m.def("noted_signal", &noted_signal, "The last signal that was noted; 0 where none was.");
  m.def("forget_signal", &forget_signal, "Forget the signal that was noted.");
  m.def("stop_on_signals", &stop_on_signals, "signals"_a,
        "Let these signals request a stop while run() holds the main thread; a second one ends the process.\n"
        "`signal.signal` takes them back.");
  m.def("mpi_library", &mpi_library, "Path of the MPI library that native code is bound to.");
  m.def(
      "has_mailboxes", [](int communicator) { return Mailboxes::unified(Communicator(communicator)); },
      "communicator"_a,
      "Whether one-sided communication here sees one memory (MPI_WIN_UNIFIED); collective.");
  m.def("shared_pages_are_huge", &shared_pages_are_huge,
        "Whether memory that processes share gets huge pages here (Linux 6.1 and later).");
  m.def("available_memory", &available_memory,
        "Bytes that all processes can still take: of the system, or of their control group's limit.");
  m.def("available_to_process", &available_to_process,
        "Bytes that this process can still take: also of what its address space may grow to.");
  m.def("simd_width", &simd_width, "Bits of the widest vector registers of this machine.");
  m.def(
      "openmp", [] { return std::pair<int, int>(_OPENMP, omp_get_max_threads()); },
      "The OpenMP version as a date (yyyymm) and the number of threads it takes by default.");

  bind_device(m);
  bind_device_plan(m);
  bind_nvrtc(m);
}
