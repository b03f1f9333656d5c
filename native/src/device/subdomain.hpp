// Subdomain on a device: its fields, its queues, and kernels with their arguments.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/storage.hpp"

namespace halocline::device {

// Launch of a kernel over one box.
struct Launch {
  std::string kernel;
  std::vector<int64_t> operands;  // storage numbers
  hc_frame frame{};
  std::array<uint32_t, 3> block_counts{}, block_shape{};
  bool scratch = false;
  bool partials = false;
  bool layouts = false;  // the layouts of storages are in memory, not among the parameters
  // Values in constant memory that the kernel computes or reads: symbol and number. No values: 0.
  std::pair<std::string, size_t> invariants{};
  std::vector<hc_wall> walls{};  // of a kernel that fills ghosts beyond walls
  size_t tile_bytes = 0;         // of shared memory for planes of fields
};

// Memory of the invariants of a sweep. A kernel computes them before the sweep, or once per run. Where
// kernels read them from a symbol of their module, a copy follows.
struct Invariants {
  std::unique_ptr<Buffer> computed, symbol;  // without a symbol, kernels read `computed`

  void publish(Queue& queue) const {
    if (symbol) queue.copy(*symbol, 0, *computed, 0, computed->bytes());
  }
};

// Return a kernel that will run with `threads` threads per block. Throws DeviceError if there is no kernel of
// this name, or if the kernel cannot have so many threads on the device.
std::unique_ptr<Kernel> kernel_for(const Device& device, const Module& module, const std::string& name,
                                   size_t threads);

// Events of one queue of a subdomain in a trace. `role`: "computing", "packing", "outgoing" or "incoming".
// The last two roles belong to messages in one direction.
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
  // An hc_control, by which queued kernels can be skipped.
  Buffer& control() const { return *control_; }
  // The hc_layout of each storage.
  Buffer& layouts() const { return *layouts_; }
  const Buffer* scratch() const { return scratch_.get(); }
  // Return the memory of these invariants, which all launches share.
  const Invariants& invariants(const std::pair<std::string, size_t>& symbol);

  // Queue of kernels that compute.
  Queue& compute_queue() { return *computing_; }
  // Queue of packing and of copies of halos. It is urgent.
  Queue& packing_queue() { return *packing_; }
  // Queues of messages in one direction: for work before sending, and for work after arrival.
  Queue& outgoing(int direction) { return of(outgoing_, direction); }
  Queue& incoming(int direction) { return of(incoming_, direction); }

  void reserve_scratch(size_t bytes);
  // Make these scalars visible to kernels that are queued later.
  void update(const double* scalars);
  // Discard the copy of the scalars, since the device has changed them.
  void forget() { known_.clear(); }
  // Wait if the device is too far behind, so that the amount of queued work is bounded.
  void limit_queued_work();
  // Wait for all work.
  void finish();
  // Begin and end a trace of all queues.
  void begin_trace(const std::shared_ptr<Clock>& clock);
  std::vector<Lane> end_trace();
  bool traced() const { return clock_ != nullptr; }

 private:
  using Queues = std::map<int, std::unique_ptr<Queue>>;
  Queue& of(Queues& queues, int direction);

  static constexpr size_t kUpdates = 16;  // updates in flight
  static constexpr size_t kAhead = 64;    // sweeps that are queued and not complete

  std::shared_ptr<Device> device_;
  std::shared_ptr<Module> module_;
  std::vector<std::shared_ptr<Storage>> storages_;
  size_t scalar_bytes_;
  std::unique_ptr<Buffer> scalars_, control_, layouts_, scratch_;
  std::map<std::string, Invariants> invariants_;
  std::unique_ptr<Pinned> updates_;
  std::array<std::shared_ptr<Event>, kUpdates> updated_;
  size_t update_ = 0;
  std::vector<double> known_;  // scalars that the device has, or will have after queued work
  std::array<std::shared_ptr<Event>, kAhead> sweeps_;
  size_t sweep_ = 0;
  std::unique_ptr<Queue> computing_, packing_;
  Queues outgoing_, incoming_;
  std::shared_ptr<Clock> clock_;  // of a trace
};

// Launch with its kernel.
class BoundLaunch {
 public:
  // Throws std::invalid_argument or DeviceError if the plan is invalid.
  BoundLaunch(Subdomain& domain, const Launch& launch);

  // `partials`: memory for partial results of reductions; null if there are none.
  void operator()(Queue& queue, const Buffer* partials = nullptr) const;
  // Compute invariants, and copy them to the symbol that kernels read.
  void compute_invariants(Queue& queue) const {
    (*this)(queue);
    invariants_->publish(queue);
  }

 private:
  const Subdomain& subdomain_;
  Launch launch_;
  const Invariants* invariants_ = nullptr;
  std::unique_ptr<Kernel> kernel_;
};

// Return the bytes of a value as an argument of a kernel.
template <typename T>
Argument value(const T& held) {
  return std::as_bytes(std::span<const T, 1>(&held, 1));
}

}  // namespace halocline::device
