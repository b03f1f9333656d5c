// Test of the engine on several ranks, with one and with two threads per rank.
// ranks: 2 4
#include <mpi.h>

#include "plans.hpp"

namespace {

// Return the values of all ranks, by rank. MPI sends the bytes of each value.
template <typename T>
std::vector<T> of_all(const T& value) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<T> all(static_cast<size_t>(ranks));
  MPI_Allgather(&value, sizeof(T), MPI_BYTE, all.data(), sizeof(T), MPI_BYTE, MPI_COMM_WORLD);
  return all;
}

std::vector<halocline::Neighbour> meet(const halocline::Storages& storages,
                                       const halocline::Counters& counters) {
  std::vector<halocline::Neighbour> neighbours;
  for (const halocline::Handle& handle : of_all(counters.handle())) {
    const int rank = static_cast<int>(neighbours.size());
    neighbours.push_back({rank, {}, {std::make_shared<halocline::Counters>(handle), 0}});
  }
  for (const auto& storage : storages) {
    const auto handles = of_all(storage->handle());
    for (size_t rank = 0; rank < neighbours.size(); ++rank) {
      neighbours[rank].storages.push_back(std::make_shared<halocline::Storage>(handles[rank]));
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);  // every rank attaches the memory before any rank frees it
  return neighbours;
}

}  // namespace

int main(int argc, char** argv) {
  int level = 0, rank = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int communicator = MPI_Comm_c2f(MPI_COMM_WORLD);
  for (int threads = 1; threads <= 2; ++threads) {
    for (const plans::Index& parts : ranks == 2 ? std::vector<plans::Index>{{1, 1, 2}, {2, 1, 1}}
                                                : std::vector<plans::Index>{{1, 2, 2}, {1, 4, 1}}) {
      const plans::Torus torus({4, 9, 14}, parts, rank);
      plans::compare_with_one_array(torus, threads, communicator, 10);
      plans::compare_with_one_array(torus, threads, communicator, 200, meet);
      plans::compare_with_one_array(torus, threads, communicator, 50, meet, true);
    }
  }
  MPI_Finalize();
}
