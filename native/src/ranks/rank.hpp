// One rank with its subdomains: what all operations of an engine work on.
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

// Where a subdomain and its neighbours in other processes tell each other how far they are: two numbers
// for each direction, in which a message leaves its sender: how often there was something to read, and, at
// the receiver, how often it was read.
struct Signals {
  std::shared_ptr<Counters> counters;
  size_t first = 0;  // of this subdomain

  static constexpr size_t kDirections = 27;
  std::atomic<uint64_t>& ready(int direction) const { return number(direction, 0); }
  std::atomic<uint64_t>& released(int direction) const { return number(direction, 1); }

 private:
  std::atomic<uint64_t>& number(int direction, size_t which) const {
    return (*counters)[first + 2 * static_cast<size_t>(direction) + which];
  }
};

// Cells that a neighbour reads where they are, in one direction: until it has, they must not be overwritten.
struct Loan {
  const Signals* reader;
  int rank;  // of the reader
  int direction;

  bool operator==(const Loan&) const = default;
};

struct Subdomain {
  Storages storages;
  Index origin;  // global index of cell (0, 0, 0)
  std::vector<hc_box> patches;
  std::vector<int> owners;  // the thread of each patch
  Signals signals;          // none: it has no neighbour in a process that shares memory with this one
  std::vector<Loan> loans;  // that any sweep of the engine gives

  // Whether the reader has read as often as it was told of.
  bool returned(const Loan& loan, uint64_t times) const {
    return loan.reader->released(loan.direction).load(std::memory_order_acquire) >= times;
  }
  uint64_t given(const Loan& loan) const {
    return signals.ready(loan.direction).load(std::memory_order_relaxed);
  }
};

// A subdomain of another process of the node, as this one sees it.
struct Neighbour {
  int rank;
  Storages storages;
  Signals signals;
};

// The subdomains of one rank and what they share.
struct Rank {
  Library library;
  double* scalars;
  size_t scalar_count;
  Index shape;  // of the whole grid
  int threads;
  double timeout;  // seconds without a message after which the run is given up
  Schedule schedule;
  bool checked;  // messages carry a seal, which is compared (HALOCLINE_CHECK)
  std::vector<Subdomain> subdomains;
  std::vector<Neighbour> neighbours;
  std::unique_ptr<Communicator> communicator{};  // none: one rank, and no call of MPI
  MailboxPlan mailbox_plan{};
  std::unique_ptr<Trace> messages_trace{};  // of the present run, where it is traced
  Trace* launches_trace = nullptr;          // the same of the thread that looks after devices
  // Of the present run; both but for measuring one without the other.
  bool messages = true, kernels = true;
  bool overlap = true;             // patches that need no message run before all have come
  Mailboxes* mailboxes = nullptr;  // of the communicator
  Allreduce* allreduce = nullptr;  // that is on its way while a sweep runs
  // What the thread that looks after devices does while it waits for messages: see Engine.
  std::function<void()> meanwhile{};

  size_t storage_count = SIZE_MAX;  // of each subdomain; any number where there is none
  bool ahead = false;  // in the present run a device knows scalars that the host does not (device::Ahead)

  bool alone() const { return !communicator || communicator->size() == 1; }
  // The number itself; throws std::invalid_argument where there is no such storage or scalar.
  uint32_t check_storage(int64_t number) const;
  size_t check_scalar(int64_t number) const;
};

}  // namespace halocline
