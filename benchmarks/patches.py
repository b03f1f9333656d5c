"""The patch engine: the cost of a number of patches, the overhead over a loop nest, and the best patches.

- *counts*: 40 equal patches on two threads, and 41. Two threads run them in 20 and 21 rounds. The time of
  one round is 1/40 of the time in which one thread runs 40 patches. For each schedule, the program prints the
  measured time, divided by the time of these rounds.
- *overhead*: a second-order heat step on 64^3 periodic cells, one thread, compared with one plain loop nest
  in C with the same flags and the same arithmetic. The bits of peers/heat_nest.c must be those of Halocline.
  The nest without any halo is measured too.
- *sizes*: heat steps with patches of 8^3 cells to the whole grid, as in J. Mendygral et al., WOMBAT: A
  Scalable and High-performance Astrophysical Magnetohydrodynamics Code (2017), Fig. 5; also with
  the patches that the cache rule and the tuning select.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measure import arguments, competitor, in_turn, median, numbers, ratio, save

import halocline as hc
from halocline.compile.cxx import find_compiler
from halocline.run.domain.execution import SCHEDULES
from halocline.run.tuning.patches import BY_CACHES, TUNE

HERE = Path(__file__).parent
COUNTS = (40, 41)
ROUNDS = {40: 20, 41: 21}  # of two threads
PATCH = (32, 512)
SWEEPS = 20
SIZES = (8, 16, 24, 32, 40, 50, 64, 96, 128)
CELLS = 6e7  # of a measurement of sizes


@hc.program
def costly(u):  # type: ignore[no-untyped-def]
    """Update u by an expensive expression, with few bytes that fit in the first-level cache."""
    u.set(hc.exp(-hc.sin(u) * hc.cos(u)))


def equal_patches(count: int, threads: int, schedule: str) -> Callable[[], float]:
    """Return a measurement of a sweep over the given number of equal patches."""
    grid = hc.Grid((PATCH[0] * count, PATCH[1]))
    u = grid.field("u")
    sim = hc.Simulation(grid, costly, patch=PATCH, threads=threads, schedule=schedule)
    sim[u] = lambda x, y: x * y
    sim.run(steps=2)
    return lambda: sim.run(steps=SWEEPS).loop_seconds / SWEEPS


def counts(repeats: int) -> list[dict[str, Any]]:
    """Measure the time of 40 and 41 patches, divided by the time of the required rounds."""
    runs = {f"{s} {n}": equal_patches(n, 2, s) for s in SCHEDULES for n in COUNTS}
    alone = equal_patches(40, 1, "static")
    times = in_turn({"alone": alone, **runs}, repeats)
    rows = []
    for schedule in SCHEDULES:
        row: dict[str, Any] = {"part": "counts", "schedule": schedule, "patches": PATCH}
        for n in COUNTS:
            row[f"us_{n}"] = 1e6 * median(times[f"{schedule} {n}"])
            row[f"over_demand_{n}"] = 40 / ROUNDS[n] / ratio(times, f"{schedule} {n}", "alone")
        row["41_over_40"] = ratio(times, f"{schedule} 40", f"{schedule} 41")
        rows.append(row)
        demands = (f"{n}: {row[f'us_{n}']:.0f} us, {row[f'over_demand_{n}']:.3f}" for n in COUNTS)
        print(f"{schedule:8} patches, time, over what their rounds take: {'; '.join(demands)}")
        print(f"{'':8} 41 over 40: {row['41_over_40']:.3f} (21 / 20 = 1.050; wanted: within 5 %)", flush=True)
    return rows


def nest(folder: Path, fill: int) -> Path:
    """Return the loop nest in C, compiled as kernels are."""
    compiler, program = find_compiler(), folder / f"heat_nest_{fill}"
    other = ("-std", "-fPIC", "-shared", "-w", "-fno-exceptions", "-fno-rtti")
    flags = [flag for flag in compiler.flags() if not flag.startswith(other)]
    command = [
        *compiler.command,
        "-x",
        "c",
        *flags,
        f"-DFILL={fill}",
        HERE / "peers/heat_nest.c",
        "-o",
        program,
    ]
    subprocess.run(command, check=True)
    return program


def overhead(repeats: int, n: int, steps: int) -> list[dict[str, Any]]:
    """Measure the time of a step of Halocline, divided by the time of a step of the loop nest."""
    with tempfile.TemporaryDirectory() as folder:
        halocline_command = (sys.executable, HERE / "patches_halocline.py", n, steps)
        peers = {"nest": nest(Path(folder), 1), "nest without halo": nest(Path(folder), 0)}
        with (
            competitor(*halocline_command) as halocline,
            competitor(peers["nest"], n, steps) as filled,
            competitor(peers["nest without halo"], n, steps) as bare,
        ):
            if halocline.header != filled.header:
                raise SystemExit(
                    f"bits differ: ours {halocline.header}, those of the loop nest {filled.header}"
                )
            runs = {"halocline": halocline, "nest": filled, "nest without halo": bare}
            times = in_turn(runs, repeats)
    row: dict[str, Any] = {"part": "overhead", "n": n}
    row["us"] = {name: median(seconds_per_cell) * n**3 for name, seconds_per_cell in times.items()}
    for peer in peers:
        row[f"over_{peer.replace(' ', '_')}"] = 1 / ratio(times, "halocline", peer)
    print(
        f"{n}^3 heat step: {row['us']['halocline']:.0f} us, {row['over_nest']:.3f} of the loop nest with its "
        f"halo (wanted: 1.05), {row['over_nest_without_halo']:.3f} of the nest alone",
        flush=True,
    )
    return [row]


def heat(n: int, order: int, threads: int, patch: int | str) -> hc.Simulation:
    """Return heat on n^3 periodic cells."""
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T")

    def equation(T, kappa):  # type: ignore[no-untyped-def]
        return {T: kappa * hc.laplacian(T)}

    options: dict[str, Any] = {"scheme": hc.Euler(), "order": order, "threads": threads, "patch": patch}
    sim = hc.Simulation(grid, equation, parameters={"kappa": 1.0}, dt=0.1 / n**2, **options)
    sim[T] = lambda x, y, z: x * (1 - x) * y * (1 - y) * z * (1 - z)
    sim.run(steps=2)
    return sim


def sizes(repeats: int, n: int, order: int, threads: int) -> list[dict[str, Any]]:
    """Measure million cells per second by the edge of cubic patches, and compare them."""
    steps = max(1, round(CELLS * threads / n**3))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HALOCLINE_CACHE"] = folder  # a folder without stored tuning results
        expected: list[int | str] = [edge for edge in SIZES if edge < n]
        sims = {str(patch): heat(n, order, threads, patch) for patch in [*expected, n, BY_CACHES, TUNE]}
        del os.environ["HALOCLINE_CACHE"]
    times = in_turn(
        {name: lambda sim=sim: sim.run(steps=steps).loop_seconds / steps for name, sim in sims.items()},
        repeats,
    )
    tuned = sims[TUNE].prepared.tuned
    row: dict[str, Any] = {"part": "sizes", "n": n, "order": order, "threads": threads, "tuned": str(tuned)}
    row["million_cells_per_second"] = {
        name: n**3 / median(seconds_per_cell) / 1e6 for name, seconds_per_cell in times.items()
    }
    row["over_caches"] = {name: ratio(times, name, BY_CACHES) for name in times}
    print(f"{n}^3 order {order} threads {threads}; {tuned}")
    for name, speed in row["million_cells_per_second"].items():
        label = f"{name}^3" if name.isdigit() else name
        print(
            f"  {label:8} {speed:6.0f} million cells/s, {row['over_caches'][name]:.2f} of those by cache size"
        )
    sys.stdout.flush()
    return [row]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw million cells per second over the edge of patches."""
    from matplotlib import pyplot

    from halocline.io.style import styled

    with styled():
        figure, axes = pyplot.subplots()
        for row in (row for row in rows if row["part"] == "sizes"):
            speed = row["million_cells_per_second"]
            edges = [int(name) for name in speed if name.isdigit()]
            title = f"{row['n']}³, order {row['order']}, {row['threads']} thread{'s'[: row['threads'] > 1]}"
            (line,) = axes.plot(edges, [speed[str(edge)] for edge in edges], marker="o", label=title)
            axes.axhline(speed[BY_CACHES], color=line.get_color(), linestyle="--", linewidth=1)
            axes.axhline(speed[TUNE], color=line.get_color(), linestyle=":", linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("cells along the edge of a patch (dashed: by cache size; dotted: tuned)")
        axes.set_ylabel("million cells a second")
        axes.set_ylim(bottom=0)
        axes.legend()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__ or "", parts="counts,overhead,sizes", n=256, orders="2,6", threads="1,2", picture=""
    )
    rows = []
    for part in options.parts.split(","):
        if part == "counts":
            rows += counts(options.repeats)
        elif part == "overhead":
            rows += overhead(3 * options.repeats, 64, 500)
        else:
            for order in numbers(options.orders):
                for threads in numbers(options.threads):
                    rows += sizes(options.repeats, options.n, order, threads)
        save(options.json, rows)
    if options.picture:
        draw(rows, Path(options.picture))


if __name__ == "__main__":
    main()
