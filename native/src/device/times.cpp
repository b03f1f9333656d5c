#include "device/times.hpp"

#include <algorithm>
#include <map>

namespace halocline::device {

namespace {

constexpr int kReadings = 8;

Reading most_exact(Clock& clock) {
  Reading best = clock.read();
  for (int n = 1; n < kReadings; ++n) {
    const Reading next = clock.read();
    if (next.error < best.error) best = next;
  }
  return best;
}

// Convert times of events to the host clock. The clocks may run at different speeds. They are related by a
// straight line through two readings. All events occur between these readings.
void to_host(std::vector<TraceEvent>& events, const Reading& first, const Reading& last) {
  const double device = last.device - first.device;
  const double speed = device > 0 ? (last.host - first.host) / device : 1.0;
  for (TraceEvent& event : events) {
    event.begin = first.host + speed * (event.begin - first.device);
    event.end = first.host + speed * (event.end - first.device);
  }
}

}  // namespace

Times::Times(const std::vector<std::shared_ptr<Subdomain>>& subdomains) : subdomains_(subdomains) {
  std::map<const device::Device*, Device> known;
  for (const auto& subdomain : subdomains_) {
    Device& device = known[&subdomain->device()];
    if (!device.clock) {
      device.clock = subdomain->device().clock();
      device.begun = most_exact(*device.clock);
      error_ = std::max(error_, device.begun.error);
    }
    subdomain->begin_trace(device.clock);
    devices_.push_back(device);
  }
}

std::vector<std::vector<Lane>> Times::take() {
  std::vector<std::vector<Lane>> all;
  all.reserve(subdomains_.size());
  for (const auto& subdomain : subdomains_) all.push_back(subdomain->end_trace());
  std::map<const Clock*, Reading> ended;
  for (size_t n = 0; n < all.size(); ++n) {
    Clock& clock = *devices_[n].clock;
    if (!ended.contains(&clock)) ended[&clock] = most_exact(clock);
    error_ = std::max(error_, ended[&clock].error);
    for (Lane& lane : all[n]) to_host(lane.events, devices_[n].begun, ended[&clock]);
  }
  return all;
}

}  // namespace halocline::device
