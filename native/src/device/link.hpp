// Message between devices of two processes of a node, without MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/device.hpp"
#include "storage/counters.hpp"

namespace halocline::device {

// One end of a message. The receiver owns the memory to which the device of the sender writes. Each end
// records an event after it has queued its copy or unpacking, and then increments its count. The other end
// reads the count and makes its own queue wait for the event.
class Link {
 public:
  // Number of counter lines per end.
  static constexpr size_t kLines = 2;

  enum class Side { kSend, kReceive };

  // This end uses the lines of `counters` from `first` on, which are zero initially.
  Link(std::shared_ptr<Device> device, Side side, size_t bytes, std::shared_ptr<Counters> counters,
       size_t first);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Side side() const { return side_; }
  size_t bytes() const { return bytes_; }
  // Return the handle for the other end.
  Shared handle() const;
  // Attach the shared objects of the other end through the device `through`, which must be able to access the
  // memory. Throws DeviceError if the memory is not accessible.
  void attach(const std::shared_ptr<Device>& through, const Shared& handle,
              std::shared_ptr<Counters> counters, size_t first);

  // Begin the next message.
  void begin() { ++message_; }
  // Return true if the other end has queued its work. For the sender, this work is the unpacking of the
  // previous message. For the receiver, it is the copy of this message.
  bool ready() const;
  // Memory of the messages. For the sender, it belongs to the other process.
  Buffer& buffer() const { return *buffer_; }
  // Make a queue of the device of this end wait for the other end.
  void await(Queue& queue) const;
  // Signal that all work of this end for the message is queued.
  void done(Queue& queue);

 private:
  // Objects that may be freed after the other end has released them.
  struct Retained {
    std::shared_ptr<Device> device;
    std::unique_ptr<Buffer> buffer;
    std::shared_ptr<Event> event;
    std::shared_ptr<Counters> peer_counters;
    size_t first;
  };
  static void release_retained(std::unique_ptr<Retained> retained);

  std::shared_ptr<Device> device_, through_;
  Side side_;
  size_t bytes_;
  std::shared_ptr<Counters> counters_, peer_counters_;
  size_t first_, peer_first_ = 0;
  std::unique_ptr<Buffer> buffer_;
  std::shared_ptr<Event> event_, peer_event_;
  uint64_t message_ = 0;
};

}  // namespace halocline::device
