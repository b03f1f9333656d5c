"""Kernels for devices, in the C that CUDA and OpenCL share: a thread for each column of cells.

A kernel runs one loop nest: its threads march along the slowest axis of the grid, each over a few cells, so
that what they add up is reduced once for many cells. All decisions about values are those of the kernels for
the CPU (`halocline.compile.values`), so that the bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from halocline.compile.nests import Nest, Target
from halocline.compile.schedule import DeviceKernel
from halocline.compile.text import identifier, padded, padded_extent, suffix
from halocline.compile.values import C_TYPES, DEVICE, VARIABLES, Dialect, ValueWriter
from halocline.errors import InputError
from halocline.lang.dtype import ITEMSIZE, kept_dtype
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import Field
from halocline.lang.program import Stage

LARGEST_GROUP = 256  # threads
READS = ("direct", "queue", "planes")
SHARED_BYTES = 40 * 2**10  # of a group, at most: CUDA gives 48 KiB without being asked
PARAMETER_BYTES = 1024  # of a kernel: what every OpenCL device has room for; CUDA's have 4096
FRAME_BYTES, LAYOUT_BYTES, POINTER_BYTES = 24 * 8, 3 * 8, 8  # see frame.h
REDUCING_BYTES = LARGEST_GROUP // 2 * 40  # that a group shares to reduce: half of its threads an hc_partial


def march_axis(ndim: int) -> int | None:
    """The axis, of the three of generated code, that threads march along; None where each has one cell."""
    return None if ndim == 1 else 3 - ndim


@dataclass(frozen=True)
class Strategy:
    """How the threads of a device go through cells; no bit of a result depends on it.

    Parameters
    ----------
    reads : {"direct", "queue", "planes"}
        How a thread that marches along the slowest axis reads its neighbours there and around: all of them
        from memory; those before and behind it from registers, where each waits for its turn; and those
        beside it from a plane that its group shares.
    group : (int, int) or None
        Threads of a group along the contiguous axis and the next one; where that is marched along, all are
        along the contiguous one. None: as the cells of each launch suggest.
    march : int
        Cells of each thread.
    stages : {"group", "memory"}
        Where stages are kept: in memory that a group shares, where they fit; or in the device's memory.
    unroll : int
        Cells of a thread whose instructions are laid out one after the other.
    resident : int
        Groups that a processor of the device is to hold at a time, which limits the registers of each
        thread; 0: as the compiler likes. OpenCL has no such limit.
    """

    reads: str = "queue"
    group: tuple[int, int] | None = (64, 4)
    march: int = 16
    stages: str = "group"
    unroll: int = 1
    resident: int = 0

    def __post_init__(self) -> None:
        if self.stages not in ("group", "memory"):
            raise InputError(f"stages of device kernels in {self.stages!r}: expected group or memory")
        least = min((*(self.group or (1, 1)), self.march, self.unroll))
        most = (self.group or (1, 1))[0] * (self.group or (1, 1))[1]
        if least < 1 or self.resident < 0 or most > LARGEST_GROUP:
            raise InputError(
                f"device kernels with {self}: expected positive numbers, at most {LARGEST_GROUP} threads"
            )
        if self.reads not in READS:
            raise InputError(
                f"device kernels that read {self.reads!r} are unknown; known are {', '.join(READS)}"
            )

    def __str__(self) -> str:
        groups = "" if self.group is None else f", groups of {self.group[0]} x {self.group[1]}"
        words = f"{self.reads}{groups}, {self.march} cells a thread"
        words += f", {self.unroll} at a time" if self.unroll > 1 else ""
        words += f", {self.resident} groups at a time" if self.resident else ""
        return words + (", stages in memory" if self.stages == "memory" else "")

    def threads(self, ndim: int) -> tuple[int, int, int] | None:
        """Threads of a group along three axes, the contiguous one first."""
        if self.group is None:
            return None
        along, across = self.group
        return (along, across, 1) if ndim == 3 else (along * across, 1, 1)


@dataclass(frozen=True)
class _Plane:
    """Cells of an array around those of a group, at one place of the march: layers (below, above) along axes
    1 and 2 of generated code, and threads along these."""

    layers: tuple[tuple[int, int], tuple[int, int]]
    group: tuple[int, int]

    @property
    def rows(self) -> int:
        return self.group[0] + sum(self.layers[0])

    @property
    def row(self) -> int:
        return self.group[1] + sum(self.layers[1])


@dataclass(kw_only=True)
class DeviceWriter(ValueWriter):
    """Writes the kernel of one nest.

    Parameters
    ----------
    name : str
    numbers : dict of array name to field number
    dtypes : dict of array name to dtype
    sinks : dict of Field to array name
    scalars : dict of scalar name to its number
    comment : str
    strategy : Strategy
    shared : int
        Bytes that a group can share.
    """

    name: str
    numbers: dict[str, int]
    dtypes: dict[str, str]
    sinks: dict[Field, str]
    scalars: dict[str, int]
    comment: str
    strategy: Strategy = field(default_factory=lambda: Strategy())
    shared: int = SHARED_BYTES
    columns: dict[str, tuple[int, int]] = field(default_factory=dict)  # arrays that have a queue: its ends
    planes: dict[str, _Plane] = field(default_factory=dict)
    layouts: bool = False  # in memory, not among the parameters
    # of stages in memory that a group shares: its shape, and what lies around a tile
    shapes: dict[str, tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = field(default_factory=dict)
    dialect: Dialect = field(default_factory=lambda: DEVICE)

    def write(
        self, nest: Nest, nests: Sequence[Nest], accumulators: dict[Expr, int]
    ) -> tuple[str, DeviceKernel]:
        """The text of the kernel, and what it takes. `nests` are all nests of the sweep: their stages share
        scratch memory."""
        out, ndim = self.out, self.grid.ndim
        roots = [target.expression for target in nest.targets]
        written = {self.sinks[t.thing] for t in nest.targets if isinstance(t.thing, Field)}
        reductions = [t for t in nest.targets if t.kind == "reduction"]
        staged = any(leaf.op == "stage" for leaf in walk(roots)) or any(
            t.kind == "stage" for t in nest.targets
        )
        self._choose_reads(roots, written, self.shared - bool(reductions) * REDUCING_BYTES)
        groups = self.strategy.threads(ndim) if self.planes else None
        arrays = self.head(roots, written, bool(reductions), staged=staged, groups=groups)
        if staged:
            self._scratch(nests)
        for number, target in enumerate(reductions):
            out.add(f"hc_partial partial{number};")
            out.add(f"hc_partial_reset(&partial{number}, {kind_of(target)});")
        self.extent = padded_extent(nest.extent, ndim)
        self._cells(nest, roots, arrays)
        self.tail(reductions)
        return str(out), DeviceKernel(
            self.name,
            tuple(self.numbers[name] for name in arrays),
            nest.extent,
            nest.top,
            nest.cell,
            tuple(accumulators[t.thing] for t in reductions),  # type: ignore[index]
            staged,
            self.strategy.threads(ndim),
            bool(self.planes),
            self.strategy.march,
            layouts=self.layouts,
        )

    def head(
        self,
        roots: list[Expr],
        written: set[str],
        reduces: bool,
        *,
        staged: bool,
        groups: tuple[int, int, int] | None,
    ) -> list[str]:
        """Begin the kernel: parameters and scalars; the arrays that it takes, in order."""
        out = self.out
        read = {self.sources[leaf.attribute[0]] for leaf in walk(roots) if leaf.op == "read"}
        arrays = [name for name in self.numbers if name in read | written]
        self.arrays = frozenset(arrays)
        parameters = []
        self.layouts = self._layouts_are_too_many(len(arrays), staged, reduces)
        for name in arrays:
            constant = "" if name in written else "const "
            alone = "" if name in read & written else " HC_RESTRICT"
            ctype = C_TYPES[self.dtypes[name]]
            parameters += [f"HC_GLOBAL {constant}{ctype} *{alone} {name}_data"]
            parameters += [f"const hc_layout {name}_where"] * (not self.layouts)
        parameters += ["HC_GLOBAL const hc_layout *layouts"] * self.layouts
        parameters += ["HC_GLOBAL const double *scalars"]
        parameters += ["HC_GLOBAL char *scratch"] * staged
        parameters += ["HC_GLOBAL hc_partial *partials"] * reduces
        parameters += ["HC_GLOBAL const hc_control *control", "const hc_frame f"]
        out.add(f"// {self.comment}")
        fixed = "" if groups is None else f"_OF({', '.join(map(str, groups))})"
        if not fixed and self.strategy.resident and self.strategy.group:
            along, across = self.strategy.group
            fixed = f"_RESIDENT({along * across}, {self.strategy.resident})"
        out.open(f"HC_KERNEL{fixed} {self.name}({', '.join(parameters)})")
        if reduces:
            out.add(f"HC_SHARED hc_partial shared[HC_SCRATCH({LARGEST_GROUP})];")
        if reduces or groups is not None:
            # not by a return before barriers: of some kernels PoCL 3.1 would make one that always returns
            out.add("const hc_int64 end = control->skip != 0 ? f.lo[2] : f.hi[2];")
        else:
            out.add("if (control->skip != 0) return;")
            out.add("const hc_int64 end = f.hi[2];")
        for name in arrays if self.layouts else ():
            out.add(f"const hc_layout {name}_where = layouts[{self.numbers[name]}];")
        for name in sorted({leaf.attribute[0] for leaf in walk(roots) if leaf.op == "scalar"}):
            out.add(f"const double {self.scalar_names[name]} = scalars[{self.scalars[name]}];")
        return arrays

    @staticmethod
    def _layouts_are_too_many(arrays: int, staged: bool, reduces: bool) -> bool:
        """Whether the parameters of a kernel would be too large with the layout of each array."""
        pointers = arrays + 2 + staged + reduces  # scalars and control
        return pointers * POINTER_BYTES + arrays * LAYOUT_BYTES + FRAME_BYTES > PARAMETER_BYTES

    def end(self, axis: int) -> str:
        """Where the box ends along an axis. While kernels skip no result is in it; a group may still march,
        and compute what lies around."""
        return "end" if axis == 2 else f"f.hi[{axis}]"

    def tail(self, reductions: Sequence[Target]) -> None:
        """End the kernel: each group leaves its part of the reductions."""
        out, count = self.out, len(reductions)
        if reductions:
            # in one loop, not one after the other: PoCL compiles kernels of many in a third of the time
            out.add(f"hc_partial partial[{count}] = {{{', '.join(f'partial{n}' for n in range(count))}}};")
            out.add(f"const int kinds[{count}] = {{{', '.join(map(kind_of, reductions))}}};")
            out.add(f"HC_UNROLL({count})")
            out.open(f"for (int n = 0; n < {count}; ++n)")
            where = "shared, hc_thread_number(), hc_group_threads()"
            out.add(f"hc_group_reduce(kinds[n], &partial[n], {where});")
            slot = "f.group0 + n * f.stride + hc_group_number()"
            out.add(f"if (hc_thread_number() == 0) partials[{slot}] = partial[n];")
            out.close()
        out.close()

    def results(self, nest: Nest, roots: list[Expr], values: dict[int, str], first: int = 0) -> None:
        """What becomes of the values at a cell; reductions are numbered from `first` on."""
        number = first
        for target, root in zip(nest.targets, roots, strict=True):
            if target.kind == "reduction":
                kind = kind_of(target).removeprefix("HC_").lower()
                value = self.cast(root, "float64", values)
                counted = " != 0.0" if kind == "count" else ""
                self.out.add(f"hc_{kind}_put(&partial{number}, {value}{counted});")
                number += 1
            else:
                self._store(target, root, values)

    def _scratch(self, nests: Sequence[Nest]) -> None:
        """Where the stages of the sweep lie: as in kernels for the CPU, one after the other."""
        out, ndim = self.out, self.grid.ndim
        out.add("HC_GLOBAL char *free_scratch = scratch;")
        for nest in nests:
            for target in nest.targets:
                if target.kind != "stage":
                    continue
                stage = target.thing
                assert isinstance(stage, Stage)
                name = self.unique(identifier(stage.name))
                self.stage_names[stage] = name
                dtype = kept_dtype(stage.definition, self.types)
                extent = padded_extent(nest.extent, ndim)
                top = padded(nest.top, ndim)
                size = [
                    f"(f.box_hi[{a}] - f.box_lo[{a}] + {lo + hi}" + (f" + f.box_top[{a}])" if top[a] else ")")
                    for a, (lo, hi) in enumerate(extent)
                ]
                ctype = C_TYPES[dtype]
                out.add(f"const hc_int64 {name}_s1 = hc_padded_row({size[2]}, {ITEMSIZE[dtype]});")
                out.add(f"const hc_int64 {name}_s0 = {name}_s1 * {size[1]};")
                first = [f"(f.box_lo[{a}] - {lo})" for a, (lo, _) in enumerate(extent)]
                origin = f"{first[0]} * {name}_s0 + {first[1]} * {name}_s1 + {first[2]}"
                out.add(f"HC_GLOBAL {ctype} *const {name}_base = (HC_GLOBAL {ctype} *)free_scratch;")
                out.add(f"const hc_int64 {name}_origin = {origin};")
                out.add(f"free_scratch += {name}_s0 * {size[0]} * {ITEMSIZE[dtype]};")

    def _cells(self, nest: Nest, roots: list[Expr], arrays: Sequence[str]) -> None:
        """The loop over the cells of a thread."""
        out = self.out
        march = march_axis(self.grid.ndim)
        for name, plane in self.planes.items():
            out.add(f"HC_SHARED {C_TYPES[self.dtypes[name]]} {name}_plane[{plane.rows * plane.row}];")
        inside = self._place(march)
        depths: dict[int, int] = {}
        values: dict[int, str] = {}
        self.used = set()
        self.declare(0, roots, values, depths)
        if not self.planes:
            out.open(f"if ({inside})")
        if march is not None:
            v = VARIABLES[march]
            self._begin_queues(march, inside)
            if self.strategy.unroll > 1:
                out.add(f"HC_UNROLL({self.strategy.unroll})")
            out.open(f"for (hc_int64 {v} = {v}_begin; {v} < {v}_end; ++{v})")
        if self.planes:
            self._fill_planes()
            out.open(f"if ({inside})")
        self._point(nest, roots, arrays)
        for name, (_, last) in self.columns.items():
            out.add(f"{_queued(name, last)} = {self.in_memory(name, self._along(march, last))};")
        self.declare(3, roots, values, depths)
        self.results(nest, roots, values)
        for name, (first, last) in self.columns.items():
            for step in range(first, last):
                out.add(f"{_queued(name, step)} = {_queued(name, step + 1)};")
        for _ in range(1 + (march is not None)):
            out.close()

    def _place(self, march: int | None) -> str:
        """Declare where the thread is, and where it marches; the condition that it has cells."""
        out, ndim = self.out, self.grid.ndim
        inside = []
        for axis in (2, 1, 0):
            v, group = VARIABLES[axis], f"hc_group({2 - axis})"
            if axis < 3 - ndim:
                out.add(f"const hc_int64 {v} = f.lo[{axis}];")
            elif axis != march:
                at = f"{group} * hc_group_size({2 - axis}) + hc_thread({2 - axis})"
                out.add(f"const hc_int64 {v} = f.lo[{axis}] + {at};")
                inside.append(f"{v} < {self.end(axis)}")
            else:
                out.add(f"const hc_int64 {v}_begin = f.lo[{axis}] + {group} * f.march;")
                out.add(f"const hc_int64 {v}_end = hc_min_index({v}_begin + f.march, f.hi[{axis}]);")
        return " && ".join(inside)

    def _choose_reads(self, roots: list[Expr], written: set[str], room: int) -> None:
        """Which arrays have queues and planes: those that are read at several places of the march, or beside
        the thread; planes as far as there is room for their bytes."""
        march = march_axis(self.grid.ndim)
        threads = self.strategy.threads(self.grid.ndim)
        if march is None or threads is None or self.strategy.reads == "direct":
            return
        beside = [axis for axis in range(3 - self.grid.ndim, 3) if axis != march]
        reads: dict[str, list[tuple[int, ...]]] = {}
        for leaf in walk(roots):
            if leaf.op == "read" and self.sources[leaf.attribute[0]] not in written:
                name = self.sources[leaf.attribute[0]]
                reads.setdefault(name, []).append(padded(leaf.attribute[-1], self.grid.ndim))
        for name, offsets in reads.items():
            column = [o[march] for o in offsets if not any(o[axis] for axis in beside)]
            if len(column) > 1:
                self.columns[name] = min(column), max(column)
            plane = [o for o in offsets if not o[march]]
            if self.strategy.reads != "planes" or not any(any(o) for o in plane):
                continue
            ends = [(min(o[a] for o in plane), max(o[a] for o in plane)) for a in (1, 2)]
            rows, row = ((max(0, -first), max(0, last)) for first, last in ends)
            along, across, _ = threads
            found = _Plane((rows, row), (across, along))
            needed = found.rows * found.row * ITEMSIZE[self.dtypes[name]]
            if needed <= room:
                self.planes[name] = found
                room -= needed

    def _along(self, march: int | None, step: int) -> tuple[int, ...]:
        return tuple(step if axis == march else 0 for axis in range(3))

    def _begin_queues(self, march: int, inside: str) -> None:
        """Declare the queues of a thread, and fill all but their last places."""
        out, v = self.out, VARIABLES[march]
        for name, (first, last) in self.columns.items():
            ctype = C_TYPES[self.dtypes[name]]
            out.add(f"{ctype} {', '.join(f'{_queued(name, step)} = 0' for step in range(first, last + 1))};")
        if not self.columns:
            return
        out.open(f"if ({inside})")
        out.add(f"const hc_int64 {v} = {v}_begin;")
        for name, (first, last) in self.columns.items():
            self.point_at(name, written=False)
            for step in range(first, last):
                value = self.in_memory(name, self._along(march, step))
                out.add(f"{_queued(name, step)} = {value};")
        out.close()

    def _fill_planes(self) -> None:
        """All threads of the group fetch the cells around them; none is read before all are there."""
        out = self.out
        out.add("HC_BARRIER();")
        for name, plane in self.planes.items():
            (below, above), (before, behind) = plane.layers
            cells = plane.rows * plane.row
            out.open(f"for (int n = (int)hc_thread_number(); n < {cells}; n += (int)hc_group_threads())")
            at = []
            if plane.rows > 1 or below + above:
                first = f"f.lo[1] + hc_group(1) * {plane.group[0]} - {below}"
                out.add(f"const hc_int64 row = {first} + n / {plane.row};")
                at.append(f"row < f.hi[1] + {above}")
            else:
                out.add("const hc_int64 row = j;")
            first = f"f.lo[2] + hc_group(0) * {plane.group[1]} - {before}"
            out.add(f"const hc_int64 cell = {first} + n % {plane.row};")
            at.append(f"cell < end + {behind}")
            where = f"{name}_where.at + i * {name}_where.s0 + row * {name}_where.s1 + cell"
            out.add(f"if ({' && '.join(at)}) {name}_plane[n] = {name}_data[{where}];")
            out.close()
        out.add("HC_BARRIER();")

    def _point(self, nest: Nest, roots: list[Expr], arrays: Sequence[str]) -> None:
        """Declare the address of the present cell in each array."""
        written = {self.sinks[t.thing] for t in nest.targets if isinstance(t.thing, Field)}
        for name in arrays:
            self.point_at(name, name in written)
        stages = {leaf.attribute[0] for leaf in walk(roots) if leaf.op == "stage"}
        stages |= {t.thing for t in nest.targets if isinstance(t.thing, Stage)}
        for stage, name in self.stage_names.items():
            if stage in stages:
                at = f"i * {name}_s0 + j * {name}_s1 + k - {name}_origin"
                ctype = C_TYPES[kept_dtype(stage.definition, self.types)]
                self.out.add(f"HC_GLOBAL {ctype} *const {name}_here = {name}_base + ({at});")

    def point_at(self, name: str, written: bool) -> None:
        """Declare the address of the present cell in an array."""
        constant = "" if written else "const "
        at = f"{name}_where.at + i * {name}_where.s0 + j * {name}_where.s1 + k"
        ctype = C_TYPES[self.dtypes[name]]
        self.out.add(f"HC_GLOBAL {constant}{ctype} *const {name}_here = {name}_data + ({at});")

    def _store(self, target: Target, root: Expr, values: dict[int, str]) -> None:
        if isinstance(target.thing, Field):
            name = self.sinks[target.thing]
            dtype = self.dtypes[name]
        else:
            assert isinstance(target.thing, Stage)
            name = self.stage_names[target.thing]
            dtype = kept_dtype(target.thing.definition, self.types)
        self.out.add(f"{self.stored_in(name)} = {self.cast(root, dtype, values)};")

    def stored_in(self, name: str) -> str:
        """Where a result at the present cell goes."""
        return f"{name}_here[0]"

    def spelled_read(self, name: str, offset: tuple[int, ...]) -> str:
        march = march_axis(self.grid.ndim)
        if name in self.columns and offset == self._along(march, offset[march or 0]):
            return _queued(name, offset[march or 0])
        if name in self.planes and not offset[march or 0]:
            plane = self.planes[name]
            row = f"(int)hc_thread(1) + {plane.layers[0][0] + offset[1]}" if march == 0 else "0"
            return (
                f"{name}_plane[({row}) * {plane.row} + (int)hc_thread(0) + {plane.layers[1][0] + offset[2]}]"
            )
        return self.in_memory(name, offset)

    def in_memory(self, name: str, offset: tuple[int, ...]) -> str:
        """How an array is read at an offset from the present cell."""
        staged = name in self.stage_names.values()
        strides = [f"{name}_s{a}" if staged else f"{name}_where.s{a}" for a in (0, 1)]
        terms = [f"{o} * {s}" for o, s in zip(offset[:2], strides, strict=True) if o]
        if offset[2]:
            terms.append(str(offset[2]))
        return f"{name}_here[{' + '.join(terms) or '0'}]"


def _queued(name: str, step: int) -> str:
    """The register that holds what an array has so many steps along the march."""
    return f"{name}_queue_{suffix((step,))}"


def kind_of(target: Target) -> str:
    """The kind of a reduction, as the code names it."""
    assert isinstance(target.thing, Expr)
    return f"HC_{target.thing.attribute[0].upper()}"
