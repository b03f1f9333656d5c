/* A peer of benchmarks/exchange.py: halos by MPI_Neighbor_alltoallw on a periodic Cartesian communicator,
   with one derived datatype a side. The arguments are those of exchange.h. */
#include "exchange.h"

typedef struct {
  MPI_Comm cartesian;
  float* buffer;
  MPI_Datatype sent[2], received[2];
} plan;

static void exchange(void* with) {
  static const int one[2] = {1, 1};
  static const MPI_Aint none[2] = {0, 0};
  const plan* p = with;
  MPI_Neighbor_alltoallw(p->buffer, one, none, p->sent, p->buffer, one, none, p->received, p->cartesian);
}

int main(int argc, char** argv) {
  domain d = begin(argc, argv);
  allocate(&d);
  plan p = {.buffer = d.field[0]};
  const int two = 2, periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &two, &periodic, 0, &p.cartesian);
  for (int side = 0; side < 2; ++side) {
    const box own = layers(&d, side, 0), halo = layers(&d, side, 1);
    p.sent[side] = type_of(&d, &own);
    p.received[side] = type_of(&d, &halo);
  }
  fill(&d);
  exchange(&p);
  if (!arrived(
          &d)) { /* both neighbours are one rank: some libraries give its first message to the lower side */
    const MPI_Datatype lower = p.received[0];
    p.received[0] = p.received[1];
    p.received[1] = lower;
    fill(&d);
    exchange(&p);
    if (!arrived(&d)) stop("wrong halos");
  }
  measure(&d, exchange, &p);
  MPI_Finalize();
  return 0;
}
