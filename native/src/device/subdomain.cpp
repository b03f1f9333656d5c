#include "device/subdomain.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace halocline::device {

namespace {

std::string words(const Description& device) {
  return device.interface + ":" + std::to_string(device.index) + " (" + device.name + ")";
}

size_t threads(const Launch& launch) {
  return size_t{launch.block_shape[0]} * launch.block_shape[1] * launch.block_shape[2];
}

}  // namespace

std::unique_ptr<Kernel> kernel_for(const Device& device, const Module& module, const std::string& name,
                                   size_t threads) {
  std::unique_ptr<Kernel> kernel = module.kernel(name);
  if (threads > kernel->max_threads_per_block()) {
    throw DeviceError("kernel " + name + " needs " + std::to_string(threads) + " threads per block, but " +
                      words(device.description()) + " supports at most " +
                      std::to_string(kernel->max_threads_per_block()) + ": use another device or the CPU");
  }
  return kernel;
}

Subdomain::Subdomain(std::shared_ptr<Device> device, std::shared_ptr<Module> module,
                     std::vector<std::shared_ptr<Storage>> storages, size_t scalars)
    : device_(std::move(device)),
      module_(std::move(module)),
      storages_(std::move(storages)),
      scalar_bytes_(scalars * sizeof(double)),
      scalars_(device_->allocate(std::max<size_t>(scalar_bytes_, sizeof(double)))),
      control_(device_->allocate(sizeof(hc_control))),
      layouts_(device_->allocate(std::max<size_t>(storages_.size(), 1) * sizeof(hc_layout))),
      updates_(device_->pinned(kUpdates * std::max<size_t>(scalar_bytes_, sizeof(double)))),
      computing_(device_->queue(false)),
      packing_(device_->queue(true)) {
  std::vector<hc_layout> layouts;
  for (const auto& storage : storages_) {
    if (storage->device() != device_) {
      throw std::invalid_argument("a storage on another device than its subdomain");
    }
    layouts.push_back(storage->layout());
  }
  if (layouts.empty()) return;
  computing_->upload(*layouts_, 0, layouts.data(), layouts.size() * sizeof(hc_layout));
  computing_->finish();
}

Subdomain::~Subdomain() = default;

Queue& Subdomain::of(Queues& queues, int direction) {
  std::unique_ptr<Queue>& queue = queues[direction];
  if (!queue) {
    queue = device_->queue(true);
    if (clock_) queue->begin_trace(clock_);
  }
  return *queue;
}

void Subdomain::reserve_scratch(size_t bytes) {
  if (bytes == 0 || (scratch_ && scratch_->bytes() >= bytes)) return;
  computing_->finish();
  scratch_.reset();
  scratch_ = device_->allocate(bytes);
}

const Invariants& Subdomain::invariants(const std::pair<std::string, size_t>& symbol) {
  const auto& [name, count] = symbol;
  const auto known = invariants_.find(name);
  if (known != invariants_.end()) return known->second;
  Invariants memory{device_->allocate(count * sizeof(double)), module_->symbol(name)};
  return invariants_.emplace(name, std::move(memory)).first->second;
}

void Subdomain::update(const double* scalars) {
  if (scalar_bytes_ == 0) return;
  if (!known_.empty() && std::memcmp(known_.data(), scalars, scalar_bytes_) == 0) return;
  known_.resize(scalar_bytes_ / sizeof(double));
  std::memcpy(known_.data(), scalars, scalar_bytes_);
  std::shared_ptr<Event>& event = updated_[update_];
  if (event) event->wait();
  char* const held = updates_->data() + update_ * scalar_bytes_;
  std::memcpy(held, scalars, scalar_bytes_);
  computing_->mark(EventKind::kUpload);
  computing_->upload(*scalars_, 0, held, scalar_bytes_);
  event = computing_->record();
  update_ = (update_ + 1) % kUpdates;
}

void Subdomain::limit_queued_work() {
  std::shared_ptr<Event>& event = sweeps_[sweep_];
  if (event) event->wait();
  event = computing_->record();
  sweep_ = (sweep_ + 1) % kAhead;
}

