"""Conjugate gradients on one device, for the Poisson problem of UMBC HPCF-2018-10, compared with copies.

Prints milliseconds per iteration and the share of the bound: the eight streams of `cg-fused`, 64 bytes per
cell, at the speed of one large copy, or of four concurrent copies, whichever is faster. The copies run in
turn within the device's memory. Then the program solves to the paper's tolerance, and compares the seconds
with the paper's: 14.5 hours on one core and 4 minutes 16 seconds on 512 for N = 16384. They are compared only
if the iterations are those of the paper's Table 3.1, or differ by one. Every solve starts from zero, as in
the paper. Before that the checksum of a small solution is compared with that of the processor.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from gpu import arguments, fastest_copies, keep, label
from measure import in_turn, median, ratio

import halocline as hc
from halocline.lang.functions import abs as magnitude
from halocline.lang.reductions import max as largest

SMALL = 128  # points along each axis of the problem whose checksum is compared
RTOL = 1e-6
PAPER = {16384: {"one core": 52192.29, "512 cores": 256.0}}  # seconds
ITERATIONS = {1024: 1581, 2048: 3192, 4096: 6452, 8192: 13033, 16384: 26316}  # Table 3.1


def problem(n: int, method: str, device: str) -> Any:
    """Return the problem, ready to be solved."""
    grid = hc.Grid((n, n), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    x, y = u.coordinates
    waves = hc.cos(2 * math.pi * x) * hc.sin(math.pi * y) ** 2
    waves = waves + hc.cos(2 * math.pi * y) * hc.sin(math.pi * x) ** 2
    return hc.LinearProblem(
        lambda v: 4 * v - (v[-1, 0] + v[1, 0] + v[0, -1] + v[0, 1]),
        u,
        grid.h(0) ** 2 * (-2 * math.pi**2 * waves),
        method=method,
        device=device,
        threads=1,
    )


def solved(n: int, method: str, device: str) -> tuple[int, str]:
    """Return the iterations of a small solve, and the checksum of its solution."""
    solver = problem(n, method, device)
    solution = solver.solve(rtol=RTOL, start="zero")
    return solution.iterations, solution.fields.checksum(solver.unknown)


def seconds(solver: Any, iterations: int) -> float:
    """Return the seconds of an iteration."""
    return float(solver.solve(rtol=RTOL, max_iterations=iterations, start="zero").seconds_per_iteration)


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__ or "", n=16384, method="cg-fused", iterations=50, solve=1)
    device, n, method = options.devices[0], options.n, options.method
    name = label([device])
    expected, actual = solved(SMALL, method, "cpu"), solved(SMALL, method, name)
    if actual != expected:
        raise SystemExit(f"N = {SMALL}: iterations and checksum {actual} on {name}, {expected} on cpu")
    solver = problem(n, method, name)
    first = solver.solve(rtol=RTOL, max_iterations=options.iterations, start="zero")
    copies = fastest_copies(device, options.copy)
    times = in_turn(
        {"iteration": partial(seconds, solver, options.iterations), "copy": copies}, options.repeats
    )
    bound = [first.bytes_per_iteration * copy_seconds for copy_seconds in times["copy"]]
    row: dict[str, Any] = {
        "n": n,
        "method": method,
        "ms_per_iteration": 1e3 * median(times["iteration"]),
        "bytes_per_cell": first.bytes_per_iteration / n**2,
        "copy_gigabytes_per_second": 1e-9 / median(times["copy"]),
        "share_of_bound": 1 / ratio({"iteration": times["iteration"], "bound": bound}, "bound", "iteration"),
        "small": {"n": SMALL, "iterations": actual[0], "checksum": actual[1]},
    }
    print(
        f"N {n}  {method} on {name} {device.name}: {row['ms_per_iteration']:.3f} ms an iteration, "
        f"{row['share_of_bound']:.0%} of the bound ({row['copy_gigabytes_per_second']:.0f} GB/s), bits as on "
        "the processor",
        flush=True,
    )
    keep(options, "gpu_cg", [row], 1 / median(times["copy"]))
    if not options.solve:
        return
    del copies
    solution = solver.solve(rtol=RTOL, start="zero")
    exact = math.prod(hc.sin(math.pi * x) ** 2 for x in solver.unknown.coordinates)
    row |= {
        "start": "zero",
        "seconds": solution.seconds,
        "iterations": solution.iterations,
        "converged": solution.converged,
        "true_residual_relative": solution.true_residual_relative,
        "seconds_per_iteration": solution.seconds_per_iteration,
        "error_max": solution.fields.evaluate(largest(magnitude(solver.unknown - exact))),
        "checksum": solution.fields.checksum(solver.unknown),
    }
    print(
        f"solved to {RTOL:g}: {solution.seconds:.2f} s, {solution.iterations:,} iterations, error "
        f"{row['error_max']:.4e}, checksum {row['checksum']}"
    )
    expected_iterations = ITERATIONS.get(n, solution.iterations)
    if abs(solution.iterations - expected_iterations) > 1:
        keep(options, "gpu_cg", [row], 1 / median(times["copy"]))
        raise SystemExit(
            f"N = {n}: {solution.iterations:,} iterations, but the paper has {expected_iterations:,}; the "
            "times are not compared"
        )
    for cores, paper in PAPER.get(n, {}).items():
        row[f"times faster than the paper on {cores}"] = paper / solution.seconds
        print(f"  {paper / solution.seconds:.1f} times faster than the paper on {cores} ({paper:.0f} s)")
    keep(options, "gpu_cg", [row], 1 / median(times["copy"]))


if __name__ == "__main__":
    main()
