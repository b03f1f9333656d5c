// Test of the engine on several ranks, with one and with two threads per rank.
// ranks: 2 4
#include <dlfcn.h>

#include <cstring>

#include "mpi/standard.hpp"
#include "plans.hpp"

using namespace halocline;

namespace {

// Return a function of the library, which the engine does not need.
template <typename Signature>
Signature* function(const char* name) {
  return reinterpret_cast<Signature*>(dlsym(dlopen(mpi::library().c_str(), RTLD_LAZY), name));
}

// Return the values of all ranks, by rank. MPI adds the words of all ranks, of which one is not zero.
template <typename T>
std::vector<T> of_all(const T& value) {
  constexpr size_t kWords = (sizeof(T) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<uint64_t> words(kWords * static_cast<size_t>(ranks));
  std::memcpy(&words[kWords * static_cast<size_t>(rank)], &value, sizeof value);
  MPI_Allreduce(MPI_IN_PLACE, words.data(), static_cast<int>(words.size()), MPI_UINT64_T, MPI_SUM,
                MPI_COMM_WORLD);
  std::vector<T> all(static_cast<size_t>(ranks));
  for (size_t n = 0; n < all.size(); ++n) std::memcpy(&all[n], &words[kWords * n], sizeof(T));
  return all;
}

std::vector<Neighbour> meet(const Storages& storages, const Counters& counters) {
  std::vector<Neighbour> neighbours;
  for (const Handle& handle : of_all(counters.handle())) {
    const int rank = static_cast<int>(neighbours.size());
    neighbours.push_back({rank, {}, {std::make_shared<Counters>(handle), 0}});
  }
  for (const auto& storage : storages) {
    const auto handles = of_all(storage->handle());
    for (size_t rank = 0; rank < neighbours.size(); ++rank) {
      neighbours[rank].storages.push_back(std::make_shared<Storage>(handles[rank]));
    }
  }
  of_all(0);  // every rank attaches the memory before any rank frees it
  return neighbours;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kMultiple = 3;  // the thread level MPI_THREAD_MULTIPLE of MPICH and Open MPI
  int level = 0, rank = 0, ranks = 0;
  mpi::load(argv[1]);
  function<int(int*, char***, int, int*)>("MPI_Init_thread")(&argc, &argv, kMultiple, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int communicator = MPI_Comm_toint(MPI_COMM_WORLD);
  for (int threads = 1; threads <= 2; ++threads) {
    for (const plans::Index& parts : ranks == 2 ? std::vector<plans::Index>{{1, 1, 2}, {2, 1, 1}}
                                                : std::vector<plans::Index>{{1, 2, 2}, {1, 4, 1}}) {
      const plans::Torus torus({4, 9, 14}, parts, rank);
      plans::compare_with_one_array(torus, threads, communicator, 10);
      plans::compare_with_one_array(torus, threads, communicator, 200, meet);
      plans::compare_with_one_array(torus, threads, communicator, 50, meet, true);
    }
  }
  function<int()>("MPI_Finalize")();
}
