// Bindings of plans for the host.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "device/link.hpp"
#include "sweep/host_sweep.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halocline {
namespace {

using Boxes = nb::ndarray<const int64_t, nb::shape<-1, 9>, nb::c_contig, nb::device::cpu>;
using Masks = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

using Parts = std::vector<std::tuple<uint32_t, Index, Index>>;

Method method_of(const std::string& name) {
  static const std::map<std::string, Method> methods = {{"mpi", Method::kMpi},
                                                        {"gpu_aware", Method::kGpuAware},
                                                        {"rma", Method::kRma},
                                                        {"colocated", Method::kColocated}};
  const auto known = methods.find(name);
  if (known == methods.end()) {
    throw std::invalid_argument("unknown transfer method '" + name +
                                "', expected mpi, gpu_aware, rma or colocated");
  }
  return known->second;
}

void make_message(Message* self, int peer, int tag, const Parts& parts, const std::vector<Index>& sources,
                  const std::string& method, bool packed, std::shared_ptr<device::Link> link) {
  if (!sources.empty() && sources.size() != parts.size()) {
    throw std::invalid_argument("message with " + std::to_string(parts.size()) + " parts and " +
                                std::to_string(sources.size()) +
                                " sources, expected one source for each part");
  }
  Message message{method_of(method), peer, tag, {}, std::move(link), packed};
  for (size_t n = 0; n < parts.size(); ++n) {
    const auto& [storage, lo, hi] = parts[n];
    message.parts.push_back({storage, lo, hi, sources.empty() ? Index{} : sources[n]});
  }
  new (self) Message(std::move(message));
}

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
    throw std::invalid_argument(
        "needs and needs_rims have different lengths, expected one entry for each patch");
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

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Subdomain>(
      m, "Subdomain",
      "One subdomain of a rank.\n\n"
      "Parameters\n"
      "----------\n"
      "storages : list of Storage\n"
      "    Storages, in the order of their numbers. Several engines may share them.\n"
      "origin : three int\n"
      "    Global index of cell (0, 0, 0).\n"
      "patches : int64 array (P, 9)\n"
      "    lo, hi, top of each patch (hc_box), in memory order.\n"
      "owners : int32 array (P,)\n"
      "    Thread of each patch. It touches the memory of the patch first, and runs the patch before\n"
      "    patches of other threads.\n"
      "counters, number : Counters, int\n"
      "    Counters of this rank, and index of this subdomain in the counters.")
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

  nb::class_<Neighbour>(m, "Neighbour",
                        "Subdomain of another process of the node: views of its storages, and its counters.")
      .def(
          "__init__",
          [](Neighbour* self, int rank, const Storages& storages, std::shared_ptr<Counters> counters,
             size_t number) {
            new (self) Neighbour{rank, storages, {std::move(counters), 2 * Signals::kDirections * number}};
          },
          "rank"_a, "storages"_a, "counters"_a, "number"_a);

  nb::class_<Message>(
      m, "Message",
      "Message of one sweep: cells that are sent to another subdomain, or received from it.\n\n"
      "Sender and receiver list parts of equal shapes in the same order.\n\n"
      "Parameters\n"
      "----------\n"
      "peer : int\n"
      "    Rank of the other subdomain. For colocated messages on the host: index of the neighbour.\n"
      "tag : int\n"
      "    MPI tag, equal for sender and receiver. For colocated messages on the host: the direction, 0 to\n"
      "    26, which differs between all messages of a pair of subdomains. For rma: the direction plus 27\n"
      "    times the number of the other subdomain.\n"
      "parts : list of (storage number, lo, hi)\n"
      "sources : list of three int\n"
      "    For a colocated receive on the host: first cell of each part in the storage of the sender.\n"
      "method : {'mpi', 'gpu_aware', 'rma', 'colocated'}\n"
      "    Transfer method: MPI from host memory, MPI from device memory, mailboxes of one-sided\n"
      "    communication, or copies in shared memory or between devices without MPI.\n"
      "packed : bool\n"
      "    If False, MPI accesses the cells in the fields by derived datatypes. Devices copy them row by\n"
      "    row.\n"
      "link : Link, optional\n"
      "    This end of a colocated message between devices.")
      .def("__init__", &make_message, "peer"_a, "tag"_a, "parts"_a, "sources"_a = nb::list(),
           "method"_a = "mpi", "packed"_a = true, "link"_a = nb::none());

  nb::class_<Fill>(
      m, "Fill",
      "Boundary fill: `kernel` on the box of ghost cells from `lo` to `hi`.\n\n"
      "Consecutive fills of a list with the same `axis` (0, 1 or 2) may run in parallel. Otherwise each\n"
      "fill runs after the previous one.")
      .def(
          "__init__",
          [](Fill* self, const std::string& kernel, const std::vector<int64_t>& operands, const Index& lo,
             const Index& hi, int axis) { new (self) Fill{kernel, operands, lo, hi, axis}; },
          "kernel"_a, "operands"_a, "lo"_a, "hi"_a, "axis"_a = -1);

  nb::class_<Share>(
      m, "Share",
      "Part of a sweep in one subdomain.\n\n"
      "Parameters\n"
      "----------\n"
      "sends, receives : list of Message\n"
      "    At most 64 and 32.\n"
      "copies : list of (storage, source lo, destination lo, extent, subdomain)\n"
      "    Copies from another subdomain of this rank, or from this subdomain around a periodic axis.\n"
      "fills, rims : list of Fill\n"
      "    Boundary fills that run before the patches, and those that run after all messages have arrived.\n"
      "needs : uint32 array (P,), default none\n"
      "    Bit mask of each patch. If bit m is set, the patch waits for receives[m].\n"
      "needs_rims : bool array (P,), default none\n"
      "    True for each patch that waits for the rims.\n"
      "halo_boxes, halo_needs : int64 array (H, 9), uint32 array (H,)\n"
      "    Boxes that the halo kernel of the sweep computes, and their bit masks of receives.")
      .def("__init__", &make_share, "sends"_a = nb::list(), "receives"_a = nb::list(),
           "copies"_a = nb::list(), "fills"_a = nb::list(), "rims"_a = nb::list(), "needs"_a = nb::none(),
           "needs_rims"_a = nb::none(), "halo_boxes"_a = nb::none(), "halo_needs"_a = nb::none());
}

}  // namespace halocline
