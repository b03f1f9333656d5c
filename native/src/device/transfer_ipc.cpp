// The ends of messages between devices of two processes. What a process shares must outlive its use by the
// other one, and neither waits for the other to end: each end counts when it has let go.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "device/link.hpp"

namespace halocline::device {

namespace {

constexpr size_t kMessages = 0, kGone = 1;  // lines of an end

// CUDA's driver puts smaller pieces of memory into blocks of this size, and shares whole blocks.
constexpr size_t kBlock = size_t{2} << 20;

void put(Shared& to, const Shared& part) {
  const uint64_t size = part.size();
  const auto* bytes = reinterpret_cast<const std::byte*>(&size);
  to.insert(to.end(), bytes, bytes + sizeof size);
  to.insert(to.end(), part.begin(), part.end());
}

// Nothing of a run that failed still goes on; an error here is one that a call has told already.
void settle(const Event& event) noexcept {
  try {
    event.wait();
  } catch (const DeviceError&) {
    return;
  }
}

Shared take(const Shared& from, size_t& at) {
  uint64_t size = 0;
  if (from.size() - at < sizeof size) throw std::invalid_argument("a handle of a message is cut short");
  std::memcpy(&size, from.data() + at, sizeof size);
  at += sizeof size;
  if (from.size() - at < size) throw std::invalid_argument("a handle of a message is cut short");
  const auto begin = from.begin() + static_cast<ptrdiff_t>(at);
  at += size;
  return {begin, begin + static_cast<ptrdiff_t>(size)};
}

}  // namespace

Link::Link(std::shared_ptr<Device> device, Side side, size_t bytes, std::shared_ptr<Counters> own,
           size_t first)
    : device_(std::move(device)),
      side_(side),
      bytes_(std::max<size_t>(bytes, sizeof(double))),
      own_(std::move(own)),
      first_(first) {
  if (first_ + kLines > own_->size()) {
    throw std::invalid_argument("lines " + std::to_string(first_) + " and on of " +
                                std::to_string(own_->size()) + ", expected " + std::to_string(kLines));
  }
  give_back(nullptr);
  if (side_ == Side::kReceive) buffer_ = device_->allocate((bytes_ + kBlock - 1) / kBlock * kBlock);
  event_ = device_->shared_event();
}

Link::~Link() {
  settle(*event_);
  const bool met = theirs_ != nullptr;
  their_event_.reset();
  if (side_ == Side::kSend) buffer_.reset();
  if (!met) return;
  (*own_)[first_ + kGone].store(1, std::memory_order_release);
  give_back(std::make_unique<Held>(
      Held{device_, std::move(buffer_), std::move(event_), std::move(theirs_), their_first_}));
}

void Link::give_back(std::unique_ptr<Held> held) {
  // Never destroyed: the end of the process frees what the other end has not let go of.
  static auto* const mutex = new std::mutex;
  static auto* const waiting = new std::vector<std::unique_ptr<Held>>;
  const std::scoped_lock lock(*mutex);
  if (held) waiting->push_back(std::move(held));
  std::erase_if(*waiting, [](const auto& each) {
    return (*each->theirs)[each->first + kGone].load(std::memory_order_acquire) != 0;
  });
}

Shared Link::handle() const {
  Shared whole;
  put(whole, device_->share(*event_));
  if (side_ == Side::kReceive) put(whole, device_->share(*buffer_));
  return whole;
}

void Link::attach(const std::shared_ptr<Device>& through, const Shared& handle,
                  std::shared_ptr<Counters> theirs, size_t first) {
  if (first + kLines > theirs->size()) {
    throw std::invalid_argument("the other end's lines " + std::to_string(first) + " and on of " +
                                std::to_string(theirs->size()) + ", expected " + std::to_string(kLines));
  }
  size_t at = 0;
  through_ = through;
  their_event_ = through->attach_event(take(handle, at));
  if (side_ == Side::kSend) buffer_ = through->attach(take(handle, at), bytes_);
  theirs_ = std::move(theirs);
  their_first_ = first;
}

bool Link::ready() const {
  const uint64_t needed = side_ == Side::kSend ? message_ - 1 : message_;
  return (*theirs_)[their_first_ + kMessages].load(std::memory_order_acquire) >= needed;
}

void Link::await(Queue& queue) const {
  if (side_ == Side::kSend && message_ == 1) return;  // nothing went before
  queue.wait(their_event_);
}

void Link::done(Queue& queue) {
  device_->record(*event_, queue);
  queue.flush();
  (*own_)[first_ + kMessages].store(message_, std::memory_order_release);
}

}  // namespace halocline::device
