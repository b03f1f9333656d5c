// The messages of one subdomain in one sweep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "exchange/transfer.hpp"

namespace halocline {

// Packs, sends, receives and unpacks. Nothing blocks: threads take pieces of packing and unpacking and
// poll the transfers.
class Exchange {
 public:
  static constexpr size_t kMostReceives = 32;  // bits of `arrived`
  static constexpr size_t kMostSends = 64;

  // Throws std::invalid_argument for messages that cannot be.
  Exchange(const Rank& rank, const Subdomain& subdomain, const std::vector<Message>& sends,
           const std::vector<Message>& receives, int32_t sweep);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Begins an execution; one thread, while no other works on this exchange.
  void start();
  // The same where nothing is to be sent and nothing comes.
  void skip();
  // How many pieces there are to pack.
  size_t pieces() const { return packing_.size(); }
  // Packs one piece; each must be packed once after each start.
  void pack(size_t piece);
  // Sends what is packed and notes what has come. Any thread, any number of times.
  void progress(int thread);
  // Unpacks one piece of what has come; false where there is none.
  bool unpack(Trace* trace);

  // Bit m: receive m is unpacked.
  uint32_t arrived() const { return arrived_.load(std::memory_order_acquire); }
  bool all_arrived() const { return arrived() == all_; }
  // The cells of all sends may be overwritten.
  bool all_sent() const { return unsent_.load(std::memory_order_acquire) == 0; }
  // The direction and bytes of each message that goes into a mailbox.
  std::vector<std::pair<size_t, size_t>> mailboxes() const;
  // What neighbours read where it is.
  std::vector<Loan> loans() const;
  // All that does not stay where it is is sent, and everything has come (but may still have to be unpacked).
  bool complete() const { return open_.load(std::memory_order_acquire) == 0; }
  // Ends the run on all ranks, naming what has not come or is not sent after so many seconds.
  [[noreturn]] void give_up(double seconds) const;

 private:
  // Of a message that travels packed: where in its buffer. Of a colocated one: the storage of the sender
  // and the box there.
  struct Piece {
    uint32_t message, storage;
    Index lo, extent;
    size_t offset;
    const Storage* source;
    Index from;
  };
  // The pieces [begin, end) of one message.
  struct Progress {
    size_t begin = 0, end = 0;
    std::atomic<size_t> next{0}, left{0};
    Transfer* transfer = nullptr;
    char* buffer = nullptr;
  };

  // What a message carries behind its cells where messages are checked.
  struct Seal {
    uint64_t sweep, sender, tag, count, bytes, hash;

    bool operator==(const Seal&) const = default;
  };

  void check(const std::vector<Message>& messages, const char* kind, size_t most) const;
  size_t sealed_bytes(const Message& message) const;
  Seal seal(const Message& message, int sender, const char* buffer) const;
  // Ends the run on all ranks where a message is not the one that is expected, or has changed on its way.
  void compare_seal(size_t receive) const;
  void cut_into_pieces(const std::vector<Message>& messages, std::vector<Piece>& pieces,
                       std::vector<Progress>& progress) const;
  void note(const News& news);
  int rank_of(const Message& message) const;

  const Rank& rank_;
  const Subdomain& subdomain_;
  int32_t sweep_;       // its number
  double started_ = 0;  // of a run that is traced
  uint64_t count_ = 0;  // executions
  std::vector<Message> receives_, sends_;
  std::unique_ptr<Memory> buffer_;
  std::vector<Piece> packing_, unpacking_;
  std::vector<Progress> outgoing_, incoming_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  uint32_t all_ = 0;
  uint64_t awaited_ = 0;  // sends that must have left before the next execution: all but colocated ones

  std::mutex polling_;  // held by the one thread that polls
  alignas(64) std::atomic<uint64_t> packed_{0};
  std::atomic<uint32_t> landed_{0}, arrived_{0};
  std::atomic<size_t> open_{0}, unsent_{0};
};

}  // namespace halocline
