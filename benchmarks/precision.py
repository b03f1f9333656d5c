"""Single precision compared with double precision: heat, mhd-benchmark and poisson, in turn.

Prints nanoseconds per cell in float64, the speed-up of float32, and the factor by which float32 reduces the
moved bytes. This factor is the maximum speed-up of a step that memory bandwidth limits.
"""

from __future__ import annotations

from collections.abc import Callable

from measure import arguments, in_turn, median, numbers, ratio, save

from halocline.problems.problem import Problem
from halocline.problems.step_bench import StepBench

PRECISIONS = ("float64", "float32")
UPDATES = 4e7  # cells of a measurement; at least two passes
CASES = {"heat": (512, 512, 512), "mhd-benchmark": (192, 192, 192), "poisson": (4096, 4096)}


def stepping(bench: StepBench, cells: int) -> Callable[[], float]:
    """Return a measurement of the seconds of a step."""
    passes = max(2, round(UPDATES / cells))
    return lambda: bench.seconds(passes) / passes


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "", cases=",".join(CASES), n=0, threads="1,2")
    rows = []
    for name in options.cases.split(","):
        shape = tuple(options.n or n for n in CASES[name])
        for threads in numbers(options.threads):
            problems = {dtype: Problem(name, shape, dtype=dtype) for dtype in PRECISIONS}
            benches = {dtype: problem.bench(threads=threads) for dtype, problem in problems.items()}
            cells = problems["float64"].grid.size
            times = in_turn(
                {dtype: stepping(bench, cells) for dtype, bench in benches.items()}, options.repeats
            )
            bytes_per_pass = {dtype: bench.prepared.bytes_per_pass for dtype, bench in benches.items()}
            row = {
                "case": name,
                "shape": shape,
                "threads": threads,
                "ns_per_cell": 1e9 * median(times["float64"]) / cells,
                "times_faster": ratio(times, "float32", "float64"),
                "times_fewer_bytes": bytes_per_pass["float64"] / bytes_per_pass["float32"],
            }
            rows.append(row)
            print(
                f"{name} {'x'.join(map(str, shape))} threads {threads}: {row['ns_per_cell']:6.3f} ns a cell "
                f"in float64, float32 {row['times_faster']:.2f} times faster, with "
                f"{row['times_fewer_bytes']:.2f} times fewer bytes",
                flush=True,
            )
            save(options.json, rows)


if __name__ == "__main__":
    main()
