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

 private:
  struct Device {
    std::shared_ptr<Clock> clock;
    Reading begun;
  };
  std::vector<std::shared_ptr<Subdomain>> subdomains_;
  std::vector<Device> devices_;  // of each subdomain
};

}  // namespace halocline::device
