// Times of device commands on the host clock.
#pragma once

#include <memory>
#include <vector>

#include "device/subdomain.hpp"

namespace halocline::device {

// Trace of subdomains, in seconds of now().
class Times {
 public:
  // Begin the trace. The constructor waits for queued work.
  explicit Times(const std::vector<std::shared_ptr<Subdomain>>& subdomains);
  // End the trace and return the queues of each subdomain.
  std::vector<std::vector<Lane>> take();
  // Maximum error of the readings of the host clock, in seconds; complete after take().
  double error() const { return error_; }

 private:
  struct Device {
    std::shared_ptr<Clock> clock;
    Reading begun;
  };
  std::vector<std::shared_ptr<Subdomain>> subdomains_;
  std::vector<Device> devices_;  // per subdomain
  double error_ = 0;
};

}  // namespace halocline::device
