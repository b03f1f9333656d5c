"""Magnetohydrodynamics: a step of all eight fields and terms, compared with machine limits.

The case is `mhd-benchmark` (third-order Runge-Kutta, so three right-hand sides per step). The program prints:

- nanoseconds per cell and step;
- the share of the multiply-add peak of the same cores (peers/fma_peak.c). An fma counts as two operations,
  and an addition that is part of no fma counts as one, so that the share remains below 1;
- the share of the bandwidth bound;
- the gain of a second thread, in steps and in multiply-adds alone;
- the gain of computation in groups over one loop;
- the seconds from the equations to a simulation that can run, with an empty cache (target: below 15) and with
  cached kernels, which leaves tracing and analysis (target: below 1).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from measure import arguments, at_once, competitor, in_turn, median, numbers, ratio, save

import halocline as hc
from halocline.compile.cxx import find_compiler
from halocline.compile.targets import cpu
from halocline.problems.problem import Problem

HERE = Path(__file__).parent
CELLS = 2e6  # of one measurement
SMALL = 64  # cells along each axis, up to which one loop is measured too


def simulation(n: int, order: int, scheme: str = "rk3", **execution: Any) -> hc.Simulation:
    """Return the case on n^3 cells after a warm-up."""
    sim = Problem("mhd-benchmark", (n, n, n), order=order, scheme=scheme).run(steps=2, **execution).simulation
    assert isinstance(sim, hc.Simulation)
    return sim


def one_loop(n: int, order: int) -> hc.Simulation:
    """Return the case without groups."""
    split, cpu.split = cpu.split, lambda kernel: kernel
    try:
        return simulation(n, order, threads=1)
    finally:
        cpu.split = split


def stepping(sim: hc.Simulation) -> Callable[[], float]:
    """Return a measurement of the seconds of a step."""
    steps = max(1, round(CELLS / sim.grid.size))
    return lambda: sim.run(steps=steps).loop_seconds / steps


START = """
import sys, time
import halocline as hc
from halocline.problems.problem import Problem
problem = Problem("mhd-benchmark", (64, 64, 64), order=int(sys.argv[1]))
begun = time.perf_counter()
problem.bench(threads=1)
print(time.perf_counter() - begun)
"""


def start(script: str, *arguments_of_script: object) -> dict[str, float]:
    """Return the seconds that a script prints, with an empty cache and with cached kernels."""
    with tempfile.TemporaryDirectory() as folder:
        result = {}
        for name in ("compile_seconds", "trace_seconds"):
            done = subprocess.run(
                [sys.executable, "-c", script, *map(str, arguments_of_script)],
                env=os.environ | {"HALOCLINE_CACHE": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            result[name] = float(done.stdout)
    return result


def peak(folder: str) -> Path:
    """Return the program that computes multiply-adds only."""
    compiler, program = find_compiler(), Path(folder) / "fma_peak"
    other = ("-std", "-fPIC", "-shared", "-w", "-fno-exceptions", "-fno-rtti")
    flags = [flag for flag in compiler.flags() if not flag.startswith(other)]
    command = [
        *compiler.command,
        "-x",
        "c",
        *flags,
        "-ffp-contract=fast",
        HERE / "peers/fma_peak.c",
        "-o",
        program,
    ]
    subprocess.run([str(word) for word in command], check=True)
    return program


def measure(n: int, order: int, threads: list[int], repeats: int) -> dict[str, Any]:
    """Measure one size in turn: threads, peak and, for small sizes, one loop."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        program = peak(folder)
        fmas = [stack.enter_context(competitor(program)) for _ in range(max(threads))]
        sims = {t: simulation(n, order, threads=t) for t in threads}
        runs: dict[str, Callable[[], float]] = {f"peak of {t}": at_once(fmas[:t]) for t in threads}
        runs |= {f"{t} threads": stepping(sim) for t, sim in sims.items()}
        if n <= SMALL:
            runs["one loop"] = stepping(one_loop(n, order))
        times = in_turn(runs, repeats)
        one = sims[threads[0]]
        flops = sum(sweep.flops for sweep in one.schedule.sweeps())
        row: dict[str, Any] = {"n": n, "order": order, "flops_per_cell_step": flops}
        row["bytes_per_cell_step"] = one.bytes_per_step / one.grid.size
        alone, first = f"peak of {threads[0]}", f"{threads[0]} threads"
        row["peak_gflops_per_core"] = 1e-3 / median(times[alone]) / threads[0]
        for t, sim in sims.items():
            seconds = median(times[f"{t} threads"]) / n**3
            row[f"ns_{t}"] = 1e9 * seconds
            # a step's operations at the peak of t cores, over the step's time, pair by pair
            row[f"of_peak_{t}"] = ratio(times, f"{t} threads", f"peak of {t}") * 1e-6 * flops * n**3
            row[f"of_bandwidth_{t}"] = sim.share_of_bound()
            if t != threads[0]:
                row[f"faster_{t}"] = ratio(times, f"{t} threads", first)
                row[f"peak_faster_{t}"] = ratio(times, f"peak of {t}", alone)
        if "one loop" in runs:
            row["faster_than_one_loop"] = ratio(times, first, "one loop")
    return row


def format_row(row: dict[str, Any], threads: list[int]) -> str:
    """Return a row as text."""
    lines = [
        f"{row['n']}^3, order {row['order']}: {row['flops_per_cell_step']:.0f} operations and "
        f"{row['bytes_per_cell_step']:.0f} bytes a cell and step; a core's peak is "
        f"{row['peak_gflops_per_core']:.1f} GFLOP/s"
    ]
    for t in threads:
        line = f"  {t} thread{'s' if t > 1 else ''}: {row[f'ns_{t}']:.0f} ns a cell and step, "
        line += (
            f"{row[f'of_peak_{t}']:.0%} of the peak, {row[f'of_bandwidth_{t}']:.0%} of the bandwidth bound"
        )
        if f"faster_{t}" in row:
            line += (
                f", {row[f'faster_{t}']:.2f} times as fast as {threads[0]} (wanted: 1.9; multiply-adds "
                f"alone: {row[f'peak_faster_{t}']:.2f})"
            )
        lines.append(line)
    if "faster_than_one_loop" in row:
        lines.append(f"  group by group {row['faster_than_one_loop']:.2f} times as fast as one loop")
    return "\n".join(lines)


def main() -> None:
    """Measure, print and record."""
    options = arguments(__doc__.splitlines()[0], n="64,128", threads="1,2", order=6)
    threads, rows = numbers(options.threads), []
    starts = start(START, options.order)
    print(
        f"from the equations to a simulation: {starts['compile_seconds']:.1f} s with an empty cache (wanted: "
        f"below 15), {starts['trace_seconds']:.2f} s with the kernels in it (below 1)",
        flush=True,
    )
    for n in numbers(options.n):
        rows.append(measure(n, options.order, threads, options.repeats) | starts)
        print(format_row(rows[-1], threads), flush=True)
    save(options.json, rows)


if __name__ == "__main__":
    main()
