// Messages of one subdomain in one sweep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "exchange/transfer.hpp"

namespace halocline {

// Messages are packed, sent, received and unpacked. No call blocks. Threads share the pieces of packing and
// unpacking, and poll the transfers.
class Exchange {
 public:
  static constexpr size_t kMostReceives = 32;  // bits of `arrived`
  static constexpr size_t kMostSends = 64;

  // Throws std::invalid_argument for invalid messages.
  Exchange(const Rank& rank, const Subdomain& subdomain, const std::vector<Message>& sends,
           const std::vector<Message>& receives, int32_t sweep);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Begin an execution. One thread calls it while no other thread uses this exchange.
  void start();
  // Begin an execution without messages.
  void skip();
  // Number of pieces to pack.
  size_t pieces() const { return packing_.size(); }
  // Pack one piece. Each piece must be packed once after each start.
  void pack(size_t piece);
  // Send packed messages and record arrivals. Any thread may call it any number of times.
  void progress(int thread);
  // Unpack one piece of an arrived message. Return false if there is none.
  bool unpack(Trace* trace);

  // Bit mask. Bit m is set if receive m is unpacked.
  uint32_t arrived() const { return arrived_.load(std::memory_order_acquire); }
  bool all_arrived() const { return arrived() == all_; }
  // Return true if the cells of all sends may be overwritten.
  bool all_sent() const { return unsent_.load(std::memory_order_acquire) == 0; }
  // Direction and bytes of each message that uses a mailbox.
  std::vector<std::pair<size_t, size_t>> mailboxes() const;
  // Cells that neighbours read in place.
  std::vector<Loan> loans() const;
  // Return true if all messages have arrived, and all messages except colocated ones are sent. Some messages
  // may still have to be unpacked.
  bool complete() const { return open_.load(std::memory_order_acquire) == 0; }
  // End the run on all ranks after a wait of `seconds`. The error message names the missing messages.
  [[noreturn]] void abort_after_wait(double seconds) const;

 private:
  // Piece of a message. For a packed message, `offset` is the position in the buffer. For a colocated
  // message, `source` is the storage of the sender, and `from` is the first cell of the box in this storage.
  struct Piece {
    uint32_t message, storage;
    Index lo, extent;
    size_t offset;
    const Storage* source;
    Index from;
  };
  // Progress of one message with the pieces [begin, end).
  struct Progress {
    size_t begin = 0, end = 0;
    std::atomic<size_t> next{0}, left{0};
    Transfer* transfer = nullptr;
    char* buffer = nullptr;
  };

  // Checksum record after the cells of a message, if messages are checked.
  struct Seal {
    uint64_t sweep, sender, tag, count, bytes, hash;

    bool operator==(const Seal&) const = default;
  };

  void check(const std::vector<Message>& messages, const char* kind, size_t most) const;
  size_t sealed_bytes(const Message& message) const;
  Seal seal(const Message& message, int sender, const char* buffer) const;
  // End the run on all ranks if a message is not the expected one or has changed in transit.
  void compare_seal(size_t receive) const;
  void cut_into_pieces(const std::vector<Message>& messages, std::vector<Piece>& pieces,
                       std::vector<Progress>& progress) const;
  void note(const News& news);
  int rank_of(const Message& message) const;

  const Rank& rank_;
  const Subdomain& subdomain_;
  int32_t sweep_;       // number of the sweep
  double started_ = 0;  // start time, if the run is traced
  uint64_t count_ = 0;  // number of executions
  std::vector<Message> receives_, sends_;
  std::unique_ptr<Memory> buffer_;
  std::vector<Piece> packing_, unpacking_;
  std::vector<Progress> outgoing_, incoming_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  uint32_t all_ = 0;
  uint64_t awaited_ = 0;  // sends that must be complete before the next execution: all except colocated ones

  std::mutex polling_;  // held by the thread that polls
  alignas(64) std::atomic<uint64_t> packed_{0};
  std::atomic<uint32_t> landed_{0}, arrived_{0};
  std::atomic<size_t> open_{0}, unsent_{0};
};

}  // namespace halocline
