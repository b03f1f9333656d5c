// Detection of ranks that do not respond while other ranks wait.
#pragma once

#include <string>
#include <vector>

#include "mpi/standard.hpp"
#include "ranks/communicator.hpp"

namespace halocline {

// If one rank no longer responds, all other ranks eventually wait, mostly for ranks that also wait. Each rank
// whose wait exceeds the limit reports to two witness ranks. The ranks without a report have stopped. There
// are two witnesses, since one of them may have stopped.
class RollCall {
 public:
  // `something`: text that describes the awaited event. One thread makes roll calls, while other threads may
  // call MPI.
  RollCall(const Communicator& communicator, std::string something);

  // Receive reports for `seconds`, or until all ranks have answered.
  void receive_reports(double seconds);
  // Return true if this rank reports the diagnosis, since it is the first witness that responds.
  bool is_reporter() const;
  // Return the diagnosis as a text that is appended to the message about the wait of this rank.
  std::string diagnosis() const;

 private:
  static constexpr int kWitnesses = 2;

  bool is_witness() const { return communicator_.rank() < kWitnesses; }
  bool complete() const;
  void take_answers();

  const Communicator& communicator_;
  std::vector<std::string> answers_;  // by rank; empty: no answer
  std::vector<MPI_Request> sends_;
};

}  // namespace halocline
