// Test of the engine on one rank with several threads, without MPI.
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "engine/requests.hpp"
#include "plans.hpp"
#include "storage/hash.hpp"

namespace {

using halocline::Engine;
using halocline::Index;
using halocline::Storage;
using halocline::Storages;

struct Small {
  std::vector<double> scalars = std::vector<double>(10);
  Storages storages;
  std::vector<hc_box> patches = plans::blocks({1, 24, 8}, {1, 2, 4});
  Engine engine;

  explicit Small(int threads)
      : storages{std::make_shared<Storage>(Index{1, 24, 8}, Index{0, 1, 1}, Index{0, 1, 1}, 8, 0)},
        engine(HALOCLINE_TEST_KERNELS,
               {{storages, {0, 0, 0}, patches, plans::owners(patches.size(), threads), {}, {}}}, {},
               scalars.data(), scalars.size(), {1, 24, 8}, threads, plans::kSpins, {}) {}

  halocline::SweepPlan plan(const std::string& kernel) const {
    halocline::SweepPlan plan;
    plan.kernel = kernel;
    plan.operands = {0};
    plan.shares.resize(1);
    return plan;
  }
};

void steps_on_periodic_grids() {
  for (int threads = 1; threads <= 4; ++threads) {
    plans::compare_with_one_array(plans::Torus({5, 7, 9}, {1, 1, 1}, 0), threads, {}, 12);
    plans::compare_with_one_array(plans::Torus({1, 6, 30}, {1, 1, 1}, 0), threads, {}, 12);
  }
}

void fills_rims_halo_boxes_and_scratch() {
  for (int threads = 1; threads <= 4; ++threads) {
    Small small(threads);
    halocline::SweepPlan plan = small.plan("through_scratch");
    plan.scratch_bytes = 4096;
    halocline::Share& share = plan.shares.front();
    share.fills = {{"ghost_2", {0}, {0, 0, -1}, {1, 12, 0}, 2},
                   {"ghost_2", {0}, {0, 12, -1}, {1, 24, 0}, 2},
                   {"ghost_1", {0}, {0, -1, -1}, {1, 0, 8}, 1}};
    small.engine.sweep(plan);
    share.rims = share.fills;
    share.fills.clear();
    share.needs.assign(small.patches.size(), {0, true});
    plan.halo_kernel = "through_scratch";
    share.halo_boxes = {{{0, 24, 0}, {1, 25, 8}, {0, 0, 0}}};
    share.halo_needs = {0};
    small.engine.sweep(plan);
    small.engine.run();
    CHECK(plans::cell(*small.storages[0], {0, 5, 3}) == 400);
    CHECK(plans::cell(*small.storages[0], {0, 7, 5}) == 604);
    CHECK(plans::cell(*small.storages[0], {0, 7, -1}) == 600);
    CHECK(plans::cell(*small.storages[0], {0, -1, -1}) == 0);
    CHECK(plans::cell(*small.storages[0], {0, 24, 7}) == 2400);
  }
}

void control() {
  Small small(3);
  small.engine.loop("ninth_pass", {}, 0, {4});
  small.engine.scalars("count");
  small.engine.sweep(small.plan("through_scratch"));
  small.engine.stop("never", "never");
  small.engine.end();
  halocline::SweepPlan plan = small.plan("through_scratch");
  plan.scratch_bytes = 4096;
  small.engine.sweep(plan);
  const halocline::Result result = small.engine.run();
  CHECK(result.loops == std::vector<std::string>{"condition"});
  CHECK(result.history.size() == 9 && result.history.back() == 9);
  CHECK(small.engine.progress() == 9);
}

void requests_from_another_thread() {
  Small small(2);
  small.engine.loop("never", {}, 0, {});
  halocline::SweepPlan plan = small.plan("through_scratch");
  plan.scratch_bytes = 4096;
  small.engine.sweep(plan);
  small.engine.end();
  std::thread other([&] {
    while (small.engine.progress() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    halocline::request_stop();
  });
  CHECK(small.engine.run().reason == "interrupted");
  other.join();
}

void failures() {
  Small small(3);
  small.engine.sweep(small.plan("refuse"));
  for (int run = 0; run < 2; ++run) {
    bool caught = false;
    try {
      small.engine.run();
    } catch (const std::runtime_error& error) {
      caught = std::strcmp(error.what(), "no") == 0;
    }
    CHECK(caught);
  }
  bool caught = false;
  try {
    small.engine.sweep(small.plan("misspelt"));
  } catch (const std::runtime_error&) {
    caught = true;
  }
  CHECK(caught);
}

void storages() {
  Storage a({2, 3, 70}, {1, 2, 3}, {3, 2, 1}, 8, 1), b({2, 3, 70}, {1, 2, 3}, {3, 2, 1}, 8, 2);
  for (const Storage* storage : {&a, &b}) {
    for (int64_t i = -1; i < 5; ++i) {
      for (int64_t j = -2; j < 5; ++j) {
        for (int64_t k = -3; k < 71; ++k) plans::cell(*storage, {i, j, k}) = storage == &a ? 1 : 2;
      }
    }
  }
  a.swap(b);
  CHECK(plans::cell(a, {4, 4, 70}) == 2 && plans::cell(b, {-1, -2, -3}) == 1);
  const Index lo{-1, -2, -3}, hi{5, 5, 71}, shape{6, 7, 74};
  CHECK(!halocline::first_nonfinite(a, lo, hi, 2));
  plans::cell(a, {4, 4, 70}) = 1.0 / 0.0;
  CHECK(halocline::first_nonfinite(a, lo, hi, 2) == (Index{4, 4, 70}));
  CHECK(halocline::checksum(a, lo, hi, {1, 2, 3}, shape, 1) ==
        halocline::checksum(a, lo, hi, {1, 2, 3}, shape, 3));
}

}  // namespace

int main() {
  storages();
  steps_on_periodic_grids();
  fills_rims_halo_boxes_and_scratch();
  control();
  requests_from_another_thread();
  failures();
}
