"""Numbers and names of fields and scalars, and the fields whose rows a kernel wraps periodically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from operator import or_

from halocline.compile.footprint import Footprint
from halocline.compile.halo import SweepHalo
from halocline.compile.ir import statements as ir
from halocline.compile.lower import (
    LoopGraph,
    OperationGraph,
    ScalarGraph,
    StopGraph,
    SweepGraph,
    scalars_in,
    sweeps,
)
from halocline.compile.passes.operands import double_buffered, second_buffer
from halocline.compile.printers.spelling import Names, identifiers
from halocline.compile.rotation import rotations, stored_fields
from halocline.compile.schedule import AROUND, FieldInfo
from halocline.compile.sweep import SweepNests
from halocline.lang.expression import walk
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Program


@dataclass(frozen=True)
class Sweeps:
    """Operations of the schedule of a program, with the nests and halos of its sweeps.

    The two buffers of a field have different names, see `halocline.compile.passes.operands.second_buffer`.
    """

    grid: Grid
    operations: list[OperationGraph]
    nests: Mapping[SweepGraph, SweepNests]
    halos: Mapping[SweepGraph, SweepHalo]

    def sinks(self, sweep: SweepGraph) -> dict[str, str]:
        """Return the buffer that a sweep writes for each stored field.

        This buffer is the field itself, the last field of its rotation, or a second buffer.
        """
        return self._sinks[sweep]

    @cached_property
    def _sinks(self) -> dict[SweepGraph, dict[str, str]]:
        result: dict[SweepGraph, dict[str, str]] = {}
        second_buffers: set[str] = set()
        # fields of rotations of which one needs a second buffer: any, since all have equal layouts
        rotating: list[tuple[dict[str, str], list[str]]] = []
        for sweep in sweeps(self.operations):
            nests, chains = self.nests[sweep], rotations(sweep.sets)
            sinks = {f.name: chains.get(f, (f,))[-1].name for f in stored_fields(sweep.sets)}
            unsafe = double_buffered(nests.kernel, sinks, {f.name: nests.offsets(f) for f in sweep.sets})
            # ghosts at corners are computed after messages arrive, while patches may already run
            at_walls = {f.name for f in read_at_walls(self.halos[sweep])}
            for f in stored_fields(sweep.sets):
                if f.name in unsafe or sinks[f.name] in at_walls:
                    if f in chains:
                        rotating.append((sinks, [f.name, *(follower.name for follower in chains[f])]))
                    else:
                        sinks[f.name] = second_buffer(f.name)
                        second_buffers.add(sinks[f.name])
            result[sweep] = sinks
        for sinks, names in rotating:
            choices = [second_buffer(name) for name in names]
            sinks[names[0]] = next((choice for choice in choices if choice in second_buffers), choices[0])
            second_buffers.add(sinks[names[0]])
        return result

    def swaps(self, sweep: SweepGraph) -> list[tuple[str, str]]:
        """Return the pairs of buffers that are swapped after a sweep, in this order."""
        sinks, chains = self.sinks(sweep), rotations(sweep.sets)
        pairs: list[tuple[str, str]] = []
        for f in stored_fields(sweep.sets):
            buffers = [f.name, *(follower.name for follower in chains.get(f, ()))]
            if sinks[f.name] not in buffers:
                buffers.append(sinks[f.name])
            # from the buffer with the results to the field
            pairs += reversed(list(pairwise(buffers)))
        return pairs

    def scalars(self, sweep: SweepGraph) -> list[str]:
        """Return the scalars that a sweep reads, also at walls."""
        return [*self.nests[sweep].kernel.attributes("scalar"), *scalars_in(self.halos[sweep].ghosts())]


def read_at_walls(halo: SweepHalo) -> list[Field]:
    """Return the fields that boundary conditions read before a sweep."""
    leaves = (leaf for fill in halo.fills for leaf in walk(fill.ghosts))
    return [leaf.attribute[0] for leaf in leaves if leaf.op == "read"]


@dataclass(frozen=True)
class Numbering:
    """Numbers and names of fields, buffers and scalars.

    Parameters
    ----------
    fields : mapping of Field to int
    buffers : mapping of str to int
        Numbers of fields and their second buffers, by name.
    scalars : mapping of str to int
    names : Names
    """

    fields: Mapping[Field, int]
    buffers: Mapping[str, int]
    scalars: Mapping[str, int]
    names: Names


def number_buffers(program: Program, arrangement: Sweeps, wraps: bool) -> Numbering:
    """Return the numbers of fields and scalars: fields in the order of the grid, then second buffers."""
    order = {name: number for number, name in enumerate(arrangement.grid.fields)}
    fields: dict[Field, int] = {}
    for sweep in sweeps(arrangement.operations):
        sweep_fields = {
            *arrangement.nests[sweep].reads,
            *sweep.sets,
            *read_at_walls(arrangement.halos[sweep]),
        }
        for f in sorted(sweep_fields, key=lambda f: order[f.name]):
            fields.setdefault(f, len(fields))
    buffers = {f.name: number for f, number in fields.items()}
    for sweep in sweeps(arrangement.operations):
        sinks = arrangement.sinks(sweep)
        for name in sorted(sinks, key=lambda name: buffers[name]):
            buffers.setdefault(sinks[name], len(buffers))
    scalars = _scalars(program, arrangement, wraps)
    names = identifiers(scalars)
    arrays = identifiers((f.name for f in fields), names.values())
    arrays |= {second_buffer(name): f"{array_name}_next" for name, array_name in arrays.items()}
    return Numbering(fields, buffers, scalars, Names(arrays, names, scalars))


def _scalars(program: Program, arrangement: Sweeps, wraps: bool) -> dict[str, int]:
    """Return the numbers of scalars: parameters and scalars of the grid first, then assigned scalars."""
    read: list[str] = [*program.parameters, *arrangement.grid.scalar_values()]
    written: list[str] = []

    def visit(operations: Sequence[OperationGraph]) -> None:
        for operation in operations:
            if isinstance(operation, SweepGraph):
                read.extend(arrangement.scalars(operation))
                written.extend(operation.reductions.values())
            elif isinstance(operation, ScalarGraph):
                read.extend(scalars_in(e for _, e in operation.statements))
                written.extend(name for name, _ in operation.statements)
            elif isinstance(operation, StopGraph):
                read.extend(scalars_in([operation.condition]))
            elif isinstance(operation, LoopGraph):
                written.append(operation.count)
                visit(operation.body)
                read.extend(scalars_in([] if operation.until is None else [operation.until]))

    visit(arrangement.operations)
    if wraps and any(
        wrapped_fields(arrangement.nests[s], arrangement.halos[s], arrangement.grid)
        for s in sweeps(arrangement.operations)
    ):
        read.append(AROUND)
    assigned = set(written)
    names = dict.fromkeys((*(name for name in read if name not in assigned), *written))
    return {name: number for number, name in enumerate(names)}


def field_infos(numbering: Numbering, arrangement: Sweeps) -> tuple[FieldInfo, ...]:
    """Return the arrays in the order of their numbers, with the halo that all sweeps together need."""
    ndim = arrangement.grid.ndim
    widest = dict.fromkeys(numbering.fields, Footprint())
    for halo in (arrangement.halos[sweep] for sweep in sweeps(arrangement.operations)):
        for f, footprint in (*halo.reads.items(), *halo.extended.items(), *halo.exchange.items()):
            widest[f] |= footprint
    _share_halos(widest, arrangement)
    infos = {f.name: FieldInfo(f.name, f.dtype, f.staggered, p.layers(ndim)) for f, p in widest.items()}
    second_buffers = [infos[f.name] for f in numbering.fields if second_buffer(f.name) in numbering.buffers]
    second_buffers.sort(key=lambda info: numbering.buffers[second_buffer(info.name)])
    return (*infos.values(), *(replace(info, name=f"{info.name}'") for info in second_buffers))


def _share_halos(widest: dict[Field, Footprint], arrangement: Sweeps) -> None:
    """Extend the halos of fields that take over each other's buffers to a common width."""
    groups = [
        {f, *chain} for sweep in sweeps(arrangement.operations) for f, chain in rotations(sweep.sets).items()
    ]
    for _ in groups:  # a field may belong to several groups
        for group in groups:
            joint = reduce(or_, (widest[f] for f in group))
            widest.update(dict.fromkeys(group, joint))


