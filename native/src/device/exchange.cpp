#include "device/exchange.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace halocline::device {

namespace {

int direction(const Message& message) { return message.tag % static_cast<int>(Signals::kDirections); }

}  // namespace

Exchange::Exchange(const Rank& rank, Subdomain& domain, const std::vector<Message>& sends,
                   const std::vector<Message>& receives, int32_t sweep)
    : rank_(rank),
      subdomain_(domain),
      sweep_(sweep),
      sends_(packets(sends, true)),
      receives_(packets(receives, false)),
      moves_(domain) {
  for (auto* packets : {&sends_, &receives_}) {
    const bool out = packets == &sends_;
    for (Packet& packet : *packets) {
      size_t offset = 0;
      for (const size_t itemsize : {size_t{8}, size_t{4}}) {  // so that every cell is aligned
        for (const Part& part : packet.message.parts) {
          if (domain.storages()[part.storage]->itemsize() != itemsize) continue;
          const Index box = extent(part.lo, part.hi);
          if (!packet.message.packed) {
            add_rows(packet, part, offset);
          } else if (out) {
            moves_.pack(part.storage, part.lo, box, offset);
          } else {
            moves_.unpack(part.storage, part.lo, box, offset);
          }
          offset += static_cast<size_t>(cells(box)) * itemsize;
        }
      }
      packet.launch = moves_.close();
    }
  }
  moves_.upload();
  std::vector<Numbered> in, out;
  for (size_t m = 0; m < receives_.size(); ++m) {
    all_ |= uint32_t{1} << m;
    if (receives_[m].link() == nullptr) {
      in.push_back({m, &receives_[m].message, address(receives_[m]), receives_[m].bytes});
    }
  }
  for (size_t m = 0; m < sends_.size(); ++m) {
    all_sends_ |= uint64_t{1} << m;
    if (sends_[m].link() == nullptr) {
      out.push_back({m, &sends_[m].message, address(sends_[m]), sends_[m].bytes});
    }
  }
  links_ = in.size() < receives_.size() || out.size() < sends_.size();
  if (!in.empty() || !out.empty()) transfer_ = mpi_transfer(*rank.communicator, out, in);
}

void Exchange::add_rows(Packet& packet, const Part& part, size_t offset) const {
  const Storage& storage = *subdomain_.storages()[part.storage];
  const size_t item = storage.itemsize();
  const Index box = extent(part.lo, part.hi);
  for (int64_t plane = 0; plane < box[0]; ++plane) {
    const int64_t first = storage.at({part.lo[0] + plane, part.lo[1], part.lo[2]});
    const Rows rows{static_cast<size_t>(first) * item, static_cast<size_t>(storage.layout().s1) * item,
                    static_cast<size_t>(box[2]) * item, static_cast<size_t>(box[1])};
    packet.boxes.push_back({part.storage, rows, offset});
    offset += rows.bytes * rows.count;
  }
}

bool Exchange::copies_rows() const {
  const auto unpacked = [](const Packet& packet) { return !packet.message.packed; };
  return std::any_of(sends_.begin(), sends_.end(), unpacked) ||
         std::any_of(receives_.begin(), receives_.end(), unpacked);
}

void Exchange::copy_out(const Packet& packet, Queue& queue) const {
  for (const Packet::Box& box : packet.boxes) {
    const Buffer& field = subdomain_.storages()[box.storage]->buffer();
    if (packet.staged) {
      queue.download(packet.staged->data() + box.offset, field, box.rows);
    } else {
      queue.copy(*packet.buffer, box.rows.dense(box.offset), field, box.rows);
    }
  }
}

void Exchange::copy_in(const Packet& packet, Queue& queue) {
  for (const Packet::Box& box : packet.boxes) {
    Buffer& field = subdomain_.storages()[box.storage]->buffer();
    if (packet.staged) {
      queue.upload(field, box.rows, packet.staged->data() + box.offset);
    } else {
      queue.copy(field, box.rows, *packet.buffer, box.rows.dense(box.offset));
    }
  }
}

