// Messages of MPI out of fields and into them, by derived datatypes: MPI packs, if it has to.
#include <mpi.h>

#include <deque>

#include "transfer.hpp"

namespace halocline {

namespace {

class StridedTransfer : public Transfer {
 public:
  StridedTransfer(const Communicator& communicator, const Subdomain& subdomain,
                  const std::vector<Numbered>& sends, const std::vector<Numbered>& receives)
      : communicator_(communicator), subdomain_(subdomain), receives_(receives), sends_(sends) {
    finished_.resize(receives.size() + sends.size());
    statuses_.resize(finished_.size());
  }

  ~StridedTransfer() override {
    if (!mpi_running()) return;
    for (Bound& bound : bound_) {
      for (MPI_Request& request : bound.requests) {
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
      }
      for (MPI_Datatype& type : bound.types) MPI_Type_free(&type);
    }
  }

  void start() override {
    started_ = 0;
    now_ = &at_present();
    if (receives_.empty()) return;
    communicator_.check(MPI_Startall(static_cast<int>(receives_.size()), now_->requests.data()),
                        "MPI_Startall");
  }

  News progress(uint64_t packed) override {
    std::vector<MPI_Request>& requests = now_->requests;
    for (size_t m = 0; m < sends_.size(); ++m) {
      const uint64_t bit = uint64_t{1} << sends_[m].number;
      if ((packed & bit) == 0 || (started_ & bit) != 0) continue;
      communicator_.check(MPI_Start(&requests[receives_.size() + m]), "MPI_Start");
      started_ |= bit;
    }
    int count = 0;
    const int code = MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count,
                                  finished_.data(), statuses_.data());
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

  bool uses_mpi() const override { return true; }

 private:
  // Requests for fields where they are now.
  struct Bound {
    std::vector<char*> origins;           // of all storages
    std::vector<MPI_Datatype> types;      // of the receives, then of the sends
    std::vector<MPI_Request> requests{};  // the same
  };

  // Sweeps swap the memory of storages, so that there are two or three of them.
  Bound& at_present() {
    std::vector<char*> origins;
    for (const auto& storage : subdomain_.storages) origins.push_back(storage->origin());
    for (Bound& bound : bound_) {
      if (bound.origins == origins) return bound;
    }
    Bound& made = bound_.emplace_back(Bound{std::move(origins), {}});
    for (const auto* messages : {&receives_, &sends_}) {
      const bool incoming = messages == &receives_;
      for (const Numbered& m : *messages) {
        made.types.push_back(datatype(*m.message));
        MPI_Request& request = made.requests.emplace_back(MPI_REQUEST_NULL);
        const auto code = incoming ? MPI_Recv_init(MPI_BOTTOM, 1, made.types.back(), m.message->peer,
                                                   m.message->tag, communicator_.handle(), &request)
                                   : MPI_Send_init(MPI_BOTTOM, 1, made.types.back(), m.message->peer,
                                                   m.message->tag, communicator_.handle(), &request);
        communicator_.check(code, incoming ? "MPI_Recv_init" : "MPI_Send_init");
      }
    }
    return made;
  }

  // The cells of all parts of a message, by their addresses.
  MPI_Datatype datatype(const Message& message) const {
    std::vector<MPI_Datatype> boxes;
    std::vector<MPI_Aint> places;
    for (const Part& part : message.parts) {
      const Storage& storage = *subdomain_.storages[part.storage];
      const Index box = extent(part.lo, part.hi);
      const MPI_Datatype cell = storage.itemsize() == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
      MPI_Datatype row = MPI_DATATYPE_NULL, plane = row, whole = row;
      made(MPI_Type_contiguous(static_cast<int>(box[2]), cell, &row));
      made(MPI_Type_create_hvector(static_cast<int>(box[1]), 1, storage.pitch()[1], row, &plane));
      made(MPI_Type_create_hvector(static_cast<int>(box[0]), 1, storage.pitch()[0], plane, &whole));
      MPI_Type_free(&row);
      MPI_Type_free(&plane);
      boxes.push_back(whole);
      made(MPI_Get_address(storage.at(part.lo), &places.emplace_back()));
    }
    const std::vector<int> ones(boxes.size(), 1);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    made(MPI_Type_create_struct(static_cast<int>(boxes.size()), ones.data(), places.data(), boxes.data(),
                                &type));
    made(MPI_Type_commit(&type));
    for (MPI_Datatype& box : boxes) MPI_Type_free(&box);
    return type;
  }

  void made(int code) const { communicator_.check(code, "a derived datatype"); }

  void check_length(size_t receive, const MPI_Status& status) const {
    int count = 0;
    MPI_Get_count(&status, now_->types[receive], &count);
    if (count == 1) return;
    const Message& message = *receives_[receive].message;
    communicator_.abort("message " + std::to_string(message.tag) + " from rank " +
                        std::to_string(message.peer) + " is not of the " +
                        std::to_string(receives_[receive].bytes) +
                        " bytes that were expected: the ranks have different plans");
  }

  const Communicator& communicator_;
  const Subdomain& subdomain_;
  std::vector<Numbered> receives_, sends_;
  std::deque<Bound> bound_;
  Bound* now_ = nullptr;
  std::vector<int> finished_;  // results of MPI_Testsome
  std::vector<MPI_Status> statuses_;
  uint64_t started_ = 0;  // sends
};

}  // namespace

std::unique_ptr<Transfer> strided_transfer(const Communicator& communicator, const Subdomain& subdomain,
                                           const std::vector<Numbered>& sends,
                                           const std::vector<Numbered>& receives) {
  return std::make_unique<StridedTransfer>(communicator, subdomain, sends, receives);
}

}  // namespace halocline
