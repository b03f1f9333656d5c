"""Magnetohydrodynamics with shocks: steps of the unsplit scheme on three axes, compared with machine limits.

The case is `blast`. The program prints zone updates per second with each flux, and the share of the
multiply-add peak of the same cores (peers/fma_peak.c). It also prints the share of the bandwidth bound, and
the gain of a second thread. WOMBAT updates 1.25e5 zones per second on each core of a full Broadwell node,
2.7e5 with one thread (Mendygral et al. 2017, Sections 3.1.1 and 3.2, Table 4).

Shares refer to a peak with multiply-adds. The 14.1 % in Table 4 of that paper refer to a peak without
multiply-adds. Relative to a peak with multiply-adds, they are about 7 %. The program then measures vectors of
64 to 512 bits in turn, as in Figure 3 and Table 4 of the paper and in `halocline study vectors`. It prints
the speed-up of a step over scalar code, and the numbers of scalar and vector floating-point instructions per
zone. It also prints the share of vector instructions (target: at least 90 %). The last results are the
seconds from the equations to a first step, with an empty cache (target: below 60) and with cached kernels.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from measure import arguments, at_once, competitor, in_turn, median, numbers, ratio, save
from mhd import peak, start, stepping

import halocline as hc
from halocline.compile.cxx import VECTOR_BITS, VECTORS
from halocline.compile.processor import widest_vector
from halocline.problems.problem import Problem
from halocline.run.measurements.instructions import Instructions, instructions_of

WANTED = {"mhdtvd": 1.2e6, "hlld": 1.8e6}  # zones per second on one core
WOMBAT = 1.25e5


def simulation(n: int, flux: str, threads: int) -> hc.Simulation:
    """Return the case on n^3 cells after a warm-up."""
    sim = Problem("blast", (n, n, n), {"flux": flux}).run(steps=2, threads=threads).simulation
    assert isinstance(sim, hc.Simulation)
    return sim


def rates(n: int, flux: str, threads: list[int], repeats: int) -> dict[str, Any]:
    """Measure zone updates with a flux: threads and peak in turn."""
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


def format_row(row: dict[str, Any], threads: list[int]) -> str:
    """Return a row as text."""
    lines = [f"{row['flux']}, {row['n']}^3: {row['flops_per_zone']:.0f} operations a zone"]
    for t in threads:
        rate = row[f"zones_per_second_{t}"]
        line = f"  {t} thread{'s' if t > 1 else ''}: {rate / 1e6:.2f} million zones a second"
        if t == 1:
            expected = f"wanted: {row['wanted'] / 1e6:.1f}; " if row["wanted"] else ""
            line += f" ({expected}{rate / WOMBAT:.1f} times WOMBAT's rate on each core of a Broadwell node)"
        else:
            line += f", {row[f'faster_{t}']:.2f} times as fast as {threads[0]} (wanted: 1.9; multiply-adds "
            line += f"alone: {row[f'peak_faster_{t}']:.2f})"
        line += (
            f", {row[f'of_peak_{t}']:.0%} of the peak, {row[f'of_bandwidth_{t}']:.1%} of the bandwidth bound"
        )
        lines.append(line)
    return "\n".join(lines)


# -- lengths of vectors --------------------------------------------------------------------------------------


def with_vectors(bits: int, n: int, flux: str) -> tuple[hc.Simulation, Instructions]:
    """Return the case compiled with vectors of the given bits, and its instructions per cell."""
    with patch.dict(os.environ, {VECTORS: str(bits)}):
        sim = simulation(n, flux, 1)
        return sim, instructions_of(sim.schedule.source, n)


def vectors(n: int, flux: str, repeats: int) -> list[dict[str, Any]]:
    """Measure a step with vectors of each length of the machine, in turn."""
    widths = [bits for bits in VECTOR_BITS if bits <= (widest_vector() or 128)]
    variants = {bits: with_vectors(bits, n, flux) for bits in widths}
    times = in_turn({str(bits): stepping(sim) for bits, (sim, _) in variants.items()}, repeats)
    rows = []
    for bits, (_, counts) in variants.items():
        share, faster = counts.vector / (counts.scalar + counts.vector), ratio(times, str(bits), "64")
        counted = {"scalar": counts.scalar, "vector": counts.vector, "vector_share": share}
        rows.append({"bits": bits, "flux": flux, "n": n, "faster": faster, **counted})
        print(
            f"  {bits:3} bits: {faster:.2f} times as fast as scalars; {counts.scalar:.0f} scalar and "
            f"{counts.vector:.0f} vector instructions a zone, {share:.1%} vector",
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
    """Measure, print and record."""
    options = arguments(__doc__.splitlines()[0], n="128", threads="1,2", fluxes="mhdtvd,hlld", short=64)
    threads, rows = numbers(options.threads), []
    fluxes = options.fluxes.split(",")
    for n in numbers(options.n):
        for flux in fluxes:
            rows.append(rates(n, flux, threads, options.repeats))
            print(format_row(rows[-1], threads), flush=True)
    print(f"vectors, {fluxes[0]}, {options.short}^3:", flush=True)
    rows += vectors(options.short, fluxes[0], options.repeats)
    for flux in fluxes:
        starts = start(START, Path(__file__).parent, flux)
        rows.append({"flux": flux} | starts)
        print(
            f"{flux}: {starts['compile_seconds']:.1f} s to a first step with an empty cache (wanted: below "
            f"60), {starts['trace_seconds']:.1f} s with the kernels in it",
            flush=True,
        )
    save(options.json, rows)


if __name__ == "__main__":
    main()
