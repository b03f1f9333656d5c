/* The limit of engine overhead in benchmarks/patches.py: forward Euler steps of the heat equation, second
   order, on n^3 periodic cells, as one plain loop nest with the multiply-adds that Halocline chooses.

   Its arguments are n and how many steps a measurement takes. It says "ready" and, after ten steps, a number
   made of all bits of the result; then million cells a second for each line that it is given. With -DFILL=0
   the halo is never filled: the loop nest alone, with a wrong result. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef FILL
#define FILL 1
#endif

enum { PAD = 8 }; /* numbers before and behind each row: rows begin at cache lines */

static int64_t n, row, plane; /* cells along an axis; numbers from row to row and from plane to plane */

static double* field(void) {
  const size_t huge = (size_t)2 << 20, bytes = ((n + 2) * plane * sizeof(double) / huge + 1) * huge;
  double* whole = aligned_alloc(huge, bytes);
  if (whole == NULL) exit(1);
  madvise(whole, bytes, MADV_HUGEPAGE);
  memset(whole, 0, bytes);
  return whole + plane + row + PAD;
}

static void wrap(double* T) {
  for (int64_t i = 0; i < n; ++i) {
    memcpy(T + i * plane - row, T + i * plane + (n - 1) * row, n * sizeof(double));
    memcpy(T + i * plane + n * row, T + i * plane, n * sizeof(double));
    for (int64_t j = 0; j < n; ++j) {
      double* line = T + i * plane + j * row;
      line[-1] = line[n - 1];
      line[n] = line[0];
    }
  }
  for (int64_t j = 0; j < n; ++j) {
    memcpy(T - plane + j * row, T + (n - 1) * plane + j * row, n * sizeof(double));
    memcpy(T + n * plane + j * row, T + j * row, n * sizeof(double));
  }
}

static void step(const double* restrict T, double* restrict next, double dt, double kappa, double h) {
  const double w = 1.0 / (h * h), centre = __builtin_fma(-2.0, w, __builtin_fma(w, -2.0, w * -2.0));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const double* at = T + i * plane + j * row;
      double* to = next + i * plane + j * row;
#pragma omp simd
      for (int64_t k = 0; k < n; ++k) {
        const double x = w * (at[k - plane] + at[k + plane]);
        const double xy = __builtin_fma(w, at[k + row] + at[k - row], x);
        const double sides = __builtin_fma(at[k + 1] + at[k - 1], w, xy);
        to[k] = __builtin_fma(dt, kappa * __builtin_fma(centre, at[k], sides), at[k]);
      }
    }
  }
}

static void steps(double** T, double** next, int count) {
  for (int s = 0; s < count; ++s) {
    if (FILL) wrap(*T);
    step(*T, *next, 0.1 / (double)(n * n), 1.0, 1.0 / (double)n);
    double* swapped = *T;
    *T = *next;
    *next = swapped;
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  n = atoi(arguments[1]);
  row = n + 2 * PAD;
  plane = (n + 2) * row;
  const int each = atoi(arguments[2]);
  double *T = field(), *next = field();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t k = 0; k < n; ++k) T[i * plane + j * row + k] = (double)((7 * i + 5 * j + 3 * k) % 17) / 16;
  steps(&T, &next, 10);
  uint64_t bits = 0, number = 1;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t k = 0; k < n; ++k, number += 2) {
        uint64_t word;
        memcpy(&word, T + i * plane + j * row + k, sizeof word);
        bits += word * number;
      }
  printf("ready %llu\n", (unsigned long long)bits);
  fflush(stdout);
  for (char line[64]; fgets(line, sizeof line, stdin) != NULL;) {
    const double begun = now();
    steps(&T, &next, each);
    printf("%.17g\n", (double)(n * n * n) * each / (now() - begun) / 1e6);
    fflush(stdout);
  }
  return 0;
}
