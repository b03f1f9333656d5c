// Messages by persistent MPI requests.
#pragma once

#include <vector>

#include "exchange/transfer.hpp"
#include "mpi/standard.hpp"

namespace halocline {

// Transfer that starts and tests persistent requests: first the receives, then the sends. Derived classes
// create the requests, for buffers or for the cells of fields.
class PersistentTransfer : public Transfer {
 public:
  PersistentTransfer(const Communicator& communicator, const std::vector<Numbered>& sends,
                     const std::vector<Numbered>& receives);

  void start() override;
  News progress(uint64_t packed) override;
  bool uses_mpi() const override { return true; }

 protected:
  // Return the requests of the current execution. The base class calls this function once at the start.
  virtual std::vector<MPI_Request>& requests() = 0;
  // End the run if the size of a message, in units of `unit`, differs from `expected`. The unit is a byte, or
  // all cells of the message.
  void check_count(size_t receive, const MPI_Status& status, MPI_Datatype unit, int expected) const;
  virtual void check_length(size_t receive, const MPI_Status& status) const = 0;

  static void free(std::vector<MPI_Request>& requests);

  const Communicator& communicator_;
  const std::vector<Numbered> receives_, sends_;

 private:
  std::vector<MPI_Request>* current_ = nullptr;
  std::vector<int> finished_;  // results of MPI_Testsome
  std::vector<MPI_Status> statuses_;
  uint64_t all_ = 0, started_ = 0;  // bits of sends
};

}  // namespace halocline
