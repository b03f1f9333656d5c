// Transfer between processes that share memory. The sender signals that its cells are ready. The receiver
// copies the cells and signals completion. Only then may the sender overwrite the cells.
#include "exchange/transfer.hpp"

namespace halocline {

namespace {

class ColocatedTransfer : public Transfer {
 public:
  ColocatedTransfer(const Rank& rank, const Subdomain& subdomain, const std::vector<Numbered>& sends,
                    const std::vector<Numbered>& receives)
      : signals_(subdomain.signals) {
    for (const auto* messages : {&sends, &receives}) {
      for (const Numbered& m : *messages) {
        const Neighbour& peer = rank.neighbours[static_cast<size_t>(m.message->peer)];
        (messages == &sends ? sends_ : receives_).push_back({m.number, m.message->tag, &peer.signals});
      }
    }
    direction_.resize(32);
    for (const End& receive : receives_) direction_[receive.number] = receive.direction;
  }

  // The fields of this rank are complete after the previous sweep, so the neighbours may read them.
  void start() override {
    waiting_sends_ = waiting_receives_ = 0;
    for (const End& send : sends_) {
      waiting_sends_ |= uint64_t{1} << send.number;
      std::atomic<uint64_t>& ready = signals_.ready(send.direction);
      ready.store(ready.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    for (const End& receive : receives_) waiting_receives_ |= uint32_t{1} << receive.number;
  }

  News progress(uint64_t) override {
    News news;
    if (waiting_receives_ != 0) {
      for (const End& receive : receives_) {
        const uint32_t bit = uint32_t{1} << receive.number;
        if ((waiting_receives_ & bit) == 0) continue;
        const uint64_t read = signals_.released(receive.direction).load(std::memory_order_relaxed);
        if (receive.peer->ready(receive.direction).load(std::memory_order_acquire) > read) news.landed |= bit;
      }
      waiting_receives_ &= ~news.landed;
      news.closed = news.landed;
    }
    if (waiting_sends_ != 0) {
      for (const End& send : sends_) {
        const uint64_t bit = uint64_t{1} << send.number;
        if ((waiting_sends_ & bit) == 0) continue;
        const uint64_t ready = signals_.ready(send.direction).load(std::memory_order_relaxed);
        if (send.peer->released(send.direction).load(std::memory_order_acquire) >= ready) news.sent |= bit;
      }
      waiting_sends_ &= ~news.sent;
    }
    return news;
  }

  void taken(size_t m) override {
    std::atomic<uint64_t>& released = signals_.released(direction_[m]);
    released.store(released.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  bool uses_mpi() const override { return false; }

 private:
  struct End {
    size_t number;
    int direction;
    const Signals* peer;
  };

  const Signals& signals_;
  std::vector<End> sends_, receives_;
  std::vector<int> direction_;  // of each receive
  uint64_t waiting_sends_ = 0;
  uint32_t waiting_receives_ = 0;
};

}  // namespace

std::unique_ptr<Transfer> colocated_transfer(const Rank& rank, const Subdomain& subdomain,
                                             const std::vector<Numbered>& sends,
                                             const std::vector<Numbered>& receives) {
  return std::make_unique<ColocatedTransfer>(rank, subdomain, sends, receives);
}

}  // namespace halocline
