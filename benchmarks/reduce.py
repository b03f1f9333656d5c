"""Costs of order-independent sums compared with ordinary vector sums, alone and within a sweep.

The sweep is an update of conjugate gradients, x += a p; r -= a q, with or without the sum of r r. The vectors
fit the second-level cache, the last-level cache, or neither. Ratios are medians over measurements in turn:
time divided by that with the ordinary sum.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measure import arguments, in_turn, median, numbers, save

from halocline.compile.driver import compile_library

SWEEPS = {
    "no sum": "update_alone",
    "ordinary sum": "update_ordinary",
    "deposit": "update_deposit",
    "split in the loop": "update_split",
    "ordinary, prefetched": "update_ordinary_prefetched",
    "split, prefetched": "update_prefetched",
}
ROWS = {"ordinary sum": "row_ordinary", "deposit": "row_deposit"}
ROW = 512  # elements; HC_CHUNK


def vectors(n: int) -> np.ndarray:
    """Return four vectors of n random numbers, on cache lines and at distances that are no powers of two."""
    stride = n + 17 * 8
    memory = np.random.default_rng(2).uniform(-1, 1, 4 * stride + 8)
    first = -memory.ctypes.data % 64 // 8
    return memory[first : first + 4 * stride].reshape(4, stride)[:, :n]


def seconds(run: Callable[[], object], count: int) -> float:
    """Return seconds of processor time per run, over `count` runs; all code runs on one thread."""
    begin = time.process_time()
    for _ in range(count):
        run()
    return (time.process_time() - begin) / count


def report(title: str, times: dict[str, list[float]], elements: int) -> list[dict[str, Any]]:
    """Print and return nanoseconds per element and the ratio to the ordinary sum."""
    print(title)
    rows = []
    for name, seconds_of_runs in times.items():
        ns = 1e9 * median(seconds_of_runs) / elements
        share = statistics.median(t / o for t, o in zip(seconds_of_runs, times["ordinary sum"], strict=True))
        print(f"  {name:20} {ns:7.3f} ns an element {share:8.3f}")
        rows.append({"case": title, "sum": name, "ns_per_element": ns, "ratio": share})
    return rows


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "", elements="32768,1048576,16777216", milliseconds=20)
    library = ctypes.CDLL(str(compile_library(Path(__file__).with_suffix(".cpp").read_text())))
    pointer, count = ctypes.c_void_p, ctypes.c_int64

    row = vectors(ROW)[0]
    competitors = {}
    for name, symbol in ROWS.items():
        function = library[symbol]
        function.argtypes, function.restype = [pointer, count, count], ctypes.c_double
        competitors[name] = partial(seconds, partial(function, row.ctypes.data, ROW, 20_000), 1)
    rows = report(
        f"a row of {ROW} in the first-level cache", in_turn(competitors, options.repeats), 20_000 * ROW
    )

    for n in numbers(options.elements):
        n = n // ROW * ROW
        fields = vectors(n)
        count_of_runs = max(1, int(options.milliseconds * 1e6 / n))
        competitors = {}
        for name, symbol in SWEEPS.items():
            function = library[symbol]
            function.argtypes, function.restype = [pointer] * 4 + [ctypes.c_double, count], ctypes.c_double
            competitors[name] = partial(
                seconds, partial(function, *[v.ctypes.data for v in fields], 1e-9, n), count_of_runs
            )
        title = f"x += a p; r -= a q; sum of r r over {n} elements, {fields.nbytes / 2**20:.0f} MiB"
        rows += report(title, in_turn(competitors, options.repeats), n)
    save(options.json, rows)


if __name__ == "__main__":
    main()
