"""Study of weak scaling, with constant work per rank (Pekkilä et al. 2022; Xue and Roy 2020)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.plan.growth import grown, grown_as_cut
from halocline.ranges import Range, whole_numbers
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.reference import with_notes
from halocline.study.reporting.report import Column, Contents, Group, ordered_rows, row_table
from halocline.study.study import Run, Study, StudyRequest
from halocline.study.ways import COMPARED_OPTIONS, VARIANT_COMPARISON, unless_varied
from halocline.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.problems.problem import Problem

GROWTHS = {  # notes on the growth of the grid, by growth type
    1: "The grid doubles along one axis after the other.",
    2: "The grid grows along the axes of the decomposition.",
}
EFFICIENCY = Column("\nefficiency", lambda m, g: q.percent(efficiency(m, g)))


def efficiency(measurement: Measurement, group: Group) -> float:
    """Return the time per step and cell of a rank on the fewest ranks, divided by this time of a given run.

    Both runs have the same number of threads per rank.
    """
    return q.rank_ns(group.with_same_threads(measurement).base) / q.rank_ns(measurement)


def _tables(group: Group) -> Iterator[Table]:
    for size in group.split(lambda m: m["n"]):
        growth = GROWTHS.get(size.first.get("growth") or 0, "The grid grows along all axes.")
        note = f"{growth} Efficiency is relative to the fewest ranks with the same number of threads."
        yield row_table(
            "Time of a step",
            (
                *(c.LAYOUT, c.SIZE, c.PER_RANK, c.NS, EFFICIENCY, c.UPDATE),
                *(c.FORMULA_SHARE, c.BANDWIDTH_SHARE, *c.optional_columns(size)),
            ),
            ordered_rows(size, lambda m: (m["threads"], q.units(m))),
            left=2,
            note=with_notes("weak", size, note),
            heading=f"{size.first['n']} cells per rank along the first axis: {q.case_text(size.first)}",
        )


def _sentences(group: Group) -> Iterator[str]:
    for same_threads in group.split(lambda m: (m["n"], m["threads"])):
        base, last = same_threads.base, same_threads.last
        if last is not base:
            share = q.percent(efficiency(last, same_threads))
            yield (
                f"{base['n']} per rank: the efficiency on {q.layout(last)} is {share}, relative to "
                f"{q.layout(base)}."
            )


def _figure(group: Group) -> Figure | None:
    def label(line: Group) -> str:
        threads = f", {counted(line.first['threads'], 'thread')} each"
        return f"{line.first['n']} per rank" + threads * (len(group.values("threads")) > 1)

    panel = Panel(
        group,
        lambda m, g: q.rank_ns(m),
        "Weak scaling",
        "ns per step and cell of a rank",
        line=lambda m: (m["n"], m["threads"]),
        label=label,
        ideal=lambda x, line: q.rank_ns(line.base),
        log=False,
    )
    return draw([panel])


WEAK = Contents(_tables, _sentences, {"weak.png": _figure}, c.whole_runs)


class Weak(Study):
    """Study of grids that grow with the ranks."""

    def runs(self, request: StudyRequest) -> list[Run]:
        """Return the runs of each growth type. Runs with an unchanged grid occur only once."""
        options = request.study_options
        first, *other_growths = whole_numbers(options.get("growth") or "1", "--growth", Range(1, 2))
        runs = super().runs(replace(request, study_options={**options, "growth": first}))
        for growth in other_growths:
            growth_runs = super().runs(replace(request, study_options={**options, "growth": growth}))
            runs += [run for run in growth_runs if run.shape != request.build_problem(run.n).shape]
        return runs

    def run_on_layout(
        self, request: StudyRequest, size_option: int | None, problem: Problem, layout: Layout
    ) -> Run:
        """Return the run of a problem on a grid that grows with the ranks of the layout."""
        run, growth = super().run_on_layout(request, size_option, problem, layout), _growth(request)
        ranks = layout.ranks * request.command.subdomains_per_rank
        if growth is not None:
            decomposition = request.command.decomposition
            shape = (
                grown(problem.shape, ranks)
                if growth == 1
                else grown_as_cut(problem.shape, ranks, decomposition)
            )
            return replace(run, shape=shape, size_option=shape, facts={"growth": growth})
        n = run.n if request.has_settings else request.size_of_file(problem)
        larger_n = round(n * ranks ** (1 / len(problem.shape)))
        shape = request.build_problem(larger_n).shape
        return replace(
            run,
            n=n,
            shape=shape,
            size_option=shape if request.has_settings else larger_n,
            facts={"growth": None},
        )


def _growth(request: StudyRequest) -> int | None:
    """Return the growth type, 1 or 2; None for a problem whose size is a single number."""
    growth = int(request.study_options.get("growth") or 1)
    if request.has_settings and not request.is_linear:
        return growth
    if growth == 2:
        raise InputError(
            f"--growth 2: the size of {request.command.name} is a single number, so all axes grow. Leave the "
            "option out."
        )
    return None


STUDY = Weak(
    "weak",
    title="Weak scaling",
    about="Measure the weak scaling of a problem with ranks.",
    help="Each rank has N cells along the first axis. With growth 1, each doubling of the ranks doubles the "
    "grid along the next axis. The subdomain of each rank is then a cube, and the ranks follow a Z-order "
    "curve (Fig. 13 of Pekkilä et al. 2022). With growth 2, the grid grows along the axes of its "
    "decomposition (Tables 1 and 2 of the papers on the cavity code of Virginia Tech).",
    examples=(
        "halocline study weak mhd-benchmark --n 64 --ranks 1,2,4",
        "halocline study weak cavity --n 32 --ranks 1,2 --growth 2 --decomposition 1d-x,1d-z",
    ),
    contents=(c.SAME_BITS, VARIANT_COMPARISON, unless_varied(WEAK)),
    varied_options=COMPARED_OPTIONS,
    options=(
        ("--growth G,G,...", "Rule by which the grid grows with the ranks: 1, 2, or 1,2 for both.", "1"),
    ),
    has_formula=True,
    compared_conditions=("growth", "device"),
)