std::vector<Exchange::Packet> Exchange::packets(const std::vector<Message>& messages, bool sent) {
  const char* const kind = sent ? "send" : "receive";
  const size_t most = sent ? kMostSends : kMostReceives;
  if (messages.size() > most) {
    throw std::invalid_argument(std::to_string(messages.size()) + " messages to " + kind +
                                " in one sweep, expected at most " + std::to_string(most));
  }
  std::vector<Packet> result;
  for (const Message& message : messages) {
    const std::string name = std::string("message to ") + kind + " with peer " +
                             std::to_string(message.peer) + " and tag " + std::to_string(message.tag);
    const auto expect = [&](bool good, const std::string& requirement) {
      if (!good) throw std::invalid_argument(std::string(name).append(": expected ").append(requirement));
    };
    expect(message.method != Method::kRma, "a transfer method for devices");
    expect(message.packed || message.link == nullptr, "no link for an unpacked message");
    expect((message.method == Method::kColocated) == (message.link != nullptr),
           "a link if and only if the method is colocated");
    expect(0 <= message.peer && message.peer < rank_.communicator->size(),
           "a peer below " + std::to_string(rank_.communicator->size()));
    expect(0 <= message.tag && message.tag <= rank_.communicator->largest_tag(),
           "a tag of at most " + std::to_string(rank_.communicator->largest_tag()) +
               ": use fewer subdomains per rank");
    Packet packet;
    packet.message = message;
    for (const Part& part : message.parts) {
      expect(part.storage < subdomain_.storages().size() &&
                 subdomain_.storages()[part.storage]->holds(part.lo, part.hi),
             "its box " + text(part.lo) + " to " + text(part.hi) + " within storage " +
                 std::to_string(part.storage));
      packet.bytes += static_cast<size_t>(cells(extent(part.lo, part.hi))) *
                      subdomain_.storages()[part.storage]->itemsize();
    }
    expect(packet.bytes <= static_cast<size_t>(std::numeric_limits<int>::max()),
           "at most 2^31 - 1 bytes instead of " + std::to_string(packet.bytes) + ": use more ranks");
    if (const Link* link = message.link.get()) {
      expect(packet.bytes <= link->bytes() && (link->side() == Link::Side::kSend) == sent,
             std::string("a link for ") + (sent ? "sends" : "receives") + " of at least " +
                 std::to_string(packet.bytes) + " bytes");
    }
    const bool straight = !message.packed && message.method == Method::kMpi;  // between fields and the host
    if ((message.link == nullptr && !straight) || (message.link != nullptr && sent)) {
      packet.buffer = subdomain_.device().allocate(std::max<size_t>(packet.bytes, 8));
    }
    if (message.method == Method::kMpi)
      packet.staged = subdomain_.device().pinned(std::max<size_t>(packet.bytes, 8));
    expect(message.method != Method::kGpuAware || packet.buffer->address() != nullptr,
           "a device whose memory has addresses, such as a CUDA device");
    result.push_back(std::move(packet));
  }
  return result;
}

char* Exchange::address(const Packet& packet) const {
  return packet.staged ? packet.staged->data() : static_cast<char*>(packet.buffer->address());
}

void Exchange::start(const std::shared_ptr<Event>& begun) {
  begun_ = begun;
  if (rank_.messages_trace) started_ = now();
  packed_ = sent_ = 0;
  arrived_ = 0;
  packed_event_.reset();
  // The message of the previous execution must be unpacked before MPI receives into the same memory.
  for (Packet& packet : receives_) {
    if (packet.event && packet.link() == nullptr) packet.event->wait();
    packet.event.reset();
  }
  for (auto* packets : {&sends_, &receives_}) {
    for (Packet& packet : *packets) {
      if (packet.link() != nullptr) packet.link()->begin();
    }
  }
  if (transfer_) transfer_->start();
  if (sends_.empty()) return;
  Queue& packing = subdomain_.packing_queue();
  packing.wait(begun);
  for (Packet& packet : sends_) {
    if (packet.copied) packing.wait(packet.copied);
    mark(packing, EventKind::kPack, packet.message);
    if (packet.message.packed) {
      moves_(packing, packet.launch, nullptr, packet.buffer.get());
    } else {
      copy_out(packet, packing);
    }
    packet.event = packing.record();
  }
  packed_event_ = sends_.back().event;
  packing.flush();
  for (Packet& packet : sends_) {
    if (!packet.staged || !packet.message.packed) continue;
    Queue& queue = subdomain_.outgoing(direction(packet.message));
    queue.wait(packet.event);
    mark(queue, EventKind::kDownload, packet.message);
    queue.download(packet.staged->data(), *packet.buffer, 0, packet.bytes);
    packet.event = queue.record();
    queue.flush();
  }
}

void Exchange::skip() {
  packed_event_.reset();
  for (Packet& packet : receives_) packet.event.reset();
  arrived_ = all_;
  sent_ = packed_ = all_sends_;
}

