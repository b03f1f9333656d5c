// One rank with its subdomains: the common data of all operations of an engine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "halocline/abi.h"
#include "ranks/communicator.hpp"
#include "ranks/library.hpp"
#include "ranks/mailboxes.hpp"
#include "storage/counters.hpp"
#include "storage/storage.hpp"
#include "threads/trace.hpp"
#include "threads/work.hpp"

namespace halocline {

class Allreduce;

using Storages = std::vector<std::shared_ptr<Storage>>;

// Progress counters between a subdomain and its neighbours in other processes. Each direction of messages,
// seen from the sender, has two counters. The sender counts ready messages in `ready`. The receiver counts
// the messages that it has read in `released`.
struct Signals {
  std::shared_ptr<Counters> counters;
  size_t first = 0;  // index of the first counter of this subdomain

  static constexpr size_t kDirections = 27;
  std::atomic<uint64_t>& ready(int direction) const { return number(direction, 0); }
  std::atomic<uint64_t>& released(int direction) const { return number(direction, 1); }

 private:
  std::atomic<uint64_t>& number(int direction, size_t counter) const {
    return (*counters)[first + 2 * static_cast<size_t>(direction) + counter];
  }
};

// Loan: cells that a neighbour reads in place, in one direction. The cells must not be overwritten before the
// neighbour has read them.
struct Loan {
  const Signals* reader;
  int rank;  // rank of the reader
  int direction;

  bool operator==(const Loan&) const = default;
};

struct Subdomain {
  Storages storages;
  Index origin;  // global index of cell (0, 0, 0)
  std::vector<hc_box> patches;
  std::vector<int> owners;  // thread of each patch
  Signals signals;          // empty if no neighbour is in another process of the node
  std::vector<Loan> loans;  // loans of all sweeps of the engine

  // Return true if the reader has read at least `times` messages.
  bool returned(const Loan& loan, uint64_t times) const {
    return loan.reader->released(loan.direction).load(std::memory_order_acquire) >= times;
  }
  uint64_t lent_count(const Loan& loan) const {
    return signals.ready(loan.direction).load(std::memory_order_relaxed);
  }
};

// Subdomain of another process of the node, with views of its memory in this process.
struct Neighbour {
  int rank;
  Storages storages;
  Signals signals;
};

// Subdomains of one rank and their common data.
struct Rank {
  Library library;
  double* scalars;
  size_t scalar_count;
  Index shape;  // global shape of the grid
  int threads;
  double timeout;  // limit in seconds of a wait for a message, after which the run is aborted
  Schedule schedule;
  bool checked;  // messages contain a checksum, which the receiver verifies (HALOCLINE_CHECK)
  std::vector<Subdomain> subdomains;
  std::vector<Neighbour> neighbours;
  std::unique_ptr<Communicator> communicator{};  // empty for one rank without MPI
  MailboxPlan mailbox_plan{};
  std::unique_ptr<Trace> messages_trace{};  // events of messages in the current run, if traced
  Trace* launches_trace = nullptr;          // events of the thread that queues work of devices
  // Settings of the current run. `messages` or `kernels` is false if the other is measured alone.
  bool messages = true, kernels = true;
  bool overlap = true;             // patches that need no message run before all messages have arrived
  Mailboxes* mailboxes = nullptr;  // mailboxes of the communicator
  Allreduce* allreduce = nullptr;  // reduction in progress during a sweep
  // Work that the thread of the devices does while it waits for messages (see Engine).
  std::function<void()> meanwhile{};

  size_t storage_count = SIZE_MAX;  // per subdomain; SIZE_MAX if there is no subdomain
  bool asynchronous =
      false;  // scalars of the current run are newer on a device than on the host (device::AsyncRun)

  bool alone() const { return !communicator || communicator->size() == 1; }
  // Return the number. Throws std::invalid_argument if no storage or scalar has this number.
  uint32_t check_storage(int64_t number) const;
  size_t check_scalar(int64_t number) const;
};

}  // namespace halocline
