"""An explanation as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from halocline.compile.footprint import Direction
from halocline.lang.grid import AXES
from halocline.study.table import Table, amount, counted, duration

if TYPE_CHECKING:
    from halocline.study.explain import Bound, Explanation, Halo, Step

WIDTH = 100


def side(direction: Direction) -> str:
    """A direction in words: "x-" is the lower side of axis x, "x-y+" an edge."""
    return "".join(AXES[a] + ("-" if d < 0 else "+") for a, d in enumerate(direction) if d)


def lines(told: Explanation, bound: Bound) -> Iterator[str]:
    """The explanation as text."""
    yield from _cut(told)
    yield ""
    yield from _fields(told)
    yield ""
    yield "Operations"
    number = 0
    for step in told.steps:
        number += step.kind == "sweep"
        yield from _step(step, number)
    yield ""
    yield from _totals(told, bound)


def _cut(told: Explanation) -> Iterator[str]:
    plan, cut = told.plan, told.plan.decomposition
    parts, own = " x ".join(map(str, cut.parts)), " x ".join(map(str, plan.box.shape))
    place = ", ".join(map(str, cut.coordinates(plan.rank)))
    where = ", ".join(f"{lo} to {hi - 1}" for lo, hi in zip(plan.box.lo, plan.box.hi, strict=True))
    ranks = f"{counted(cut.count, 'rank')} of {counted(plan.threads, 'thread')}"
    yield f"{ranks}: {parts} subdomain{'' if cut.count == 1 else 's'}, {cut.strategy}"
    if told.alternative and told.alternative.parts != cut.parts and cut.cost:
        ratio = told.alternative.cost / cut.cost
        slabs = " x ".join(map(str, told.alternative.parts))
        moved = f"  moves {amount(cut.cost)} into and out of a subdomain"
        yield f"{moved}; slabs, {slabs}, would move {ratio:.3g} times that"
    yield f"  rank {plan.rank} at ({place}): {own} cells, {where}"
    sides: dict[int, list[str]] = {}

    for direction, peer in sorted(plan.neighbours.items()):
        sides.setdefault(peer, []).append(side(direction))
    if sides:
        yield "  neighbours: " + ", ".join(f"{'/'.join(s)} rank {peer}" for peer, s in sides.items())
    shapes = sorted({tuple(map(int, p[1] - p[0])) for p in plan.patches.table}, reverse=True)
    sizes = ", ".join(" x ".join(map(str, shape)) for shape in shapes[:3]) + (
        ", ..." if len(shapes) > 3 else ""
    )
    patches = (
        f"  {len(plan.patches.table):,} patch{'' if len(plan.patches.table) == 1 else 'es'} ({sizes} cells)"
    )
    yield patches + (f", {told.inner_patches} of them wait for no message" if sides else "")


def _fields(told: Explanation) -> Iterator[str]:
    axes = "xyz"[: told.schedule.ndim]
    rows = []
    for info, field in zip(told.schedule.fields, told.plan.fields, strict=True):
        halo = tuple(f"{lo}, {hi}" for lo, hi in info.halo)
        name = f"{info.name}  (next {info.name[:-1]})" if info.name.endswith("'") else info.name
        rows.append((name, info.dtype, *halo, amount(field.bytes)))
    heads = ("field", "type", *(f"halo {a}-, {a}+" for a in axes), "memory")
    table = Table("Fields of this rank", heads, tuple(rows), left=2)
    yield from table.text().rstrip().splitlines()


def _step(step: Step, number: int) -> Iterator[str]:
    indent = "  " + "    " * step.depth
    if step.kind == "loop":
        yield f"{indent}repeat {step.statements[0]}"
        return
    if step.kind == "stop":
        yield f"{indent}stop      {step.statements[0]}"
        return
    if step.kind == "scalars":
        yield f"{indent}scalars   " + "; ".join(step.statements)
        return
    head = f"{indent}sweep {number:<4}"
    for statement in step.statements or ("",):
        yield head + statement
        head = indent + " " * 10
    inner = indent + " " * 10
    costs = f"{step.bytes:g} bytes and {step.flops:g} flops a cell"
    if step.reductions:
        costs += f"; {counted(step.reductions, 'sum')} over all ranks"
    yield inner + costs
    for halo in step.halos:
        yield from textwrap.wrap(_halo(halo), WIDTH, initial_indent=inner, subsequent_indent=inner + "  ")
    if step.halos and all(len(place) == 2 for halo in step.halos for place, _ in halo.width):
        yield inner + "no corner is read, so none is filled"
    if step.local:
        yield inner + f"{', '.join(step.local)}: at the cell itself alone, no halo"
    if step.messages:
        yield inner + f"{counted(step.messages, 'message')}, {amount(step.bytes_sent)} sent"


def _halo(halo: Halo) -> str:
    places: dict[int, list[str]] = {}
    for place, width in halo.width:
        places.setdefault(width, []).append(place)
    read = "; ".join(f"{counted(w, 'layer')} on {', '.join(found)}" for w, found in places.items())
    said = [f"{halo.field}: reads {read}"]
    rest = {place for place, _ in halo.width} - {*halo.travels, *halo.copied, *halo.walls}
    if halo.travels:
        said.append(f"travels on {', '.join(halo.travels)}, because {halo.why}")
    if rest:
        said.append(f"does not travel, because {halo.why}")
    if halo.copied:
        said.append(f"copied around on {', '.join(halo.copied)}")
    if halo.walls:
        said.append(f"from the boundary conditions on {', '.join(halo.walls)}")
    return "; ".join(said)


def _totals(told: Explanation, bound: Bound) -> Iterator[str]:
    loop = told.loop
    sent = sum(step.bytes_sent for step in loop)
    yield "One pass of the loop, this rank"
    costs = f"{told.bytes_per_cell:g} bytes and {told.flops_per_cell:g} flops a cell"
    yield f"  {counted(len(loop), 'sweep')}: {costs}"
    yield (
        f"  {counted(sum(step.messages for step in loop), 'message')}, {amount(sent)} sent; "
        f"{counted(sum(bool(step.reductions) for step in loop), 'reduction')} over all ranks"
    )
    yield f"  memory of its fields: {amount(told.plan.memory)}"
    yield (
        f"  bound by memory: {duration(bound.seconds_per_pass)} a pass of the largest subdomain, at "
        f"{bound.bandwidth / 1e9:.1f} GB/s a rank"
    )
    yield f"  (a += s * b, measured now with {counted(bound.threads_measured, 'thread')} at work)"
    yield (
        f"  predicted: {duration(bound.predicted)} a pass, with {duration(bound.latency)} for each message "
        "and each hop of a reduction, as is usual"
    )
    if bound.exceeds_cache:
        yield (
            "  kernels fetch ahead and write results past the cache, because the fields exceed it "
            "(-DHC_STREAMING)"
        )
    else:
        yield "  kernels leave caching to the processor, because the fields of a node fit into its cache"
    if told.plan.decomposition.count > 1:
        yield "  messages: persistent MPI requests, packed by all threads; patches inside run meanwhile"
