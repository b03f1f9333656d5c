#include "exchange.hpp"

#include <bit>
#include <limits>
#include <stdexcept>

#include "transfer.hpp"

namespace halocline {

namespace {

constexpr size_t kLine = 64;

size_t bytes_of(const Message& message, const Storages& storages) {
  size_t sum = 0;
  for (const Part& part : message.parts) {
    sum += static_cast<size_t>(cells(extent(part.lo, part.hi))) * storages[part.storage]->itemsize();
  }
  return sum;
}

}  // namespace

Exchange::Exchange(const Communicator& communicator, const Storages& storages,
                   const std::vector<Message>& sends, const std::vector<Message>& receives)
    : communicator_(communicator),
      storages_(storages),
      receives_(receives),
      sends_(sends),
      outgoing_(sends.size()),
      incoming_(receives.size()) {
  check(receives, "receive", kMostReceives);
  check(sends, "send", kMostSends);
  size_t room = 0;
  std::vector<size_t> offsets;
  for (const auto* messages : {&receives_, &sends_}) {
    for (const Message& message : *messages) {
      bytes_.push_back(bytes_of(message, storages));
      if (bytes_.back() > static_cast<size_t>(std::numeric_limits<int>::max())) {
        throw std::invalid_argument("the message of rank " + std::to_string(communicator.rank()) +
                                    " with rank " + std::to_string(message.peer) + " has " +
                                    std::to_string(bytes_.back()) +
                                    " bytes, more than MPI can count: use more ranks");
      }
      offsets.push_back(room);
      room += (bytes_.back() + kLine - 1) / kLine * kLine;
    }
  }
  buffer_ = std::make_unique<Memory>(room + kLine);

  const auto lay_out = [&](const std::vector<Message>& messages, size_t first, std::vector<Piece>& pieces,
                           std::vector<Progress>& progress) {
    for (size_t m = 0; m < messages.size(); ++m) {
      char* buffer = buffer_->data() + offsets[first + m];
      progress[m].begin = pieces.size();
      for (const Part& part : messages[m].parts) {
        const size_t itemsize = storages[part.storage]->itemsize();
        cut(part.lo, extent(part.lo, part.hi), itemsize, [&](const Index& lo, const Index& extent) {
          pieces.push_back({static_cast<uint32_t>(m), part.storage, lo, extent, buffer});
          buffer += static_cast<size_t>(cells(extent)) * itemsize;
        });
      }
      progress[m].end = pieces.size();
    }
  };
  lay_out(receives_, 0, unpacking_, incoming_);
  lay_out(sends_, receives_.size(), packing_, outgoing_);

  const size_t n = bytes_.size();
  requests_.assign(n, MPI_REQUEST_NULL);
  finished_.resize(n);
  statuses_.resize(n);
  for (size_t m = 0; m < receives_.size(); ++m) all_ |= uint32_t{1} << m;
  for (size_t m = 0; m < n; ++m) {
    const bool incoming = m < receives_.size();
    const Message& message = incoming ? receives_[m] : sends_[m - receives_.size()];
    void* data = buffer_->data() + offsets[m];
    const int count = static_cast<int>(bytes_[m]);
    const auto init = incoming ? [](void* b, int c, int p, int t, MPI_Comm w,
                                    MPI_Request* r) { return MPI_Recv_init(b, c, MPI_BYTE, p, t, w, r); }
                               : [](void* b, int c, int p, int t, MPI_Comm w, MPI_Request* r) {
                                   return MPI_Send_init(b, c, MPI_BYTE, p, t, w, r);
                                 };
    communicator.check(init(data, count, message.peer, message.tag, communicator.handle(), &requests_[m]),
                       incoming ? "MPI_Recv_init" : "MPI_Send_init");
  }
}

Exchange::~Exchange() {
  if (!mpi_running()) return;
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

void Exchange::check(const std::vector<Message>& messages, const char* kind, size_t most) const {
  if (messages.size() > most) {
    throw std::invalid_argument(std::to_string(messages.size()) + " messages to " + kind +
                                " in one sweep, expected at most " + std::to_string(most));
  }
  for (const Message& message : messages) {
    const std::string name = std::string("message to ") + kind + " with peer " +
                             std::to_string(message.peer) + " and tag " + std::to_string(message.tag);
    if (message.peer < 0 || message.peer >= communicator_.size()) {
      throw std::invalid_argument(name + ": expected a peer below " + std::to_string(communicator_.size()));
    }
    if (message.tag < 0 || message.tag > communicator_.largest_tag()) {
      throw std::invalid_argument(name + ": expected a tag of at most " +
                                  std::to_string(communicator_.largest_tag()) +
                                  ": use fewer subdomains a rank");
    }
    for (const Part& part : message.parts) {
      if (part.storage >= storages_.size() || !storages_[part.storage]->holds(part.lo, part.hi)) {
        throw std::invalid_argument(name + ": its box " + text(part.lo) + " to " + text(part.hi) +
                                    " is not within storage " + std::to_string(part.storage));
      }
    }
  }
}

void Exchange::start() {
  packed_.store(0, std::memory_order_relaxed);
  landed_.store(0, std::memory_order_relaxed);
  arrived_.store(0, std::memory_order_relaxed);
  started_ = 0;
  for (auto* messages : {&outgoing_, &incoming_}) {
    for (Progress& message : *messages) {
      message.next.store(message.begin, std::memory_order_relaxed);
      message.left.store(message.end - message.begin, std::memory_order_relaxed);
    }
  }
  for (size_t m = 0; m < outgoing_.size(); ++m) {
    if (outgoing_[m].begin == outgoing_[m].end) packed_.fetch_or(uint64_t{1} << m, std::memory_order_relaxed);
  }
  open_.store(requests_.size(), std::memory_order_relaxed);
  if (!receives_.empty()) {
    communicator_.check(MPI_Startall(static_cast<int>(receives_.size()), requests_.data()), "MPI_Startall");
  }
}

void Exchange::pack(size_t piece) {
  const Piece& p = packing_[piece];
  halocline::pack(*storages_[p.storage], p.lo, p.extent, p.buffer);
  if (outgoing_[p.message].left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    packed_.fetch_or(uint64_t{1} << p.message, std::memory_order_release);
  }
}

void Exchange::progress(int thread) {
  if (thread != 0 && !communicator_.any_thread()) return;
  const std::unique_lock lock(polling_, std::try_to_lock);
  if (!lock) return;
  for (uint64_t ready = packed_.load(std::memory_order_acquire) & ~started_; ready != 0; ready &= ready - 1) {
    const auto m = static_cast<size_t>(std::countr_zero(ready));
    communicator_.check(MPI_Start(&requests_[receives_.size() + m]), "MPI_Start");
    started_ |= uint64_t{1} << m;
  }
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                finished_.data(), statuses_.data());
  if (code != MPI_ERR_IN_STATUS) communicator_.check(code, "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return;
  for (size_t n = 0; n < static_cast<size_t>(count); ++n) {
    if (code == MPI_ERR_IN_STATUS) communicator_.check(statuses_[n].MPI_ERROR, "MPI_Testsome");
    finish(finished_[n], statuses_[n]);
  }
  open_.fetch_sub(static_cast<size_t>(count), std::memory_order_release);
}

void Exchange::finish(int index, const MPI_Status& status) {
  const auto m = static_cast<size_t>(index);
  if (m >= receives_.size()) return;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  if (static_cast<size_t>(count) != bytes_[m]) {
    communicator_.abort("message " + std::to_string(receives_[m].tag) + " from rank " +
                        std::to_string(receives_[m].peer) + " has " + std::to_string(count) +
                        " bytes, expected " + std::to_string(bytes_[m]) + ": the ranks have different plans");
  }
  const uint32_t bit = uint32_t{1} << m;
  if (incoming_[m].begin == incoming_[m].end) arrived_.fetch_or(bit, std::memory_order_release);
  landed_.fetch_or(bit, std::memory_order_release);
}

bool Exchange::unpack() {
  uint32_t waiting = landed_.load(std::memory_order_acquire) & ~arrived_.load(std::memory_order_relaxed);
  for (; waiting != 0; waiting &= waiting - 1) {
    Progress& message = incoming_[static_cast<size_t>(std::countr_zero(waiting))];
    if (message.next.load(std::memory_order_relaxed) >= message.end) continue;
    const size_t piece = message.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= message.end) continue;
    const Piece& p = unpacking_[piece];
    halocline::unpack(*storages_[p.storage], p.lo, p.extent, p.buffer);
    if (message.left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      arrived_.fetch_or(uint32_t{1} << p.message, std::memory_order_release);
    }
    return true;
  }
  return false;
}

void Exchange::give_up(double seconds) const {
  std::string names;
  const auto add = [&](const Message& message, const char* direction) {
    names += (names.empty() ? "message " : ", message ") + std::to_string(message.tag) + direction +
             std::to_string(message.peer);
  };
  const uint32_t landed = landed_.load(std::memory_order_acquire);
  for (size_t m = 0; m < receives_.size(); ++m) {
    if ((landed >> m & 1) == 0) add(receives_[m], " from rank ");
  }
  if (names.empty()) {
    for (const Message& message : sends_) add(message, " to rank ");
  }
  communicator_.give_up(seconds, names);
}

}  // namespace halocline
