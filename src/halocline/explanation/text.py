"""An explanation as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from halocline.compile.chains import Chain
from halocline.io.table import Table
from halocline.lang.grid import AXES
from halocline.plan.transfer import BY_MPI, COPIED, METHODS, PACKING
from halocline.run.devices.devices import storage_bytes
from halocline.words import amount, counted, duration

if TYPE_CHECKING:
    from halocline.explanation.device import DevicePlan, KernelUse
    from halocline.explanation.facts import Bound, Explained, Halo, Step

WIDTH = 100
OVERLAP = {
    True: "patches inside run meanwhile",
    False: "patches wait until all has come",
    "auto": "whether patches inside run meanwhile is decided by measuring, in the first passes of a run",
}

SECOND = """A field has a second buffer, its next values, where it is written while neighbours are still read.
The two change places after the sweep."""


def lines(explained: Explained, bound: Bound | None) -> Iterator[str]:
    """The explanation as text."""
    yield from _cut(explained)
    yield ""
    yield from _routes(explained)
    yield from _fields(explained)
    if explained.on is not None:
        yield ""
        yield from _devices(explained.on, _placement(explained))
    if explained.halo == "uniform":
        yield "Halos are uniform: every exchange carries all fields that are ever exchanged, as wide as the"
        yield "widest, with all edges and corners, whether that is read or not"
    yield ""
    yield "Operations"
    number = 0
    for step in explained.steps:
        number += step.kind == "sweep"
        yield from _step(step, number, corners=explained.halo == "uniform")
    yield ""
    yield from _totals(explained, bound)


def _cut(explained: Explained) -> Iterator[str]:
    plan, cut, layout = explained.plan, explained.plan.decomposition, explained.plan.layout
    parts = " x ".join(map(str, cut.parts))
    ranks = f"{counted(layout.ranks, 'rank')} of {counted(plan.threads, 'thread')}"
    if explained.on is not None:
        each = " each" if layout.ranks > 1 else ""
        ranks = f"{counted(layout.ranks, 'rank')} with {counted(len(explained.on.devices), 'device')}{each}"
    if layout.nodes > 1:
        ranks += f" on {counted(layout.nodes, 'node')}"
    yield f"{ranks}: {parts} subdomain{'' if cut.count == 1 else 's'}, {cut.strategy}"
    if explained.alternative and explained.alternative.parts != cut.parts and cut.cost and layout.nodes == 1:
        ratio = explained.alternative.cost / cut.cost
        slabs = " x ".join(map(str, explained.alternative.parts))
        moved = f"  moves {amount(cut.cost)} into and out of a subdomain"
        yield f"{moved}; slabs, {slabs}, would move {ratio:.3g} times that"
    several = len(plan.subdomains) > 1
    if several or layout.nodes > 1:
        node = f", on node {layout.node(plan.rank)}" if layout.nodes > 1 else ""
        yield f"  rank {plan.rank}{node}:"
    for own in plan.subdomains:
        shape = " x ".join(map(str, own.box.shape))
        place = ", ".join(map(str, cut.coordinates(own.number)))
        where = ", ".join(f"{lo} to {hi - 1}" for lo, hi in zip(own.box.lo, own.box.hi, strict=True))
        name = f"subdomain {own.number}" if several or layout.nodes > 1 else f"rank {plan.rank}"
        yield f"  {name} at ({place}): {shape} cells, {where}"
    table = [patch for own in plan.subdomains for patch in own.patches.table]
    if explained.schedule.blocks is not None:
        computed = sum(int((patch[1] - patch[0]).prod()) for patch in table)
        cells = sum(own.box.size for own in plan.subdomains)
        yield f"  {computed:,} of these {cells:,} cells are in active blocks"
    shapes = sorted({tuple(map(int, p[1] - p[0])) for p in table}, reverse=True)
    sizes = ", ".join(" x ".join(map(str, shape)) for shape in shapes[:3]) + (
        ", ..." if len(shapes) > 3 else ""
    )
    patches = (
        f"  {len(table):,} patch{'' if len(table) == 1 else 'es'} ({sizes} cells), {explained.patches_by}"
    )
    waits = any(own.neighbours for own in plan.subdomains)
    yield patches + (f"; {explained.inner_patches} of them wait for no message" if waits else "")


def _routes(explained: Explained) -> Iterator[str]:
    """Where halos come from, and how."""
    routes = explained.routes
    if not routes:
        return
    layout = explained.plan.layout
    several, nodes = layout.subdomains_per_rank > 1, layout.nodes > 1
    heads = ("subdomain", "side", "from") if several else ("side", "from")
    rows = []
    for route in routes:
        home = f"rank {route.rank}" + (f" on node {route.node}" if nodes else "")
        if several:
            home = f"subdomain {route.peer}, {home}"
        own = (str(route.subdomain),) if several else ()
        rows.append((*own, route.side, home, route.method, route.why, amount(route.bytes)))
    title = "Where its halos come from in one pass of the loop"
    table = Table(title, (*heads, "method", "because", "bytes"), tuple(rows), left=len(heads) + 2)
    yield from table.text().rstrip().splitlines()
    sums: dict[str, int] = {}
    for route in routes:
        sums[route.method] = sums.get(route.method, 0) + route.bytes
    yield "in all: " + ", ".join(f"{amount(size)} by {method}" for method, size in sums.items())
    yield ""


def _fields(explained: Explained) -> Iterator[str]:
    axes = "xyz"[: explained.schedule.ndim]
    rows = []
    plans = (own.fields for own in explained.plan.subdomains)
    for info, *fields in zip(explained.schedule.fields, *plans, strict=True):
        halo = tuple(f"{lo}, {hi}" for lo, hi in info.halo)
        name = f"{info.name}  (next {info.name[:-1]})" if info.name.endswith("'") else info.name
        sizes = (field.bytes if explained.on is None else storage_bytes(field) for field in fields)
        rows.append((name, info.dtype, *halo, amount(sum(sizes))))
    heads = ("field", "type", *(f"halo {a}-, {a}+" for a in axes), "memory")
    doubled = any(info.name.endswith("'") for info in explained.schedule.fields)
    table = Table("Fields of this rank", heads, tuple(rows), left=2, note=SECOND if doubled else "")
    yield from table.text().rstrip().splitlines()


def _devices(on: DevicePlan, placement: str) -> Iterator[str]:
    rows = tuple(
        (
            device.device,
            device.name or "",
            ", ".join(map(str, device.subdomains)),
            str(device.ranks),
            amount(device.memory_bytes),
            "" if device.free_bytes is None else amount(device.free_bytes),
        )
        for device in on.devices
    )
    heads = ("device", "", "subdomains", "ranks on it", "memory", "free now")
    note = (
        "Memory of this rank: fields with padded rows, and scratch memory; buffers of messages come on top."
    )
    if on.unknown:
        note += f"\n{on.unknown[0].upper()}{on.unknown[1:]}."
    yield from Table("Devices of this rank", heads, rows, left=3, note=note).text().rstrip().splitlines()
    yield from textwrap.wrap(placement, WIDTH)
    yield ""
    kernels: list[tuple[str, ...]] = []
    for sweep, found in groupby(on.kernels, lambda kernel: kernel.sweep):
        used = list(found)
        boundary = [kernel for kernel in used if kernel.over == "boundary"]
        if boundary:  # many, and small
            groups, launches = (sum(getattr(k, name) for k in boundary) for name in ("groups", "launches"))
            what = counted(len(boundary), "kernel")
            kernels.append((str(sweep), what, "boundary", "", "", f"{groups:,}", f"{launches:,}", ""))
        kernels += [_kernel(kernel) for kernel in used if kernel.over != "boundary"]
    sizes = ("threads of\na group", "cells of\na thread", "\ngroups", "\nlaunches")
    table = Table(
        "Kernels of this rank",
        ("sweep", "kernel", "over", *sizes, ""),
        tuple(kernels),
        left=3,
        note=f"Strategy of sweeps: {on.strategy}.",
    )
    yield from table.text().rstrip().splitlines()


def _placement(explained: Explained) -> str:
    """Why the subdomains of a node lie on the devices that they do."""
    slots, worth = explained.plan.layout.slots, explained.link_time
    said = "Subdomains of a node lie on its devices in order"
    if worth is not None:
        said = f"Subdomains of a node lie on slots {', '.join(map(str, slots))} of its devices"
    if explained.links.why:
        said += f": {explained.links.why}"
    if worth is not None:
        said += f"; their messages load the links {worth:.3g} times as long as in order"
    return f"{said}."


def _kernel(kernel: KernelUse) -> tuple[str, ...]:
    uses = [counted(kernel.reductions, "sum")] * bool(kernel.reductions) + ["scratch"] * kernel.scratch
    group, counts = "x".join(map(str, kernel.group)), (f"{kernel.groups:,}", f"{kernel.launches:,}")
    return (
        *(str(kernel.sweep), kernel.kernel, kernel.over),
        *(group, str(kernel.march), *counts, ", ".join(uses)),
    )


def _step(step: Step, number: int, *, corners: bool) -> Iterator[str]:
    indent = "  " + "    " * step.depth
    if step.kind == "loop":
        yield f"{indent}repeat {step.statements[0]}"
        return
    if step.kind == "when":
        yield f"{indent}when      {step.statements[0]}"
        return
    if step.kind == "stop":
        yield f"{indent}stop      {step.statements[0]}"
        return
    if step.kind == "scalars":
        yield f"{indent}scalars   " + "; ".join(step.statements)
        return
    inner = indent + " " * 10
    if step.kind == "exchange":
        yield f"{indent}exchange  once, before the loop"
        yield from _halos(step, inner)
        yield from _moved(step, inner)
        return
    head = f"{indent}sweep {number:<4}"
    for statement in step.statements or ("",):
        yield head + statement
        head = inner
    costs = f"{step.bytes:g} bytes and {step.flops:g} flops a cell"
    if step.reductions:
        costs += f"; {counted(step.reductions, 'sum')} over all ranks"
    yield inner + costs
    yield from _halos(step, inner)
    if step.halos and not corners and all(len(place) == 2 for halo in step.halos for place, _ in halo.width):
        yield inner + "no corner is read, so none is filled"
    if step.local:
        yield inner + f"{', '.join(step.local)}: at the cell itself alone, no halo"
    for chain in step.chains:
        yield from textwrap.wrap(_chain(chain), WIDTH, initial_indent=inner, subsequent_indent=inner + "  ")
    yield from (inner + line for line in _stages(step))
    yield from _moved(step, inner)


def _halos(step: Step, indent: str) -> Iterator[str]:
    """The halos of a step, each field once."""
    for halo in _together(step.halos):
        yield from textwrap.wrap(_halo(halo), WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _moved(step: Step, indent: str) -> Iterator[str]:
    """The messages and copies of a step."""
    if step.messages:
        yield indent + f"{counted(step.messages, 'message')}, {_sent(step.bytes_sent, step.bytes_not_packed)}"
    if step.bytes_copied:
        yield indent + f"{amount(step.bytes_copied)} copied within the rank"


def _sent(size: int, unpacked: int) -> str:
    return f"{amount(size)} sent" + (f", {amount(unpacked)} of it not packed" if unpacked else "")


def _chain(chain: Chain) -> str:
    """Why a sweep reads so many layers on a side: each name with how many layers away it is."""
    what, *rest = chain.links
    names = [what.name, *(f"{link.name} ({link.layers})" for link in rest)]
    side = f"{AXES[chain.axis]}{'+' if chain.side > 0 else '-'}"
    return f"{counted(rest[-1].layers, 'layer')} on {side} because of {' <- '.join(names)}"


def _stages(step: Step) -> Iterator[str]:
    """Intermediates: how far around a patch, in which loops, and whose memory they have in turn."""
    if not step.stages:
        return
    loops = 1 + max(stage.last for stage in step.stages)
    slots = len({stage.slot for stage in step.stages})
    taken = f"{amount(step.scratch)} a patch" if step.scratch else "in memory of groups of threads"
    yield f"{counted(len(step.stages), 'stage')} in {counted(slots, 'array')}, {taken}"
    alike: dict[tuple[str, str, int], list[str]] = {}
    for stage in step.stages:
        wide = [(AXES[axis], *layers) for axis, layers in enumerate(stage.layers) if any(layers)]
        around = ", ".join(f"{axis}- {lower}, {axis}+ {upper}" for axis, lower, upper in wide)
        lives = f"loops {stage.first + 1} to {stage.last + 1} of {loops}"
        alike.setdefault((around, lives, stage.item), []).append(f"{stage.name} ({stage.slot + 1})")
    for (around, lives, item), found in alike.items():
        points = f", layers around {around}" if around else ""
        line = f"{', '.join(found)}: {lives}, {item} bytes a point{points}"
        yield from textwrap.wrap(line, WIDTH - 16, initial_indent="  ", subsequent_indent="    ")


def _together(halos: Sequence[Halo]) -> list[Halo]:
    """Those of which the same is to be said as one, with the names of all."""
    names: dict[Halo, list[str]] = {}
    for halo in halos:
        names.setdefault(replace(halo, field=""), []).append(halo.field)
    return [replace(halo, field=", ".join(fields)) for halo, fields in names.items()]


def _halo(halo: Halo) -> str:
    places: dict[int, list[str]] = {}
    for place, width in halo.width:
        places.setdefault(width, []).append(place)
    read = "; ".join(f"{counted(w, 'layer')} on {', '.join(found)}" for w, found in places.items())
    several = ", " in halo.field
    said = [f"{halo.field}: {'each ' if several else ''}reads {read}"]
    moved = {*halo.travels, *halo.copied, *halo.walls}
    rest = [place for place, _ in halo.width if place not in moved]
    if halo.travels:
        said.append(f"exchanged on {', '.join(halo.travels)}, because {halo.why}")
    if halo.copied:
        said.append(f"copied within the rank on {', '.join(halo.copied)}")
    if rest and (halo.travels or halo.copied):
        said.append(f"still there on {', '.join(rest)}")
    elif rest:
        said.append(f"not exchanged, because {halo.why}")
    if halo.walls:
        said.append(f"from the boundary conditions on {', '.join(halo.walls)}")
    return "; ".join(said)


def _totals(explained: Explained, bound: Bound | None) -> Iterator[str]:
    loop = explained.loop
    sent = _sent(sum(step.bytes_sent for step in loop), sum(step.bytes_not_packed for step in loop))
    yield "One pass of the loop, this rank"
    costs = f"{explained.bytes_per_cell:g} bytes and {explained.flops_per_cell:g} flops a cell"
    yield f"  {counted(explained.sweeps_per_pass, 'sweep')}: {costs}"
    yield (
        f"  {counted(sum(step.messages for step in loop), 'message')}, {sent}; "
        f"{counted(sum(bool(step.reductions) for step in loop), 'reduction')} over all ranks"
    )
    if explained.on is not None:
        yield f"  launches: {_launched(explained.on)}"
    yield f"  memory of its fields: {amount(explained.memory)}"
    yield from _bound(explained, bound)
    methods = dict.fromkeys(route.method for route in explained.routes)
    packing = explained.plan.transfers.packing
    for method in methods:
        yield f"  {method}: {METHODS[method]}"
        if method in BY_MPI and packing != "all":
            yield f"    but packed is {PACKING[packing]}"
    if not COPIED.issuperset(methods):
        yield "  " + OVERLAP[explained.overlap]


def _launched(on: DevicePlan) -> str:
    words = {
        "cells": "of sweeps",
        "halo": "of these in the halo",
        "boundary": "of boundary conditions",
        "copy": "that move halos",
        "reductions": "that finish reductions",
        "scalars": "of scalars, stops and loops",
    }
    counts = {**on.launches, "cells": on.launches["cells"] + on.launches["halo"]}
    said = [f"{count:,} {words[kind]}" for kind, count in counts.items() if count]
    return ", ".join(said) or "none"


def _bound(explained: Explained, bound: Bound | None) -> Iterator[str]:
    if bound is None:
        yield "  bound by memory: not known, since this machine does not have the devices"
        return
    yield (
        f"  bound by memory: {duration(bound.seconds_per_pass)} a pass of the largest subdomain, at "
        f"{bound.bandwidth / 1e9:.1f} GB/s a rank"
    )
    if explained.on is not None:
        names = ", ".join(device.device for device in explained.on.devices)
        shared = max(device.ranks for device in explained.on.devices)
        together = f"; {shared} ranks share it" if shared > 1 else ""
        yield f"  (copies within {names}, measured now{together})"
        return
    assert bound.predicted is not None
    assert bound.latency is not None
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
