#include "ranks/roll_call.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "threads/clock.hpp"

namespace halocline {

namespace {

constexpr size_t kMostNames = 8;

// "rank 3", "ranks 3, 5 and 12 more"
std::string names(const std::vector<int>& ranks) {
  const size_t name_count = std::min(ranks.size(), kMostNames);
  std::string words = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t n = 0; n < name_count; ++n) {
    const bool last = n + 1 == ranks.size();
    words += (n == 0 ? "" : last ? " and " : ", ") + std::to_string(ranks[n]);
  }
  return name_count == ranks.size() ? words
                                    : words + " and " + std::to_string(ranks.size() - name_count) + " more";
}

}  // namespace

RollCall::RollCall(const Communicator& communicator, std::string something)
    : communicator_(communicator), answers_(static_cast<size_t>(communicator.size())) {
  answers_[static_cast<size_t>(communicator.rank())] = std::move(something);
}

void RollCall::receive_reports(double seconds) {
  const std::string& report = answers_[static_cast<size_t>(communicator_.rank())];
  for (const double end = now() + seconds; now() < end && !complete();
       std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    const Communicator::MpiPermission permission = communicator_.mpi_permission(0);
    if (!permission) continue;
    if (sends_.empty()) {
      for (int witness = 0; witness < std::min(kWitnesses, communicator_.size()); ++witness) {
        communicator_.check(
            MPI_Isend(report.data(), static_cast<int>(report.size()), MPI_CHAR, witness,
                      communicator_.roll_call_tag(), communicator_.handle(), &sends_.emplace_back()),
            "MPI_Isend");
      }
    }
    int done = 0;
    communicator_.check(
        MPI_Testall(static_cast<int>(sends_.size()), sends_.data(), &done, MPI_STATUSES_IGNORE),
        "MPI_Testall");
    take_answers();
  }
}

void RollCall::take_answers() {
  for (int has_message = 0;;) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    communicator_.check(MPI_Improbe(MPI_ANY_SOURCE, communicator_.roll_call_tag(), communicator_.handle(),
                                    &has_message, &message, &status),
                        "MPI_Improbe");
    if (has_message == 0) return;
    int length = 0;
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::string answer(static_cast<size_t>(length), ' ');
    communicator_.check(MPI_Mrecv(answer.data(), length, MPI_CHAR, &message, &status), "MPI_Mrecv");
    if (status.MPI_SOURCE == communicator_.rank()) continue;  // the send buffer must not change
    answers_[static_cast<size_t>(status.MPI_SOURCE)] = std::move(answer);
  }
}

bool RollCall::complete() const {
  return is_reporter() &&
         std::none_of(answers_.begin(), answers_.end(), [](const auto& a) { return a.empty(); });
}

bool RollCall::is_reporter() const {
  const auto before = answers_.begin() + communicator_.rank();
  return is_witness() && std::all_of(answers_.begin(), before, [](const auto& a) { return a.empty(); });
}

std::string RollCall::diagnosis() const {
  if (!is_witness()) return ", and the ranks that could identify the stopped rank do not answer";
  std::vector<int> silent;
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    if (answers_[static_cast<size_t>(rank)].empty()) silent.push_back(rank);
  }
  if (!silent.empty()) {
    const bool one = silent.size() == 1;
    return ", since " + names(silent) + (one ? " does" : " do") +
           " not answer: " + (one ? "it has" : "they have") +
           " stopped or not yet reached this operation, while all other ranks wait";
  }
  std::string words = ", while all ranks wait: a message was lost";
  for (size_t rank = 0; rank < std::min(answers_.size(), kMostNames); ++rank) {
    words += "; rank " + std::to_string(rank) + " waits for " + answers_[rank];
  }
  return words;
}

}  // namespace halocline
