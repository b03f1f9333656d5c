"""Magnetohydrodynamics with shocks: steps of the un-split scheme on three axes, beside machine limits.

The case is `blast`. Printed are zone updates a second with each flux, the share of the multiply-add peak of
as many cores at once (peers/fma_peak.c), the share of the bandwidth bound, and what a second thread gains.
WOMBAT updates 1.25e5 zones a second on each core of a full Broadwell node, 2.7e5 with one thread (Mendygral
et al. 2017, Sections 3.1.1 and 3.2, Table 4).

Then vectors of 64 to 512 bits, as in Figure 3 and Table 4 there: how much faster a step is than with scalars,
and floating-point instructions for each zone, scalar and vector ones, with the share of vector ones (wanted:
at least 90 %). They are counted in the disassembly: those in a loop along a row as often as it runs in rows
of the grid and of stages around it, all others once a row. Loops of scalars have branches: what lies behind
those is counted as if it ran once a row, so that their number is too low. At last the
seconds from the equations to a first step, with an empty cache (wanted: below 60) and with the kernels in it.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from measure import arguments, at_once, competitor, in_turn, median, numbers, ratio, save
from mhd import peak, start, stepping

import halocline as hc
from halocline.compile import driver
from halocline.problems.problem import Problem

WANTED = {"mhdtvd": 1.2e6, "hlld": 1.8e6}  # zones a second on one core
WOMBAT = 1.25e5
WIDTHS = (64, 128, 256, 512)
ARITHMETIC = re.compile(r"v?(add|sub|mul|div|sqrt|min|max|fn?m(add|sub)\d+)[sp]d$")
LEAST = 4  # instructions in a loop of arithmetic
AROUND = range(11)  # how much longer than the grid rows of stages are, about equally often
LANES = {"zmm": 8, "ymm": 4, "xmm": 2}


def simulation(n: int, flux: str, threads: int) -> hc.Simulation:
    """The case on n^3 cells, warmed up."""
    sim = Problem("blast", (n, n, n), {"flux": flux}).run(steps=2, threads=threads).simulation
    assert isinstance(sim, hc.Simulation)
    return sim


def rates(n: int, flux: str, threads: list[int], repeats: int) -> dict[str, Any]:
    """Zone updates with a flux: threads and peak in turn."""
    with ExitStack() as stack:
        program = peak(stack.enter_context(tempfile.TemporaryDirectory()))
        fmas = [stack.enter_context(competitor(program)) for _ in range(max(threads))]
        sims = {t: simulation(n, flux, t) for t in threads}
        runs: dict[str, Callable[[], float]] = {f"peak of {t}": at_once(fmas[:t]) for t in threads}
        runs |= {f"{t} threads": stepping(sim) for t, sim in sims.items()}
        times = in_turn(runs, repeats)
    flops = sum(sweep.flops for sweep in sims[threads[0]].schedule.sweeps())
    row: dict[str, Any] = {"flux": flux, "n": n, "flops_per_zone": flops, "wanted": WANTED.get(flux)}
    for t, sim in sims.items():
        row[f"zones_per_second_{t}"] = n**3 / median(times[f"{t} threads"])
        row[f"of_peak_{t}"] = ratio(times, f"{t} threads", f"peak of {t}") * 1e-6 * flops * n**3
        row[f"of_bandwidth_{t}"] = sim.share_of_bound()
        row[f"faster_{t}"] = ratio(times, f"{t} threads", f"{threads[0]} threads")
        row[f"peak_faster_{t}"] = ratio(times, f"peak of {t}", f"peak of {threads[0]}")
    return row


def shown(row: dict[str, Any], threads: list[int]) -> str:
    """A row in words."""
    lines = [f"{row['flux']}, {row['n']}^3: {row['flops_per_zone']:.0f} operations a zone"]
    for t in threads:
        rate = row[f"zones_per_second_{t}"]
        line = f"  {t} thread{'s' if t > 1 else ''}: {rate / 1e6:.2f} million zones a second"
        if t == 1:
            wanted = f"wanted: {row['wanted'] / 1e6:.1f}; " if row["wanted"] else ""
            line += f" ({wanted}{rate / WOMBAT:.1f} times WOMBAT's rate on each core of a Broadwell node)"
        else:
            line += f", {row[f'faster_{t}']:.2f} times as fast as {threads[0]} (wanted: 1.9; multiply-adds "
            line += f"alone: {row[f'peak_faster_{t}']:.2f})"
        line += (
            f", {row[f'of_peak_{t}']:.0%} of the peak, {row[f'of_bandwidth_{t}']:.1%} of the bandwidth bound"
        )
        lines.append(line)
    return "\n".join(lines)


# -- lengths of vectors --------------------------------------------------------------------------------------


def with_vectors(bits: int, n: int, flux: str) -> tuple[hc.Simulation, dict[str, float]]:
    """The case with vectors of so many bits, and its instructions: see `counted`."""
    scalar = "-fno-tree-vectorize -fno-tree-slp-vectorize -fno-openmp -fno-openmp-simd"
    flags = scalar if bits == 64 else f"-mprefer-vector-width={bits}"
    with tempfile.TemporaryDirectory() as folder:
        compiler, cache = Path(folder) / f"g++-{bits}", Path(folder) / "cache"
        compiler.write_text(f'#!/bin/sh\nexec {driver.find_compiler().path} "$@" {flags}\n')
        compiler.chmod(0o700)
        with patch.dict(os.environ, CXX=str(compiler), HALOCLINE_CACHE=str(cache)):
            made = simulation(n, flux, 1)
        return made, counted(max(cache.glob("*.so"), key=lambda library: library.stat().st_size), n)


def counted(library: Path, n: int) -> dict[str, float]:
    """Floating-point instructions for each of n cells of a row, scalar and vector ones."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True
    ).stdout
    found = [line.split("\t") for line in text.splitlines() if line.startswith(" ") and "\t" in line]
    code = [(int(address.rstrip(": "), 16), *[*what.split(maxsplit=1), ""][:2]) for address, what in found]
    ends: dict[int, int] = {}  # of loops, by where they begin: a jump back is the end of one
    lanes: dict[int, int] = {}  # of each instruction, by address
    for address, name, given in code:
        to = re.match(r"([0-9a-f]+) <", given) if name.startswith("j") else None
        if to and int(to[1], 16) < address:
            ends[int(to[1], 16)] = max(ends.get(int(to[1], 16), 0), address)
        if ARITHMETIC.match(name):
            wide = max((LANES[r] for r in LANES if r in given), default=1)
            lanes[address] = wide if name.endswith("pd") else 1
    # loops along rows are those without others in them; some jumps are no loops of arithmetic
    inner: list[tuple[list[int], int]] = []
    taken: set[int] = set()
    for first, last in sorted(ends.items(), key=lambda loop: loop[1] - loop[0]):
        inside = [address for address in lanes if first <= address <= last]
        if len(inside) >= LEAST and not taken.intersection(inside):
            taken.update(inside)
            inner.append((inside, max(lanes[address] for address in inside)))
    widest = max((step for _, step in inner), default=1)
    rows = [n + more for more in AROUND]
    total = {"scalar": 0.0, "vector": 0.0}
    for inside, step in inner:
        left = rows if step == widest else [length % widest for length in rows]
        times = sum(length // step for length in left) / sum(rows)
        for address in inside:
            total["vector" if lanes[address] > 1 else "scalar"] += times
    for address in lanes.keys() - taken:
        total["vector" if lanes[address] > 1 else "scalar"] += len(rows) / sum(rows)
    return total


def vectors(n: int, flux: str, repeats: int) -> list[dict[str, Any]]:
    """A step with vectors of each length that the machine has, in turn."""
    has = "avx512f" in driver.cpu(), "avx2" in driver.cpu()
    widths = [bits for bits in WIDTHS if bits <= (512 if has[0] else 256 if has[1] else 128)]
    made = {bits: with_vectors(bits, n, flux) for bits in widths}
    times = in_turn({str(bits): stepping(sim) for bits, (sim, _) in made.items()}, repeats)
    rows = []
    for bits, (_, counts) in made.items():
        share = counts["vector"] / (counts["vector"] + counts["scalar"])
        faster = ratio(times, str(bits), "64")
        rows.append({"bits": bits, "flux": flux, "n": n, "faster": faster, **counts, "vector_share": share})
        print(
            f"  {bits:3} bits: {faster:.2f} times as fast as scalars; {counts['scalar']:.0f} scalar and "
            f"{counts['vector']:.0f} vector instructions a zone, {share:.1%} vector",
            flush=True,
        )
    return rows


START = """
import sys, time
sys.path.insert(0, sys.argv[1])
from mhd_shocks import simulation
begun = time.perf_counter()
simulation(32, sys.argv[2], 1)
print(time.perf_counter() - begun)
"""


def main() -> None:
    """Measure, print, record."""
    given = arguments(__doc__.splitlines()[0], n="128", threads="1,2", fluxes="mhdtvd,hlld", short=64)
    threads, rows = numbers(given.threads), []
    fluxes = given.fluxes.split(",")
    for n in numbers(given.n):
        for flux in fluxes:
            rows.append(rates(n, flux, threads, given.repeats))
            print(shown(rows[-1], threads), flush=True)
    print(f"vectors, {fluxes[0]}, {given.short}^3:", flush=True)
    rows += vectors(given.short, fluxes[0], given.repeats)
    for flux in fluxes:
        begun = start(START, Path(__file__).parent, flux)
        rows.append({"flux": flux} | begun)
        print(
            f"{flux}: {begun['compile_seconds']:.1f} s to a first step with an empty cache (wanted: below "
            f"60), {begun['trace_seconds']:.1f} s with the kernels in it",
            flush=True,
        )
    save(given.json, rows)


if __name__ == "__main__":
    main()
