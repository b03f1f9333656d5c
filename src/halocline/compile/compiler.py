"""From a program to its schedule: lower, lay out nests, analyse halos, write kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from halocline.compile import emit
from halocline.compile.contract import contract, count_flops
from halocline.compile.device import SHARED_BYTES, DeviceWriter, Strategy
from halocline.compile.device_source import device_text, loop_kernel, scalars_kernel, stop_kernel
from halocline.compile.device_tile import TileWriter, fits
from halocline.compile.footprint import Footprint
from halocline.compile.halo import HaloAnalysis, SweepHalo, WallFill, make_uniform
from halocline.compile.lower import (
    AwaitGraph,
    LoopGraph,
    OperationGraph,
    ScalarGraph,
    StopGraph,
    SweepGraph,
    lower,
    sweeps,
)
from halocline.compile.nests import Nest, SweepNests, Target, build, inline
from halocline.compile.results import awaited, scalars_in
from halocline.compile.schedule import (
    AROUND,
    Await,
    DeviceCode,
    DeviceKernel,
    FieldInfo,
    Fill,
    Loop,
    Operation,
    Reduction,
    Scalars,
    Schedule,
    Stop,
    Sweep,
)
from halocline.compile.text import Text, identifier, identifiers
from halocline.errors import InputError
from halocline.lang.dtype import ITEMSIZE, kept_dtype
from halocline.lang.expression import Expr, text, walk
from halocline.lang.grid import AXES, Field, Grid
from halocline.lang.program import Program

W = TypeVar("W", bound=DeviceWriter)

# Stands in the text of kernels for their name, until it is known whether they have been written before.
_NAME = "@"


def compile_program(
    program: Program,
    grid: Grid,
    *,
    halo: str = "read",
    device: Strategy | None = None,
    shared: int = SHARED_BYTES,
) -> Schedule:
    """The schedule of a program, with the C++ source of its kernels.

    Parameters
    ----------
    program : Program
    grid : Grid
        The grid whose fields the program assigns.
    halo : {"read", "uniform"}
        What travels: what is read; or, to compare, all fields that travel at all, as wide as the widest, with
        all edges and corners.
    device : Strategy, optional
        Where sweeps are to run on devices: kernels are written for these then, in this way.
    shared : int
        Bytes that threads of a group can share there.

    Raises
    ------
    InputError
        For a program without statements, a field without a boundary condition where one is needed, a value
        that was overwritten before its use.
    """
    return _Compiler(program, grid, device, shared, *arranged(program, grid, halo)).schedule()


def arranged(
    program: Program, grid: Grid, halo: str = "read"
) -> tuple[list[OperationGraph], dict[int, SweepNests], dict[int, SweepHalo]]:
    """The operations of a program, one for each of its schedule, and the nests and halos of its sweeps by
    identity. Raises as `compile_program`."""
    operations = lower(program)
    for sweep in sweeps(operations):
        for f in sweep.sets:
            if f.grid is not grid:
                raise InputError(
                    f"program {program.name!r} sets field {f.name!r} of another grid, {f.grid!r}"
                )
    nests = {id(s): build(s, grid) for s in sweeps(operations)}
    halos = HaloAnalysis(operations, nests, grid).result
    if halo == "uniform":
        make_uniform(halos.values(), grid.ndim)

    def reads(sweep: SweepGraph) -> set[str]:
        return scalars_in(roots_of(nests[id(sweep)], halos[id(sweep)]))

    return awaited(operations, reads), nests, halos


def roots_of(nests: SweepNests, halo: SweepHalo) -> list[Expr]:
    """Every expression that a sweep evaluates, at walls too."""
    roots = [target.expression for nest in nests.nests for target in nest.targets]
    return roots + [ghost for fill in halo.fills for ghost in fill.ghosts]


@dataclass
class _Compiler:
    program: Program
    grid: Grid
    device: Strategy | None
    shared: int
    operations: list[OperationGraph]
    nests: dict[int, SweepNests]
    halos: dict[int, SweepHalo]
    numbers: dict[Field, int] = field(default_factory=dict)
    seconds: dict[Field, int] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)
    source: list[str] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    code_names: dict[Field, str] = field(default_factory=dict)  # of fields in the generated code
    fills: dict[WallFill, Fill] = field(default_factory=dict)
    symbols: dict[_Written, str] = field(default_factory=dict)  # of kernels, each of which is there once
    scalar_names: dict[str, str] = field(default_factory=dict)  # the same of scalars
    device_source: list[str] = field(default_factory=list)
    device_kernels: dict[str, tuple[DeviceKernel, ...]] = field(default_factory=dict)
    device_loops: list[str] = field(default_factory=list)

    def schedule(self) -> Schedule:
        self._number_fields()
        self._number_scalars(self.operations)
        self.scalar_names = identifiers(self.scalars)
        taken = set(self.scalar_names.values())
        for f in self.numbers:
            self.code_names[f] = identifier(f.name, taken)
            taken.add(self.code_names[f])
        operations = tuple(self._operation(o) for o in self.operations)
        return Schedule(
            ndim=self.grid.ndim,
            periodic=self.grid.periodic,
            fields=self._fields(),
            scalars=tuple(self.scalars),
            operations=operations,
            source=emit.translation_unit(self.source),
            blocks=self.grid.blocks,
            device=self._device_code() if self.device else None,
        )

    def _device_code(self) -> DeviceCode:
        fields = len(self.numbers) + len(self.seconds)
        source = device_text(self.device_source, fields)
        return DeviceCode(source, self.device_kernels, tuple(self.device_loops))

    # --- numbering ---

    def _double_buffered(self, sweep: SweepGraph) -> set[Field]:
        """Fields whose old values other cells, or later nests, still read when the new ones are written."""
        nests = self.nests[id(sweep)]
        doubled = {f for f in sweep.sets if any(any(o) for o in nests.offsets(f))}
        written: set[Field] = set()
        for nest in nests.nests:
            reads = {n.attribute[0] for n in walk([t.expression for t in nest.targets]) if n.op == "read"}
            doubled |= reads & written
            written |= {t.thing for t in nest.targets if isinstance(t.thing, Field)}
        # ghosts at corners are formed when messages have come, while patches run
        fills = self.halos[id(sweep)].fills
        doubled |= written & {n.attribute[0] for fill in fills for n in walk(fill.ghosts) if n.op == "read"}
        return doubled

    def _number_fields(self) -> None:
        order = {name: number for number, name in enumerate(self.grid.fields)}
        for sweep in sweeps(self.operations):
            nests = self.nests[id(sweep)]
            found = [*nests.reads, *sweep.sets]
            for fill in self.halos[id(sweep)].fills:
                found += [n.attribute[0] for n in walk(fill.ghosts) if n.op == "read"]
            for f in sorted(set(found), key=lambda f: order[f.name]):
                self.numbers.setdefault(f, len(self.numbers))
        for sweep in sweeps(self.operations):
            for f in sorted(self._double_buffered(sweep), key=lambda f: self.numbers[f]):
                self.seconds.setdefault(f, len(self.numbers) + len(self.seconds))

    def _number_scalars(self, operations: list[OperationGraph]) -> None:
        """Parameters and the grid's scalars first, then those that the program sets."""
        read: list[str] = [*self.program.parameters, *self.grid.scalar_values()]
        written: list[str] = []

        def visit(operations: list[OperationGraph]) -> None:
            for operation in operations:
                roots: list[Expr] = []
                if isinstance(operation, SweepGraph):
                    roots = roots_of(self.nests[id(operation)], self.halos[id(operation)])
                    written.extend(operation.reductions.values())
                elif isinstance(operation, ScalarGraph):
                    roots = [e for _, e in operation.statements]
                    written.extend(name for name, _ in operation.statements)
                elif isinstance(operation, StopGraph):
                    roots = [operation.condition]
                elif isinstance(operation, LoopGraph):
                    roots = [] if operation.until is None else [operation.until]
                    written.append(operation.count)
                    visit(operation.body)
                read.extend(n.attribute[0] for n in walk(roots) if n.op == "scalar")

        visit(operations)
        if any(self._wraps(s) for s in sweeps(operations)):
            read.append(AROUND)
        made = set(written)
        for name in [*(n for n in read if n not in made), *written]:
            self.scalars.setdefault(name, len(self.scalars))

    def _fields(self) -> tuple[FieldInfo, ...]:
        layers: dict[Field, list[tuple[int, int]]] = {f: [(0, 0)] * self.grid.ndim for f in self.numbers}

        def widen(f: Field, by: Footprint) -> None:
            for axis, (below, above) in enumerate(by.layers(self.grid.ndim)):
                old = layers[f][axis]
                layers[f][axis] = (max(old[0], below), max(old[1], above))

        for sweep in sweeps(self.operations):
            halo = self.halos[id(sweep)]
            for f, footprint in (*halo.reads.items(), *halo.extended.items(), *halo.exchange.items()):
                widen(f, footprint)
        infos = [FieldInfo(f.name, f.dtype, f.staggered, tuple(layers[f])) for f in self.numbers]
        infos += [FieldInfo(f.name + "'", f.dtype, f.staggered, tuple(layers[f])) for f in self.seconds]
        return tuple(infos)

    def _wraps(self, sweep: SweepGraph) -> frozenset[Field]:
        """Fields whose rows the kernel itself may wrap around the last axis.

        A row's halo must be read from that row alone, from every row, and by nothing but this kernel.
        """
        nests, halo = self.nests[id(sweep)], self.halos[id(sweep)]
        staged = any(t.kind == "stage" for n in nests.nests for t in n.targets)
        single = any(n.cell is not None for n in nests.nests)
        # the cuts at borders of blocks may come nearer to the ends of rows than `cut_patches` lets others
        cut = self.grid.blocks is not None
        # on a device all rows are wrapped at once, by a kernel that copies
        if self.device or not self.grid.periodic[-1] or staged or single or halo.extended or cut:
            return frozenset()

        # ghosts at corners may be formed of what other fields hold beyond the ends of rows
        corners = {
            n.attribute[0]
            for fill in halo.fills
            if fill.corners[-1] != (0, 0)
            for n in walk(fill.ghosts)
            if n.op == "read"
        }

        def wraps(f: Field, footprint: Footprint) -> bool:
            along = [(o, place) for o, place in nests.reads.get(f, ()) if o[-1]]
            every = all(p or not own for _, place in along for p, own in zip(place, f.staggered, strict=True))
            alone = not any(d[-1] and any(d[:-1]) for d, _ in footprint)
            alone = alone and f not in corners and footprint <= Footprint.from_offsets(nests.offsets(f))
            return bool(along) and every and alone

        return frozenset(f for f, footprint in halo.reads.items() if wraps(f, footprint))

    def _symbol(self, base: str) -> str:
        number = self.names.get(base, 0)
        self.names[base] = number + 1
        return f"{base}_{number}"

    def _once(self, base: str, written: _Written) -> str:
        """The symbol of a kernel: a new one, with `base` in it, unless the same was written before."""
        if written not in self.symbols:
            symbol = self.symbols[written] = self._symbol(base)
            text = written.text.replace(_NAME, symbol)
            if self.device:
                self.device_source.append(text)
                self.device_kernels[symbol] = tuple(
                    replace(k, name=k.name.replace(_NAME, symbol)) for k in written.kernels
                )
            else:
                self.source.append(text)
        return self.symbols[written]

    # --- operations ---

    def _operation(self, operation: OperationGraph) -> Operation:
        if isinstance(operation, SweepGraph):
            return self._sweep(operation)
        if isinstance(operation, ScalarGraph):
            name = self._symbol("scalars")
            self.source.append(emit.write_scalars(name, operation.statements, self.scalars))
            if self.device:
                self.device_source.append(scalars_kernel(name, operation.statements, self.scalars))
            return Scalars(name)
        if isinstance(operation, AwaitGraph):
            return Await()
        if isinstance(operation, StopGraph):
            name = self._symbol("stop")
            self.source.append(emit.write_condition(name, operation.condition, self.scalars))
            if self.device:
                self.device_source.append(stop_kernel(name, operation.condition, self.scalars))
            return Stop(name, operation.reason, operation.error)
        until = None
        if operation.until is not None:
            until = self._symbol("until")
            self.source.append(emit.write_condition(until, operation.until, self.scalars))
        if self.device:
            self.device_loops.append(self._symbol("loop"))
            self.device_source.append(loop_kernel(self.device_loops[-1], operation.until, self.scalars))
        return Loop(
            until=until,
            limit=None if operation.limit is None else self.scalars[operation.limit],
            count=self.scalars[operation.count],
            record=tuple(self.scalars[name] for name in operation.record),
            body=tuple(self._operation(o) for o in operation.body),
        )

    def _sweep(self, sweep: SweepGraph) -> Sweep:
        nests, halo = self.nests[id(sweep)], self.halos[id(sweep)]
        doubled = self._double_buffered(sweep)
        read = [f for f in self.numbers if f in nests.reads]
        sources = {f: self.code_names[f] for f in read}
        sinks = {f: self.code_names[f] + "_next" * (f in doubled) for f in sweep.sets}
        operand_names = [*sources.values()]
        operands = [self.numbers[f] for f in read]
        dtypes = {sources[f]: f.dtype for f in read}
        for f in sweep.sets:
            if sinks[f] not in operand_names:
                operand_names.append(sinks[f])
                operands.append(self.seconds[f] if f in doubled else self.numbers[f])
                dtypes[sinks[f]] = f.dtype
        accumulators = {r: n for n, r in enumerate(sweep.reductions)}
        labels = [f"{f.name} = {_brief(e)}" for f, e in sweep.sets.items()]
        labels += [f"{r.attribute[0]}({_brief(r.args[0])})" for r in sweep.reductions]

        def write(
            nest_list: tuple[Nest, ...],
            only: set[str] | None,
            streamed: frozenset[Field],
            note: str,
            streaming: bool = False,
        ) -> _Written:
            numbered = {n: i for i, n in enumerate(operand_names) if only is None or n in only}
            if self.device:
                arrays = {n: operands[i] for n, i in numbered.items()}
                comment = "; ".join(labels) + note
                places = _Arrays(arrays, dtypes, sources, sinks)
                return self._device_kernels(nest_list, places, accumulators, comment, only is not None)
            writer = emit.KernelWriter(
                name=_NAME,
                grid=self.grid,
                operands=numbered,
                dtypes=dtypes,
                sources=sources,
                sinks=sinks,
                scalars=self.scalars,
                scalar_names=self.scalar_names,
                comment="; ".join(labels) + note,
                wraps=wraps,
                streaming=streaming,
                streamed=streamed,
                beyond=only is not None,
            )
            return _Written(writer.write(nest_list, accumulators))

        wraps = self._wraps(sweep)
        # a field that the sweep does not read need not pass through the cache
        streamed = frozenset(f for f in sweep.sets if sinks[f] not in sources.values())
        written = write(nests.nests, None, frozenset(), "")
        if not self.device:
            past = write(nests.nests, None, streamed, " (fields exceed the cache)", streaming=True)
            lines = (f"#ifndef {emit.STREAMING}", written.text, "#else", past.text, "#endif\n")
            written = _Written("\n".join(lines))
        kernel = self._once("sweep", written)
        halo_kernel, extent = None, Footprint()
        if halo.extended:
            groups: dict[tuple[int, ...], list[Target]] = {}
            for target, _ in nests.per_target:
                if isinstance(target.thing, Field) and target.thing in halo.extended:
                    made = Target("field", target.thing, inline(target.expression))
                    groups.setdefault(tuple(map(int, target.thing.staggered)), []).append(made)
            none = ((0, 0),) * self.grid.ndim
            nest_list = tuple(Nest(tuple(group), top, none) for top, group in groups.items())
            roots = [t.expression for nest in nest_list for t in nest.targets]
            names = {sources[n.attribute[0]] for n in walk(roots) if n.op == "read"}
            names |= {sinks[f] for f in halo.extended}
            halo_kernel = self._once("halo", write(nest_list, names, frozenset(), ", in the halo"))
            for footprint in halo.extended.values():
                extent = extent | footprint
        scratch = tuple(
            (
                ITEMSIZE[kept_dtype(t.expression, {})],
                *(lo + hi + top for (lo, hi), top in zip(n.extent, n.top, strict=True)),
            )
            for n in nests.nests
            for t in n.targets
            if t.kind == "stage"
        )
        moved = {(n, dtypes[n]) for n in operand_names}
        return Sweep(
            kernel=kernel,
            operands=tuple(operands),
            reads={self.numbers[f]: p for f, p in halo.reads.items()},
            exchange={self.numbers[f]: p for f, p in halo.exchange.items()},
            fills=tuple(self._fill(fill) for fill in halo.fills),
            reductions=tuple(
                Reduction(r.attribute[0], self.scalars[s], r.attribute[1])
                for r, s in sweep.reductions.items()
            ),
            halo_kernel=halo_kernel,
            halo_extent=extent,
            swaps=tuple((self.numbers[f], self.seconds[f]) for f in sweep.sets if f in doubled),
            overwrites=tuple(self.numbers[f] for f in sweep.sets if f not in doubled),
            wraps=tuple(sorted(self.numbers[f] for f in wraps)),
            scratch=scratch,
            flops=float(sum(count_flops([t.expression for t in n.targets]) for n in nests.nests)),
            bytes=float(
                sum(ITEMSIZE[d] for _, d in moved)
                + sum(ITEMSIZE[dtypes[sinks[f]]] for f in sweep.sets if sinks[f] in sources.values())
            ),
            names=tuple([f.name for f in sweep.sets] + [f"{r.attribute[0]}" for r in sweep.reductions]),
        )

    def _device_kernels(
        self,
        nests: tuple[Nest, ...],
        places: _Arrays,
        accumulators: dict[Expr, int],
        comment: str,
        beyond: bool,
    ) -> _Written:
        """A kernel for each nest, to run in the place of one kernel for the CPU."""
        assert self.device is not None
        # ghosts and halos are thin: nothing is gained by marching, and groups are as their boxes are
        strategy = replace(self.device, reads="direct", group=None, march=1) if beyond else self.device

        def writer(kind: type[W], number: int) -> W:
            return kind(
                name=f"{_NAME}_{number}",
                grid=self.grid,
                numbers=places.numbers,
                dtypes=places.dtypes,
                sources=places.sources,
                sinks=places.sinks,
                scalars=self.scalars,
                scalar_names=self.scalar_names,
                comment=comment,
                beyond=beyond,
                strategy=strategy,
                shared=self.shared,
            )

        if strategy.stages == "group" and fits(nests, self.grid.ndim, self.shared):
            made = [writer(TileWriter, 0).write_tile(nests, accumulators)]
        else:
            made = [writer(DeviceWriter, n).write(nest, nests, accumulators) for n, nest in enumerate(nests)]
        return _Written("\n".join(text for text, _ in made), tuple(kernel for _, kernel in made))

    # --- boundary conditions ---

    def _fill(self, fill: WallFill) -> Fill:
        known = self.fills.get(fill)
        if known is not None:
            return known
        roots = fill.ghosts
        reads = [n for n in walk(roots) if n.op == "read"]
        fields = sorted({fill.field, *(n.attribute[0] for n in reads)}, key=lambda f: self.numbers[f])
        # a ghost in layer k has k ghosts between it and the wall
        reach = max(
            (
                abs(n.attribute[2][fill.axis]) - layer
                for layer, root in enumerate(roots)
                for n in walk((root,))
                if n.op == "read"
            ),
            default=0,
        )
        side = f"{AXES[fill.axis]}_{'lower' if fill.side < 0 else 'upper'}"
        if self.device:
            written = self._device_wall(fill, roots, fields)
        else:
            written = _Written(self._wall_kernel(fill, roots, fields, side))
        made = Fill(
            kernel=self._once(f"wall_{fill.field.name}_{side}", written),
            field=self.numbers[fill.field],
            operands=tuple(self.numbers[f] for f in fields),
            axis=fill.axis,
            side=fill.side,
            depth=fill.depth,
            reach=reach,
            corners=fill.corners,
        )
        self.fills[fill] = made
        return made

    def _wall_kernel(self, fill: WallFill, roots: list[Expr], fields: list[Field], side: str) -> str:
        axis = fill.axis + 3 - self.grid.ndim
        names = {f: self.code_names[f] for f in fields}
        parts = []
        calls = Text()
        calls.add(
            f"// {fill.field.name} beyond the wall {side.replace('_', ' ')}: "
            f"{type(fill.field.boundary[side[0] + ('-' if fill.side < 0 else '+')]).__name__}"
        )
        calls.open(f'extern "C" void {_NAME}(const hc_arguments *a, const hc_box *box)')
        for layer, root in enumerate(roots):
            writer = emit.KernelWriter(
                name=f"{_NAME}_layer{layer}",
                grid=self.grid,
                operands={names[f]: n for n, f in enumerate(fields)},
                dtypes={names[f]: f.dtype for f in fields},
                sources=names,
                sinks={fill.field: names[fill.field]},
                scalars=self.scalars,
                scalar_names=self.scalar_names,
                comment=f"layer {layer}: {_brief(root)}",
                beyond=True,
            )
            target = Target("field", fill.field, *contract([root]))
            nest = Nest((target,), (0,) * self.grid.ndim, ((0, 0),) * self.grid.ndim)
            parts.append(writer.write([nest], {}).replace('extern "C" void', "static void", 1))
            calls.open("")
            calls.add("hc_box layer = *box;")
            if fill.side < 0:
                calls.add(f"layer.lo[{axis}] = box->hi[{axis}] - {layer + 1};")
            else:
                calls.add(f"layer.lo[{axis}] = box->lo[{axis}] + {layer};")
            calls.add(f"layer.hi[{axis}] = layer.lo[{axis}] + 1;")
            calls.add(f"{_NAME}_layer{layer}(a, &layer);")
            calls.close()
        calls.close()
        return "\n".join([*parts, str(calls)])

    def _device_wall(self, fill: WallFill, roots: list[Expr], fields: list[Field]) -> _Written:
        """A kernel for each layer of ghosts, the nearest to the wall first."""
        names = {f: self.code_names[f] for f in fields}
        places = _Arrays(
            {names[f]: self.numbers[f] for f in fields},
            {names[f]: f.dtype for f in fields},
            names,
            {fill.field: names[fill.field]},
        )
        none = ((0, 0),) * self.grid.ndim
        layers = [
            Nest((Target("field", fill.field, *contract([root])),), (0,) * self.grid.ndim, none)
            for root in roots
        ]
        # of layers whose ghosts have one formula, each has a kernel all the same: they are short
        return self._device_kernels(tuple(layers), places, {}, f"{fill.field.name} beyond a wall", True)


@dataclass(frozen=True)
class _Written:
    """A kernel, with _NAME where its name is to stand; for devices the kernels in its place."""

    text: str
    kernels: tuple[DeviceKernel, ...] = ()


@dataclass(frozen=True)
class _Arrays:
    """The arrays of a kernel for a device: their numbers and dtypes by name, and the names of fields."""

    numbers: dict[str, int]
    dtypes: dict[str, str]
    sources: dict[Field, str]
    sinks: dict[Field, str]


def _brief(root: Expr, limit: int = 100) -> str:
    spelled = text(root, depth=4)
    return spelled if len(spelled) <= limit else spelled[: limit - 3] + "..."
