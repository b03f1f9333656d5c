/* The limit of benchmarks/exchange.py: both ranks at once copy halos, row by row, out of the other's array in
   a shared window of MPI into their own, and nothing makes them wait for each other.

   With -DCONTIGUOUS=1 as many bytes, each side of a field in one piece. With -DHUGE=1 the arrays lie in files
   of memory with huge pages: windows have small ones. The arguments are those of exchange.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "exchange.h"

#ifndef CONTIGUOUS
#define CONTIGUOUS 0
#endif
#ifndef HUGE
#define HUGE 0
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

typedef struct {
  domain d;
  char* theirs[MOST]; /* where the other rank's arrays begin */
} plan;

static void exchange(void* with) {
  const plan* p = with;
  const domain* d = &p->d;
  for (int side = 0; side < 2; ++side) {
    const box from = layers(d, 1 - side, 0), to = layers(d, side, 1);
    const size_t bytes = bytes_of(d) / (2 * d->fields), row = to.extent[2] * sizeof(float);
    for (int f = 0; f < d->fields; ++f) {
      char* mine = (char*)d->field[f];
      if (CONTIGUOUS) {
        memcpy(mine + side * bytes, p->theirs[f] + d->bytes / 2 + side * bytes, bytes);
        continue;
      }
      for (int i = 0; i < to.extent[0]; ++i)
        for (int j = 0; j < to.extent[1]; ++j)
          memcpy(mine + place(d, &to, i, j), p->theirs[f] + place(d, &from, i, j), row);
    }
  }
}

static void take_windows(plan* p) {
  domain* d = &p->d;
  for (int f = 0; f < d->fields; ++f) {
    MPI_Win window;
    MPI_Aint bytes;
    int unit;
    char* mine;
    MPI_Win_allocate_shared(d->bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
    MPI_Win_shared_query(window, d->other, &bytes, &unit, &p->theirs[f]);
    d->field[f] = (float*)(mine + offset_of(f));
    p->theirs[f] += offset_of(f);
  }
}

static char* map(int file, size_t bytes) {
  char* room = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (file < 0 || room == MAP_FAILED) stop("no shared memory");
  room = (char*)round_up((uintptr_t)room, HUGE_PAGE);
  if (mmap(room, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
    stop("no memory");
  return room;
}

static void take_files(plan* p) {
  domain* d = &p->d;
  for (int f = 0; f < d->fields; ++f) {
    char path[64];
    int theirs[2], mine[2] = {(int)getpid(), memfd_create("exchange", 0)};
    if (mine[1] < 0 || ftruncate(mine[1], (off_t)d->bytes) != 0) stop("no shared memory");
    MPI_Sendrecv(mine, 2, MPI_INT, d->other, 0, theirs, 2, MPI_INT, d->other, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", theirs[0], theirs[1]);
    d->field[f] = (float*)(map(mine[1], d->bytes) + offset_of(f));
    p->theirs[f] = map(open(path, O_RDWR), d->bytes) + offset_of(f);
  }
}

/* Where all of a huge page has been written. */
static void make_pages_huge(const plan* p) {
  for (int f = 0; f < p->d.fields; ++f) {
    const size_t written = offset_of(f) + p->d.pitch[0] * p->d.sizes[0];
    if (madvise((char*)p->d.field[f] - offset_of(f), written / HUGE_PAGE * HUGE_PAGE, MADV_COLLAPSE) != 0)
      stop("no huge pages of shared memory");
  }
}

int main(int argc, char** argv) {
  plan p = {.d = begin(argc, argv)};
  (HUGE ? take_files : take_windows)(&p);
  fill(&p.d);
  if (HUGE) make_pages_huge(&p);
  MPI_Barrier(MPI_COMM_WORLD);
  exchange(&p);
  if (!arrived(&p.d) && !CONTIGUOUS) stop("wrong halos");
  measure(&p.d, exchange, &p);
  MPI_Finalize();
  return 0;
}
