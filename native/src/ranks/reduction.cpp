#include "ranks/reduction.hpp"

#include <cstring>

namespace halocline {

namespace {

// A record consists of a header, which has the size of an accumulator, and the accumulators. It is one
// element of an MPI datatype, so that MPI never splits it. The number of accumulators follows from its
// length.
void merge_records(void* from, void* into, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  const size_t slots = static_cast<size_t>(bytes) / sizeof(hc_accumulator);
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(into);
  for (int record = 0; record < *count; ++record) {
    uint64_t target_requests = 0, source_requests = 0;
    std::memcpy(&target_requests, target, sizeof target_requests);
    std::memcpy(&source_requests, source, sizeof source_requests);
    target_requests |= source_requests;
    std::memcpy(target, &target_requests, sizeof target_requests);
    for (size_t slot = 1; slot < slots; ++slot) {
      hc_accumulator a, b;  // buffers of MPI may be unaligned
      std::memcpy(&a, target + slot * sizeof a, sizeof a);
      std::memcpy(&b, source + slot * sizeof b, sizeof b);
      hc_merge(&a, &b);
      std::memcpy(target + slot * sizeof a, &a, sizeof a);
    }
    source += bytes;
    target += bytes;
  }
}

}  // namespace

Accumulators::Accumulators(int threads, size_t reductions)
    : reductions_(reductions), slots_(new hc_accumulator[static_cast<size_t>(threads) * reductions]) {
  static_assert(sizeof(hc_accumulator) % 64 == 0, "accumulators of two threads share a cache line");
}

void Accumulators::reset(hc_accumulator* accumulators, const std::vector<Reduction>& reductions) {
  for (size_t n = 0; n < reductions.size(); ++n) hc_reset(&accumulators[n], reductions[n].kind);
}

void Accumulators::merge(hc_accumulator* into, const hc_accumulator* from, size_t n) {
  for (size_t i = 0; i < n; ++i) hc_merge(&into[i], &from[i]);
}

Allreduce::Allreduce(const Communicator& communicator) : communicator_(communicator) {
  communicator_.check(MPI_Op_create(merge_records, 1, &operation_), "MPI_Op_create");
  reserve(0);
}

Allreduce::~Allreduce() {
  if (!mpi_running()) return;
  for (auto& [n, type] : types_) MPI_Type_free(&type);
  MPI_Op_free(&operation_);
}

void Allreduce::reserve(size_t n) {
  if (buffer_.size() < n + 1) buffer_.resize(n + 1);
  MPI_Datatype& type = types_.try_emplace(n, MPI_DATATYPE_NULL).first->second;
  if (type != MPI_DATATYPE_NULL) return;
  const int bytes = static_cast<int>((n + 1) * sizeof(hc_accumulator));
  communicator_.check(MPI_Type_contiguous(bytes, MPI_BYTE, &type), "MPI_Type_contiguous");
  communicator_.check(MPI_Type_commit(&type), "MPI_Type_commit");
}

void Allreduce::start(const hc_accumulator* accumulators, size_t n, StopRequests stop_requests) {
  std::memcpy(buffer_.data(), &stop_requests, sizeof stop_requests);
  if (n != 0) std::memcpy(&buffer_[1], accumulators, n * sizeof(hc_accumulator));
  communicator_.check(MPI_Iallreduce(MPI_IN_PLACE, buffer_.data(), 1, types_.at(n), operation_,
                                     communicator_.handle(), &request_),
                      "MPI_Iallreduce");
}

bool Allreduce::test() {
  int flag = 0;
  communicator_.check(MPI_Test(&request_, &flag, MPI_STATUS_IGNORE), "MPI_Test");
  return flag != 0;
}

const hc_accumulator* Allreduce::result() const { return &buffer_[1]; }

StopRequests Allreduce::stop_requests() const {
  StopRequests stop_requests = 0;
  std::memcpy(&stop_requests, buffer_.data(), sizeof stop_requests);
  return stop_requests;
}

}  // namespace halocline
