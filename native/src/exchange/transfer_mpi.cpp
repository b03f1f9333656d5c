// Transfer of packed messages by MPI.
#include <algorithm>

#include "exchange/persistent.hpp"

namespace halocline {

namespace {

class MpiTransfer : public PersistentTransfer {
 public:
  MpiTransfer(const Communicator& communicator, const std::vector<Numbered>& sends,
              const std::vector<Numbered>& receives)
      : PersistentTransfer(communicator, sends, receives) {
    requests_.assign(receives.size() + sends.size(), MPI_REQUEST_NULL);
    for (size_t m = 0; m < receives.size(); ++m) {
      const Numbered& r = receives[m];
      communicator.check(MPI_Recv_init(r.buffer, static_cast<int>(r.bytes), MPI_BYTE, r.message->peer,
                                       r.message->tag, communicator.handle(), &requests_[m]),
                         "MPI_Recv_init");
    }
    for (size_t m = 0; m < sends.size(); ++m) {
      const Numbered& s = sends[m];
      communicator.check(
          MPI_Send_init(s.buffer, static_cast<int>(s.bytes), MPI_BYTE, s.message->peer, s.message->tag,
                        communicator.handle(), &requests_[receives.size() + m]),
          "MPI_Send_init");
    }
  }

  ~MpiTransfer() override { free(requests_); }

  char* buffer(size_t number) override {
    return std::find_if(sends_.begin(), sends_.end(), [&](const Numbered& s) { return s.number == number; })
        ->buffer;
  }

 protected:
  std::vector<MPI_Request>& requests() override { return requests_; }

  void check_length(size_t receive, const MPI_Status& status) const override {
    check_count(receive, status, MPI_BYTE, static_cast<int>(receives_[receive].bytes));
  }

 private:
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Transfer> mpi_transfer(const Communicator& communicator, const std::vector<Numbered>& sends,
                                       const std::vector<Numbered>& receives) {
  return std::make_unique<MpiTransfer>(communicator, sends, receives);
}

}  // namespace halocline
