#include "ranks/reduction.hpp"

#include <cstring>

namespace halocline {

namespace {

struct Header {
  StopRequests stop_requests;
  uint64_t accumulators;
};

// A record consists of a header, which has the size of an accumulator, and the accumulators. It is one
// element of an MPI datatype, so that MPI never splits it.
void merge_records(void* from, void* into, int* count, MPI_Datatype*) {
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(into);
  for (int record = 0; record < *count; ++record) {
    Header target_header, source_header;
    std::memcpy(&target_header, target, sizeof target_header);
    std::memcpy(&source_header, source, sizeof source_header);
    target_header.stop_requests |= source_header.stop_requests;
    std::memcpy(target, &target_header, sizeof target_header);
    const size_t slots = target_header.accumulators + 1, bytes = slots * sizeof(hc_accumulator);
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
  const Header header{stop_requests, n};
  std::memcpy(buffer_.data(), &header, sizeof header);
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
  Header header;
  std::memcpy(&header, buffer_.data(), sizeof header);
  return header.stop_requests;
}

}  // namespace halocline
