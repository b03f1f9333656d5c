// Transfer of unpacked messages by MPI, with derived datatypes for the cells in the fields. MPI packs the
// cells if necessary.
#include <deque>
#include <set>

#include "exchange/persistent.hpp"

namespace halocline {

namespace {

class StridedTransfer : public PersistentTransfer {
 public:
  StridedTransfer(const Communicator& communicator, const Subdomain& subdomain,
                  const std::vector<Numbered>& sends, const std::vector<Numbered>& receives)
      : PersistentTransfer(communicator, sends, receives), subdomain_(subdomain) {
    for (const auto* messages : {&receives_, &sends_}) {
      for (const Numbered& m : *messages) {
        for (const Part& part : m.message->parts) storages_.insert(part.storage);
      }
    }
  }

  ~StridedTransfer() override {
    for (Bound& bound : bound_) release(bound);
  }

 protected:
  // Sweeps swap the memory of storages. There is a set of requests for each of the newest orders of memory.
  std::vector<MPI_Request>& requests() override {
    std::vector<char*> origins;
    origins.reserve(storages_.size());
    for (const uint32_t storage : storages_) origins.push_back(subdomain_.storages[storage]->origin());
    for (Bound& bound : bound_) {
      if (bound.origins == origins) return (current_ = &bound)->requests;
    }
    if (bound_.size() == kOrders) {
      release(bound_.front());
      bound_.pop_front();
    }
    current_ = &bound_.emplace_back(Bound{std::move(origins), {}});
    for (const auto* messages : {&receives_, &sends_}) {
      const bool incoming = messages == &receives_;
      for (const Numbered& m : *messages) add(*m.message, incoming);
    }
    return current_->requests;
  }

  void check_length(size_t receive, const MPI_Status& status) const override {
    check_count(receive, status, current_->types[receive], 1);
  }

 private:
  // Requests for the current memory of the fields.
  struct Bound {
    std::vector<char*> origins;           // of the storages
    std::vector<MPI_Datatype> types;      // of the receives, then of the sends
    std::vector<MPI_Request> requests{};  // in the same order
  };

  static constexpr size_t kOrders = 16;

  static void release(Bound& bound) {
    free(bound.requests);
    if (!mpi_running()) return;
    for (MPI_Datatype& type : bound.types) MPI_Type_free(&type);
  }

  void add(const Message& message, bool incoming) {
    const MPI_Datatype type = current_->types.emplace_back(datatype(message));
    MPI_Request& request = current_->requests.emplace_back(MPI_REQUEST_NULL);
    if (incoming) {
      communicator_.check(
          MPI_Recv_init(MPI_BOTTOM, 1, type, message.peer, message.tag, communicator_.handle(), &request),
          "MPI_Recv_init");
    } else {
      communicator_.check(
          MPI_Send_init(MPI_BOTTOM, 1, type, message.peer, message.tag, communicator_.handle(), &request),
          "MPI_Send_init");
    }
  }

  // Return a datatype with absolute addresses for the cells of all parts of a message.
  MPI_Datatype datatype(const Message& message) const {
    std::vector<MPI_Datatype> boxes;
    std::vector<MPI_Aint> places;
    for (const Part& part : message.parts) {
      const Storage& storage = *subdomain_.storages[part.storage];
      const Index box = extent(part.lo, part.hi);
      const MPI_Datatype cell = storage.itemsize() == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
      MPI_Datatype row = MPI_DATATYPE_NULL, plane = row, whole = row;
      check_type(MPI_Type_contiguous(static_cast<int>(box[2]), cell, &row));
      check_type(MPI_Type_create_hvector(static_cast<int>(box[1]), 1, storage.pitch()[1], row, &plane));
      check_type(MPI_Type_create_hvector(static_cast<int>(box[0]), 1, storage.pitch()[0], plane, &whole));
      check_type(MPI_Type_free(&row));
      check_type(MPI_Type_free(&plane));
      boxes.push_back(whole);
      check_type(MPI_Get_address(storage.at(part.lo), &places.emplace_back()));
    }
    const std::vector<int> ones(boxes.size(), 1);
    MPI_Datatype type = MPI_DATATYPE_NULL;
    check_type(MPI_Type_create_struct(static_cast<int>(boxes.size()), ones.data(), places.data(),
                                      boxes.data(), &type));
    check_type(MPI_Type_commit(&type));
    for (MPI_Datatype& box : boxes) check_type(MPI_Type_free(&box));
    return type;
  }

  void check_type(int code) const { communicator_.check(code, "creation of a derived datatype"); }

  const Subdomain& subdomain_;
  std::set<uint32_t> storages_;  // storages that the messages read or write
  std::deque<Bound> bound_;
  Bound* current_ = nullptr;
};

}  // namespace

std::unique_ptr<Transfer> strided_transfer(const Communicator& communicator, const Subdomain& subdomain,
                                           const std::vector<Numbered>& sends,
                                           const std::vector<Numbered>& receives) {
  return std::make_unique<StridedTransfer>(communicator, subdomain, sends, receives);
}

}  // namespace halocline
