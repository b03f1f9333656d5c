/* Common code of the peers of benchmarks/exchange.py: fields with the memory layout of Halocline, halos
   across the one cut axis, a check of the received halos, and timing.

   PROGRAM AXIS N RADIUS FIELDS PASSES ROUNDS: float32 fields of N^3 cells per rank, and ROUNDS rounds of
   PASSES exchanges after one round that is not counted. Prints the median of the rounds in seconds per
   exchange on the slower rank, and the bytes that each rank receives. */
#pragma once

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 16, LINE = 64, PAGE = 4096, HUGE_PAGE = 2 << 20 };

/* Cells (0, 0, 0) of all fields start cache lines, and lie at different offsets within a page. */
typedef struct {
  int axis, n, radius, fields, passes, rounds, rank, other;
  int sizes[3],
      lead;        /* sizes: padded array in cells; lead: cells before the first cell of a row */
  size_t pitch[2]; /* bytes between rows of neighbouring planes, and between rows */
  size_t bytes;    /* of an array, with the offset before it */
  float* field[MOST]; /* where the array begins */
} domain;

typedef struct {
  int lo[3], extent[3]; /* lo counts from the beginning of the array */
} box;

static void stop(const char* message) {
  fprintf(stderr, "%s\n", message);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

static size_t offset_of(int field) { return (size_t)(field * 5 % (PAGE / LINE)) * LINE; }

static domain begin(int argc, char** argv) {
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc != 7 || size != 2) stop("expected AXIS N RADIUS FIELDS PASSES ROUNDS, on two ranks");
  domain d = {.axis = atoi(argv[1]), .n = atoi(argv[2]), .radius = atoi(argv[3]), .fields = atoi(argv[4])};
  d.passes = atoi(argv[5]);
  d.rounds = atoi(argv[6]);
  if (d.axis < 0 || d.axis > 2 || d.radius < 1 || d.n < d.radius || d.fields < 1 || d.fields > MOST ||
      d.rounds < 1)
    stop("invalid arguments");
  MPI_Comm_rank(MPI_COMM_WORLD, &d.rank);
  d.other = 1 - d.rank;
  const size_t lead = round_up(d.radius * sizeof(float), LINE);
  d.pitch[1] = lead + round_up((d.n + d.radius) * sizeof(float), LINE);
  if (d.pitch[1] % PAGE == 0) d.pitch[1] += LINE;
  d.lead = (int)(lead / sizeof(float));
  d.sizes[0] = d.sizes[1] = d.n + 2 * d.radius;
  d.sizes[2] = (int)(d.pitch[1] / sizeof(float));
  if (d.pitch[1] * d.sizes[1] % PAGE == 0) ++d.sizes[1];
  d.pitch[0] = d.pitch[1] * d.sizes[1];
  d.bytes = round_up(d.pitch[0] * d.sizes[0] + PAGE, HUGE_PAGE);
  return d;
}

/* Allocates private memory, with huge pages if the system has them. */
static inline void allocate(domain* d) {
  for (int f = 0; f < d->fields; ++f) {
    char* memory = aligned_alloc(HUGE_PAGE, d->bytes);
    if (!memory) stop("no memory");
    madvise(memory, d->bytes, MADV_HUGEPAGE);
    d->field[f] = (float*)(memory + offset_of(f));
  }
}

/* Returns the layers at the lower (0) or upper (1) side: the cells that are sent, or the halo. */
static box layers(const domain* d, int side, int halo) {
  box b = {{d->radius, d->radius, d->lead}, {d->n, d->n, d->n}};
  b.lo[d->axis] += side ? d->n - (halo ? 0 : d->radius) : halo ? -d->radius : 0;
  b.extent[d->axis] = d->radius;
  return b;
}

static size_t place(const domain* d, const box* b, int i, int j) {
  return (b->lo[0] + i) * d->pitch[0] + (b->lo[1] + j) * d->pitch[1] + b->lo[2] * sizeof(float);
}

static size_t bytes_of(const domain* d) { return 2 * sizeof(float) * d->fields * d->radius * d->n * d->n; }

/* Returns a number that identifies a cell of a field on both ranks. */
static float cell(const domain* d, int rank, int field, const box* b, int i, int j, int k) {
  const int at[3] = {b->lo[0] + i - d->radius, b->lo[1] + j - d->radius, b->lo[2] + k - d->lead};
  uint32_t h = field;
  for (int a = 0; a < 3; ++a) {
    const int whole = a == d->axis ? 2 * d->n : d->n, from = a == d->axis ? rank * d->n : 0;
    h = (h * (uint32_t)whole + (uint32_t)((at[a] + from + whole) % whole)) * 2654435761u;
  }
  return (float)(h >> 8);
}

/* Sets each interior cell to its number, and each halo cell to NaN. */
static void fill(const domain* d) {
  const box interior = {{d->radius, d->radius, d->lead}, {d->n, d->n, d->n}};
  for (int f = 0; f < d->fields; ++f) {
    memset(d->field[f], 255, d->pitch[0] * d->sizes[0]);
    for (int i = 0; i < d->n; ++i)
      for (int j = 0; j < d->n; ++j) {
        float* row = (float*)((char*)d->field[f] + place(d, &interior, i, j));
        for (int k = 0; k < d->n; ++k) row[k] = cell(d, d->rank, f, &interior, i, j, k);
      }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Returns 1 if the halos of both ranks have the numbers of the cells of their neighbours. */
static int arrived(const domain* d) {
  int good = 1, all;
  for (int f = 0; f < d->fields; ++f)
    for (int side = 0; side < 2; ++side) {
      const box b = layers(d, side, 1);
      for (int i = 0; i < b.extent[0]; ++i)
        for (int j = 0; j < b.extent[1]; ++j) {
          const float* row = (const float*)((const char*)d->field[f] + place(d, &b, i, j));
          for (int k = 0; k < b.extent[2]; ++k) good &= row[k] == cell(d, d->rank, f, &b, i, j, k);
        }
    }
  MPI_Allreduce(&good, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

/* Returns one type for the same box of all fields, relative to the first field. */
static inline MPI_Datatype type_of(const domain* d, const box* b) {
  MPI_Datatype one, parts[MOST], all;
  MPI_Aint first, at[MOST];
  int counts[MOST];
  MPI_Type_create_subarray(3, d->sizes, b->extent, b->lo, MPI_ORDER_C, MPI_FLOAT, &one);
  MPI_Get_address(d->field[0], &first);
  for (int f = 0; f < d->fields; ++f) {
    MPI_Get_address(d->field[f], &at[f]);
    at[f] = MPI_Aint_diff(at[f], first);
    counts[f] = 1;
    parts[f] = one;
  }
  MPI_Type_create_struct(d->fields, counts, at, parts, &all);
  MPI_Type_commit(&all);
  MPI_Type_free(&one);
  return all;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const domain* d, void (*exchange)(void*), void* with) {
  double* seconds = malloc(d->rounds * sizeof *seconds);
  if (!seconds) stop("no memory");
  for (int round = -1; round < d->rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int pass = 0; pass < d->passes; ++pass) exchange(with);
    const double local = (MPI_Wtime() - start) / d->passes;
    double slower;
    MPI_Allreduce(&local, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round >= 0) seconds[round] = slower;
  }
  qsort(seconds, d->rounds, sizeof *seconds, ascending);
  const double median = (seconds[d->rounds / 2] + seconds[(d->rounds - 1) / 2]) / 2;
  if (d->rank == 0) printf("%.6e %zu\n", median, bytes_of(d));
  free(seconds);
}
