// Ends of messages between devices of two processes. Shared objects must outlive their use by the other
// process, but no process waits until the other process ends. Each end therefore sets a flag after it has
// released the objects of the other end.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "device/link.hpp"

namespace halocline::device {

namespace {

constexpr size_t kMessages = 0, kGone = 1;  // counter lines of an end

// The CUDA driver places smaller allocations into blocks of this size, and shares whole blocks.
constexpr size_t kBlock = size_t{2} << 20;

void put(Shared& to, const Shared& part) {
  const uint64_t size = part.size();
  const auto* bytes = reinterpret_cast<const std::byte*>(&size);
  to.insert(to.end(), bytes, bytes + sizeof size);
  to.insert(to.end(), part.begin(), part.end());
}

// Wait for work of a failed run that is still in progress. An error here was already reported by an earlier
// call.
void wait_ignoring_errors(const Event& event) noexcept {
  try {
    event.wait();
  } catch (const DeviceError&) {
    return;
  }
}

Shared take(const Shared& from, size_t& at) {
  uint64_t size = 0;
  if (from.size() - at < sizeof size) throw std::invalid_argument("the handle of a message is too short");
  std::memcpy(&size, from.data() + at, sizeof size);
  at += sizeof size;
  if (from.size() - at < size) throw std::invalid_argument("the handle of a message is too short");
  const auto begin = from.begin() + static_cast<ptrdiff_t>(at);
  at += size;
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}

}  // namespace

Link::Link(std::shared_ptr<Device> device, Side side, size_t bytes, std::shared_ptr<Counters> counters,
           size_t first)
    : device_(std::move(device)),
      side_(side),
      bytes_(std::max<size_t>(bytes, sizeof(double))),
      counters_(std::move(counters)),
      first_(first) {
  if (first_ + kLines > counters_->size()) {
    throw std::invalid_argument("counter lines from " + std::to_string(first_) + " of " +
                                std::to_string(counters_->size()) + ", expected " + std::to_string(kLines) +
                                " lines");
  }
  release_retained(nullptr);
  if (side_ == Side::kReceive) buffer_ = device_->allocate((bytes_ + kBlock - 1) / kBlock * kBlock);
  event_ = device_->shared_event();
}

Link::~Link() {
  wait_ignoring_errors(*event_);
  const bool met = peer_counters_ != nullptr;
  peer_event_.reset();
  if (side_ == Side::kSend) buffer_.reset();
  if (!met) return;
  (*counters_)[first_ + kGone].store(1, std::memory_order_release);
  release_retained(std::make_unique<Retained>(
      Retained{device_, std::move(buffer_), std::move(event_), std::move(peer_counters_), peer_first_}));
}

void Link::release_retained(std::unique_ptr<Retained> held) {
  // Never destroyed, since objects that the other end has not released must live until the process ends.
  static auto* const mutex = new std::mutex;
  static auto* const waiting = new std::vector<std::unique_ptr<Retained>>;
  const std::scoped_lock lock(*mutex);
  if (held) waiting->push_back(std::move(held));
  std::erase_if(*waiting, [](const auto& entry) {
    return (*entry->peer_counters)[entry->first + kGone].load(std::memory_order_acquire) != 0;
  });
}

Shared Link::handle() const {
  Shared whole;
  put(whole, device_->share(*event_));
  if (side_ == Side::kReceive) put(whole, device_->share(*buffer_));
  return whole;
}

void Link::attach(const std::shared_ptr<Device>& through, const Shared& handle,
                  std::shared_ptr<Counters> counters, size_t first) {
  if (first + kLines > counters->size()) {
    throw std::invalid_argument("counter lines of the other end from " + std::to_string(first) + " of " +
                                std::to_string(counters->size()) + ", expected " + std::to_string(kLines) +
                                " lines");
  }
  size_t at = 0;
  through_ = through;
  peer_event_ = through->attach_event(take(handle, at));
  if (side_ == Side::kSend) buffer_ = through->attach(take(handle, at), bytes_);
  peer_counters_ = std::move(counters);
  peer_first_ = first;
}

bool Link::ready() const {
  const uint64_t required_count = side_ == Side::kSend ? message_ - 1 : message_;
  return (*peer_counters_)[peer_first_ + kMessages].load(std::memory_order_acquire) >= required_count;
}

void Link::await(Queue& queue) const {
  if (side_ == Side::kSend && message_ == 1) return;  // there is no previous message
  queue.wait(peer_event_);
}

void Link::done(Queue& queue) {
  device_->record(*event_, queue);
  queue.flush();
  (*counters_)[first_ + kMessages].store(message_, std::memory_order_release);
}

}  // namespace halocline::device
