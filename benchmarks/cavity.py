"""The buoyancy-driven cavity: iterations compared with machine limits, and the time to a steady flow.

An iteration of one stage, in float64, runs on n^3 points with each number of threads. It must read and write
five fields, 80 bytes per point. The program prints the rate of these bytes, divided by the rate of a += s * b
on the same threads (target: 70 %). Both are measured in turn. Two more limits are measured. The first is the
multiply-add peak of the same number of cores (peers/fma_peak.c), since arithmetic and loads limit a core with
a high bandwidth. The second are plain loops of the same equations, compiled with -ffast-math
(peers/cavity_loops.c). One version stores the residual in one loop and adds it in a second loop, as in the
code of Virginia Tech. The other version is one loop. ssspnt is the measure of that paper (Eq. 6), 93.8 on one
P100 at 256^3.

Then the program runs squares to their steady state, with forward steps and with steps of several stages. It
prints the iterations and the seconds.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from measure import arguments, at_once, competitor, in_turn, median, numbers, ratio, save
from mhd import peak

from halocline.compile.cxx import find_compiler
from halocline.problems.problem import Problem
from halocline.run.measurements.bandwidth import bandwidth

HERE = Path(__file__).parent
BYTES = 80  # of a point: five fields, read and written
P100 = 93.8
WANTED = 0.7


def loops(folder: str, fused: int) -> Path:
    """Return the plain loops."""
    program = Path(folder) / f"cavity_loops_{fused}"
    flags = [
        "-O3",
        "-march=native",
        "-ffast-math",
        "-fopenmp",
        "-mprefer-vector-width=512",
        f"-DFUSED={fused}",
    ]
    source = HERE / "peers/cavity_loops.c"
    command = [*find_compiler().command, "-x", "c", *flags, source, "-o", program, "-lm"]
    subprocess.run([str(word) for word in command], check=True)
    return program


def iterating(
    n: int, threads: int, iterations: int
) -> tuple[Callable[[], float], Callable[[], float], float]:
    """Return functions that measure the seconds of an iteration and of the triad, and the flops per point."""
    case = Problem("cavity", [n], {"stages": 1, "watch": 1e6})
    result = case.run(steps=2, threads=threads)
    sim = result.simulation
    domain = sim.domain

    def step() -> float:
        return float(sim.run(steps=iterations).loop_seconds / iterations)

    def triad() -> float:
        rate = bandwidth(domain.comm, domain.devices, domain.threads, sim.store.memory_bytes)
        assert rate is not None
        return BYTES * n**3 / rate

    return step, triad, result.record.flops_per_cell_step


def rates(n: int, threads: list[int], iterations: int, repeats: int) -> list[dict[str, Any]]:
    """Measure all iterations and limits in turn."""
    rows = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        plain = {name: loops(folder, fused) for fused, name in enumerate(("two loops", "one loop"))}
        program = peak(folder)
        for t in threads:
            step, triad, flops = iterating(n, t, iterations)
            fmas = [stack.enter_context(competitor(program)) for _ in range(t)]
            runs: dict[str, Callable[[], float]] = {"halocline": step, "triad": triad, "peak": at_once(fmas)}
            for name, path in plain.items():
                peer = stack.enter_context(competitor(path, n, iterations, threads=t))
                runs[name] = lambda peer=peer: peer() * 1e-6 * n**3
            times = in_turn(runs, repeats)
            seconds = median(times["halocline"])
            rows.append(
                {
                    "n": n,
                    "threads": t,
                    "ns_per_point": 1e9 * seconds / n**3,
                    "ssspnt": 1e-7 * n**3 / (t * seconds),
                    "of_bandwidth": ratio(times, "halocline", "triad"),
                    "of_peak": ratio(times, "halocline", "peak") * 1e-6 * flops * n**3,
                    "flops_per_point": flops,
                    "faster_than_two_loops": ratio(times, "halocline", "two loops"),
                    "faster_than_one_loop": ratio(times, "halocline", "one loop"),
                }
            )
            print(format_row(rows[-1]), flush=True)
    return rows


def format_row(row: dict[str, Any]) -> str:
    """Return a row as text."""
    t = row["threads"]
    return (
        f"{row['n']}^3, {t} thread{'s' if t > 1 else ''}: {row['ns_per_point']:.2f} ns a point, ssspnt "
        f"{row['ssspnt']:.1f} ({P100} on a P100); {row['of_bandwidth']:.0%} of the bandwidth bound (wanted: "
        f"{WANTED:.0%}), {row['of_peak']:.0%} of the multiply-add peak with {row['flops_per_point']:.0f} "
        f"operations a point; {row['faster_than_two_loops']:.2f} and {row['faster_than_one_loop']:.2f} times "
        "as fast as two plain loops and one"
    )


def steady(n: int, rayleigh: float, gathered: float, stages: int) -> dict[str, Any]:
    """Run a square to its steady state."""
    settings = {"Ra": rayleigh, "gathered": gathered, "stages": stages}
    record = Problem("cavity-2d", [n], settings).run(steps=1_000_000, threads=1).record
    assert record.diagnostics is not None
    return {
        "n": n, "Ra": rayleigh, "gathered": gathered, "scheme": record.scheme, "iterations": record.steps,
        "seconds": record.seconds, "nusselt_hot": record.diagnostics["nusselt_hot"],
    }  # fmt: skip


def main() -> None:
    """Measure, print and record."""
    options = arguments(__doc__.splitlines()[0], n="256", threads="1,2", iterations=10, short=128)
    threads, rows = numbers(options.threads), []
    for n in numbers(options.n):
        rows += rates(n, threads, options.iterations, options.repeats)
    for gathered in (0.0, 0.6):
        for stages in (1, 0):
            rows.append(steady(options.short, 1e5, gathered, stages))
            row = rows[-1]
            print(
                f"{row['n']}^2, Ra {row['Ra']:g}, gathered {gathered:g}, {row['scheme']}: steady after "
                f"{row['iterations']:,} iterations, {row['seconds']:.1f} s; Nusselt number "
                f"{row['nusselt_hot']:.4f}",
                flush=True,
            )
    save(options.json, rows)


if __name__ == "__main__":
    main()
