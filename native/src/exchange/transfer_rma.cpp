// Transfer through mailboxes, after P. Mendygral et al., WOMBAT (2017), Section 4.1.1. The sender packs the
// payload into its own window and writes a signal into the window of the receiver. The receiver reads the
// signal, gets the payload, and signals completion.
#include <array>
#include <atomic>
#include <stdexcept>

#include "exchange/transfer.hpp"
#include "mpi/standard.hpp"
#include "ranks/mailboxes.hpp"

namespace halocline {

namespace {

// A signal contains the position of the payload in the window of the sender (in cache lines) and the number
// of bytes. An alternating bit distinguishes the signal from the previous signal in the same mailbox.
constexpr size_t kLine = 64;
constexpr uint64_t kTurn = uint64_t{1} << 63;
uint64_t turn_of(size_t count, size_t boxes) { return count / boxes % 2 == 0 ? kTurn : 0; }
uint64_t signal_of(uint64_t turn, size_t offset, size_t bytes) {
  return turn | uint64_t{offset / kLine} << 32 | bytes;
}
size_t offset_of(uint64_t signal) { return ((signal & ~kTurn) >> 32) * kLine; }
size_t bytes_of(uint64_t signal) { return signal & 0xffffffffU; }

constexpr size_t kDirections = Signals::kDirections;

class RmaTransfer : public Transfer {
 public:
  RmaTransfer(const Rank& rank, const Subdomain& subdomain, const std::vector<Numbered>& sends,
              const std::vector<Numbered>& receives)
      : rank_(rank), communicator_(*rank.communicator), acknowledged_(32) {
    const auto subdomain_index = static_cast<size_t>(&subdomain - rank.subdomains.data());
    for (const auto* messages : {&sends, &receives}) {
      for (const Numbered& m : *messages) {
        const auto remote_entry = static_cast<size_t>(m.message->tag);
        const size_t entry = subdomain_index * kDirections + remote_entry % kDirections;
        (messages == &sends ? sends_ : receives_)
            .push_back({m.number, m.message->peer, entry, remote_entry, m.bytes, m.buffer, 0, 0, State::kIdle,
                        MPI_REQUEST_NULL, 0});
      }
    }
  }

  void start() override {
    Mailboxes& mailboxes = *rank_.mailboxes;
    for (End& send : sends_) {
      send.count = mailboxes.sent[send.entry]++;
      send.box = send.count % mailboxes.boxes();  // the previous sweep waited until this box was free
      send.state = State::kWaiting;
    }
    for (End& receive : receives_) {
      receive.count = mailboxes.received[receive.entry]++;
      receive.box = receive.count % mailboxes.boxes();
      receive.state = State::kWaiting;
      acknowledged_[receive.number].store(false, std::memory_order_relaxed);
    }
  }

  char* buffer(size_t number) override {
    for (const End& send : sends_) {
      if (send.number == number) {
        return rank_.mailboxes->at(rank_.mailboxes->payloads() +
                                   rank_.mailbox_plan.payload(send.entry, send.box));
      }
    }
    throw std::logic_error("a message of another transfer");
  }

  News progress(uint64_t packed) override {
    News news;
    communicator_.check(MPI_Win_sync(rank_.mailboxes->window()), "MPI_Win_sync");
    bool idle = true;
    for (End& send : sends_) {
      if (send.state == State::kDone) continue;
      progress_send(send, (packed >> send.number & 1) != 0);
      if (send.state == State::kDone) {
        news.sent |= uint64_t{1} << send.number;
        idle = false;
      }
    }
    for (End& receive : receives_) {
      if (receive.state == State::kDone) continue;
      const State before = receive.state;
      progress_receive(receive);
      if (before != State::kLanded && receive.state == State::kLanded) {
        news.landed |= uint32_t{1} << receive.number;
      }
      if (receive.state == State::kDone) news.closed |= uint32_t{1} << receive.number;
      idle = idle && receive.state == before;
    }
    if (idle) {  // if MPI emulates RMA by messages, the target must poll
      int flag = 0;
      communicator_.check(
          MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_.handle(), &flag, MPI_STATUS_IGNORE),
          "MPI_Iprobe");
    }
    return news;
  }

