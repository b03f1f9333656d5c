/* What a core can do at most: multiply-adds on vectors that never leave registers, for benchmarks/mhd.py.

   It says "ready"; then million floating-point operations a second, an fma counted as two, for each line that
   it is given. */
#include <stdio.h>
#include <time.h>

#ifdef __AVX512F__
enum { LANES = 8 };
#elif defined __AVX__
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif
typedef double vector __attribute__((vector_size(LANES * sizeof(double))));

enum { CHAINS = 12, ROUNDS = 4000000 }; /* more chains than an fma takes cycles, on two units */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
  char line[64];
  vector sums[CHAINS] = {{0}}, factor = {0}, more = {0};
  factor += 0.5;
  more += 0.25;
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    const double begun = now();
    for (long round = 0; round < ROUNDS; ++round) {
#pragma GCC unroll 12
      for (int c = 0; c < CHAINS; ++c) {
        sums[c] = sums[c] * factor + more; /* an fma with -ffp-contract=fast */
        __asm__ volatile("" : "+v"(sums[c]));
      }
    }
    const double seconds = now() - begun;
    printf("%.3f\n", 2e-6 * LANES * CHAINS * (double)ROUNDS / seconds);
    fflush(stdout);
  }
  return 0;
}
