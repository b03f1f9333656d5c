"""Peak rate of floating-point operations, measured by multiply-adds on vectors in registers."""

from __future__ import annotations

import ctypes
from time import perf_counter

from halocline.errors import HaloclineError
from halocline.run.engine.prepare import compile_once
from halocline.run.measurements.bandwidth import LONGEST, best_rate
from halocline.run.ranks.communicator import Communicator

ROUND = 5e-3  # duration of a round in seconds
NUMBERS = {"float64": "double", "float32": "float"}  # types in C++

# There are more independent chains of multiply-adds than two units need to hide their latency. The usual
# compiler flags forbid the fusion of products and sums, so that results are bit-for-bit identical. This
# source allows fusion, and sets its optimization level independently of HALOCLINE_OPTIMIZATION.
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
    """Return the rate of multiply-adds of all threads of all ranks, in operations per second.

    A multiply-add counts as two operations. One thread of each rank is measured, on all ranks at the same
    time, and the result is multiplied by the number of threads. If cores reduce their clock frequency under
    full load, the actual peak is slightly lower.

    Parameters
    ----------
    comm : Communicator
        All ranks of the communicator call this function together.
    threads : int
        Number of threads of this rank.
    duration : float
        Duration of the measurement in seconds, equal on all ranks.
    dtype : {"float64", "float32"}
        Precision of the numbers. A vector holds twice as many float32 numbers as float64 numbers.

    Returns
    -------
    float or None
        Rate, identical on all ranks; None if the kernel of the measurement cannot be compiled.
    """
    try:
        library = compile_once(SOURCE.replace("NUMBER", NUMBERS[dtype]), comm, streaming=False)
    except HaloclineError:
        return None
    work = ctypes.CDLL(str(library)).multiply_adds
    work.argtypes, work.restype = [ctypes.c_long], ctypes.c_double
    rounds, seconds = 1000, 0.0
    while seconds < ROUND:
        rounds *= 2
        start = perf_counter()
        work(rounds)
        seconds = perf_counter() - start
    return threads * best_rate(comm, lambda: int(work(rounds)), duration)
