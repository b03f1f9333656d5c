#include "exchange/exchange.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "exchange/move.hpp"

namespace halocline {

namespace {

constexpr size_t kLine = 64;

// Return true if this rank packs the message into a buffer.
bool is_packed(const Message& message) { return message.method != Method::kColocated && message.packed; }

size_t bytes_of(const Message& message, const Storages& storages) {
  size_t sum = 0;
  for (const Part& part : message.parts) {
    sum += static_cast<size_t>(cells(extent(part.lo, part.hi))) * storages[part.storage]->itemsize();
  }
  return sum;
}

}  // namespace

Exchange::Exchange(const Rank& rank, const Subdomain& subdomain, const std::vector<Message>& sends,
                   const std::vector<Message>& receives, int32_t sweep)
    : rank_(rank),
      subdomain_(subdomain),
      sweep_(sweep),
      receives_(receives),
      sends_(sends),
      outgoing_(sends.size()),
      incoming_(receives.size()) {
  check(receives_, "receive", kMostReceives);
  check(sends_, "send", kMostSends);
  cut_into_pieces(receives_, unpacking_, incoming_);
  cut_into_pieces(sends_, packing_, outgoing_);

  // Buffers of packed messages. The send buffers of mailbox messages are in an MPI window.
  const auto has_buffer = [&](const Message& message, bool incoming) {
    return is_packed(message) && (message.method == Method::kMpi || incoming);
  };
  const auto room_of = [&](const Message& message) {
    return (sealed_bytes(message) + kLine - 1) / kLine * kLine;
  };
  size_t room = 0;
  for (const auto* messages : {&receives_, &sends_}) {
    for (const Message& message : *messages) {
      if (has_buffer(message, messages == &receives_)) room += room_of(message);
    }
  }
  buffer_ = std::make_unique<Memory>(room + kLine);
  char* next = buffer_->data();
  std::vector<Numbered> in, out;
  for (const auto* messages : {&receives_, &sends_}) {
    const bool incoming = messages == &receives_;
    for (size_t m = 0; m < messages->size(); ++m) {
      const Message& message = (*messages)[m];
      const bool uses_buffer = has_buffer(message, incoming);
      (incoming ? in : out).push_back({m, &message, uses_buffer ? next : nullptr, sealed_bytes(message)});
      if (incoming) incoming_[m].buffer = next;
      if (uses_buffer) next += room_of(message);
    }
  }

  const auto of = [](const std::vector<Numbered>& messages, Method method, bool packed) {
    std::vector<Numbered> some;
    for (const Numbered& m : messages) {
      if (m.message->method == method && m.message->packed == packed) some.push_back(m);
    }
    return some;
  };
  for (const auto& [method, packed] : {std::pair{Method::kColocated, true}, std::pair{Method::kRma, true},
                                       std::pair{Method::kMpi, true}, std::pair{Method::kMpi, false}}) {
    const std::vector<Numbered> sent = of(out, method, packed), received = of(in, method, packed);
    if (sent.empty() && received.empty()) continue;
    transfers_.push_back(method == Method::kColocated ? colocated_transfer(rank, subdomain, sent, received)
                         : method == Method::kRma     ? rma_transfer(rank, subdomain, sent, received)
                         : packed ? mpi_transfer(*rank.communicator, sent, received)
                                  : strided_transfer(*rank.communicator, subdomain, sent, received));
    for (const Numbered& m : received) incoming_[m.number].transfer = transfers_.back().get();
    for (const Numbered& m : sent) outgoing_[m.number].transfer = transfers_.back().get();
  }
  for (size_t m = 0; m < receives_.size(); ++m) all_ |= uint32_t{1} << m;
  for (size_t m = 0; m < sends_.size(); ++m) {
    if (sends_[m].method != Method::kColocated) awaited_ |= uint64_t{1} << m;
  }
}

std::vector<std::pair<size_t, size_t>> Exchange::mailboxes() const {
  std::vector<std::pair<size_t, size_t>> entries;
  for (const Message& message : sends_) {
    if (message.method != Method::kRma) continue;
    entries.emplace_back(static_cast<size_t>(message.tag) % Signals::kDirections, sealed_bytes(message));
  }
  return entries;
}

std::vector<Loan> Exchange::loans() const {
  std::vector<Loan> loans;
  for (const Message& message : sends_) {
    if (message.method != Method::kColocated) continue;
    const Neighbour& reader = rank_.neighbours[static_cast<size_t>(message.peer)];
    loans.push_back({&reader.signals, reader.rank, message.tag});
  }
  return loans;
}

void Exchange::cut_into_pieces(const std::vector<Message>& messages, std::vector<Piece>& pieces,
                               std::vector<Progress>& progress) const {
  for (size_t m = 0; m < messages.size(); ++m) {
    const bool packed = is_packed(messages[m]);
    const bool pulled = messages[m].method == Method::kColocated && &messages == &receives_;
    size_t offset = 0;
    progress[m].begin = pieces.size();
    for (const Part& part : messages[m].parts) {
      if (!packed && !pulled) break;  // the receiver or MPI copies the cells
      const size_t itemsize = subdomain_.storages[part.storage]->itemsize();
      const Storage* source =
          pulled ? rank_.neighbours[static_cast<size_t>(messages[m].peer)].storages[part.storage].get()
                 : nullptr;
      cut(part.lo, extent(part.lo, part.hi), itemsize, [&](const Index& lo, const Index& extent) {
        Index from = part.from;
        for (size_t axis = 0; axis < 3; ++axis) from[axis] += lo[axis] - part.lo[axis];
        pieces.push_back({static_cast<uint32_t>(m), part.storage, lo, extent, offset, source, from});
        offset += static_cast<size_t>(cells(extent)) * itemsize;
      });
    }
    progress[m].end = pieces.size();
  }
}

int Exchange::rank_of(const Message& message) const {
  return message.method == Method::kColocated ? rank_.neighbours[static_cast<size_t>(message.peer)].rank
                                              : message.peer;
}

void Exchange::check(const std::vector<Message>& messages, const char* kind, size_t most) const {
  if (messages.size() > most) {
    throw std::invalid_argument(std::to_string(messages.size()) + " messages to " + kind +
                                " in one sweep, expected at most " + std::to_string(most));
  }
  const Storages& storages = subdomain_.storages;
  for (const Message& message : messages) {
    const bool colocated = message.method == Method::kColocated;
    const std::string name = std::string("message to ") + kind + " with " +
                             (colocated ? "neighbour " : "peer ") + std::to_string(message.peer) +
                             " and tag " + std::to_string(message.tag);
    const auto expect = [&](bool good, const std::string& requirement) {
      if (good) return;
      std::string words = name;
      throw std::invalid_argument((words += ": expected ") += requirement);
    };
    const int peers = colocated ? static_cast<int>(rank_.neighbours.size()) : rank_.communicator->size();
    const int tags = message.method == Method::kMpi ? rank_.communicator->largest_tag()
                     : colocated                    ? static_cast<int>(Signals::kDirections) - 1
                                                    : std::numeric_limits<int>::max();
    expect(0 <= message.peer && message.peer < peers, "a peer below " + std::to_string(peers));
    expect(0 <= message.tag && message.tag <= tags,
           "a tag of at most " + std::to_string(tags) + (colocated ? "" : ": use fewer subdomains per rank"));
    expect(message.packed || message.method == Method::kMpi, "method mpi for an unpacked message");
    expect(message.method != Method::kRma || rank_.mailbox_plan.boxes > 0, "an engine with mailboxes");
    expect(!colocated || subdomain_.signals.counters, "a subdomain with signals");
    for (const Part& part : message.parts) {
      if (part.storage >= storages.size() || !storages[part.storage]->holds(part.lo, part.hi)) {
        throw std::invalid_argument(name + ": its box " + text(part.lo) + " to " + text(part.hi) +
                                    " is not within storage " + std::to_string(part.storage));
      }
      if (!colocated || &messages != &receives_) continue;
      const Storage& source = *rank_.neighbours[static_cast<size_t>(message.peer)].storages.at(part.storage);
      Index end = part.from;
      for (size_t axis = 0; axis < 3; ++axis) end[axis] += part.hi[axis] - part.lo[axis];
      expect(source.holds(part.from, end) && source.itemsize() == storages[part.storage]->itemsize(),
             "its box from " + text(part.from) + " to " + text(end) + " within the sender's storage " +
                 std::to_string(part.storage) + ", with an equal itemsize");
    }
    const size_t bytes = bytes_of(message, storages);
    if (!colocated && bytes > static_cast<size_t>(std::numeric_limits<int>::max())) {
      throw std::invalid_argument("the message of rank " + std::to_string(rank_.communicator->rank()) +
                                  " with rank " + std::to_string(message.peer) + " has " +
                                  std::to_string(bytes) +
                                  " bytes, but MPI allows at most 2^31 - 1: use more ranks");
    }
  }
}

size_t Exchange::sealed_bytes(const Message& message) const {
  const size_t bytes = bytes_of(message, subdomain_.storages);
  return rank_.checked && is_packed(message) ? bytes + sizeof(Seal) : bytes;
}

Exchange::Seal Exchange::seal(const Message& message, int sender, const char* buffer) const {
  const size_t bytes = bytes_of(message, subdomain_.storages);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (size_t n = 0; n < bytes; ++n) hash = (hash ^ static_cast<unsigned char>(buffer[n])) * 0x100000001b3;
  // The tag of a mailbox message contains the number of the other subdomain, so sender and receiver have
  // different tags. Only the direction is equal.
  const auto tag = static_cast<uint64_t>(message.tag) %
                   (message.method == Method::kRma ? Signals::kDirections : uint64_t{1} << 32);
  return {static_cast<uint64_t>(sweep_), static_cast<uint64_t>(sender), tag, count_, bytes, hash};
}

void Exchange::compare_seal(size_t receive) const {
  const Message& message = receives_[receive];
  if (!is_packed(message)) return;
  const char* buffer = incoming_[receive].buffer;
  Seal received_seal;
  std::memcpy(&received_seal, buffer + bytes_of(message, subdomain_.storages), sizeof received_seal);
  const Seal expected_seal = seal(message, message.peer, buffer);
  if (received_seal == expected_seal) return;
  const auto words = [](const Seal& s) {
    return "sweep " + std::to_string(s.sweep) + ", sender " + std::to_string(s.sender) + ", message " +
           std::to_string(s.tag) + ", number " + std::to_string(s.count) + ", " + std::to_string(s.bytes) +
           " bytes, hash " + std::to_string(s.hash);
  };
  rank_.communicator->abort("a message is not the expected one, or has changed in transit. Received: " +
                            words(received_seal) + "; expected: " + words(expected_seal));
}

void Exchange::start() {
  ++count_;
  if (rank_.messages_trace) started_ = now();
  packed_.store(0, std::memory_order_relaxed);
  landed_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  for (auto* messages : {&outgoing_, &incoming_}) {
    for (Progress& message : *messages) {
      message.next.store(message.begin, std::memory_order_relaxed);
      message.left.store(message.end - message.begin, std::memory_order_relaxed);
    }
  }
  for (size_t m = 0; m < outgoing_.size(); ++m) {
    if (outgoing_[m].begin == outgoing_[m].end) packed_.fetch_or(uint64_t{1} << m, std::memory_order_relaxed);
  }
  open_.store(receives_.size() + static_cast<size_t>(std::popcount(awaited_)), std::memory_order_relaxed);
  unsent_.store(sends_.size(), std::memory_order_relaxed);
  for (const auto& transfer : transfers_) transfer->start();
  for (size_t m = 0; m < outgoing_.size(); ++m) outgoing_[m].buffer = outgoing_[m].transfer->buffer(m);
}

void Exchange::skip() {
  arrived_.store(all_, std::memory_order_relaxed);
  landed_.store(all_, std::memory_order_relaxed);
  open_.store(0, std::memory_order_relaxed);
  unsent_.store(0, std::memory_order_relaxed);
}

void Exchange::pack(size_t piece) {
  const Piece& p = packing_[piece];
  halocline::pack(*subdomain_.storages[p.storage], p.lo, p.extent, outgoing_[p.message].buffer + p.offset);
  if (outgoing_[p.message].left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    if (rank_.checked) {
      const Message& message = sends_[p.message];
      char* buffer = outgoing_[p.message].buffer;
      const Seal message_seal = seal(message, rank_.communicator->rank(), buffer);
      std::memcpy(buffer + bytes_of(message, subdomain_.storages), &message_seal, sizeof message_seal);
    }
    packed_.fetch_or(uint64_t{1} << p.message, std::memory_order_release);
  }
}

void Exchange::progress(int thread) {
  const std::unique_lock lock(polling_, std::try_to_lock);
  if (!lock) return;
  const uint64_t packed = packed_.load(std::memory_order_acquire);
  for (const auto& transfer : transfers_) {
    const auto permission = transfer->uses_mpi() ? rank_.communicator->mpi_permission(thread)
                                                 : Communicator::MpiPermission::not_needed();
    if (permission) note(transfer->progress(packed));
  }
}

void Exchange::note(const News& news) {
  const auto sent = static_cast<size_t>(std::popcount(news.sent));
  const auto closed = static_cast<size_t>(std::popcount(news.closed));
  if (sent + closed == 0 && news.landed == 0) return;
  uint32_t empty = 0;
  for (uint32_t rest = rank_.checked ? news.landed : 0; rest != 0; rest &= rest - 1) {
    compare_seal(static_cast<size_t>(std::countr_zero(rest)));
  }
  if (rank_.messages_trace) {
    for (uint32_t rest = news.landed; rest != 0; rest &= rest - 1) {
      const Message& message = receives_[static_cast<size_t>(std::countr_zero(rest))];
      rank_.messages_trace->add_together(
          {EventKind::kMessage, sweep_, rank_of(message), message.tag, started_, now()});
    }
  }
  for (uint32_t rest = news.landed; rest != 0; rest &= rest - 1) {
    const auto m = static_cast<size_t>(std::countr_zero(rest));
    if (incoming_[m].begin != incoming_[m].end) continue;
    incoming_[m].transfer->taken(m);
    empty |= uint32_t{1} << m;
  }
  arrived_.fetch_or(empty, std::memory_order_release);
  landed_.fetch_or(news.landed, std::memory_order_release);
  unsent_.fetch_sub(sent, std::memory_order_release);
  const auto awaited = static_cast<size_t>(std::popcount(news.sent & awaited_));
  open_.fetch_sub(awaited + closed, std::memory_order_release);
}

bool Exchange::unpack(Trace* trace) {
  uint32_t waiting = landed_.load(std::memory_order_acquire) & ~arrived_.load(std::memory_order_relaxed);
  for (; waiting != 0; waiting &= waiting - 1) {
    const auto m = static_cast<size_t>(std::countr_zero(waiting));
    Progress& message = incoming_[m];
    if (message.next.load(std::memory_order_relaxed) >= message.end) continue;
    const size_t piece = message.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= message.end) continue;
    const Piece& p = unpacking_[piece];
    Storage& storage = *subdomain_.storages[p.storage];
    const Span span(trace, EventKind::kUnpack, sweep_, rank_of(receives_[m]), receives_[m].tag);
    if (p.source != nullptr) {
      copy(*p.source, p.from, storage, p.lo, p.extent);
    } else {
      halocline::unpack(storage, p.lo, p.extent, message.buffer + p.offset);
    }
    if (message.left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      message.transfer->taken(m);
      arrived_.fetch_or(uint32_t{1} << m, std::memory_order_release);
    }
    return true;
  }
  return false;
}

void Exchange::abort_after_wait(double seconds) const {
  std::string names;
  const auto add = [&](const Message& message, const char* direction) {
    names += (names.empty() ? "message " : ", message ") + std::to_string(message.tag) + direction +
             std::to_string(rank_of(message));
  };
  const uint32_t landed = landed_.load(std::memory_order_acquire);
  for (size_t m = 0; m < receives_.size(); ++m) {
    if ((landed >> m & 1) == 0) add(receives_[m], " from rank ");
  }
  if (names.empty()) {
    for (const Message& message : sends_) add(message, " to rank ");
  }
  rank_.communicator->abort_after_wait(seconds, names);
}

}  // namespace halocline
