// Who stands still, where ranks wait in vain.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "ranks/communicator.hpp"

namespace halocline {

// Where one rank stands still, all others wait sooner or later, most of them for ranks that wait themselves.
// Each that has waited too long tells two witnesses what for; the ranks that say nothing are those that stand
// still. Two, since one of them may be the one.
class RollCall {
 public:
  // This rank has waited in vain for `something`. One thread makes roll calls, while others may call MPI.
  RollCall(const Communicator& communicator, std::string something);

  // Listens for so many seconds, or until all ranks have answered.
  void listen(double seconds);
  // Whether this rank is to say what was found out: the first witness that is alive.
  bool speaks() const;
  // What was found out, to follow what this rank has waited for.
  std::string verdict() const;

 private:
  static constexpr int kWitnesses = 2;

  bool is_witness() const { return communicator_.rank() < kWitnesses; }
  bool complete() const;
  void take_answers();

  const Communicator& communicator_;
  std::vector<std::string> answers_;  // by rank; empty where there is none
  std::vector<MPI_Request> sends_;
};

}  // namespace halocline
