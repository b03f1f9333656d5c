/* Iterations of the buoyancy-driven cavity as plain loops on n^3 points, compiled with -O3 -ffast-math: what
   benchmarks/cavity.py compares with.

   The equations are those of halocline.physics.cavity, with a forward step of fixed length. As in the code of
   Virginia Tech a first loop fills the residuals and a second one adds them; with -DFUSED=1 one loop writes
   the next values into other arrays. Walls are not continued: ghosts stay what they are, which is less work.

   Its arguments are n and how many iterations a measurement takes. It says "ready"; then million
   points a second for each line that it is given. */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef FUSED
#define FUSED 0
#endif

enum { PAD = 8, HALO = 2, P = 0, U = 1, V = 2, W = 3, T = 4, FIELDS = 5 };

static int64_t n, row, plane; /* points along an axis; numbers from row to row and from plane to plane */

static double* field(int number) {
  const size_t huge = (size_t)2 << 20;
  const size_t numbers = (size_t)(n + 2 * HALO) * plane + 64 * FIELDS * 2;
  const size_t bytes = (numbers * sizeof(double) / huge + 1) * huge;
  double* whole = aligned_alloc(huge, bytes);
  if (whole == NULL) exit(1);
  madvise(whole, bytes, MADV_HUGEPAGE);
  memset(whole, 0, bytes);
  double* first = whole + HALO * plane + HALO * row + PAD + 24 * number; /* not all in one set of the cache */
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t k = 0; k < n; ++k)
        first[i * plane + j * row + k] = 1e-3 * (double)((i * 7 + j * 5 + k) % 11);
  return first;
}

static void iterate(double* const f[], double* const r[], double dt, double h) {
  const double nu = 0.71, alpha = 1.0, rho = 1.0, lift = 71000.0, beta2_min = 6400.0, damping = 0.01;
  const double half = 0.5 / h, square = 1.0 / (h * h);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = i * plane + j * row;
      const double *p = f[P] + at, *u = f[U] + at, *v = f[V] + at, *w = f[W] + at, *t = f[T] + at;
      double *rp = r[P] + at, *ru = r[U] + at, *rv = r[V] + at, *rw = r[W] + at, *rt = r[T] + at;
#define DX(a) ((a[k + plane] - a[k - plane]) * half)
#define DY(a) ((a[k + row] - a[k - row]) * half)
#define DZ(a) ((a[k + 1] - a[k - 1]) * half)
#define FLOW(a) (u[k] * DX(a) + v[k] * DY(a) + w[k] * DZ(a))
#define SPREAD(a) \
  ((a[k + plane] + a[k - plane] + a[k + row] + a[k - row] + a[k + 1] + a[k - 1] - 6.0 * a[k]) * square)
#define FOURTH(s) (p[k + 2 * s] + p[k - 2 * s] - 4.0 * (p[k + s] + p[k - s]) + 6.0 * p[k])
#pragma omp simd
      for (int64_t k = 0; k < n; ++k) {
        const double beta2 = fmax(u[k] * u[k] + v[k] * v[k] + w[k] * w[k], beta2_min), c = sqrt(beta2);
        const double damped =
            (fabs(u[k]) + c) * FOURTH(plane) + (fabs(v[k]) + c) * FOURTH(row) + (fabs(w[k]) + c) * FOURTH(1);
        const double dp = -beta2 * rho * (DX(u) + DY(v) + DZ(w)) - damping / h * damped;
        const double du = nu * SPREAD(u) - FLOW(u) - DX(p) / rho;
        const double dv = nu * SPREAD(v) - FLOW(v) - DY(p) / rho;
        const double dw = nu * SPREAD(w) - FLOW(w) - DZ(p) / rho + lift * t[k];
        const double dtemp = alpha * SPREAD(t) - FLOW(t);
        rp[k] = FUSED ? p[k] + dt * dp : dp;
        ru[k] = FUSED ? u[k] + dt * du : du;
        rv[k] = FUSED ? v[k] + dt * dv : dv;
        rw[k] = FUSED ? w[k] + dt * dw : dw;
        rt[k] = FUSED ? t[k] + dt * dtemp : dtemp;
      }
    }
  }
  if (FUSED) return;
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = i * plane + j * row;
      for (int number = 0; number < FIELDS; ++number) {
        double* to = f[number] + at;
        const double* by = r[number] + at;
#pragma omp simd
        for (int64_t k = 0; k < n; ++k) to[k] += dt * by[k];
      }
    }
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  n = atoll(words[1]);
  const int iterations = atoi(words[2]);
  row = (n + 2 * HALO + PAD + 7) / 8 * 8 + 8;
  plane = row * (n + 2 * HALO) + 8;
  double *first[FIELDS], *second[FIELDS];
  for (int number = 0; number < FIELDS; ++number) {
    first[number] = field(number);
    second[number] = field(FIELDS + number);
  }
  double *const *now_in = first, *const *next = second;
  const double h = 1.0 / (double)(n + 1), dt = 1e-9;
  printf("ready\n");
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL) {
    const double begun = now();
    for (int number = 0; number < iterations; ++number) {
      iterate((double* const*)now_in, (double* const*)next, dt, h);
      if (FUSED) {
        double* const* other = now_in;
        now_in = next;
        next = other;
      }
    }
    printf("%.9g\n", 1e-6 * (double)(n * n * n) * iterations / (now() - begun));
    fflush(stdout);
  }
  return 0;
}
