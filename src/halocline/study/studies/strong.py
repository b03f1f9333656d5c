"""Study of strong scaling: one problem on increasing numbers of ranks and threads.

Reports on linear solves follow UMBC HPCF-2018-10, Tables 4.1 and 7.1. Reports on time steps follow Pekkilä et
al. 2022, Figs. 10, 11 and 15.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.io.table import Table
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement, is_solve, ranks_of_node
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.plots import Panel, draw
from halocline.study.reporting.reference import published_rows, references, with_notes
from halocline.study.reporting.report import (
    NODES,
    PER_NODE,
    Contents,
    Group,
    ordered_rows,
    pivot_table,
    row_table,
)
from halocline.study.studies.hybrid import hybrid_table
from halocline.study.studies.orders import ORDERS, with_several_orders
from halocline.study.studies.parts import PARTS_OF_A_STEP, VARIANTS
from halocline.study.study import Run, Study, StudyRequest
from halocline.study.ways import COMPARED_OPTIONS, VARIANT_COMPARISON, unless_varied
from halocline.words import counted, duration

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.problems.problem import Problem

MAX_WATTS = 1e6

# -- solves --------------------------------------------------------------------------------------------------


def _tables_of_solves(group: Group) -> Iterator[Table]:
    over_nodes = len(group.split(q.nodes)) > 1
    axes: dict[str, Any] = {"rows": PER_NODE, "columns": NODES} if over_nodes else {}
    for size in group.split(lambda m: (m["n"], m["threads"] if over_nodes else 0)):
        m = size.first
        yield pivot_table(
            "Wall clock, HH:MM:SS and seconds",
            size,
            c.wall_clock,
            heading=f"N = {m['n']}: {m['dof']:,} unknowns, {m['case']} in {m['dim']}D, {m['method']}"
            + f", {counted(m['threads'], 'thread')} per rank" * over_nodes,
            **axes,
        )
        yield pivot_table("Speed-up", size, lambda m, g: f"{q.speedup(m, g.base):.2f}", **axes)
        note = f"Relative to {q.layout(size.base)}."
        yield pivot_table(
            "Efficiency", size, lambda m, g: f"{q.efficiency(m, g.base):.2f}", note=note, **axes
        )
        copies, triad = "copies within the same devices", "a += s * b on the same cores"
        yield pivot_table(
            "Share of the measured bandwidth",
            size,
            lambda m, g: f"{m['bandwidth_share']:.0%}" if m["bandwidth_share"] else "",
            note="Bytes that the iterations must move per second, relative to the bytes per second of "
            f"{copies if m['devices'] else triad}.",
            **axes,
        )
        equal_units = [units for units in size.split(q.units) if len(units.members) > 1 and not over_nodes]
        if equal_units:
            yield hybrid_table(Group(m for units in equal_units for m in units.members))


def _sentences_of_solves(group: Group) -> Iterator[str]:
    for size in group.split(lambda m: m["n"]):
        n, best, base = size.first["n"], size.best, size.base
        iterations, sums = size.values("iterations"), size.values("checksum")
        equal_text = f", all with the same bits: {max(iterations):,} iterations, checksum {max(sums)}."
        unequal_text = f" gave {len(sums)} different results; please report this as a bug."
        is_equal = len(iterations) == len(sums) == 1
        yield f"N = {n}: {len(size.members)} runs{equal_text if is_equal else unequal_text}"
        speedup_text = f": {q.speedup(best, base):.2f} times as fast as {q.layout(base)}"
        fastest = f"N = {n}: fastest with {q.layout(best)}, {duration(best['seconds'])}"
        yield f"{fastest}{'' if best is base else speedup_text}."


def _figure_of_solves(group: Group) -> Figure | None:
    over_nodes = len(group.split(q.nodes)) > 1

    def per_node(m: Measurement) -> int:
        return ranks_of_node(m) if over_nodes else 0

    def per_node_text(line: Group) -> str:
        return f", {counted(ranks_of_node(line.first), 'rank')} per node" if over_nodes else ""

    bases = {size.first["n"]: size.base for size in group.split(lambda m: m["n"])}
    panel = Panel(
        group,
        lambda m, g: q.speedup(m, bases[m["n"]]),
        "Speed-up",
        "",
        line=lambda m: (m["n"], m["threads"], per_node(m)),
        label=lambda line: (
            f"N = {line.first['n']}, {counted(line.first['threads'], 'thread')} per rank{per_node_text(line)}"
        ),
        ideal=lambda x, line: x,
    )
    efficiency = replace(panel, y=lambda m, g: q.efficiency(m, bases[m["n"]]), title="Efficiency")
    efficiency = replace(efficiency, ideal=lambda x, line: 1.0, log=False)
    return draw([panel, efficiency])


SOLVES = Contents(
    _tables_of_solves,
    _sentences_of_solves,
    {"strong.png": _figure_of_solves},
    select_group=lambda group: group.select(is_solve),
)

# -- steps ---------------------------------------------------------------------------------------------------


def _formula_note(group: Group) -> str:
    """Return the note on the reference of the efficiency and on the constants of the closed formula."""
    text = (
        f"Efficiency is relative to {q.layout(group.base)}. The formula is max(work, exchange). Its constant "
        "1/π is measured on the fewest ranks with the same number of threads."
    )
    theory = group.theory
    if theory is not None and theory.per_byte is not None:
        text += (
            f" Its constant 1/β = {1e9 * theory.per_byte:.3g} ns per byte is measured with an exchange alone "
            f"between {theory.measured_on} subdomains."
        )
    return q.wrap_notes(text)


def _tables_of_steps(group: Group) -> Iterator[Table]:
    for size in group.split(q.grid):
        columns = (
            *(c.LAYOUT, c.units(size), c.NS, c.IDEAL, c.FORMULA, c.EFFICIENCY, c.SPEEDUP),
            *(c.FORMULA_SHARE, c.BANDWIDTH_SHARE, c.PEAK_SHARE, *c.optional_columns(size)),
        )
        heading, note = q.heading(size.base), _formula_note(size)
        yield row_table("Time per cell and step", columns, ordered_rows(size), note=note, heading=heading)
    yield row_table(
        "On the most cores or devices",
        (
            c.SIZE,
            c.THIS_MACHINE,
            c.UNIT_COUNT,
            c.single_unit_time(group),
            c.NS,
            c.EFFICIENCY,
            c.FORMULA_SHARE,
        ),
        [(size.last, size) for size in group.split(q.grid)],
        published=published_rows("strong", group),
        left=3,
        note=with_notes("strong", group),
        heading="All sizes",
    )
    for reference in references("strong"):
        yield from reference.tables(group)


def _sentences_of_steps(group: Group) -> Iterator[str]:
    for size in group.split(q.grid):
        base, best = size.base, size.best
        fastest = (
            f"{q.size(base)}: fastest with {q.layout(best)}, {q.nanoseconds(q.ns(best))} ns per cell and step"
        )
        if best is not base:
            share = c.formula_share(best, size)
            fastest += f": {q.ns(base) / q.ns(best):.2f} times as fast as {q.layout(base)}"
            fastest += "" if share is None else f", {q.percent(share)} of the speed of the formula"
        yield f"{fastest}."


def _line(measurement: Measurement) -> Any:
    return q.grid(measurement), measurement["threads"]


def _figure_of_steps(group: Group) -> Figure | None:
    measured = Panel(
        group,
        lambda m, g: q.ns(m),
        "Measured",
        "ns per cell and step",
        line=_line,
        label=lambda line: c.size_label(line, group),
        ideal=c.ideal,
    )
    formula = replace(measured, y=lambda m, g: g.formula(m), title="Closed formula")
    return draw([measured, formula], share_y=True)


def _figure_of_energy(group: Group) -> Figure | None:
    with_energy = group.select(lambda m: m["joules_per_cell_step"])
    if not with_energy.members:
        return None
    panel = Panel(
        with_energy,
        lambda m, g: 1e-6 / m["joules_per_cell_step"],
        f"Energy efficiency of {' and '.join(with_energy.first['joules_of'])}",
        "million cell updates per joule",
        line=_line,
        label=lambda line: c.size_label(line, with_energy),
        log=False,
    )
    return draw([panel])


STEPS = Contents(
    _tables_of_steps,
    _sentences_of_steps,
    {"strong.png": _figure_of_steps, "energy.png": _figure_of_energy},
    select_group=lambda group: c.with_first_order(c.whole_steps(group)),
)


def _variants(request: StudyRequest) -> list[dict[str, Any]]:
    """Return the options for the parts of a step and for further orders, if requested."""
    from halocline.ranges import ORDER, whole_numbers

    order, text = request.command.order, request.study_options.get("orders")
    orders = set() if text is None else {*whole_numbers(text, "--orders", ORDER)} - {order}
    parts = list(VARIANTS) if request.study_options.get("parts") else [{}]
    return [*parts, *({"order": other} for other in sorted(orders))]


class Strong(Study):
    """Study of strong scaling. The user may set the design power of a core or device."""

    def run_on_layout(
        self, request: StudyRequest, size_option: int | None, problem: Problem, layout: Layout
    ) -> Run:
        """Return the run of a problem on a layout, with the design power of a core or device."""
        run = super().run_on_layout(request, size_option, problem, layout)
        text = request.study_options.get("watts")
        return run if text is None else replace(run, facts={**run.facts, "watts": _watts(text)})


def _watts(text: str) -> float:
    try:
        watts = float(text)
    except ValueError:
        watts = 0.0
    if not 0.0 < watts <= MAX_WATTS:
        raise InputError(f"--watts {text}: expected a power in watts above 0, such as 300 for a device")
    return watts


STUDY = Strong(
    "strong",
    title="Strong scaling",
    about="Measure the strong scaling of a problem with ranks and threads.",
    help="The study runs each problem size N with each combination of ranks and threads. The report "
    "contains times, speed-up and efficiency. For linear problems, it follows Tables 4.1 and 7.1 of UMBC "
    "HPCF-2018-10. For time-dependent problems, it follows Figs. 10 to 12, 14 and 15 of Pekkilä et al. "
    "2022. The closed formula of this paper, max(work, exchange), is evaluated with measured constants.",
    examples=(
        "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
        "halocline study strong mhd-benchmark --n 64,128 --ranks 1,2 --parts",
        "halocline study strong poisson --n 4096 --nodes 1,2,4 --per-node 1,2,4 --submit slurm --exclusive",
        "halocline study strong cavity --n 32 --ranks 1,2 --communication baseline,v1,v2,v3 --set stages=1",
    ),
    contents=(
        *(c.SAME_BITS, VARIANT_COMPARISON, unless_varied(SOLVES), unless_varied(STEPS), PARTS_OF_A_STEP),
        replace(ORDERS, select_group=with_several_orders),
    ),
    varied_options=COMPARED_OPTIONS,
    variants=_variants,
    options=(
        (
            "--orders 2,4,6,8",
            "Repeat the study with differences of these orders. Tables and pictures show a line for each "
            "order.",
            None,
        ),
        (
            "--watts W",
            "Design power of a device in watts, or of a core (power of a processor divided by its number of "
            "cores). With this option, the tables also show cell updates per joule, in millions.",
            None,
        ),
        (
            "--parts",
            "In addition, time the parts of a step separately: computation, exchange with and without edges "
            "and corners, and synchronisation.",
            False,
        ),
    ),
    has_formula=True,
    compared_conditions=("device",),
)
