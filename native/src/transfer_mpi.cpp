// Messages of MPI: persistent requests.
#include <mpi.h>

#include <algorithm>
#include <bit>

#include "transfer.hpp"

namespace halocline {

namespace {

class MpiTransfer : public Transfer {
 public:
  MpiTransfer(const Communicator& communicator, const std::vector<Numbered>& sends,
              const std::vector<Numbered>& receives)
      : communicator_(communicator), receives_(receives), sends_(sends) {
    const size_t n = receives.size() + sends.size();
    requests_.assign(n, MPI_REQUEST_NULL);
    finished_.resize(n);
    statuses_.resize(n);
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
      all_ |= uint64_t{1} << s.number;
    }
  }

  ~MpiTransfer() override {
    if (!mpi_running()) return;
    for (MPI_Request& request : requests_) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
  }

  void start() override {
    started_ = 0;
    if (receives_.empty()) return;
    communicator_.check(MPI_Startall(static_cast<int>(receives_.size()), requests_.data()), "MPI_Startall");
  }

  News progress(uint64_t packed) override {
    if ((packed & all_ & ~started_) != 0) {
      for (size_t m = 0; m < sends_.size(); ++m) {
        const uint64_t bit = uint64_t{1} << sends_[m].number;
        if ((packed & bit) == 0 || (started_ & bit) != 0) continue;
        communicator_.check(MPI_Start(&requests_[receives_.size() + m]), "MPI_Start");
        started_ |= bit;
      }
    }
    int count = 0;
    const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                  finished_.data(), statuses_.data());
    if (code != MPI_ERR_IN_STATUS) communicator_.check(code, "MPI_Testsome");
    News news;
    if (count == MPI_UNDEFINED) return news;
    for (size_t n = 0; n < static_cast<size_t>(count); ++n) {
      if (code == MPI_ERR_IN_STATUS) communicator_.check(statuses_[n].MPI_ERROR, "MPI_Testsome");
      const auto m = static_cast<size_t>(finished_[n]);
      if (m < receives_.size()) {
        check_length(receives_[m], statuses_[n]);
        news.landed |= uint32_t{1} << receives_[m].number;
        news.closed |= uint32_t{1} << receives_[m].number;
      } else {
        news.sent |= uint64_t{1} << sends_[m - receives_.size()].number;
      }
    }
    return news;
  }

  char* buffer(size_t number) override {
    return std::find_if(sends_.begin(), sends_.end(), [&](const Numbered& s) { return s.number == number; })
        ->buffer;
  }

  bool uses_mpi() const override { return true; }

 private:
  void check_length(const Numbered& receive, const MPI_Status& status) const {
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    if (static_cast<size_t>(count) == receive.bytes) return;
    communicator_.abort("message " + std::to_string(receive.message->tag) + " from rank " +
                        std::to_string(receive.message->peer) + " has " + std::to_string(count) +
                        " bytes, expected " + std::to_string(receive.bytes) +
                        ": the ranks have different plans");
  }

  const Communicator& communicator_;
  std::vector<Numbered> receives_, sends_;
  std::vector<MPI_Request> requests_;  // receives, then sends
  std::vector<int> finished_;          // results of MPI_Testsome
  std::vector<MPI_Status> statuses_;
  uint64_t all_ = 0, started_ = 0;  // sends
};

}  // namespace

std::unique_ptr<Transfer> mpi_transfer(const Communicator& communicator, const std::vector<Numbered>& sends,
                                       const std::vector<Numbered>& receives) {
  return std::make_unique<MpiTransfer>(communicator, sends, receives);
}

}  // namespace halocline
