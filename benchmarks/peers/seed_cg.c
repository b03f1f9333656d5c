/* The peer of benchmarks/poisson_cg.py: conjugate gradients for the five-point Poisson problem as UMBC HPCF-2018-10
   describes its C code: vectors split by rows over ranks, a separate pass over memory for each operation, non-blocking
   halo exchange behind the interior of the product, two blocking reductions an iteration.

   seed_cg N [ITERATIONS]: prints iterations, maximum error, seconds an iteration. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

typedef struct {
  int n, first, rows, below, above;
  size_t cells;
  double *row_below, *row_above;
} part;

static double inner_product(const part *s, const double *restrict a, const double *restrict b) {
  double mine = 0, all;
  for (size_t c = 0; c < s->cells; ++c) mine += a[c] * b[c];
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static void product_row(int n, double *restrict out, const double *restrict here, const double *restrict below,
                        const double *restrict above) {
  out[0] = 4 * here[0] - here[1] - below[0] - above[0];
  for (int i = 1; i < n - 1; ++i) out[i] = 4 * here[i] - here[i - 1] - here[i + 1] - below[i] - above[i];
  out[n - 1] = 4 * here[n - 1] - here[n - 2] - below[n - 1] - above[n - 1];
}

static void product(const part *s, double *restrict q, const double *restrict p) {
  const size_t n = s->n;
  const int last = s->rows - 1;
  MPI_Request open[4];
  int count = 0;
  if (s->below != MPI_PROC_NULL) {
    MPI_Irecv(s->row_below, s->n, MPI_DOUBLE, s->below, 0, MPI_COMM_WORLD, &open[count++]);
    MPI_Isend(p, s->n, MPI_DOUBLE, s->below, 1, MPI_COMM_WORLD, &open[count++]);
  }
  if (s->above != MPI_PROC_NULL) {
    MPI_Irecv(s->row_above, s->n, MPI_DOUBLE, s->above, 1, MPI_COMM_WORLD, &open[count++]);
    MPI_Isend(p + last * n, s->n, MPI_DOUBLE, s->above, 0, MPI_COMM_WORLD, &open[count++]);
  }
  for (int j = 1; j < last; ++j) product_row(s->n, q + j * n, p + j * n, p + (j - 1) * n, p + (j + 1) * n);
  MPI_Waitall(count, open, MPI_STATUSES_IGNORE);
  product_row(s->n, q, p, s->row_below, last > 0 ? p + n : s->row_above);
  if (last > 0) product_row(s->n, q + last * n, p + last * n, p + (last - 1) * n, s->row_above);
}

static double *vector(size_t count) {
  double *made = calloc(count, sizeof *made);
  if (!made) MPI_Abort(MPI_COMM_WORLD, 1);
  return made;
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  part s = {.n = atoi(argv[1])};
  const int most = argc > 2 ? atoi(argv[2]) : 1 << 30;
  const double h = 1.0 / (s.n + 1);
  s.first = (long)s.n * rank / size;
  s.rows = (long)s.n * (rank + 1) / size - s.first;
  s.cells = (size_t)s.rows * s.n;
  s.below = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  s.above = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
  s.row_below = vector(s.n);
  s.row_above = vector(s.n);
  double *x = vector(s.cells), *r = vector(s.cells), *p = vector(s.cells), *q = vector(s.cells);
  for (int j = 0; j < s.rows; ++j)
    for (int i = 0; i < s.n; ++i) {
      const double a = h * (i + 1), b = h * (s.first + j + 1), sa = sin(PI * a), sb = sin(PI * b);
      const double f = -2 * PI * PI * (cos(2 * PI * a) * sb * sb + sa * sa * cos(2 * PI * b));
      p[(size_t)j * s.n + i] = r[(size_t)j * s.n + i] = h * h * f;
    }
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  double rho = inner_product(&s, r, r);
  const double first = sqrt(rho);
  int iterations = 0;
  while (iterations < most && sqrt(rho) > 1e-6 * first) {
    product(&s, q, p);
    const double alpha = rho / inner_product(&s, p, q);
    for (size_t c = 0; c < s.cells; ++c) x[c] += alpha * p[c];
    for (size_t c = 0; c < s.cells; ++c) r[c] -= alpha * q[c];
    const double next = inner_product(&s, r, r), beta = next / rho;
    rho = next;
    for (size_t c = 0; c < s.cells; ++c) p[c] = r[c] + beta * p[c];
    ++iterations;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  double error = 0, worst;
  for (int j = 0; j < s.rows; ++j)
    for (int i = 0; i < s.n; ++i) {
      const double sa = sin(PI * h * (i + 1)), sb = sin(PI * h * (s.first + j + 1));
      error = fmax(error, fabs(x[(size_t)j * s.n + i] - sa * sa * sb * sb));
    }
  MPI_Reduce(&error, &worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d %.6e %.6e\n", iterations, worst, seconds / iterations);
  MPI_Finalize();
  return 0;
}
