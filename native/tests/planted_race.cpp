// Kernel that also writes to the next patch. The thread sanitizer must report this race.
#include "plans.hpp"

int main() {
  const plans::Index shape{1, 64, 1};
  const halocline::Storages storages{
      std::make_shared<halocline::Storage>(shape, plans::Index{0, 0, 0}, plans::Index{0, 1, 0}, 8, 0)};
  std::vector<double> scalars(1);
  const std::vector<hc_box> patches = plans::blocks(shape, {1, 1, 1});
  halocline::Engine engine(HALOCLINE_TEST_KERNELS,
                           {{storages, {0, 0, 0}, patches, plans::owners(patches.size(), 2), {}, {}}}, {},
                           scalars.data(), scalars.size(), shape, 2, plans::kSpins, {});
  halocline::SweepPlan plan;
  plan.kernel = "race";
  plan.operands = {0};
  plan.shares.resize(1);
  engine.sweep(plan);
  engine.run();
}
