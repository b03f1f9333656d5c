// A message between devices of two processes of a node, without MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/device.hpp"
#include "storage/counters.hpp"

namespace halocline::device {

// One end of it. The receiver's has the memory that the sender's device writes to. Each end has an event,
// recorded when its copying or unpacking is queued, and then counts: the other end sees the count, and lets
// its own queue wait for the event.
class Link {
 public:
  // Lines of the counters that one end takes.
  static constexpr size_t kLines = 2;

  enum class Side { kSend, kReceive };

  // `first` of the lines of `own` are this end's; zeros at first.
  Link(std::shared_ptr<Device> device, Side side, size_t bytes, std::shared_ptr<Counters> own, size_t first);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Side side() const { return side_; }
  size_t bytes() const { return bytes_; }
  // What the other end needs.
  Shared handle() const;
  // Sees what the other end has shared, by way of `through`: a device of the interface that reaches its
  // memory. Throws DeviceError where that is out of reach.
  void attach(const std::shared_ptr<Device>& through, const Shared& handle, std::shared_ptr<Counters> theirs,
              size_t first);

  // The next message.
  void begin() { ++message_; }
  // Of the sender: what went before is unpacked, or will be, once an event of the other end has been waited
  // for. Of the receiver: the same of the copying of this message.
  bool ready() const;
  // Of the receiver: where messages lie. Of the sender: the same, in the other process.
  Buffer& buffer() const { return *buffer_; }
  // Lets a queue of this end's device wait for the other end.
  void await(Queue& queue) const;
  // All that this end does with the message is queued.
  void done(Queue& queue);

 private:
  // What may go once the other end has let go of it.
  struct Held {
    std::shared_ptr<Device> device;
    std::unique_ptr<Buffer> buffer;
    std::shared_ptr<Event> event;
    std::shared_ptr<Counters> theirs;
    size_t first;
  };
  static void give_back(std::unique_ptr<Held> held);

  std::shared_ptr<Device> device_, through_;
  Side side_;
  size_t bytes_;
  std::shared_ptr<Counters> own_, theirs_;
  size_t first_, their_first_ = 0;
  std::unique_ptr<Buffer> buffer_;
  std::shared_ptr<Event> event_, their_event_;
  uint64_t message_ = 0;
};

}  // namespace halocline::device
