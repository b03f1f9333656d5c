"""Compilation of a program to its schedule: sweeps, loop nests, halo analysis, kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from halocline.compile import lower, schedule
from halocline.compile.footprint import Footprint
from halocline.compile.halo import UNIFORM, HaloAnalysis, SweepHalo, make_uniform, with_exchanges
from halocline.compile.identity import identity
from halocline.compile.ir.kernel import Array, Kernel
from halocline.compile.ir.pipeline import complete_pass, is_recording, run
from halocline.compile.numbering import Numbering, Sweeps, field_infos, number_buffers, wrapped_fields
from halocline.compile.passes.contract import contract, count_flops
from halocline.compile.passes.invariants import invariant_scalars, invariant_values
from halocline.compile.passes.operands import Operands, operands
from halocline.compile.passes.scratch import stage_uses
from halocline.compile.printers.device import GhostLayers
from halocline.compile.schedule import INVARIANTS, NAME, Code
from halocline.compile.strategy import SHARED_BYTES, Strategy
from halocline.compile.sweep import SweepNests, build, in_halo
from halocline.compile.targets.cpu import Cpu, condition_function, scalars_function, translation_unit
from halocline.compile.targets.device import Device
from halocline.compile.targets.source import device_text, loop_kernel, scalars_kernel, stop_kernel
from halocline.compile.translate import translate_ghost, translate_scalar
from halocline.compile.walls import WallFill, independent_groups
from halocline.errors import InputError
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.expression import walk
from halocline.lang.grid import AXES, Field, Grid
from halocline.lang.program import Program
from halocline.lang.trace import INTERNAL

MOST_SCHEDULES = 32  # number of cached schedules; a large schedule has 1 MB of text
_schedules: dict[tuple[bytes, str, Strategy | None, int], schedule.Schedule] = {}


def compile_program(
    program: Program,
    grid: Grid,
    *,
    halo: str = "read",
    device: Strategy | None = None,
    shared: int = SHARED_BYTES,
) -> schedule.Schedule:
    """Return the schedule of a program, with the C++ source of its kernels.

    A process keeps the schedules of the most recently used programs, and compiles equal programs once.

    Parameters
    ----------
    program : Program
    grid : Grid
        Grid of the fields that the program assigns.
    halo : {"read", "faces", "edges", "uniform"}
        Halo segments of an exchange. ``"read"``: only the segments that the program reads. The other values
        serve as comparisons: all exchanged fields have halos of the maximum width. ``"faces"`` exchanges
        faces, ``"edges"`` faces and segments along two axes, ``"uniform"`` all segments. Segments that the
        program reads are always exchanged.
    device : Strategy, optional
        Strategy of the kernels for devices; by default, sweeps run on the CPU.
    shared : int
        Bytes of shared memory per thread block of the device.

    Raises
    ------
    InputError
        The program has no statements, a field lacks a required boundary condition, or a statement uses a
        value that was overwritten before.
    """
    digest = identity(program, grid)
    if digest is None:
        return _compile(program, grid, halo, device, shared)
    key = digest, halo, device, shared
    result = _schedules.pop(key, None)
    if result is None or is_recording():
        result = _compile(program, grid, halo, device, shared)
    _schedules[key] = result  # moved to the end: the first entry is removed first
    if len(_schedules) > MOST_SCHEDULES:
        _schedules.pop(next(iter(_schedules)), None)
    return result


def _compile(
    program: Program, grid: Grid, halo: str, device: Strategy | None, shared: int
) -> schedule.Schedule:
    sweeps = arranged(program, grid, halo)
    target = Cpu() if device is None else Device(device, shared)
    numbering = number_buffers(program, sweeps, target.wraps)
    changing = frozenset(lower.changing_scalars(sweeps.operations))
    compiler = _Compiler(sweeps, numbering, target, changing)
    operations = tuple(map(compiler.operation, sweeps.operations))
    return schedule.Schedule(
        ndim=grid.ndim,
        periodic=grid.periodic,
        fields=field_infos(numbering, sweeps),
        scalars=tuple(numbering.scalars),
        operations=operations,
        source=translation_unit(compiler.source),
        blocks=grid.blocks,
        device=None if device is None else compiler.device_code(),
    )


def arranged(program: Program, grid: Grid, halo: str = "read") -> Sweeps:
    """Return the operations of the schedule of a program, and the nests and halos of its sweeps.

    The function raises the same errors as `compile_program`.
    """
    operations = lower.lower(program)
    for sweep in lower.sweeps(operations):
        for f in sweep.sets:
            if f.grid is not grid:
                raise InputError(
                    f"program {program.name!r} sets field {f.name!r} of another grid, {f.grid!r}"
                )
    nests = {s: build(s, grid) for s in lower.sweeps(operations)}
    analysis = HaloAnalysis(operations, nests, grid)
    operations, exchanges = with_exchanges(operations, analysis.before)
    nests |= {s: build(s, grid) for s in exchanges}
    halos = analysis.result | exchanges
    if halo != "read":
        make_uniform(halos, grid.ndim, UNIFORM[halo])
    arrangement = Sweeps(grid, operations, nests, halos)
    return replace(
        arrangement, operations=lower.with_waits(operations, lambda sweep: set(arrangement.scalars(sweep)))
    )


@dataclass
class _Compiler:
    """Operations of a schedule, and the source of their functions."""

    arrangement: Sweeps
    numbering: Numbering
    target: Cpu | Device
    changing: frozenset[str]  # scalars that operations of the program set
    source: list[str] = field(default_factory=list)
    device_source: list[str] = field(default_factory=list)
    device_kernels: dict[str, tuple[schedule.DeviceKernel, ...]] = field(default_factory=dict)
    device_loops: list[str] = field(default_factory=list)
    device_constants: dict[str, None] = field(default_factory=dict)  # an ordered set
    symbols: dict[Code, str] = field(default_factory=dict)  # equal kernels are printed once
    counts: dict[str, int] = field(default_factory=dict)
    fills: dict[WallFill, schedule.Fill] = field(default_factory=dict)
    share: float = 1.0  # expected share of loop passes that run the current statements

    def device_code(self) -> schedule.DeviceCode:
        source = device_text(self.device_source, len(self.numbering.buffers))
        constants = tuple(self.device_constants)
        return schedule.DeviceCode(source, self.device_kernels, tuple(self.device_loops), constants)

    def symbol(self, base: str) -> str:
        """Return a new function name."""
        number = self.counts.get(base, 0)
        self.counts[base] = number + 1
        return f"{base}_{number}"

    def once(self, base: str, code: Code) -> str:
        """Return the symbol of a kernel; print the kernel with `base` in its name if it is new."""
        if code not in self.symbols:
            symbol = self.symbols[code] = self.symbol(base)
            text = code.text.replace(NAME, symbol)
            if isinstance(self.target, Device):
                self.device_source.append(text)
                self.device_kernels[symbol] = tuple(kernel.named(symbol) for kernel in code.kernels)
            else:
                self.source.append(text)
        return self.symbols[code]

    def note_constants(self, symbol: str, kernel: Kernel) -> None:
        """Note the symbol in constant memory of a device kernel if its values do not change during a run."""
        if not isinstance(self.target, Device):
            return
        if invariant_values(kernel) and self.changing.isdisjoint(invariant_scalars(kernel)):
            self.device_constants[INVARIANTS.replace(NAME, symbol)] = None

    # --- operations ---

    def operation(self, operation: lower.OperationGraph) -> schedule.Operation:
        if isinstance(operation, lower.SweepGraph):
            return self.sweep(operation)
        if isinstance(operation, lower.ScalarGraph):
            return self.scalars(operation)
        if isinstance(operation, lower.AwaitGraph):
            return schedule.Await()
        if isinstance(operation, lower.StopGraph):
            return self.stop(operation)
        return self.loop(operation)

    def scalars(self, graph: lower.ScalarGraph) -> schedule.Scalars:
        name, names = self.symbol("scalars"), self.numbering.names
        statements = [(target, contract(translate_scalar(e))) for target, e in graph.statements]
        self.source.append(scalars_function(name, statements, names))
        if isinstance(self.target, Device):
            self.device_source.append(scalars_kernel(name, statements, names))
        return schedule.Scalars(name)

    def stop(self, graph: lower.StopGraph) -> schedule.Stop:
        name, names = self.symbol("stop"), self.numbering.names
        condition = translate_scalar(graph.condition)
        self.source.append(condition_function(name, condition, names))
        if isinstance(self.target, Device):
            self.device_source.append(stop_kernel(name, condition, names))
        return schedule.Stop(name, graph.reason, graph.error)

    def loop(self, graph: lower.LoopGraph) -> schedule.Loop:
        until, names, scalars = None, self.numbering.names, self.numbering.scalars
        condition = None if graph.until is None else translate_scalar(graph.until)
        if condition is not None:
            until = self.symbol("until")
            self.source.append(condition_function(until, condition, names))
        if isinstance(self.target, Device):
            self.device_loops.append(self.symbol("loop"))
            self.device_source.append(loop_kernel(self.device_loops[-1], condition, names))
        return schedule.Loop(
            until=until,
            limit=None if graph.limit is None else scalars[graph.limit],
            count=scalars[graph.count],
            record=tuple(scalars[name] for name in graph.record),
            body=self.body(graph),
            often=graph.often,
        )

    def body(self, graph: lower.LoopGraph) -> tuple[schedule.Operation, ...]:
        """Return the operations of a loop or of a conditional statement."""
        outer_share, self.share = self.share, self.share * (1.0 if graph.often is None else graph.often)
        operations = tuple(map(self.operation, graph.body))
        self.share = outer_share
        return operations

    def sweep(self, sweep: lower.SweepGraph) -> schedule.Sweep:
        nests, halo, numbers = (
            self.arrangement.nests[sweep],
            self.arrangement.halos[sweep],
            self.numbering.buffers,
        )
        read = tuple(f.name for f in self.numbering.fields if f in nests.reads)
        sinks = self.arrangement.sinks(sweep)
        sweep_operands = Operands(read, sinks)
        wraps = wrapped_fields(nests, halo, self.arrangement.grid) if self.target.wraps else frozenset()
        kernel = run(
            nests.kernel,
            partial(operands, sweep_arrays=sweep_operands, numbers=self.operand_numbers(sweep_operands)),
        )
        kernel = self.target.ordered(replace(kernel, wraps=tuple(sorted(f.name for f in wraps))))
        # the results for a field bypass the cache if the sweep does not read this field
        streamed = frozenset(sinks.values()) - set(read)
        if sweep.roots():
            prepared = self.target.with_invariants(kernel, self.changing)
            symbol = self.once("sweep", self.target.sweep(prepared, self.numbering.names, streamed))
            self.note_constants(symbol, prepared)
        else:
            symbol = self.once("exchange", self.target.halo(kernel, self.numbering.names))
        halo_kernel, extent = self.halo_kernel(sweep, nests, halo, sweep_operands)
        stages, slots = stage_uses(kernel)
        items = {name: ITEMSIZE[kernel.array[name].dtype] for name in sweep_operands.names}
        return schedule.Sweep(
            kernel=symbol,
            operands=tuple(numbers[name] for name in sweep_operands.names),
            reads={numbers[f.name]: p for f, p in halo.reads.items()},
            exchange={numbers[f.name]: p for f, p in halo.exchange.items()},
            fills=tuple(map(self.fill, halo.fills)),
            wall_kernels=tuple(self.wall_kernels(halo.fills)),
            reductions=tuple(
                schedule.Reduction(r.attribute[0], self.numbering.scalars[s], r.attribute[1])
                for r, s in sweep.reductions.items()
            ),
            halo_kernel=halo_kernel,
            halo_extent=extent,
            swaps=tuple((numbers[a], numbers[b]) for a, b in self.arrangement.swaps(sweep)),
            overwrites=tuple(
                numbers[sink] for sink in sinks.values() if numbers[sink] < len(self.numbering.fields)
            ),
            wraps=tuple(sorted(numbers[f.name] for f in wraps)),
            scratch=tuple(slots),
            stages=tuple(stages),
            flops=float(count_flops(kernel)),
            bytes=float(sum(items.values()) + sum(items[sink] for sink in sinks.values() if sink in read)),
            names=tuple([f.name for f in sweep.sets] + [f"{r.attribute[0]}" for r in sweep.reductions]),
            share=self.share,
        )

    def operand_numbers(self, sweep_arrays: Operands) -> dict[str, int]:
        """Return the number of each operand.

        On the CPU, the number is the position of the operand. On devices, it is the number of the buffer.
        """
        if isinstance(self.target, Device):
            return {name: self.numbering.buffers[name] for name in sweep_arrays.names}
        return {name: number for number, name in enumerate(sweep_arrays.names)}

    def halo_kernel(
        self, sweep: lower.SweepGraph, nests: SweepNests, halo: SweepHalo, sweep_arrays: Operands
    ) -> tuple[str | None, Footprint]:
        """Return the kernel that computes fields in the halo, and the halo segments that it computes."""
        if not halo.extended:
            return None, Footprint()
        kernel = in_halo(nests.staged, {f.name for f in halo.extended})
        numbers = self.operand_numbers(sweep_arrays)
        kernel = run(kernel, partial(operands, sweep_arrays=sweep_arrays, numbers=numbers, only=True))
        kernel = self.target.with_invariants(self.target.ordered(kernel), self.changing)
        extent = next(iter(halo.extended.values()))  # all extended fields have the same extent
        symbol = self.once("halo", self.target.halo(kernel, self.numbering.names))
        self.note_constants(symbol, kernel)
        return symbol, extent

    # --- boundary conditions ---

    def fill(self, fill: WallFill) -> schedule.Fill:
        known = self.fills.get(fill)
        if known is not None:
            return known
        ordered = self.operands_of(fill)
        side = f"{AXES[fill.axis]}_{'lower' if fill.side < 0 else 'upper'}"
        name = fill.field.name.replace(INTERNAL, "")
        result = self.fills[fill] = schedule.Fill(
            kernel=self.once(f"wall_{name}_{side}", self.wall(fill, ordered, side)),
            field=self.numbering.fields[fill.field],
            operands=tuple(self.numbering.fields[f] for f in ordered),
            axis=fill.axis,
            side=fill.side,
            depth=fill.depth,
            reach=fill.reach,
            corners=fill.corners,
            covers=fill.covers,
            along=fill.along,
        )
        return result

    def wall_kernels(self, fills: Sequence[WallFill]) -> Iterator[schedule.WallKernel]:
        """Yield the device kernels that compute the ghosts of a sweep; none on CPUs."""
        if not isinstance(self.target, Device):
            return
        for group in independent_groups(fills):
            ghosts = [self.ghost_layers(fills[number], layers) for number, layers in group]
            first = 0
            for end in range(1, len(group) + 1):
                if end == len(group) or not self.target.parameters_fit(ghosts[first : end + 1]):
                    code = self.target.wall_kernel(
                        ghosts[first:end], self.numbering.names, len(fills[0].corners)
                    )
                    yield schedule.WallKernel(self.once("walls", code), tuple(group[first:end]))
                    first = end

    def ghost_layers(self, fill: WallFill, layers: range) -> GhostLayers:
        """Return the functions of some ghost layers, and their arrays."""
        numbers, ndim = self.numbering.buffers, self.arrangement.grid.ndim
        arrays = [
            Array(f.name, f.dtype, number=numbers[f.name], written=f is fill.field)
            for f in self.operands_of(fill)
        ]
        functions = tuple(f"{self.fill(fill).kernel}_{layer}" for layer in layers)
        return GhostLayers(functions, fill.axis + 3 - ndim, fill.side, tuple(arrays))

    def operands_of(self, fill: WallFill) -> list[Field]:
        """Return the fields that a boundary condition reads and writes, in the order of their numbers."""
        reads = [leaf for leaf in walk(fill.ghosts) if leaf.op == "read"]
        fields = {fill.field, *(leaf.attribute[0] for leaf in reads)}
        return sorted(fields, key=lambda f: self.numbering.fields[f])

    def wall(self, fill: WallFill, fields: Sequence[Field], side: str) -> Code:
        grid, names = self.arrangement.grid, tuple(f.name for f in fields)
        fill_operands = Operands(names, {fill.field.name: fill.field.name})
        on_device = isinstance(self.target, Device)
        layers = []
        for number, ghost in enumerate(fill.ghosts):
            kernel = complete_pass("translate", translate_ghost(fill.field, ghost, fields, grid))
            bound = partial(operands, sweep_arrays=fill_operands, numbers=self.operand_numbers(fill_operands))
            kernel = run(kernel, contract, bound)
            layers.append(replace(kernel, comment=f"layer {number}: {kernel.comment}"))
        condition = type(fill.field.boundary[fill.name]).__name__
        comment = f"{fill.field.name} beyond the wall {side.replace('_', ' ')}: {condition}"
        if on_device:
            comment = f"{fill.field.name} beyond a wall"
        axis = fill.axis + 3 - grid.ndim
        return self.target.wall(layers, self.numbering.names, axis, fill.side, comment)
