// The engine on several ranks, with one thread and with two.
// ranks: 2 4
#include <mpi.h>

#include "plans.hpp"

int main(int argc, char** argv) {
  int level = 0, rank = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int communicator = MPI_Comm_c2f(MPI_COMM_WORLD);
  for (int threads = 1; threads <= 2; ++threads) {
    for (const plans::Index& parts : ranks == 2 ? std::vector<plans::Index>{{1, 1, 2}, {2, 1, 1}}
                                                : std::vector<plans::Index>{{1, 2, 2}, {1, 4, 1}}) {
      plans::compare_with_one_array(plans::Torus({4, 9, 14}, parts, rank), threads, communicator, 10);
    }
  }
  MPI_Finalize();
}
