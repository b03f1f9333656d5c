// The messages of one sweep.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "communicator.hpp"
#include "storage.hpp"

namespace halocline {

using Storages = std::vector<std::shared_ptr<Storage>>;

// A box of one storage.
struct Part {
  uint32_t storage;
  Index lo, hi;
};

// What goes to, or comes from, one peer: its parts one after the other.
struct Message {
  int peer;
  int tag;
  std::vector<Part> parts;
};

// Packs, sends, receives and unpacks with persistent requests. Nothing blocks: threads take pieces of
// packing and unpacking and poll.
class Exchange {
 public:
  static constexpr size_t kMostReceives = 32;  // bits of `arrived`
  static constexpr size_t kMostSends = 64;

  // Throws std::invalid_argument for messages that cannot be.
  Exchange(const Communicator& communicator, const Storages& storages, const std::vector<Message>& sends,
           const std::vector<Message>& receives);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Starts the receives; one thread, while no other works on this exchange.
  void start();
  // How many pieces there are to pack.
  size_t pieces() const { return packing_.size(); }
  // Packs one piece; each must be packed once after each start.
  void pack(size_t piece);
  // Sends what is packed and notes what has come. Any thread, any number of times.
  void progress(int thread);
  // Unpacks one piece of what has come; false where there is none.
  bool unpack();

  // Bit m: receive m is unpacked.
  uint32_t arrived() const { return arrived_.load(std::memory_order_acquire); }
  bool all_arrived() const { return arrived() == all_; }
  // Everything is sent and has come (but may still have to be unpacked).
  bool complete() const { return open_.load(std::memory_order_acquire) == 0; }
  // Ends the run on all ranks, naming what has not come or is not sent after so many seconds.
  [[noreturn]] void give_up(double seconds) const;

 private:
  struct Piece {
    uint32_t message, storage;
    Index lo, extent;
    char* buffer;
  };
  // The pieces [begin, end) of one message.
  struct Progress {
    size_t begin = 0, end = 0;
    std::atomic<size_t> next{0}, left{0};
  };

  void check(const std::vector<Message>& messages, const char* kind, size_t most) const;
  void finish(int index, const MPI_Status& status);

  const Communicator& communicator_;
  const Storages& storages_;
  std::vector<Message> receives_, sends_;
  std::vector<size_t> bytes_;  // receives, then sends
  std::unique_ptr<Memory> buffer_;
  std::vector<Piece> packing_, unpacking_;
  std::vector<Progress> outgoing_, incoming_;
  std::vector<MPI_Request> requests_;  // receives, then sends
  std::vector<int> finished_;          // results of MPI_Testsome
  std::vector<MPI_Status> statuses_;
  uint32_t all_ = 0;

  std::mutex polling_;    // held by the one thread that calls MPI
  uint64_t started_ = 0;  // bit m: send m; under polling_
  alignas(64) std::atomic<uint64_t> packed_{0};
  std::atomic<uint32_t> landed_{0}, arrived_{0};
  std::atomic<size_t> open_{0};
};

}  // namespace halocline
