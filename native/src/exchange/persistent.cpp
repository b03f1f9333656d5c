#include "exchange/persistent.hpp"

namespace halocline {

PersistentTransfer::PersistentTransfer(const Communicator& communicator, const std::vector<Numbered>& sends,
                                       const std::vector<Numbered>& receives)
    : communicator_(communicator),
      receives_(receives),
      sends_(sends),
      finished_(receives.size() + sends.size()),
      statuses_(finished_.size()) {
  for (const Numbered& s : sends) all_ |= uint64_t{1} << s.number;
}

void PersistentTransfer::start() {
  started_ = 0;
  current_ = &requests();
  if (receives_.empty()) return;
  communicator_.check(MPI_Startall(static_cast<int>(receives_.size()), current_->data()), "MPI_Startall");
}

News PersistentTransfer::progress(uint64_t packed) {
  std::vector<MPI_Request>& requests = *current_;
  if ((packed & all_ & ~started_) != 0) {
    for (size_t m = 0; m < sends_.size(); ++m) {
      const uint64_t bit = uint64_t{1} << sends_[m].number;
      if ((packed & bit) == 0 || (started_ & bit) != 0) continue;
      communicator_.check(MPI_Start(&requests[receives_.size() + m]), "MPI_Start");
      started_ |= bit;
    }
  }
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count, finished_.data(),
                                statuses_.data());
  if (code != MPI_ERR_IN_STATUS) communicator_.check(code, "MPI_Testsome");
  News news;
  if (count == MPI_UNDEFINED) return news;
  for (size_t n = 0; n < static_cast<size_t>(count); ++n) {
    if (code == MPI_ERR_IN_STATUS) communicator_.check(statuses_[n].MPI_ERROR, "MPI_Testsome");
    const auto m = static_cast<size_t>(finished_[n]);
    if (m < receives_.size()) {
      check_length(m, statuses_[n]);
      news.landed |= uint32_t{1} << receives_[m].number;
      news.closed |= uint32_t{1} << receives_[m].number;
    } else {
      news.sent |= uint64_t{1} << sends_[m - receives_.size()].number;
    }
  }
  return news;
}

void PersistentTransfer::check_count(size_t receive, const MPI_Status& status, MPI_Datatype unit,
                                     int expected) const {
  int count = 0;
  MPI_Get_count(&status, unit, &count);
  if (count == expected) return;
  const Message& message = *receives_[receive].message;
  const std::string has = unit == MPI_BYTE ? std::to_string(count) + " bytes" : "another size";
  communicator_.abort("message " + std::to_string(message.tag) + " from rank " +
                      std::to_string(message.peer) + " has " + has + ", expected " +
                      std::to_string(receives_[receive].bytes) + (unit == MPI_BYTE ? "" : " bytes") +
                      ": the ranks have different plans");
}

void PersistentTransfer::free(std::vector<MPI_Request>& requests) {
  if (!mpi_running()) return;
  for (MPI_Request& request : requests) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

}  // namespace halocline
