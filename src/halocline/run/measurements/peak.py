"""Greatest rate of operations of a core: multiply-adds on vectors that never leave registers."""

from __future__ import annotations

import ctypes
from time import perf_counter

from halocline.errors import HaloclineError
from halocline.run.engine.prepare import compile_once
from halocline.run.measurements.bandwidth import LONGEST, best_rate
from halocline.run.ranks.communicator import Communicator

ROUND = 5e-3  # seconds
NUMBERS = {"float64": "double", "float32": "float"}  # types in C++

# More chains than a multiply-add takes cycles, on two units. The compiler's flags, made for equal bits, leave
# products and sums apart: here they are joined, and optimized at any level of HALOCLINE_OPTIMIZATION.
SOURCE = """
typedef NUMBER number;
#ifdef __AVX512F__
enum { BYTES = 64 };
#elif defined __AVX__
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
enum { LANES = BYTES / sizeof(number), CHAINS = 12 };
typedef number vector __attribute__((vector_size(BYTES)));

#ifdef __aarch64__
#define REGISTER "+w"
#else
#define REGISTER "+v"
#endif
#ifdef __clang__
#pragma clang fp contract(fast)
#define CONTRACTED
#else
#define CONTRACTED __attribute__((optimize("O3", "fp-contract=fast")))
#endif

extern "C" CONTRACTED double multiply_adds(long rounds) {
  vector sums[CHAINS] = {}, factor = {}, more = {};
  factor += number{0.5};
  more += number{0.25};
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; ++c) {
      sums[c] = sums[c] * factor + more;
      __asm__ volatile("" : REGISTER(sums[c]));
    }
  }
  return 2.0 * LANES * CHAINS * static_cast<double>(rounds);
}
"""


def multiply_add_peak(
    comm: Communicator, threads: int, duration: float = LONGEST, *, dtype: str = "float64"
) -> float | None:
    """Return the operations a second of multiply-adds, each counted as two, of all threads of all ranks.

    Measured on one thread of each rank, all at once, and taken as often as the rank has threads: cores whose
    clock falls when all of them work have somewhat less.

    Parameters
    ----------
    comm : Communicator
        All its ranks call this together.
    threads : int
        Of this rank.
    duration : float
        Seconds of the measurement, the same on all ranks.
    dtype : {"float64", "float32"}
        Precision of the numbers; vectors have twice as many of float32.

    Returns
    -------
    float or None
        The same on all ranks; None where it cannot be compiled.
    """
    try:
        library = compile_once(SOURCE.replace("NUMBER", NUMBERS[dtype]), comm, streaming=False)
    except HaloclineError:
        return None
    work = ctypes.CDLL(str(library)).multiply_adds
    work.argtypes, work.restype = [ctypes.c_long], ctypes.c_double
    rounds, took = 1000, 0.0
    while took < ROUND:
        rounds *= 2
        begun = perf_counter()
        work(rounds)
        took = perf_counter() - begun
    return threads * best_rate(comm, lambda: int(work(rounds)), duration)