void Subdomain::finish() {
  packing_->finish();
  for (const Queues* queues : {&outgoing_, &incoming_}) {
    for (const auto& [direction, queue] : *queues) queue->finish();
  }
  computing_->finish();
}

void Subdomain::begin_trace(const std::shared_ptr<Clock>& clock) {
  finish();
  computing_->begin_trace(clock);
  packing_->begin_trace(clock);
  for (const Queues* queues : {&outgoing_, &incoming_}) {
    for (const auto& [direction, queue] : *queues) queue->begin_trace(clock);
  }
  clock_ = clock;
}

std::vector<Lane> Subdomain::end_trace() {
  std::vector<Lane> lanes;
  if (!std::exchange(clock_, nullptr)) return lanes;
  lanes.push_back({"computing", -1, computing_->end_trace()});
  lanes.push_back({"packing", -1, packing_->end_trace()});
  for (const auto& [direction, queue] : outgoing_) {
    lanes.push_back({"outgoing", direction, queue->end_trace()});
  }
  for (const auto& [direction, queue] : incoming_) {
    lanes.push_back({"incoming", direction, queue->end_trace()});
  }
  return lanes;
}

BoundLaunch::BoundLaunch(Subdomain& domain, const Launch& launch)
    : subdomain_(domain), launch_(launch), kernel_(domain.kernel(launch.kernel, threads(launch))) {
  if (launch.tile_bytes != 0) kernel_->reserve_tiles(launch.tile_bytes);
  if (launch.invariants.second != 0) invariants_ = &domain.invariants(launch.invariants);
  for (const int64_t operand : launch.operands) {
    if (operand < 0 || static_cast<size_t>(operand) >= domain.storages().size()) {
      throw std::invalid_argument("kernel " + launch.kernel + ": storage " + std::to_string(operand) +
                                  ", expected a number below " + std::to_string(domain.storages().size()));
    }
  }
  if (threads(launch) == 0) {
    throw std::invalid_argument("kernel " + launch.kernel +
                                " has thread blocks of 0 threads, expected at least 1");
  }
  constexpr size_t kAddress = 8;
  const size_t count = launch.operands.size(), layouts = launch.layouts ? 0 : count;
  const size_t addresses =
      count + 2 + launch.scratch + launch.partials + launch.layouts + (invariants_ == nullptr ? 0 : 1);
  const size_t required_bytes = addresses * kAddress + layouts * sizeof(hc_layout) + sizeof(hc_frame) +
                                launch.walls.size() * sizeof(hc_wall);
  const Description& device = domain.device().description();
  if (required_bytes > device.parameters) {
    throw DeviceError("kernel " + launch.kernel + " takes " + std::to_string(required_bytes) +
                      " bytes of parameters, for " + std::to_string(launch.operands.size()) +
                      " fields, but " + words(device) + " supports at most " +
                      std::to_string(device.parameters) + ": use fewer fields in one stage");
  }
}

void BoundLaunch::operator()(Queue& queue, const Buffer* partials) const {
  std::vector<Argument> arguments;
  arguments.reserve(2 * launch_.operands.size() + 7);
  for (const int64_t operand : launch_.operands) {
    const Storage& storage = *subdomain_.storages()[static_cast<size_t>(operand)];
    arguments.emplace_back(&storage.buffer());
    if (!launch_.layouts) arguments.emplace_back(value(storage.layout()));
  }
  if (launch_.layouts) arguments.emplace_back(&subdomain_.layouts());
  arguments.emplace_back(&subdomain_.scalars());
  if (launch_.scratch) arguments.emplace_back(subdomain_.scratch());
  if (launch_.partials) arguments.emplace_back(partials);
  if (invariants_ != nullptr) arguments.emplace_back(invariants_->computed.get());
  arguments.emplace_back(&subdomain_.control());
  arguments.emplace_back(value(launch_.frame));
  if (!launch_.walls.empty()) arguments.emplace_back(std::as_bytes(std::span(launch_.walls)));
  queue.launch(*kernel_, launch_.block_counts, launch_.block_shape, arguments);
}

}  // namespace halocline::device
