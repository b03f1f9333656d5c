// Messages by persistent requests of MPI.
#pragma once

#include <mpi.h>

#include <vector>

#include "exchange/transfer.hpp"

namespace halocline {

// Starts and tests requests, those of the receives before those of the sends. Who makes them is a matter of
// what MPI is given: buffers, or the cells of fields.
class PersistentTransfer : public Transfer {
 public:
  PersistentTransfer(const Communicator& communicator, const std::vector<Numbered>& sends,
                     const std::vector<Numbered>& receives);

  void start() override;
  News progress(uint64_t packed) override;
  bool uses_mpi() const override { return true; }

 protected:
  // Those of the present execution; called once at its start.
  virtual std::vector<MPI_Request>& requests() = 0;
  // Ends the run where a message has another number of `what` than expected: bytes, or all of its cells.
  void check_count(size_t receive, const MPI_Status& status, MPI_Datatype what, int expected) const;
  virtual void check_length(size_t receive, const MPI_Status& status) const = 0;

  static void free(std::vector<MPI_Request>& requests);

  const Communicator& communicator_;
  const std::vector<Numbered> receives_, sends_;

 private:
  std::vector<MPI_Request>* now_ = nullptr;
  std::vector<int> finished_;  // results of MPI_Testsome
  std::vector<MPI_Status> statuses_;
  uint64_t all_ = 0, started_ = 0;  // sends
};

}  // namespace halocline
