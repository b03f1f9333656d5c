"""C++ for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import singledispatchmethod

from halocline.compile.ir import statements as ir
from halocline.compile.ir.axes import padded, padded_extent
from halocline.compile.ir.kernel import Kernel
from halocline.compile.printers.cpp_values import CppValues
from halocline.compile.printers.spelling import C_TYPES, VARIABLES, Names, cpu_dialect
from halocline.compile.printers.text import suffix
from halocline.compile.schedule import AROUND

EXTERN = 'extern "C" void'
PRIVATE = "static void"
PARTS = ("high", "middle", "low", "outside")  # of an order-independent sum: hc_sum_split


def print_kernel(kernel: Kernel, names: Names, linkage: str = EXTERN) -> str:
    """The C++ function of a kernel."""
    return _Printer(kernel=kernel, names=names, dialect=cpu_dialect((kernel,))).function(linkage)


def print_calls(kernel: Kernel, parts: list[Kernel], names: Names) -> str:
    """The C++ function of a kernel that is several, with these."""
    printed = [print_kernel(part, names, "__attribute__((noinline)) static void") for part in parts]
    out = _Printer(kernel=kernel, names=names).out
    out.add(f"// {kernel.comment}")
    out.open(f"{EXTERN} {kernel.name}(const hc_arguments *a, const hc_box *box)")
    for part in parts:
        out.add(f"{part.name}(a, box);")
    out.close()
    return "\n".join([*printed, str(out)])


@dataclass(kw_only=True)
class _Printer(CppValues):
    """Writes the statements."""

    rings: dict[str, int] = field(default_factory=dict)  # how many planes of a stage there are
    by_plane: bool = False

    @property
    def outermost(self) -> int:
        """The first axis of the grid, of three."""
        return 3 - self.kernel.ndim

    def function(self, linkage: str) -> str:
        kernel, out = self.kernel, self.out
        out.add(f"// {kernel.comment}")
        out.open(f"{linkage} {kernel.name}(const hc_arguments *a, const hc_box *box)")
        for array in kernel.arrays:
            if array.kind == "field":
                name, number = self.name_of(array), array.number
                ctype = ("" if array.written else "const ") + C_TYPES[array.dtype]
                out.add(f"{ctype} *const {name} = ({ctype} *)a->fields[{number}];")
                strides = f"{name}_s0 = a->strides[{2 * number}], {name}_s1 = a->strides[{2 * number + 1}]"
                out.add(f"const int64_t {strides};")
        used = [kernel.values[n] for n in kernel.below(ir.roots(kernel.body))]
        for own in sorted({value.attribute[0] for value in used if value.op == "index"}):
            axis = own + 3 - kernel.ndim
            out.add(f"const int64_t origin{axis} = a->origin[{axis}], shape{axis} = a->shape[{axis}];")
        for scalar in sorted({value.attribute for value in used if value.op == "scalar"}):
            out.add(f"const double {self.names.scalars[scalar]} = a->scalars[{self.names.numbers[scalar]}];")
        if kernel.wraps:
            out.add(f"const int64_t around = (int64_t)a->scalars[{self.names.numbers[AROUND]}];")
        if any(isinstance(statement, ir.Slot) for statement in kernel.body):
            out.add("char *free_scratch = (char *)a->scratch;")
        self.body(kernel.body)
        out.close()
        return str(out)

    @singledispatchmethod
    def write(self, statement: ir.Statement) -> None:
        """Write a statement."""
        raise NotImplementedError(f"no C++ for {type(statement).__name__}")

    write.register(ir.Let, lambda self, statement: self.let(statement))
    write.register(ir.Lanes, lambda self, statement: self.lanes(statement))

    # --- nests and loops ---

    @write.register
    def _(self, statement: ir.Slot) -> None:
        out, size = self.out, self.points(padded(statement.extra, self.kernel.ndim), statement.planes)
        row = f"hc_padded_row({size[2]}, {statement.item})"
        out.add(f"char *const slot{statement.number} = free_scratch;")
        out.add(f"free_scratch += {statement.item} * {row} * ({size[1]}) * ({size[0]});")

    @write.register
    def _(self, statement: ir.Allocate) -> None:
        out, array, ndim = self.out, self.kernel.array[statement.array], self.kernel.ndim
        name, ctype = self.name_stage(array.name), C_TYPES[array.dtype]
        extent, top = padded_extent(statement.extent, ndim), padded(statement.top, ndim)
        extra = tuple(lo + hi + t for (lo, hi), t in zip(extent, top, strict=True))
        size = self.points(extra, statement.planes)
        out.add(f"const int64_t {name}_s1 = hc_padded_row({size[2]}, sizeof({ctype}));")
        out.add(f"const int64_t {name}_s0 = {name}_s1 * ({size[1]});")
        out.add(f"{ctype} *const {name}_base = ({ctype} *)slot{statement.slot};")
        first = [f"(box->lo[{a}] - {lo})" for a, (lo, _) in enumerate(extent)]
        if statement.planes:
            self.rings[array.name] = statement.planes
            first[self.outermost] = "0"  # a plane of a ring is found by the lowest bits of its index
        out.add(
            f"const int64_t {name}_origin = {first[0]} * {name}_s0 + {first[1]} * {name}_s1 + {first[2]};"
        )

    @write.register
    def _(self, statement: ir.Planes) -> None:
        lo, hi = (
            f"box->lo[{self.outermost}] - {statement.before}",
            f"box->hi[{self.outermost}] + {statement.after}",
        )
        if statement.top:
            hi += f" + box->top[{self.outermost}]"
        self.by_plane = True
        self.block(f"for (int64_t plane = {lo}; plane < {hi}; ++plane)", statement.body)

    @write.register
    def _(self, statement: ir.Nest) -> None:
        self.used, self.rows, self.nest = set(), {}, statement
        self.extent = padded_extent(statement.extent, self.kernel.ndim)
        lo, hi = self.bounds = self.edges(2)
        if statement.whole:
            self.bounds = lo, f"{lo} + {self.whole(lo, hi)}"
        self.block("", statement.body)

    @write.register
    def _(self, statement: ir.Loop) -> None:
        v, (lo, hi) = VARIABLES[statement.axis], self.edges(statement.axis)
        if self.by_plane and statement.axis == self.outermost:
            here = f"plane + {self.nest.ahead}"
            lo, hi = f"hc_max_index({lo}, {here})", f"hc_min_index({hi}, {here} + 1)"
        self.block(f"for (int64_t {v} = {lo}; {v} < {hi}; ++{v})", statement.body)

    @write.register
    def _(self, statement: ir.Row) -> None:
        array = self.kernel.array[statement.array]
        name, ctype = self.name_of(array), C_TYPES[array.dtype]
        terms = []
        for axis, o in enumerate(statement.offset):
            v = VARIABLES[axis]
            index = v if o == 0 else f"({v} {'+' if o > 0 else '-'} {abs(o)})"
            if axis == self.outermost and array.name in self.rings:
                index = f"({index} & {self.rings[array.name] - 1})"
            terms.append(f"{index} * {name}_s{axis}")
        base = f"{name}_base - {name}_origin" if array.kind == "scratch" else name
        place = f"{base} + {' + '.join(terms)}"
        if statement.sink:
            self.out.add(f"{ctype} *const {name}_to = {place};")
        else:
            row = self.rows[array.name, statement.offset] = f"{name}_at_{suffix(statement.offset)}"
            self.out.add(f"const {ctype} *const {row} = {place};")

    @write.register
    def _(self, statement: ir.Wrap) -> None:
        row = self.rows[statement.array, (0, 0)]
        self.out.add(f"if (around) hc_wrap_row({row}, {statement.lower}, {statement.upper}, around, box);")

    @write.register
    def _(self, statement: ir.Buffer) -> None:
        array = self.kernel.array[statement.array]
        self.out.add(f"alignas(64) {C_TYPES[array.dtype]} {self.name_of(array)}[{array.length}];")

    # --- stretches of a row ---

    @write.register
    def _(self, statement: ir.Pieces) -> None:
        lo, hi = self.bounds
        self.out.open(f"for (int64_t k0 = {lo}, end = {hi}; k0 < end; k0 += {statement.length})")
        self.out.add(f"const int64_t k1 = hc_min_index(k0 + {statement.length}, end);")
        self.body(statement.body)
        self.out.close()

    @write.register
    def _(self, statement: ir.Bands) -> None:
        outside, length = self.bounds, statement.length
        self.out.open(f"for (int64_t b0 = {outside[0]}, band_end = {outside[1]}, b1; b0 < band_end; b0 = b1)")
        self.out.add(f"b1 = hc_min_index((b0 & -{length}) + {length}, band_end);")
        self.bounds = "b0", "b1"
        with self.scope():
            self.body((*statement.fill, *statement.body))
        self.bounds = outside
        self.out.close()

    @write.register
    def _(self, statement: ir.Blocks) -> None:
        lo, hi = self.bounds
        self.out.open(f"for (int64_t c0 = {lo}, row_end = {hi}, c1; c0 < row_end; c0 = c1)")
        self.out.add(f"c1 = hc_min_index((c0 & -{statement.length}) + {statement.length}, row_end);")
        self.body(statement.body)
        self.out.close()

    @write.register
    def _(self, statement: ir.Lines) -> None:
        out, (lo, hi), length = self.out, self.span(statement.span), statement.length
        self.length = length
        out.open(f"for (int64_t k0 = {lo}, end = {hi}, k1; k0 < end; k0 = k1)")
        out.add(f"k1 = (k0 & -{length}) + {length};")
        self.block(f"if (k1 - k0 == {length} && k1 <= end)", statement.whole)
        out.open("else")
        out.add("k1 = hc_min_index(k1, end);")
        with self.scope():
            self.body(statement.rest)
        out.close()
        out.close()

    @write.register
    def _(self, statement: ir.Strip) -> None:
        clause = ""
        if statement.sums:
            added = ", ".join(f"{part}{n}" for n in statement.sums for part in PARTS[:3])
            joined = ", ".join(f"{PARTS[3]}{n}" for n in statement.sums)
            clause = f" reduction(+ : {added}) reduction(| : {joined})"
        for n in statement.marks:
            clause += f" reduction(| : some{n}, rest{n})"
            self.out.add(f"int some{n} = 0, rest{n} = 0;")
        self.near = statement.near
        self.vector_loop(statement.span, clause, statement.body)

    def vector_loop(self, span: str, clause: str, body: ir.Body | Callable[[], None]) -> None:
        lo, hi = self.span(span)
        self.out.add(f"#pragma omp simd{clause}")
        if self.nest.whole:
            # counted from zero, so that the compiler sees that vectors leave no rest
            count = self.whole(*(self.edges(2) if span == "row" else (lo, hi)))
            self.block(f"for (int64_t n = 0; n < {count}; ++n)", body, f"const int64_t k = {lo} + n;")
        else:
            self.block(f"for (int64_t k = {lo}; k < {hi}; ++k)", body)

    @write.register
    def _(self, statement: ir.Far) -> None:
        self.near = False
        self.out.add("int far = 0;")

        def look() -> None:
            self.body(statement.body)
            for number in statement.angles:
                f = "f" if self.kernel.values[number].dtype == "float32" else ""
                self.out.add(f"far |= hc_far{f}({self.spelled[number]});")

        self.vector_loop(statement.span, " reduction(| : far)", look)

    @write.register
    def _(self, statement: ir.Either) -> None:
        self.block("if (!far)", statement.near)
        self.block("else", statement.far)

    @write.register
    def _(self, statement: ir.Mark) -> None:
        n, holds = statement.number, self.spelled[statement.condition]
        self.out.add(f"some{n} |= {holds};")
        self.out.add(f"rest{n} |= !{holds};")

    @write.register
    def _(self, statement: ir.Needed) -> None:
        self.block(f"if ({'some' if statement.holds else 'rest'}{statement.number})", statement.body)

    @write.register
    def _(self, statement: ir.Store) -> None:
        array = self.kernel.array[statement.array]
        if self.vector:
            self.out.add(f"hc_lanes_store(&{self.element(array)}, {self.spelled[statement.value]});")
        else:
            self.out.add(f"{self.element(array)} = {self.cast(statement.value, array.dtype)};")

    @write.register
    def _(self, statement: ir.Fetch) -> None:
        first, last = statement.first, statement.first + statement.length
        self.out.open(f"for (int64_t k = k0 + {first}; k < k0 + {last}; k += {statement.step})")
        for row in statement.rows:
            written = ", 1" if row.sink else ""
            self.out.add(f"__builtin_prefetch({self.rows[row.array, row.offset]} + k{written});")
        self.out.close()

    @write.register
    def _(self, statement: ir.Stream) -> None:
        to, piece = (self.name_of(self.kernel.array[name]) for name in (statement.array, statement.piece))
        if statement.line:
            self.out.add(f"hc_stream_lines((char *)({to}_to + k0), (char *){piece}, sizeof {piece});")
        else:
            self.out.add(f"hc_stream_row({to}_to + k0, {piece}, k1 - k0);")

    @write.register
    def _(self, statement: ir.Fence) -> None:
        self.out.add("hc_stream_fence();")

    # --- reductions ---

    @write.register
    def _(self, statement: ir.OpenSum) -> None:
        n = statement.number
        self.out.add(f"const hc_splitter split{n} = hc_sum_open(&a->reductions[{statement.slot}]);")
        self.out.add(f"uint64_t {', '.join(f'{part}{n} = 0' for part in PARTS)};")

    @write.register
    def _(self, statement: ir.LaneSums) -> None:
        for n in statement.numbers:
            lanes = ", ".join(f"{part}{n}_lanes[{statement.length}] = {{}}" for part in PARTS)
            self.out.add(f"alignas(64) uint64_t {lanes};")

    @write.register
    def _(self, statement: ir.AddUp) -> None:
        n, lanes = statement.number, "_lanes[k - k0]" if statement.lanes else ""
        parts = ", ".join(f"{part}{n}{lanes}" for part in PARTS)
        self.out.add(f"hc_sum_split(split{n}, {self.element(self.kernel.array[statement.array])}, {parts});")

    @write.register
    def _(self, statement: ir.TotalLanes) -> None:
        for part in PARTS:
            sign, total = ("|", "any") if part == "outside" else ("+", "sum")
            name = f"{part}{statement.number}"
            self.out.add(f"{name} {sign}= hc_{total}_lanes({name}_lanes);")

    @write.register
    def _(self, statement: ir.CloseSum) -> None:
        n, array = statement.number, self.kernel.array[statement.array]
        parts, (lo, hi) = ", ".join(f"{part}{n}" for part in PARTS), self.span(array.span)
        where = f"&a->reductions[{statement.slot}], split{n}"
        self.out.add(f"hc_sum_close({where}, {parts}, {self.name_of(array)}, {hi} - {lo});")

    @write.register
    def _(self, statement: ir.Deposit) -> None:
        array = self.kernel.array[statement.array]
        where, (lo, hi) = f"&a->reductions[{statement.slot}]", self.span(array.span)
        self.out.add(f"hc_{statement.kind}_deposit({where}, {self.name_of(array)}, {hi} - {lo});")
