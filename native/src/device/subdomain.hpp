// A subdomain on a device: its fields, the queues that its work goes to, and kernels with what they take.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/storage.hpp"

namespace halocline::device {

// A kernel over one box.
struct Launch {
  std::string kernel;
  std::vector<int64_t> operands;  // storages
  hc_frame frame{};
  std::array<uint32_t, 3> groups{}, group{};
  bool scratch = false;
  bool partials = false;
  bool layouts = false;  // in memory, not among its parameters
};

// A kernel that is to run in groups of so many threads. Throws DeviceError where there is none of that name,
// or the device has fewer threads for it.
std::unique_ptr<Kernel> kernel_for(const Device& device, const Module& module, const std::string& name,
                                   size_t threads);

// What the queues of a subdomain did in a trace. `role`: "computing", "packing", "outgoing" or "incoming",
// the last two of messages in a direction.
struct Lane {
  std::string role;
  int direction = -1;
  std::vector<TraceEvent> events{};
};

class Subdomain {
 public:
  Subdomain(std::shared_ptr<Device> device, std::shared_ptr<Module> module,
            std::vector<std::shared_ptr<Storage>> storages, size_t scalars);
  ~Subdomain();
  Subdomain(const Subdomain&) = delete;
  Subdomain& operator=(const Subdomain&) = delete;

  Device& device() const { return *device_; }
  const Module& module() const { return *module_; }
  std::unique_ptr<Kernel> kernel(const std::string& name, size_t threads) const {
    return kernel_for(*device_, *module_, name, threads);
  }
  const std::vector<std::shared_ptr<Storage>>& storages() const { return storages_; }
  Buffer& scalars() const { return *scalars_; }
  // An hc_control: whether kernels that are queued already are to do nothing.
  Buffer& control() const { return *control_; }
  // The hc_layout of each storage.
  Buffer& layouts() const { return *layouts_; }
  const Buffer* scratch() const { return scratch_.get(); }

  // Kernels that compute.
  Queue& computing() { return *computing_; }
  // What packs and copies halos: it goes first.
  Queue& packing() { return *packing_; }
  // What messages in one direction do before they are sent, and after they have come.
  Queue& outgoing(int direction) { return of(outgoing_, direction); }
  Queue& incoming(int direction) { return of(incoming_, direction); }

  void reserve_scratch(size_t bytes);
  // Lets kernels that are queued from now on see these scalars.
  void update(const double* scalars);
  // The device has changed them itself.
  void forget() { known_.clear(); }
  // Waits where the device is too far behind, so that what is queued stays bounded.
  void keep_up();
  // Waits for all work.
  void finish();
  // Begins and ends a trace of all queues.
  void begin_trace(const std::shared_ptr<Clock>& clock);
  std::vector<Lane> end_trace();
  bool traced() const { return clock_ != nullptr; }

 private:
  using Queues = std::map<int, std::unique_ptr<Queue>>;
  Queue& of(Queues& queues, int direction);

  static constexpr size_t kUpdates = 16;  // under way at a time
  static constexpr size_t kAhead = 64;    // sweeps that are queued and not done

  std::shared_ptr<Device> device_;
  std::shared_ptr<Module> module_;
  std::vector<std::shared_ptr<Storage>> storages_;
  size_t scalar_bytes_;
  std::unique_ptr<Buffer> scalars_, control_, layouts_, scratch_;
  std::unique_ptr<Pinned> updates_;
  std::array<std::shared_ptr<Event>, kUpdates> updated_;
  size_t update_ = 0;
  std::vector<double> known_;  // what the device has, or will have
  std::array<std::shared_ptr<Event>, kAhead> sweeps_;
  size_t sweep_ = 0;
  std::unique_ptr<Queue> computing_, packing_;
  Queues outgoing_, incoming_;
  std::shared_ptr<Clock> clock_;  // of a trace
};

// A launch with its kernel.
class BoundLaunch {
 public:
  // Throws std::invalid_argument and DeviceError for what the plan has wrong.
  BoundLaunch(const Subdomain& where, const Launch& launch);

  // `partials`: where its reductions go; null where it has none.
  void operator()(Queue& queue, const Buffer* partials = nullptr) const;

 private:
  const Subdomain& where_;
  Launch launch_;
  std::unique_ptr<Kernel> kernel_;
};

// The bytes of a value, as a kernel takes it.
template <typename T>
Argument value(const T& held) {
  return std::as_bytes(std::span<const T, 1>(&held, 1));
}

}  // namespace halocline::device
