"""The C that CUDA and OpenCL share: kernels for devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatchmethod
from math import prod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.axes import padded, padded_extent
from halocline.compile.ir.kernel import Array, Kernel
from halocline.compile.printers.device_values import DeviceValues
from halocline.compile.printers.spelling import C_TYPES, VARIABLES, Names
from halocline.compile.printers.text import Text
from halocline.compile.strategy import LARGEST_GROUP, Strategy
from halocline.lang.dtype import ITEMSIZE


def print_device_kernel(
    kernel: Kernel, names: Names, strategy: Strategy, *, layouts: bool, group: tuple[int, int, int] | None
) -> str:
    """The text of a kernel. `layouts`: it finds in memory where the cells of its arrays are; `group`: it runs
    with these threads alone."""
    printer = _Printer(kernel=kernel, names=names)
    out, statements, wanted = printer.out, list(ir.flat(kernel.body)), ir.roots(kernel.body)
    staged = any(isinstance(s, ir.Allocate) for s in statements)
    reduces = any(isinstance(s, ir.Reduce) for s in statements)
    barriers = reduces or group is not None or any(isinstance(s, ir.First) for s in statements)
    arrays = {printer.name_of(array): array for array in kernel.arrays if array.kind == "field"}
    out.add(f"// {kernel.comment}")
    fixed = "" if group is None else f"_OF({', '.join(map(str, group))})"
    if not fixed and strategy.resident and strategy.group:
        along, across = strategy.group
        fixed = f"_RESIDENT({along * across}, {strategy.resident})"
    parameters = _arrays(kernel, arrays, layouts)
    parameters += ["HC_GLOBAL const double *scalars"]
    parameters += ["HC_GLOBAL char *scratch"] * staged
    parameters += ["HC_GLOBAL hc_partial *partials"] * reduces
    parameters += ["HC_GLOBAL const hc_control *control", "const hc_frame f"]
    out.open(f"HC_KERNEL{fixed} {kernel.name}({', '.join(parameters)})")
    if reduces:
        out.add(f"HC_SHARED hc_partial shared[HC_SCRATCH({LARGEST_GROUP})];")
    if barriers:
        # not by a return before barriers: of some kernels PoCL 3.1 would make one that always returns
        out.add("const hc_int64 end = control->skip != 0 ? f.lo[2] : f.hi[2];")
    else:
        out.add("if (control->skip != 0) return;")
        out.add("const hc_int64 end = f.hi[2];")
    for name, array in arrays.items() if layouts else ():
        out.add(f"const hc_layout {name}_where = layouts[{array.number}];")
    used = (kernel.values[n] for n in kernel.below(wanted))
    for scalar in sorted({value.attribute for value in used if value.op == "scalar"}):
        out.add(f"const double {names.scalars[scalar]} = scalars[{names.numbers[scalar]}];")
    if staged:
        out.add("HC_GLOBAL char *free_scratch = scratch;")
    printer.body(kernel.body)
    out.close()
    return str(out)


def _arrays(kernel: Kernel, arrays: dict[str, Array], layouts: bool) -> list[str]:
    """The parameters for fields, by their names in the code, and where their cells are if not in memory."""
    read = {name for name, _ in kernel.loads(ir.roots(kernel.body))}
    read |= {array.of for array in kernel.arrays if array.name in read}
    written = {s.array for s in ir.flat(kernel.body) if isinstance(s, ir.Store)}
    parameters = []
    for name, array in arrays.items():
        constant = "" if array.name in written else "const "
        alone = "" if array.name in read & written else " HC_RESTRICT"
        parameters += [f"HC_GLOBAL {constant}{C_TYPES[array.dtype]} *{alone} {name}_data"]
        parameters += [f"const hc_layout {name}_where"] * (not layouts)
    return parameters + ["HC_GLOBAL const hc_layout *layouts"] * layouts


@dataclass(kw_only=True)
class _Printer(DeviceValues):
    """Writes the statements."""

    def body(self, body: ir.Body) -> None:
        with self.scope():
            for statement in body:
                self.write(statement)

    @singledispatchmethod
    def write(self, statement: ir.Statement) -> None:
        """Write a statement."""
        raise NotImplementedError(f"no C of devices for {type(statement).__name__}")

    write.register(ir.Let, lambda self, statement: self.let(statement))

    @write.register
    def _(self, statement: ir.Slot) -> None:
        out, size = self.out, self.points(padded(statement.extra, self.kernel.ndim))
        row = f"hc_padded_row({size[2]}, {statement.item})"
        out.add(f"HC_GLOBAL char *const slot{statement.number} = free_scratch;")
        out.add(f"free_scratch += {statement.item} * {row} * {size[1]} * {size[0]};")

    @write.register
    def _(self, statement: ir.Allocate) -> None:
        out, array, ndim = self.out, self.kernel.array[statement.array], self.kernel.ndim
        name, ctype, item = self.name_stage(array.name), C_TYPES[array.dtype], ITEMSIZE[array.dtype]
        extent, top = padded_extent(statement.extent, ndim), padded(statement.top, ndim)
        size = self.points(tuple(lo + hi + t for (lo, hi), t in zip(extent, top, strict=True)))
        out.add(f"const hc_int64 {name}_s1 = hc_padded_row({size[2]}, {item});")
        out.add(f"const hc_int64 {name}_s0 = {name}_s1 * {size[1]};")
        first = [f"(f.box_lo[{a}] - {lo})" for a, (lo, _) in enumerate(extent)]
        origin = f"{first[0]} * {name}_s0 + {first[1]} * {name}_s1 + {first[2]}"
        out.add(f"HC_GLOBAL {ctype} *const {name}_base = (HC_GLOBAL {ctype} *)slot{statement.slot};")
        out.add(f"const hc_int64 {name}_origin = {origin};")

    @write.register
    def _(self, statement: ir.Nest) -> None:
        self.used = set()
        self.nest, self.extent = statement, padded_extent(statement.extent, self.kernel.ndim)
        if any(isinstance(s, ir.Cells) for s in statement.body):
            self.out.open("")
            self.body(statement.body)
            self.out.close()
        else:
            self.body(statement.body)

    # --- threads that march ---

    @write.register
    def _(self, statement: ir.Threads) -> None:
        out, ndim = self.out, self.kernel.ndim
        self.march = statement.march
        inside = []
        for axis in (2, 1, 0):
            v, group = VARIABLES[axis], f"hc_group({2 - axis})"
            if axis < 3 - ndim:
                out.add(f"const hc_int64 {v} = f.lo[{axis}];")
            elif axis != self.march:
                at = f"{group} * hc_group_size({2 - axis}) + hc_thread({2 - axis})"
                out.add(f"const hc_int64 {v} = f.lo[{axis}] + {at};")
                inside.append(f"{v} < {self.end(axis)}")
            else:
                out.add(f"const hc_int64 {v}_begin = f.lo[{axis}] + {group} * f.march;")
                out.add(f"const hc_int64 {v}_end = hc_min_index({v}_begin + f.march, f.hi[{axis}]);")
        self.inside = " && ".join(inside)

    @write.register
    def _(self, statement: ir.Inside) -> None:
        self.out.open(f"if ({self.inside})")
        self.body(statement.body)
        self.out.close()

    @write.register
    def _(self, statement: ir.March) -> None:
        v = VARIABLES[statement.axis]
        if statement.unroll > 1:
            self.out.add(f"HC_UNROLL({statement.unroll})")
        self.out.open(f"for (hc_int64 {v} = {v}_begin; {v} < {v}_end; ++{v})")
        self.body(statement.body)
        self.out.close()

    @write.register
    def _(self, statement: ir.Point) -> None:
        array = self.kernel.array[statement.array]
        if array.kind == "tile" and array.name not in self.stages:
            self.name_stage(array.name)
        name, ctype = self.name_of(array), C_TYPES[array.dtype]
        if array.kind == "tile":
            (_, d1, d2), layers = array.shape, array.layers
            at = [f"((int)({v} - tile_lo{a}) + {layers[a][0]})" for a, v in enumerate(VARIABLES)]
            self.out.add(f"const int {name}_at = ({at[0]} * {d1} + {at[1]}) * {d2} + {at[2]};")
        elif array.kind == "scratch":
            at_ = f"i * {name}_s0 + j * {name}_s1 + k - {name}_origin"
            self.out.add(f"HC_GLOBAL {ctype} *const {name}_here = {name}_base + ({at_});")
        else:
            constant = "" if statement.sink else "const "
            at_ = f"{name}_where.at + i * {name}_where.s0 + j * {name}_where.s1 + k"
            self.out.add(f"HC_GLOBAL {constant}{ctype} *const {name}_here = {name}_data + ({at_});")

    @write.register
    def _(self, statement: ir.Queue) -> None:
        array = self.kernel.array[statement.array]
        ((first, last),) = array.layers
        places = ", ".join(f"{self.queued(array, step)} = 0" for step in range(first, last + 1))
        self.out.add(f"{C_TYPES[array.dtype]} {places};")

    @write.register
    def _(self, statement: ir.Enter) -> None:
        assert self.march is not None
        v = VARIABLES[self.march]
        self.out.open(f"if ({self.inside})")
        self.out.add(f"const hc_int64 {v} = {v}_begin;")
        for name in statement.queues:
            array = self.kernel.array[name]
            self.write(ir.Point(array.of))
            ((first, last),) = array.layers
            for step in range(first, last):
                value = self.in_memory(array, self.along(step))
                self.out.add(f"{self.queued(array, step)} = {value};")
        self.out.close()

    @write.register
    def _(self, statement: ir.Advance) -> None:
        array = self.kernel.array[statement.array]
        last = array.layers[0][1]
        self.out.add(f"{self.queued(array, last)} = {self.in_memory(array, self.along(last))};")

    @write.register
    def _(self, statement: ir.Step) -> None:
        array = self.kernel.array[statement.array]
        for step in range(*array.layers[0]):
            self.out.add(f"{self.queued(array, step)} = {self.queued(array, step + 1)};")

    # --- memory that a group shares ---

    @write.register
    def _(self, statement: ir.Share) -> None:
        array = self.kernel.array[statement.array]
        behind = {"shared": "_tile", "plane": "_plane"}.get(array.kind, "")
        room = f"{self.name_of(array)}{behind}[{prod(array.shape)}]"
        self.out.add(f"HC_SHARED {C_TYPES[array.dtype]} {room};")

    @write.register
    def _(self, statement: ir.First) -> None:
        array = self.kernel.array[statement.array]
        self.out.open("if (hc_thread_number() == 0)")
        with self.scope():
            for each in statement.body:
                self.write(each)
            for place, number in enumerate(statement.values):
                self.out.add(f"{self.name_of(array)}[{place}] = {self.cast(number, array.dtype)};")
        self.out.close()
        self.write(ir.Barrier())

    @write.register
    def _(self, statement: ir.Barrier) -> None:
        self.out.add("HC_BARRIER();")

    @write.register
    def _(self, statement: ir.Gather) -> None:
        self.out.add("HC_BARRIER();")
        for plane in statement.planes:
            array = self.kernel.array[plane]
            _gather(self.out, self.name_of(array), array)
        self.out.add("HC_BARRIER();")

    @write.register
    def _(self, statement: ir.Tile) -> None:
        for axis, cells in enumerate(statement.cells):
            lo, hi = f"tile_lo{axis}", f"tile_hi{axis}"
            self.out.add(f"const hc_int64 {lo} = f.lo[{axis}] + hc_group({2 - axis}) * {cells};")
            self.out.add(f"const hc_int64 {hi} = hc_min_index({lo} + {cells}, {self.end(axis)});")

    @write.register
    def _(self, statement: ir.Cells) -> None:
        out, top = self.out, padded(self.nest.top, self.kernel.ndim)
        for axis, (lower, upper) in enumerate(self.extent):
            out.add(f"const hc_int64 lo{axis} = tile_lo{axis} - {lower};")
            more = f" + (tile_hi{axis} == f.hi[{axis}] ? f.box_top[{axis}] : 0)" if top[axis] else ""
            out.add(f"const int n{axis} = (int)(tile_hi{axis} + {upper}{more} - lo{axis});")
        out.open("for (int n = (int)hc_thread_number(); n < n0 * n1 * n2; n += (int)hc_group_threads())")
        out.add("const hc_int64 i = lo0 + n / (n1 * n2), j = lo1 + n / n2 % n1, k = lo2 + n % n2;")
        self.body(statement.body)
        out.close()

    @write.register
    def _(self, statement: ir.Branch) -> None:
        values = [self.kernel.values[number] for number in statement.values]
        variables = [self.temporary() for _ in values]
        for value, variable in zip(values, variables, strict=True):
            self.out.add(f"{C_TYPES[value.dtype]} {variable};")
        for side, line, body in (
            (1, f"if ({self.spelled[statement.condition]})", statement.then),
            (2, "else", statement.otherwise),
        ):
            self.out.open(line)
            with self.scope():
                for each in body:
                    self.write(each)
                for value, variable in zip(values, variables, strict=True):
                    self.out.add(f"{variable} = {self.cast(value.args[side], value.dtype)};")
            self.out.close()
        self.spelled |= dict(zip(statement.values, variables, strict=True))

    # --- results ---

    @write.register
    def _(self, statement: ir.Reset) -> None:
        self.out.add(f"hc_partial partial{statement.number};")
        self.out.add(f"hc_partial_reset(&partial{statement.number}, HC_{statement.kind.upper()});")

    @write.register
    def _(self, statement: ir.Reduce) -> None:
        value = self.cast(statement.value, "float64")
        counted = " != 0.0" if statement.kind == "count" else ""
        self.out.add(f"hc_{statement.kind}_put(&partial{self.partial}, {value}{counted});")
        self.partial += 1

    @write.register
    def _(self, statement: ir.Store) -> None:
        array = self.kernel.array[statement.array]
        name = self.name_of(array)
        place = f"{self.tile_of(array)}[{name}_at]" if array.kind == "tile" else f"{name}_here[0]"
        self.out.add(f"{place} = {self.cast(statement.value, array.dtype)};")

    @write.register
    def _(self, statement: ir.Finish) -> None:
        _finish(self.out, statement.kinds)


def _gather(out: Text, name: str, array: Array) -> None:
    """A group reads a plane of a field around its threads."""
    (rows, row), ((below, above), (before, behind)) = array.shape, array.layers
    group = rows - below - above, row - before - behind
    out.open(f"for (int n = (int)hc_thread_number(); n < {rows * row}; n += (int)hc_group_threads())")
    at = []
    if rows > 1 or below + above:
        first = f"f.lo[1] + hc_group(1) * {group[0]} - {below}"
        out.add(f"const hc_int64 row = {first} + n / {row};")
        at.append(f"row < f.hi[1] + {above}")
    else:
        out.add("const hc_int64 row = j;")
    first = f"f.lo[2] + hc_group(0) * {group[1]} - {before}"
    out.add(f"const hc_int64 cell = {first} + n % {row};")
    at.append(f"cell < end + {behind}")
    where = f"{name}_where.at + i * {name}_where.s0 + row * {name}_where.s1 + cell"
    out.add(f"if ({' && '.join(at)}) {name}_plane[n] = {name}_data[{where}];")
    out.close()


def _finish(out: Text, kinds: Sequence[str]) -> None:
    """A group leaves its parts of reductions."""
    count = len(kinds)
    # in one loop, not one after the other: PoCL compiles kernels of many in a third of the time
    out.add(f"hc_partial partial[{count}] = {{{', '.join(f'partial{n}' for n in range(count))}}};")
    out.add(f"const int kinds[{count}] = {{{', '.join(f'HC_{k.upper()}' for k in kinds)}}};")
    out.add(f"HC_UNROLL({count})")
    out.open(f"for (int n = 0; n < {count}; ++n)")
    out.add("hc_group_reduce(kinds[n], &partial[n], shared, hc_thread_number(), hc_group_threads());")
    slot = "f.group0 + n * f.stride + hc_group_number()"
    out.add(f"if (hc_thread_number() == 0) partials[{slot}] = partial[n];")
    out.close()
