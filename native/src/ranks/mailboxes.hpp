// Memory for messages between ranks by one-sided communication (MPI-RMA).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mpi/standard.hpp"
#include "ranks/communicator.hpp"

namespace halocline {

// Sizes of the mailboxes of one engine. An entry is a pair of a subdomain and a direction. All entries have
// the same number of mailboxes ("boxes").
struct MailboxPlan {
  size_t boxes = 0;              // mailboxes per entry; 0: no message uses mailboxes
  std::vector<size_t> capacity;  // bytes of the largest message of each entry

  size_t payload(size_t entry, size_t box) const;  // offset of the payload of a box
  size_t bytes() const;                            // total bytes of all payloads
};

// Mailboxes of a communicator, after P. Mendygral et al., WOMBAT (2017), Section 4.1.1. There is one MPI
// window per communicator, with one passive-target epoch that lasts as long as the window. The window begins
// with signals of 8 bytes. A signal announces a message that is ready at a neighbour, or a message that a
// neighbour has taken. The payloads follow the signals, each in the window of the sender.
//
// Only one side writes a signal, and the reader never resets it. The reader recognises a new signal by a
// number that differs from the previous one. A reset would be unsafe: MPI may still be writing when the new
// value is visible, and may write the value twice.
//
// Between runs all mailboxes are empty, so that several engines can use them one after the other.
class Mailboxes {
 public:
  // Return the mailboxes of a communicator.
  static Mailboxes& of(const Communicator& communicator);
  // Return true if windows have a unified memory model (MPI_WIN_UNIFIED). Collective.
  static bool unified(const Communicator& communicator);

  explicit Mailboxes(const Communicator& communicator) : communicator_(communicator) {}
  Mailboxes(const Mailboxes&) = delete;
  Mailboxes& operator=(const Mailboxes&) = delete;

  // Allocate a larger window if the window of any rank is too small. Collective. Throws OutOfMemory on all
  // ranks if a node has too little memory.
  void reserve(size_t subdomains, const MailboxPlan& plan);
  // Empty all mailboxes, between runs.
  void reset();
  // Number of times that the window was created, the same on all ranks.
  size_t generation() const { return generation_; }
  // Free the memory. Collective.
  void release();

  MPI_Win window() const { return window_; }
  // Offsets in bytes from the beginning of the window: of the signal for a ready message, of the signal for a
  // taken message, and of the payloads.
  size_t ready(size_t entry, size_t box) const { return (entry * boxes_ + box) * sizeof(uint64_t); }
  size_t taken(size_t entry, size_t box) const { return ready(entries_ + entry, box); }
  size_t payloads() const;
  char* at(size_t offset) const { return data_ + offset; }
  // Return true if the mailbox of the next message of an entry is free.
  bool has_free(size_t entry) const;
  // Return true if all sent messages are taken. The call drives the progress of MPI.
  bool empty() const;
  uint64_t load(size_t offset) const;

  // Each end counts its messages. The count selects the mailbox of the next message.
  std::vector<size_t> sent, received;  // number of messages so far, by entry
  size_t boxes() const { return boxes_; }

 private:
  // Throw OutOfMemory unless every node can allocate `bytes` of shared memory for each of its ranks.
  // Collective.
  void check_room(size_t bytes) const;
  bool is_taken(size_t entry, size_t count) const;  // message with the index `count`
  void store(size_t offset, uint64_t value) const;

  const Communicator communicator_;  // a copy: handles are plain values
  MPI_Win window_ = MPI_WIN_NULL;
  char* data_ = nullptr;
  size_t entries_ = 0, boxes_ = 0, room_ = 0, generation_ = 0;
};

}  // namespace halocline
