/* A peer of benchmarks/exchange.py: halos by persistent messages, each of one derived datatype for all
   fields, sent and received in place. The arguments are those of exchange.h. */
#include "exchange.h"

static void exchange(void* requests) {
  MPI_Startall(4, requests);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char** argv) {
  domain d = begin(argc, argv);
  allocate(&d);
  MPI_Request requests[4];
  for (int side = 0; side < 2; ++side) { /* the tag is the side of the receiver */
    const box own = layers(&d, side, 0), halo = layers(&d, side, 1);
    MPI_Recv_init(d.field[0], 1, type_of(&d, &halo), d.other, side, MPI_COMM_WORLD, &requests[side]);
    MPI_Send_init(d.field[0], 1, type_of(&d, &own), d.other, 1 - side, MPI_COMM_WORLD, &requests[2 + side]);
  }
  fill(&d);
  exchange(requests);
  if (!arrived(&d)) stop("wrong halos");
  measure(&d, exchange, requests);
  for (int r = 0; r < 4; ++r) MPI_Request_free(&requests[r]);
  MPI_Finalize();
  return 0;
}
