// The messages of a subdomain on a device, in one sweep.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/link.hpp"
#include "device/moves.hpp"
#include "exchange/transfer.hpp"

namespace halocline::device {

// Packs on the device, sends, receives and unpacks there. One thread calls it; nothing blocks.
class Exchange {
 public:
  static constexpr size_t kMostReceives = 32;  // bits of arrived()
  static constexpr size_t kMostSends = 64;

  // Throws std::invalid_argument for messages that cannot be.
  Exchange(const Rank& rank, Subdomain& where, const std::vector<Message>& sends,
           const std::vector<Message>& receives, int32_t sweep);

  // Begins an execution: packing and unpacking follow `begun`.
  void start(const std::shared_ptr<Event>& begun);
  // The same where nothing is to be sent and nothing comes.
  void skip();
  // When all is packed; null where nothing is.
  const std::shared_ptr<Event>& packed() const { return packed_event_; }
  // Sends what is packed and queues the unpacking of what has come.
  void progress(int thread);

  // Whether rows are copied where kernels would pack and unpack.
  bool copies_rows() const;
  // Bit m: the unpacking of receive m is queued.
  uint32_t arrived() const { return arrived_; }
  bool all_arrived() const { return arrived_ == all_; }
  // What is queued from now on waits until these receives are unpacked.
  void await(Queue& queue, uint32_t receives) const;
  // All is sent and everything has come.
  bool complete() const { return all_arrived() && sent_ == all_sends_; }
  // Ends the run on all ranks, naming what has not come or is not sent after so many seconds.
  [[noreturn]] void give_up(double seconds) const;

 private:
  // One message and its bytes: on the device, and in memory of the host where it is staged there.
  struct Packet {
    Message message;
    size_t bytes = 0;
    std::unique_ptr<Buffer> buffer{};  // none: that of the link
    std::unique_ptr<Pinned> staged{};
    size_t launch = 0;
    struct Box {
      uint32_t storage;
      Rows rows;      // of the field
      size_t offset;  // in the message
    };
    std::vector<Box> boxes{};         // of a message that is not packed: plane by plane
    std::shared_ptr<Event> event{};   // sent: it can be; received: it is unpacked
    std::shared_ptr<Event> copied{};  // sent by a link: its buffer is free

    double given = 0;  // traced, sent by MPI: when MPI was given it

    Link* link() const { return message.link.get(); }
    Buffer& place() const { return buffer ? *buffer : message.link->buffer(); }
  };

  std::vector<Packet> packets(const std::vector<Message>& messages, bool sent);
  char* address(const Packet& packet) const;
  void mark(Queue& queue, Doing doing, const Message& message) const {
    queue.mark(doing, sweep_, message.peer, message.tag);
  }
  void note_message(Doing doing, const Message& message, double begin) const;
  void progress_links();
  void progress_mpi(int thread);
  void add_rows(Packet& packet, const Part& part, size_t offset) const;
  // Copies the rows of a message that is not packed to where MPI takes it, or from where MPI has put it.
  void copy_out(const Packet& packet, Queue& queue) const;
  void copy_in(const Packet& packet, Queue& queue);
  // Queues the unpacking of receive m, after what has been queued for it.
  void unpack(size_t m, Queue& queue);

  const Rank& rank_;
  Subdomain& where_;
  int32_t sweep_;       // its number
  double started_ = 0;  // of a run that is traced
  std::vector<Packet> sends_, receives_;
  Moves moves_;
  std::unique_ptr<Transfer> transfer_;  // none: MPI carries nothing
  bool links_ = false;                  // some messages have one
  std::shared_ptr<Event> begun_, packed_event_;
  uint64_t packed_ = 0, sent_ = 0, all_sends_ = 0;
  uint32_t arrived_ = 0, all_ = 0;
};

}  // namespace halocline::device
