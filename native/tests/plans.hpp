// Plans for the tests of the engine, written by hand: periodic grids that are divided into one box per rank.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "engine/engine.hpp"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                       \
    }                                                                      \
  } while (false)

namespace plans {

using halocline::Index;

inline double& cell(const halocline::Storage& storage, const Index& at) {
  return *reinterpret_cast<double*>(storage.at(at));
}

// A small number, since there are more threads than cores, and sanitizers are slow.
constexpr uint32_t kSpins = 20;

// Return the thread of each patch. Threads have equal numbers of patches, consecutive in memory order.
inline std::vector<int> owners(size_t patches, int threads) {
  std::vector<int> owners;
  for (size_t n = 0; n < patches; ++n) {
    owners.push_back(static_cast<int>(n * static_cast<size_t>(threads) / patches));
  }
  return owners;
}

inline std::vector<hc_box> blocks(const Index& shape, const Index& size) {
  std::vector<hc_box> result;
  for (int64_t i = 0; i < shape[0]; i += size[0]) {
    for (int64_t j = 0; j < shape[1]; j += size[1]) {
      for (int64_t k = 0; k < shape[2]; k += size[2]) {
        result.push_back({{i, j, k},
                          {std::min(i + size[0], shape[0]), std::min(j + size[1], shape[1]),
                           std::min(k + size[2], shape[2])},
                          {0, 0, 0}});
      }
    }
  }
  return result;
}

// Box of one rank in a periodic grid, with one halo layer on every side.
struct Torus {
  Index shape, parts, place, lo, local;

  Torus(const Index& shape, const Index& parts, int rank) : shape(shape), parts(parts) {
    place = {rank / (parts[1] * parts[2]), rank / parts[2] % parts[1], rank % parts[2]};
    for (size_t a = 0; a < 3; ++a) {
      lo[a] = shape[a] * place[a] / parts[a];
      local[a] = shape[a] * (place[a] + 1) / parts[a] - lo[a];
    }
  }

  int rank_at(const Index& direction) const {
    int64_t rank = 0;
    for (size_t a = 0; a < 3; ++a) rank = rank * parts[a] + (place[a] + direction[a] + parts[a]) % parts[a];
    return static_cast<int>(rank);
  }

  // Return the outermost layer of the box in a direction or, if `beyond` is true, the halo layer next to it.
  halocline::Part layer(uint32_t field, const Index& direction, bool beyond) const {
    halocline::Part part{field, {0, 0, 0}, local};
    for (size_t a = 0; a < 3; ++a) {
      if (direction[a] < 0) {
        part.lo[a] = beyond ? -1 : 0;
        part.hi[a] = part.lo[a] + 1;
      } else if (direction[a] > 0) {
        part.lo[a] = local[a] - (beyond ? 0 : 1);
        part.hi[a] = part.lo[a] + 1;
      }
    }
    return part;
  }

  // Add the messages and copies that fill all halo layers of a field: messages from other ranks, and copies
  // from the opposite side of this box. With `colocated`, the peer of a message is a neighbour number.
  void exchange(uint32_t field, const std::vector<hc_box>& patches, halocline::Share& share,
                bool colocated) const {
    const auto method = colocated ? halocline::Method::kColocated : halocline::Method::kMpi;
    share.needs.assign(patches.size(), {});
    const int self = rank_at({0, 0, 0});
    for (int tag = 0; tag < 27; ++tag) {
      if (tag == 13) continue;
      const Index to{tag / 9 - 1, tag / 3 % 3 - 1, tag % 3 - 1}, from{-to[0], -to[1], -to[2]};
      const halocline::Part within = layer(field, to, false), beyond = layer(field, from, true);
      if (rank_at(to) == self) {
        share.copies.push_back({field, 0, within.lo, beyond.lo, halocline::extent(within.lo, within.hi)});
      } else {
        share.sends.push_back({method, rank_at(to), tag, {within}});
      }
      if (rank_at(from) == self) continue;
      for (size_t n = 0; n < patches.size(); ++n) {
        bool is_adjacent = true;
        for (size_t a = 0; a < 3; ++a) {
          if (to[a] > 0) is_adjacent = is_adjacent && patches[n].lo[a] == 0;
          if (to[a] < 0) is_adjacent = is_adjacent && patches[n].hi[a] == local[a];
        }
        if (is_adjacent) share.needs[n].messages |= uint32_t{1} << share.receives.size();
      }
      halocline::Part received = beyond;
      received.from = Torus(shape, parts, rank_at(from)).layer(field, to, false).lo;
      share.receives.push_back({method, rank_at(from), tag, {received}});
    }
  }
};

// Return the values of the whole grid after one step of the kernel `shift`.
inline std::vector<double> shifted(const std::vector<double>& old, const Index& shape) {
  std::vector<double> result(old.size());
  const auto place = [&](int64_t i, int64_t j, int64_t k) {
    const int64_t x = (i + shape[0]) % shape[0], y = (j + shape[1]) % shape[1], z = (k + shape[2]) % shape[2];
    return static_cast<size_t>((x * shape[1] + y) * shape[2] + z);
  };
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      for (int64_t k = 0; k < shape[2]; ++k) {
        int64_t sum = 0;
        for (int n = 0; n < 27; ++n) {
          sum +=
              (3 + 2 * n) * static_cast<int64_t>(old[place(i + n / 9 - 1, j + n / 3 % 3 - 1, k + n % 3 - 1)]);
        }
        result[place(i, j, k)] = static_cast<double>(sum % 1021);
      }
    }
  }
  return result;
}

