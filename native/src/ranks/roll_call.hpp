// Detection of ranks that do not respond while other ranks wait.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "ranks/communicator.hpp"

namespace halocline {

// If one rank stops responding, all others wait sooner or later, most of them for ranks that wait themselves.
// Each rank that has waited too long reports to two witnesses. The ranks without a report are those that have
// stopped. There are two witnesses, since one of them may have stopped.
class RollCall {
 public:
  // `something`: the event for which this rank has waited in vain. One thread makes roll calls, while others
  // may call MPI.
  RollCall(const Communicator& communicator, std::string something);

  // Receive reports for `seconds`, or until all ranks have answered.
  void listen(double seconds);
  // Return true if this rank reports the verdict: the first witness that responds.
  bool speaks() const;
  // Return the diagnosis, as a continuation of the text about the wait of this rank.
  std::string verdict() const;

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