  void taken(size_t number) override { acknowledged_[number].store(true, std::memory_order_release); }
  bool uses_mpi() const override { return true; }

 private:
  // States of a send: kWaiting until the message is packed, kMoving during the put of its signal, kLanded
  // while the next mailbox is full. States of a receive: kWaiting for the signal, kMoving during the get of
  // the payload, kLanded until the message is unpacked, kAnswering during the put of the completion signal.
  enum class State { kIdle, kWaiting, kMoving, kLanded, kAnswering, kDone };
  struct End {
    size_t number;
    int peer;
    size_t entry, there;  // entries of this subdomain and of the other subdomain
    size_t bytes;
    char* buffer;
    size_t count;  // number of previous messages
    size_t box;
    State state;
    MPI_Request request = MPI_REQUEST_NULL;
    uint64_t signal;
  };

  void put_signal(End& end, size_t offset) {
    communicator_.check(
        MPI_Raccumulate(&end.signal, 1, MPI_UINT64_T, end.peer, static_cast<MPI_Aint>(offset), 1,
                        MPI_UINT64_T, MPI_REPLACE, rank_.mailboxes->window(), &end.request),
        "MPI_Raccumulate");
  }

  bool moved(End& end) {
    int done = 0;
    communicator_.check(MPI_Test(&end.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

  void progress_send(End& send, bool packed) {
    const Mailboxes& mailboxes = *rank_.mailboxes;
    if (send.state == State::kWaiting && packed) {
      const size_t offset = mailboxes.payloads() + rank_.mailbox_plan.payload(send.entry, send.box);
      send.signal = signal_of(turn_of(send.count, mailboxes.boxes()), offset, send.bytes);
      put_signal(send, mailboxes.ready(send.there, send.box));
      send.state = State::kMoving;
    }
    if (send.state == State::kMoving && moved(send)) send.state = State::kLanded;
    if (send.state == State::kLanded && mailboxes.has_free(send.entry)) send.state = State::kDone;
  }

  void progress_receive(End& receive) {
    const Mailboxes& mailboxes = *rank_.mailboxes;
    if (receive.state == State::kWaiting) {
      const uint64_t signal = mailboxes.load(mailboxes.ready(receive.entry, receive.box));
      if ((signal & kTurn) != turn_of(receive.count, mailboxes.boxes())) return;
      if (bytes_of(signal) != receive.bytes) {
        communicator_.abort("the mailbox message from rank " + std::to_string(receive.peer) + " has " +
                            std::to_string(bytes_of(signal)) + " bytes, expected " +
                            std::to_string(receive.bytes) + ": the ranks have different plans");
      }
      const int count = static_cast<int>(receive.bytes);
      communicator_.check(
          MPI_Rget(receive.buffer, count, MPI_BYTE, receive.peer, static_cast<MPI_Aint>(offset_of(signal)),
                   count, MPI_BYTE, mailboxes.window(), &receive.request),
          "MPI_Rget");
      receive.state = State::kMoving;
    }
    if (receive.state == State::kMoving) {
      if (moved(receive)) receive.state = State::kLanded;
      return;
    }
    if (receive.state == State::kLanded && acknowledged_[receive.number].load(std::memory_order_acquire)) {
      receive.signal = receive.count + 1;
      put_signal(receive, mailboxes.taken(receive.there, receive.box));
      receive.state = State::kAnswering;
    }
    if (receive.state == State::kAnswering && moved(receive)) receive.state = State::kDone;
  }

  const Rank& rank_;
  const Communicator& communicator_;
  std::vector<End> sends_, receives_;
  std::vector<std::atomic<bool>> acknowledged_;
};

}  // namespace

std::unique_ptr<Transfer> rma_transfer(const Rank& rank, const Subdomain& subdomain,
                                       const std::vector<Numbered>& sends,
                                       const std::vector<Numbered>& receives) {
  return std::make_unique<RmaTransfer>(rank, subdomain, sends, receives);
}

}  // namespace halocline