// Function that returns the neighbours, with views of the memory of all ranks.
using Neighbours =
    std::function<std::vector<halocline::Neighbour>(const halocline::Storages&, const halocline::Counters&)>;

// Run `steps` steps twice on the box of one rank, and compare cells and reductions with those of `shifted`.
// With `meet`, the ranks share their memory.
inline void compare_with_one_array(const Torus& torus, int threads, std::optional<int> communicator,
                                   int steps, const Neighbours& meet = {}, bool in_place = false) {
  const Index layers{1, 1, 1};
  halocline::Storages storages;
  for (size_t n = 0; n < 2; ++n) {
    const auto shared = static_cast<bool>(meet);
    storages.push_back(std::make_shared<halocline::Storage>(torus.local, layers, layers, 8, n, shared));
  }
  std::vector<double> values;
  for (int64_t n = 0; n < halocline::cells(torus.shape); ++n)
    values.push_back(static_cast<double>(n * n % 1021));
  const auto for_each_cell = [&](auto&& f) {
    for (int64_t i = 0; i < torus.local[0]; ++i) {
      for (int64_t j = 0; j < torus.local[1]; ++j) {
        for (int64_t k = 0; k < torus.local[2]; ++k) {
          const int64_t place = ((torus.lo[0] + i) * torus.shape[1] + torus.lo[1] + j) * torus.shape[2];
          f(cell(*storages[1], {i, j, k}), values[static_cast<size_t>(place + torus.lo[2] + k)]);
        }
      }
    }
  };
  for_each_cell([](double& value, double whole) { value = whole; });

  std::vector<double> scalars(10);
  scalars[9] = steps;
  const std::vector<hc_box> patches = blocks(torus.local, {2, 3, 4});
  const auto counters = std::make_shared<halocline::Counters>(2 * halocline::Signals::kDirections);
  halocline::Subdomain subdomain{storages,      torus.lo, patches, owners(patches.size(), threads),
                                 {counters, 0}, {}};
  halocline::Engine engine(HALOCLINE_TEST_KERNELS, {subdomain},
                           meet ? meet(storages, *counters) : std::vector<halocline::Neighbour>{},
                           scalars.data(), scalars.size(), torus.shape, threads, kSpins, communicator);
  halocline::SweepPlan plan;
  plan.kernel = "shift";
  plan.operands = {0, 1};
  plan.reductions = {{HC_SUM, 1}, {HC_MAX, 2}};
  plan.swaps = {{0, 1}};
  plan.in_place = in_place;
  plan.shares.resize(1);
  torus.exchange(1, patches, plan.shares.front(), static_cast<bool>(meet));
  engine.loop({}, 9, 0, {1, 2});
  engine.sweep(plan);
  engine.await_results();
  engine.end();
  for (int run = 0; run < 2; ++run) {
    const halocline::Result result = engine.run();
    CHECK(result.reason == "completed");
    CHECK(result.history.size() == static_cast<size_t>(2 * steps));
    for (size_t n = 0; n < static_cast<size_t>(steps); ++n) {
      values = shifted(values, torus.shape);
      double sum = 0, most = 0;
      for (const double value : values) {
        sum += value;
        most = std::max(most, value);
      }
      CHECK(result.history[2 * n] == sum);
      CHECK(result.history[2 * n + 1] == most);
    }
    for_each_cell([](double value, double whole) { CHECK(value == whole); });
  }
}

}  // namespace plans