def wrapped_fields(nests: SweepNests, halo: SweepHalo, grid: Grid) -> frozenset[Field]:
    """Return the fields for which the kernel itself may fill the halo along the last axis, see `ir.Wrap`.

    A field must meet three conditions: points of a row read only the halo of this row, every row reads its
    halo, and only this kernel reads the halo. Fields whose halo along the last axis is already valid are not
    in the result.
    """
    has_stages = any(isinstance(statement, ir.Stage) for statement in nests.staged.body)
    has_single_cell = any(isinstance(s, ir.Nest) and s.cell is not None for s in nests.kernel.body)
    # cuts at block boundaries may be nearer to the ends of rows than `cut_patches` permits for other cuts
    cut = grid.blocks is not None
    if not grid.periodic[-1] or has_stages or has_single_cell or halo.extended or cut:
        return frozenset()
    # ghosts at corners or along walls may depend on values beyond the ends of rows
    by_ghosts = {
        f
        for fill in halo.fills
        for f, offsets in fill.reads.items()
        if fill.corners[-1] != (0, 0) or any(offset[-1] for offset in offsets)
    }

    def wraps(f: Field, footprint: Footprint) -> bool:
        row_reads = [(o, place) for o, place in nests.reads.get(f, ()) if o[-1]]
        in_every_row = all(
            p or not s for _, place in row_reads for p, s in zip(place, f.staggered, strict=True)
        )
        in_same_row = not any(d[-1] and any(d[:-1]) for d, _ in footprint)
        in_same_row = (
            in_same_row and f not in by_ghosts and footprint <= Footprint.from_offsets(nests.offsets(f))
        )
        return bool(row_reads) and in_every_row and in_same_row

    missing = {f for f, footprint in halo.exchange.items() if any(d[-1] for d, _ in footprint)}
    return frozenset(f for f, footprint in halo.reads.items() if f in missing and wraps(f, footprint))