void Exchange::progress(int thread) {
  if (complete()) return;
  const double start_time = rank_.launches_trace == nullptr ? 0.0 : now();
  const uint64_t sent = sent_ | packed_, arrived = arrived_;
  if (links_) progress_links();
  if (transfer_) progress_mpi(thread);
  if (rank_.launches_trace != nullptr && (arrived != arrived_ || sent != (sent_ | packed_))) {
    rank_.launches_trace->add({EventKind::kLaunch, sweep_, -1, -1, start_time, now()});
  }
}

void Exchange::note_message(EventKind kind, const Message& message, double begin) const {
  if (!rank_.messages_trace) return;
  rank_.messages_trace->add({kind, sweep_, message.peer, message.tag, begin, now()});
}

void Exchange::progress_links() {
  for (size_t m = 0; m < sends_.size(); ++m) {
    Packet& packet = sends_[m];
    const uint64_t bit = uint64_t{1} << m;
    if (packet.link() == nullptr || (sent_ & bit) != 0 || !packet.link()->ready()) continue;
    Queue& queue = subdomain_.outgoing(direction(packet.message));
    queue.wait(packet.event);
    packet.link()->await(queue);
    mark(queue, EventKind::kCopy, packet.message);
    queue.copy(packet.link()->buffer(), 0, *packet.buffer, 0, packet.bytes);
    packet.copied = queue.record();
    packet.link()->done(queue);
    sent_ |= bit;
  }
  for (size_t m = 0; m < receives_.size(); ++m) {
    Link* const link = receives_[m].link();
    if (link == nullptr || (arrived_ >> m & 1) != 0 || !link->ready()) continue;
    Queue& queue = subdomain_.incoming(direction(receives_[m].message));
    link->await(queue);
    unpack(m, queue);
    link->done(queue);
  }
}

void Exchange::progress_mpi(int thread) {
  for (size_t m = 0; m < sends_.size(); ++m) {
    const uint64_t bit = uint64_t{1} << m;
    if (sends_[m].link() == nullptr && (packed_ & bit) == 0 && sends_[m].event->done()) {
      packed_ |= bit;
      if (rank_.messages_trace) sends_[m].send_time = now();
    }
  }
  const auto permission = rank_.communicator->mpi_permission(thread);
  if (!permission) return;
  const News news = transfer_->progress(packed_);
  sent_ |= news.sent;
  for (uint64_t rest = news.sent; rest != 0; rest &= rest - 1) {
    const Packet& packet = sends_[static_cast<size_t>(std::countr_zero(rest))];
    note_message(EventKind::kSend, packet.message, packet.send_time);
  }
  for (uint32_t rest = news.landed; rest != 0; rest &= rest - 1) {
    const auto m = static_cast<size_t>(std::countr_zero(rest));
    Packet& packet = receives_[m];
    Queue& queue = subdomain_.incoming(direction(packet.message));
    note_message(EventKind::kMessage, packet.message, started_);
    mark(queue, EventKind::kUpload, packet.message);
    if (packet.staged && packet.message.packed) {
      queue.upload(*packet.buffer, 0, packet.staged->data(), packet.bytes);
    }
    unpack(m, queue);
    transfer_->taken(m);
  }
}

void Exchange::unpack(size_t m, Queue& queue) {
  Packet& packet = receives_[m];
  queue.wait(begun_);
  mark(queue, EventKind::kUnpack, packet.message);
  if (packet.message.packed) {
    moves_(queue, packet.launch, nullptr, &packet.place());
  } else {
    copy_in(packet, queue);
  }
  packet.event = queue.record();
  queue.flush();
  arrived_ |= uint32_t{1} << m;
}

void Exchange::await(Queue& queue, uint32_t receives) const {
  for (uint32_t rest = receives; rest != 0; rest &= rest - 1) {
    const auto& event = receives_[static_cast<size_t>(std::countr_zero(rest))].event;
    if (event) queue.wait(event);
  }
}

void Exchange::abort_after_wait(double seconds) const {
  std::string names;
  const auto add = [&](const Message& message, const char* direction) {
    names += (names.empty() ? "message " : ", message ") + std::to_string(message.tag) + direction +
             std::to_string(message.peer);
  };
  for (size_t m = 0; m < receives_.size(); ++m) {
    if ((arrived_ >> m & 1) == 0) add(receives_[m].message, " from rank ");
  }
  for (size_t m = 0; m < sends_.size() && names.empty(); ++m) {
    if ((sent_ >> m & 1) == 0) add(sends_[m].message, " to rank ");
  }
  rank_.communicator->abort_after_wait(seconds, names);
}

}  // namespace halocline::device
