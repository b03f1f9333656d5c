"""Text of an explanation, as `halocline explain` prints it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING, Any

from halocline.compile.chains import Chain
from halocline.io.table import Table, table_of
from halocline.lang.grid import AXES
from halocline.plan.transfer import BY_MPI, COPIED, METHODS, PACKING
from halocline.run.devices.devices import storage_bytes
from halocline.words import amount, counted, duration

if TYPE_CHECKING:
    from halocline.explanation.device import DevicePlan
    from halocline.explanation.facts import Bound, Explained
    from halocline.explanation.steps import Halo, Step

WIDTH = 100
OVERLAP = {
    True: "overlap: patches that need no message are computed during the exchange",
    False: "no overlap: patches are computed after all messages have arrived",
    "auto": "overlap: a run times its first passes with and without overlap, and uses the faster setting",
}

LAUNCHES = {
    "cells": "for sweeps",
    "halo": "of these in the halo",
    "boundary": "for boundary conditions",
    "copy": "for halo transfers",
    "invariants": "for values in constant memory",
    "reductions": "for the last stages of reductions",
    "scalars": "for scalars, stops and loops",
}
HEADS = {"loop": "repeat ", "when": "when      ", "stop": "stop      ", "scalars": "scalars   "}
SECOND = """A sweep writes new values to a second buffer if it still reads old values of neighbouring cells.
The two buffers of the field are swapped after the sweep."""


def lines(explanation: Explained, bound: Bound | None) -> Iterator[str]:
    """Yield the lines of an explanation."""
    yield from _cut(explanation)
    yield ""
    yield from _routes(explanation)
    yield from _fields(explanation)
    if explanation.on is not None:
        yield ""
        yield from _devices(explanation.on, _placement(explanation))
    if explanation.halo != "read":
        segments = {"faces": "faces", "edges": "faces and edges", "uniform": "faces, edges and corners"}
        yield "Uniform halos: each exchange transfers all exchanged fields with the widest halo width, on all"
        yield f"{segments[explanation.halo]}, even if the sweep does not read these cells"
    yield ""
    yield "Operations"
    number = 0
    for step in explanation.steps:
        number += step.kind == "sweep"
        yield from _step(step, number, corners=explanation.halo not in ("read", "faces"))
    yield ""
    yield from _totals(explanation, bound)


def _table(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], left: int, note: str = ""
) -> list[str]:
    table = Table(title, tuple(heads), tuple(map(tuple, rows)), left=left, note=note)
    return table.text().rstrip().splitlines()


def _by(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))


def _cut(explanation: Explained) -> Iterator[str]:
    """Yield the decomposition, the subdomains of the rank and their patches."""
    plan, cut, layout = explanation.plan, explanation.plan.decomposition, explanation.plan.layout
    workers = f"of {counted(plan.threads, 'thread')}"
    if explanation.on is not None:
        workers = (
            f"with {counted(len(explanation.on.devices), 'device')}{' each' if layout.ranks > 1 else ''}"
        )
    nodes = f" on {counted(layout.nodes, 'node')}" if layout.nodes > 1 else ""
    subdomains = f"{_by(cut.parts)} subdomain{'' if cut.count == 1 else 's'}, decomposition {cut.strategy}"
    yield f"{counted(layout.ranks, 'rank')} {workers}{nodes}: {subdomains}"
    slabs = explanation.alternative
    if slabs and slabs.parts != cut.parts and cut.cost and layout.nodes == 1:
        volume = f"  each subdomain sends and receives at most {amount(cut.cost)} per pass"
        yield f"{volume}; with slabs ({_by(slabs.parts)}), {slabs.cost / cut.cost:.3g} times as much"
    has_several = len(plan.subdomains) > 1 or layout.nodes > 1
    if has_several:
        yield f"  rank {plan.rank}{f', on node {layout.node(plan.rank)}' if nodes else ''}:"
    for subdomain in plan.subdomains:
        place = ", ".join(map(str, cut.coordinates(subdomain.number)))
        extent = ", ".join(
            f"{lo} to {hi - 1}" for lo, hi in zip(subdomain.box.lo, subdomain.box.hi, strict=True)
        )
        name = f"subdomain {subdomain.number}" if has_several else f"rank {plan.rank}"
        yield f"  {name} at ({place}): {_by(subdomain.box.shape)} cells, indices {extent}"
    shapes = [
        tuple(map(int, patch[1] - patch[0]))
        for subdomain in plan.subdomains
        for patch in subdomain.patches.table
    ]
    if explanation.schedule.blocks is not None:
        cells = sum(subdomain.box.size for subdomain in plan.subdomains)
        yield f"  {sum(map(prod, shapes)):,} of these {cells:,} cells are in active blocks"
    sizes = [_by(shape) for shape in sorted(set(shapes), reverse=True)]
    size_list = ", ".join(sizes[:3]) + (", ..." if len(sizes) > 3 else "")
    count = f"{len(shapes):,} patch{'' if len(shapes) == 1 else 'es'}"
    waits = any(subdomain.neighbours for subdomain in plan.subdomains)
    ready = f"; {explanation.inner_patches} of these can be computed during the exchange" if waits else ""
    yield f"  {count} ({size_list} cells), shape {explanation.patches_by}{ready}"


def _routes(explanation: Explained) -> Iterator[str]:
    """Yield the sources and transfer methods of halos."""
    routes, layout = explanation.routes, explanation.plan.layout
    if not routes:
        return
    has_several = layout.subdomains_per_rank > 1
    rows = []
    for route in routes:
        home = f"rank {route['rank']}" + (f" on node {route['node']}" if layout.nodes > 1 else "")
        ends = [str(route["subdomain"]), route["side"], f"subdomain {route['peer']}, {home}"]
        if not has_several:
            ends = [route["side"], home]
        rows.append([*ends, route["method"], route["why"], amount(route["bytes"])])
    heads = [*["subdomain"] * has_several, "side", "source", "method", "reason", "bytes"]
    yield from _table("Sources of the halos in one pass of the loop", heads, rows, len(heads) - 1)
    sums: Counter[str] = Counter()
    for route in routes:
        sums[route["method"]] += route["bytes"]
    yield "total: " + ", ".join(f"{amount(size)} by {method}" for method, size in sums.items())
    yield ""


def _fields(explanation: Explained) -> Iterator[str]:
    """Yield the fields of the rank, their halos and memory."""
    rows, note = [], ""
    plans = (subdomain.fields for subdomain in explanation.plan.subdomains)
    for info, *fields in zip(explanation.schedule.fields, *plans, strict=True):
        name = info.name
        if name.endswith("'"):
            name, note = f"{name}  (second buffer)", SECOND
        sizes = (field.bytes if explanation.on is None else storage_bytes(field) for field in fields)
        halo = (f"{lower}, {upper}" for lower, upper in info.halo)
        rows.append([name, info.dtype, *halo, amount(sum(sizes))])
    halos = (f"halo {axis}-, {axis}+" for axis in AXES[: explanation.schedule.ndim])
    yield from _table("Fields of this rank", ["field", "type", *halos, "memory"], rows, 2, note)


def _devices(on: DevicePlan, placement: str) -> Iterator[str]:
    """Yield the devices of the rank and the kernels that the rank launches on them."""
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "device": lambda device: device["device"],
        "model": lambda device: device["name"] or "",
        "subdomains": lambda device: ", ".join(map(str, device["subdomains"])),
        "ranks": lambda device: str(device["ranks"]),
        "memory": lambda device: amount(device["memory_bytes"]),
        "free memory": lambda device: "" if device["free_bytes"] is None else amount(device["free_bytes"]),
        "field layouts": lambda device: "literals" if device["literal_layouts"] else "arguments",
    }
    note = "Memory of this rank: fields with padded rows, scratch memory and message buffers."
    if on.unknown:
        note += f"\n{on.unknown[0].upper()}{on.unknown[1:]}."
    devices = table_of("Devices of this rank", on.devices, columns, left=3, note=note)
    yield from devices.text().rstrip().splitlines()
    yield from textwrap.wrap(placement, WIDTH)
    yield ""
    kernels: list[list[str]] = []
    for sweep, of_sweep in groupby(on.kernels, lambda kernel: kernel["sweep"]):
        uses = list(of_sweep)
        boundary = [use for use in uses if use["over"] == "boundary"]
        if boundary:  # these launches are many and small
            counts = (f"{sum(use[name] for use in boundary):,}" for name in ("blocks", "launches"))
            kernels.append([str(sweep), counted(len(boundary), "kernel"), "boundary", "", "", *counts, ""])
        kernels += [_kernel(use) for use in uses if use["over"] != "boundary"]
    sizes = ["threads\nper block", "cells per\nthread", "thread\nblocks", "\nlaunches"]
    heads, note = ["sweep", "kernel", "region", *sizes, ""], f"Strategy of the kernels: {on.strategy}."
    yield from _table("Kernels of this rank", heads, kernels, 3, note)


def _placement(explanation: Explained) -> str:
    """Return the reason for the placement of the subdomains of a node on its devices."""
    slots, ratio = explanation.plan.layout.slots, explanation.link_time
    sentence = "The subdomains of a node are on its devices in order"
    if ratio is not None:
        sentence = f"The subdomains of a node are on slots {', '.join(map(str, slots))} of its devices"
    if explanation.links.reason:
        sentence += f" ({explanation.links.reason})"
    if ratio is not None:
        sentence += f". Their messages occupy the links {ratio:.3g} times as long as with placement in order"
    return f"{sentence}."


def _kernel(use: dict[str, Any]) -> list[str]:
    notes = [counted(use["reductions"], "reduction")] * bool(use["reductions"]) + ["scratch"] * use["scratch"]
    notes += ["once per run"] * use["once"]
    sizes = ["x".join(map(str, use["block_shape"])), str(use["planes"])]
    counts = [f"{use[name]:,}" for name in ("blocks", "launches")]
    return [str(use["sweep"]), use["kernel"], use["over"], *sizes, *counts, ", ".join(notes)]


def _step(step: Step, number: int, *, corners: bool) -> Iterator[str]:
    """Yield the statements of a step, its costs and the halos that it reads."""
    indent = "  " + "    " * step.depth
    if step.kind in HEADS:
        yield indent + HEADS[step.kind] + "; ".join(step.statements)
        return
    inner = indent + " " * 10
    if step.kind == "exchange":
        yield f"{indent}exchange  once, before the loop"
    else:
        head = f"{indent}sweep {number:<4}"
        for statement in step.statements or ("",):
            yield head + statement
            head = inner
        reductions = f"; {counted(step.reductions, 'reduction')} over all ranks" if step.reductions else ""
        yield f"{inner}{step.bytes:g} bytes and {step.flops:g} flops per cell{reductions}"
    names: dict[Halo, list[str]] = {}
    for halo in step.halos:
        names.setdefault(replace(halo, field=""), []).append(halo.field)
    for halo, fields in names.items():  # halos that differ only in the field share one line
        yield from _wrapped(_halo(halo, fields), inner)
    faces = all(len(place) == 2 for halo in step.halos for place, _ in halo.width)
    if step.kind == "sweep" and step.halos and faces and not corners:
        yield inner + "corners are neither read nor exchanged"
    if step.local:
        yield f"{inner}{', '.join(step.local)}: accessed only in the computed cell, no halo"
    for name, source in step.new_buffers:
        yield f"{inner}{name}: takes over the buffer of {source}, without a copy"
    for chain in step.chains:
        yield from _wrapped(_chain(chain), inner)
    yield from (inner + line for line in _stages(step))
    if step.messages:
        volume = _volume_text(step.bytes_sent, step.bytes_not_packed)
        yield f"{inner}{counted(step.messages, 'message')}, {volume}"
    if step.bytes_copied:
        yield f"{inner}{amount(step.bytes_copied)} copied within the rank"


def _wrapped(line: str, indent: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def _volume_text(size: int, unpacked: int) -> str:
    return f"{amount(size)} sent" + (f", including {amount(unpacked)} without packing" if unpacked else "")


def _chain(chain: Chain) -> str:
    """Return the chain of stages that causes the halo width on a side, with the distances in layers."""
    target, *sources = chain.links
    names = [target.name, *(f"{link.name} ({link.layers})" for link in sources)]
    side = f"{AXES[chain.axis]}{'+' if chain.side > 0 else '-'}"
    return f"{counted(sources[-1].layers, 'layer')} on {side} because of {' <- '.join(names)}"


def _stages(step: Step) -> Iterator[str]:
    """Yield the stages of a sweep, with their loop nests, additional layers around a patch, and arrays."""
    if not step.stages:
        return
    loops = 1 + max(stage.last for stage in step.stages)
    slots = len({stage.slot for stage in step.stages})
    memory = f"{amount(step.scratch)} per patch" if step.scratch else "in shared memory of thread blocks"
    yield f"{counted(len(step.stages), 'stage')} in {counted(slots, 'array')}, {memory}"
    names_by_use: dict[str, list[str]] = {}
    for stage in step.stages:
        layers = [(AXES[axis], *layers) for axis, layers in enumerate(stage.layers) if any(layers)]
        around = ", ".join(f"{axis}- {lower}, {axis}+ {upper}" for axis, lower, upper in layers)
        use = f"loop nests {stage.first + 1} to {stage.last + 1} of {loops}, {stage.item} bytes per point"
        use += f", additional layers {around}" if around else ""
        names_by_use.setdefault(use, []).append(f"{stage.name} ({stage.slot + 1})")
    for use, names in names_by_use.items():
        line = f"{', '.join(names)}: {use}"
        yield from textwrap.wrap(line, WIDTH - 16, initial_indent="  ", subsequent_indent="    ")


def _halo(halo: Halo, fields: Sequence[str]) -> str:
    """Return the halo widths that a sweep reads, and the sources of the halos."""
    places: dict[int, list[str]] = {}
    for place, width in halo.width:
        places.setdefault(width, []).append(place)
    widths = " and ".join(f"{counted(width, 'layer')} on {', '.join(on)}" for width, on in places.items())
    parts = [f"{'halo' if len(fields) == 1 else 'halos'} of {', '.join(fields)}: {widths}"]
    remaining = [place for place, _ in halo.width if place not in {*halo.travels, *halo.copied, *halo.walls}]
    if halo.travels:
        parts.append(f"exchanged on {', '.join(halo.travels)}, because {halo.reason}")
    if halo.copied:
        parts.append(f"copied within the rank on {', '.join(halo.copied)}")
    if remaining and (halo.travels or halo.copied):
        parts.append(f"still valid on {', '.join(remaining)}")
    elif remaining:
        parts.append(f"not exchanged, because {halo.reason}")
    if halo.walls:
        parts.append(f"filled by boundary conditions on {', '.join(halo.walls)}")
    return "; ".join(parts)


def _totals(explanation: Explained, bound: Bound | None) -> Iterator[str]:
    """Yield the costs of one pass of the loop, its bound, and the transfer methods."""
    yield "One pass of the loop on this rank"
    costs = f"{explanation.bytes_per_cell:g} bytes and {explanation.flops_per_cell:g} flops per cell"
    yield f"  {counted(explanation.sweeps_per_pass, 'sweep')}: {costs}"
    volume = _volume_text(explanation.total("bytes_sent"), explanation.total("bytes_not_packed"))
    reductions = counted(sum(bool(step.reductions) for step in explanation.loop), "reduction")
    yield f"  {counted(explanation.total('messages'), 'message')}, {volume}; {reductions} over all ranks"
    if explanation.on is not None:
        counts = dict(explanation.on.launches)
        counts["cells"] += counts["halo"]
        launches = [f"{count:,} {LAUNCHES[kind]}" for kind, count in counts.items() if count]
        yield f"  launches: {', '.join(launches) or 'none'}"
    place = "of the fields" if explanation.on is None else "on the devices"
    yield f"  memory {place}: {amount(explanation.memory)}"
    yield from _bound(explanation, bound)
    methods = dict.fromkeys(route["method"] for route in explanation.routes)
    packing = explanation.plan.transfers.packing
    for method in methods:
        yield f"  {method}: {METHODS[method]}"
        if method in BY_MPI and packing != "all":
            yield f"    packing is restricted to: {PACKING[packing]}"
    if not COPIED.issuperset(methods):
        yield "  " + OVERLAP[explanation.overlap]


def _bound(explanation: Explained, bound: Bound | None) -> Iterator[str]:
    if bound is None:
        yield "  bound by memory: unknown, because this machine does not have the devices"
        return
    rates = [f"{bound.bandwidth / 1e9:.1f} GB/s"]
    if bound.flops is not None:
        rates.append(f"{bound.flops / 1e9:.1f} Gflop/s")
    yield (
        f"  bound by {bound.limit}: {duration(bound.seconds_per_pass)} per pass for the largest subdomain, "
        f"at {' and '.join(rates)} per rank"
    )
    if explanation.on is not None:
        names = ", ".join(device["device"] for device in explanation.on.devices)
        shared = max(device["ranks"] for device in explanation.on.devices)
        together = f", which {shared} ranks share" if shared > 1 else ""
        yield f"  (measured now: copies within {names}{together})"
        return
    assert bound.predicted is not None
    assert bound.latency is not None
    threads = counted(bound.threads_measured, "thread")
    yield f"  (measured now: a += s * b on {threads}, and vector multiply-adds on one thread)"
    yield (
        f"  predicted: {duration(bound.predicted)} per pass, with an assumed latency of "
        f"{duration(bound.latency)} per message and per hop of a reduction"
    )
    if bound.exceeds_cache:
        yield (
            "  kernels use prefetches and streaming stores, because the fields exceed the cache "
            "(-DHC_STREAMING)"
        )
    else:
        yield "  kernels use no prefetches and no streaming stores, because the fields fit into the cache"
