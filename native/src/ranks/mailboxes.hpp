// The memory through which ranks leave each other messages by one-sided communication (MPI-RMA).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ranks/communicator.hpp"

namespace halocline {

// Where the mailboxes of one engine's messages begin: some for each subdomain of the rank and direction.
struct MailboxPlan {
  size_t boxes = 0;              // for each message; 0: none travels so
  std::vector<size_t> capacity;  // bytes of the largest message of each subdomain and direction

  size_t payload(size_t entry, size_t box) const;  // offset of the payload of a box
  size_t bytes() const;                            // of all payloads
};

// One window a communicator, in one passive epoch that lasts as long as the window. A section of it holds
// 8-byte signals: of messages that are ready at a neighbour, and of messages that a neighbour has taken.
// Payloads lie at their senders. After P. Mendygral et al., WOMBAT (2017), Section 4.1.1.
//
// A signal is written by the one end and never reset by the other, which knows it by a number that differs
// from that of the last: MPI may still be writing when the new value can be seen, and write it twice.
//
// Between runs all mailboxes are empty, so that engines take turns.
class Mailboxes {
 public:
  // That of a communicator.
  static Mailboxes& of(const Communicator& communicator);
  // Whether windows here are of one memory, public and private (MPI_WIN_UNIFIED); collective.
  static bool unified(const Communicator& communicator);

  explicit Mailboxes(const Communicator& communicator) : communicator_(communicator) {}
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;

  // Collective: makes room where there is too little on any rank. Throws OutOfMemory on all ranks where one
  // of their nodes has none.
  void reserve(size_t subdomains, const MailboxPlan& plan);
  // Between runs: empties all.
  void reset();
  // How often the window was made anew, the same on all ranks.
  size_t generation() const { return generation_; }
  // Collective: gives the memory back.
  void release();

  MPI_Win window() const { return window_; }
  // Bytes from the beginning of the window: of the signal that a message is ready, of the one that it was
  // taken, and of the payloads.
  size_t ready(size_t entry, size_t box) const { return (entry * boxes_ + box) * sizeof(uint64_t); }
  size_t taken(size_t entry, size_t box) const { return ready(entries_ + entry, box); }
  size_t payloads() const;
  char* at(size_t offset) const { return data_ + offset; }
  // Whether the next message from here has a mailbox that is free.
  bool has_free(size_t entry) const;
  // Whether all that was sent is taken; drives MPI.
  bool empty() const;
  uint64_t load(size_t offset) const;

  // The mailbox of the next message from or to here; each end counts.
  std::vector<size_t> sent, received;  // by entry: messages so far
  size_t boxes() const { return boxes_; }

 private:
  // Collective: throws OutOfMemory unless the ranks of every node can share so many bytes each.
  void check_room(size_t bytes) const;
  bool is_taken(size_t entry, size_t count) const;  // the message after so many
  void store(size_t offset, uint64_t value) const;

  const Communicator communicator_;  // handles are plain values
  MPI_Win window_ = MPI_WIN_NULL;
  char* data_ = nullptr;
  size_t entries_ = 0, boxes_ = 0, room_ = 0, generation_ = 0;
};

}  // namespace halocline
