// Messages of a subdomain on a device in one sweep.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/link.hpp"
#include "device/moves.hpp"
#include "exchange/transfer.hpp"

namespace halocline::device {

// Messages are packed on the device, sent, received, and unpacked on the device. Only one thread calls the
// functions, and no call blocks.
class Exchange {
 public:
  static constexpr size_t kMostReceives = 32;  // bits of arrived()
  static constexpr size_t kMostSends = 64;

  // Throws std::invalid_argument for invalid messages.
  Exchange(const Rank& rank, Subdomain& domain, const std::vector<Message>& sends,
           const std::vector<Message>& receives, int32_t sweep);

  // Begin an execution. Packing and unpacking follow the event `begun`.
  void start(const std::shared_ptr<Event>& begun);
  // Begin an execution without messages.
  void skip();
  // Event after all packing; null if no message is packed.
  const std::shared_ptr<Event>& packed() const { return packed_event_; }
  // Send packed messages and queue the unpacking of messages that have arrived.
  void progress(int thread);

  // Return true if messages are copied row by row, instead of packed and unpacked by kernels.
  bool copies_rows() const;
  // Bit mask. Bit m is set if the unpacking of receive m is queued.
  uint32_t arrived() const { return arrived_; }
  bool all_arrived() const { return arrived_ == all_; }
  // Make subsequent work of a queue wait until these receives are unpacked.
  void await(Queue& queue, uint32_t receives) const;
  // Return true if all messages are sent and all have arrived.
  bool complete() const { return all_arrived() && sent_ == all_sends_; }
  // End the run on all ranks after a wait of `seconds`. The error message names the missing messages.
  [[noreturn]] void abort_after_wait(double seconds) const;

 private:
  // One message and its bytes on the device, and in host memory if it is staged there.
  struct Packet {
    Message message;
    size_t bytes = 0;
    std::unique_ptr<Buffer> buffer{};  // empty: the message uses the buffer of the link
    std::unique_ptr<Pinned> staged{};
    size_t launch = 0;
    struct Box {
      uint32_t storage;
      Rows rows;      // in the field
      size_t offset;  // in the message
    };
    std::vector<Box> boxes{};         // for an unpacked message: plane by plane
    std::shared_ptr<Event> event{};   // send: the message can be sent; receive: the message is unpacked
    std::shared_ptr<Event> copied{};  // send by a link: the buffer can be reused

    double send_time = 0;  // if traced: time at which the message was passed to MPI

    Link* link() const { return message.link.get(); }
    Buffer& place() const { return buffer ? *buffer : message.link->buffer(); }
  };

  std::vector<Packet> packets(const std::vector<Message>& messages, bool sent);
  char* address(const Packet& packet) const;
  void mark(Queue& queue, EventKind kind, const Message& message) const {
    queue.mark(kind, sweep_, message.peer, message.tag);
  }
  void note_message(EventKind kind, const Message& message, double begin) const;
  void progress_links();
  void progress_mpi(int thread);
  void add_rows(Packet& packet, const Part& part, size_t offset) const;
  // Copy the rows of an unpacked message, out to the memory that MPI sends, or in from the memory that MPI
  // has received.
  void copy_out(const Packet& packet, Queue& queue) const;
  void copy_in(const Packet& packet, Queue& queue);
  // Queue the unpacking of receive m, after the earlier work for it.
  void unpack(size_t m, Queue& queue);

  const Rank& rank_;
  Subdomain& subdomain_;
  int32_t sweep_;       // number of the sweep
  double started_ = 0;  // start time, if the run is traced
  std::vector<Packet> sends_, receives_;
  Moves moves_;
  std::unique_ptr<Transfer> transfer_;  // empty: no message uses MPI
  bool links_ = false;                  // some messages have a link
  std::shared_ptr<Event> begun_, packed_event_;
  uint64_t packed_ = 0, sent_ = 0, all_sends_ = 0;
  uint32_t arrived_ = 0, all_ = 0;
};

}  // namespace halocline::device
