// Times of commands of devices, by the clock of the host.
#pragma once

#include <memory>
#include <vector>

#include "device/subdomain.hpp"

namespace halocline::device {

// A trace of subdomains, in seconds of now().
class Times {
 public:
  // Begins it. Waits for what is queued.
  explicit Times(const std::vector<std::shared_ptr<Subdomain>>& subdomains);
  // Ends it: the queues of each subdomain.
  std::vector<std::vector<Lane>> take();
  // Greatest error of the readings of the host's clock, in seconds; complete after take().
  double error() const { return error_; }

 private:
  struct Device {
    std::shared_ptr<Clock> clock;
    Reading begun;
  };
  std::vector<std::shared_ptr<Subdomain>> subdomains_;
  std::vector<Device> devices_;  // of each subdomain
  double error_ = 0;
};

}  // namespace halocline::device
