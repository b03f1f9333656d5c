"""Printer of C++ kernels for the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel, Value, padded, padded_extent
from halocline.compile.printers.spelling import (
    C_TYPES,
    VARIABLES,
    KernelPrinter,
    Names,
    cpu_dialect,
    operation,
    suffix,
)
from halocline.compile.schedule import AROUND
from halocline.lang.dtype import ITEMSIZE

EXTERN = 'extern "C" void'
PRIVATE = "static void"
PARTS = ("high", "middle", "low", "outside")  # parts of an order-independent sum, see hc_sum_split


def print_kernel(kernel: Kernel, names: Names, linkage: str = EXTERN) -> str:
    """Return the C++ function of a kernel."""
    return _Printer(kernel=kernel, names=names, dialect=cpu_dialect((kernel,))).function(linkage)


def print_calls(kernel: Kernel, parts: list[Kernel], names: Names) -> str:
    """Return the C++ functions of the parts of a kernel, and the function that calls them."""
    printed = [print_kernel(part, names, "__attribute__((noinline)) static void") for part in parts]
    out = _Printer(kernel=kernel, names=names).out
    out.add(f"// {kernel.comment}")
    with out.block(f"{EXTERN} {kernel.name}(const hc_arguments *a, const hc_box *box)"):
        for part in parts:
            out.add(f"{part.name}(a, box);")
    return "\n".join([*printed, str(out)])


@dataclass(kw_only=True)
class _Printer(KernelPrinter):
    """Printer of the statements and values of a kernel, as scalar code or with explicit vectors."""

    rows: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)  # rows of the current nest
    bounds: tuple[str, str] = ("", "")  # bounds of the current row
    length: int = 0  # length of the current line
    # type of vectors, and, for each column, the names of its previous, current and next vector
    vector: str = ""
    in_next_vector: bool = False
    places: list[tuple[str, str, str]] = field(default_factory=list)
    by_plane: bool = False

    @property
    def outermost(self) -> int:
        """Index of the first axis of the grid among the three axes of generated code."""
        return 3 - self.kernel.ndim

    def function(self, linkage: str) -> str:
        kernel, out = self.kernel, self.out
        out.add(f"// {kernel.comment}")
        with out.block(f"{linkage} {kernel.name}(const hc_arguments *a, const hc_box *box)"):
            for array in kernel.arrays:
                if array.kind == "field":
                    name, number = self.name_of(array), array.number
                    ctype = ("" if array.written else "const ") + C_TYPES[array.dtype]
                    out.add(f"{ctype} *const {name} = ({ctype} *)a->fields[{number}];")
                    strides = (
                        f"{name}_s0 = a->strides[{2 * number}], {name}_s1 = a->strides[{2 * number + 1}]"
                    )
                    out.add(f"const int64_t {strides};")
            for grid_axis in sorted({axis for axis, _ in kernel.attributes("index")}):
                axis = grid_axis + 3 - kernel.ndim
                out.add(f"const int64_t origin{axis} = a->origin[{axis}], shape{axis} = a->shape[{axis}];")
            for scalar in sorted({*kernel.attributes("scalar")}):
                out.add(
                    f"const double {self.names.scalars[scalar]} = a->scalars[{self.names.numbers[scalar]}];"
                )
            if kernel.wraps:
                out.add(f"const int64_t around = (int64_t)a->scalars[{self.names.numbers[AROUND]}];")
            if any(isinstance(statement, ir.Slot) for statement in kernel.body):
                out.add("char *free_scratch = (char *)a->scratch;")
            self.body(kernel.body)
        return str(out)

    # --- nests and loops ---

    def print_planes(self, statement: ir.Planes) -> None:
        lo, hi = (
            f"box->lo[{self.outermost}] - {statement.before}",
            f"box->hi[{self.outermost}] + {statement.after}",
        )
        if statement.top:
            hi += f" + box->top[{self.outermost}]"
        self.by_plane = True
        self.block(f"for (int64_t plane = {lo}; plane < {hi}; ++plane)", statement.body)

    def print_nest(self, statement: ir.Nest) -> None:
        self.names_in_use, self.rows, self.nest = set(), {}, statement
        self.extent = padded_extent(statement.extent, self.kernel.ndim)
        lo, hi = self.bounds = self.edges(2)
        if statement.whole_vectors:
            self.bounds = lo, f"{lo} + {self.vector_elements(lo, hi)}"
        self.block("", statement.body)

    def print_slot(self, statement: ir.Slot) -> None:
        self.out.add(f"char *const slot{statement.number} = free_scratch;")
        self.out.add(f"free_scratch += {self.slot_bytes(statement)};")

    def print_allocate(self, statement: ir.Allocate) -> None:
        self.name_stage(statement.array)
        self.declare_scratch(statement, f"slot{statement.slot}")

    def print_axis(self, statement: ir.Axis) -> None:
        (axis,) = statement.axes
        v, (lo, hi) = VARIABLES[axis], self.edges(axis)
        if self.by_plane and axis == self.outermost:
            current_plane = f"plane + {self.nest.planes_ahead}"
            lo, hi = f"hc_max_index({lo}, {current_plane})", f"hc_min_index({hi}, {current_plane} + 1)"
        self.block(f"for (int64_t {v} = {lo}; {v} < {hi}; ++{v})", statement.body)

    def print_row(self, statement: ir.Row) -> None:
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

    def print_wrap(self, statement: ir.Wrap) -> None:
        row = self.rows[statement.array, (0, 0)]
        self.out.add(f"if (around) hc_wrap_row({row}, {statement.lower}, {statement.upper}, around, box);")

    def print_buffer(self, statement: ir.Buffer) -> None:
        array = self.kernel.array[statement.array]
        self.out.add(f"alignas(64) {C_TYPES[array.dtype]} {self.name_of(array)}[{array.length}];")

    # --- stretches of a row ---

    def print_pieces(self, statement: ir.Pieces) -> None:
        (lo, hi), length = self.bounds, statement.length
        loop = f"for (int64_t k0 = {lo}, end = {hi}; k0 < end; k0 += {length})"
        self.block(loop, statement.body, f"const int64_t k1 = hc_min_index(k0 + {length}, end);")

    def print_bands(self, statement: ir.Bands) -> None:
        (lo, hi), length = self.bounds, statement.length
        loop = f"for (int64_t b0 = {lo}, band_end = {hi}, b1; b0 < band_end; b0 = b1)"
        self.bounds = "b0", "b1"
        end = f"b1 = hc_min_index((b0 & -{length}) + {length}, band_end);"
        self.block(loop, (*statement.fill, *statement.body), end)
        self.bounds = lo, hi

    def print_row_blocks(self, statement: ir.RowBlocks) -> None:
        (lo, hi), length = self.bounds, statement.length
        loop = f"for (int64_t c0 = {lo}, row_end = {hi}, c1; c0 < row_end; c0 = c1)"
        self.block(loop, statement.body, f"c1 = hc_min_index((c0 & -{length}) + {length}, row_end);")

    def print_lines(self, statement: ir.Lines) -> None:
        out, (lo, hi), length = self.out, self.span(statement.span), statement.length
        self.length = length
        with out.block(f"for (int64_t k0 = {lo}, end = {hi}, k1; k0 < end; k0 = k1)"):
            out.add(f"k1 = (k0 & -{length}) + {length};")
            self.block(f"if (k1 - k0 == {length} && k1 <= end)", statement.complete)
            self.block("else", statement.partial, "k1 = hc_min_index(k1, end);")

    def print_strip(self, statement: ir.Strip) -> None:
        clause = ""
        if statement.sums:
            added = ", ".join(f"{part}{n}" for n in statement.sums for part in PARTS[:3])
            joined = ", ".join(f"{PARTS[3]}{n}" for n in statement.sums)
            clause = f" reduction(+ : {added}) reduction(| : {joined})"
        for n in statement.marks:
            clause += f" reduction(| : any_true{n}, any_false{n})"
            self.out.add(f"int any_true{n} = 0, any_false{n} = 0;")
        self.small_angles = statement.small_angles
        self.vector_loop(statement.span, clause, statement.body)

    def vector_loop(self, span: str, clause: str, body: ir.Body | Callable[[], None]) -> None:
        lo, hi = self.span(span)
        self.out.add(f"#pragma omp simd{clause}")
        if self.nest.whole_vectors:
            # the loop begins at zero, so that the compiler detects that the count is a multiple of the vector
            # length
            count = self.vector_elements(*(self.edges(2) if span == "row" else (lo, hi)))
            self.block(f"for (int64_t n = 0; n < {count}; ++n)", body, f"const int64_t k = {lo} + n;")
        else:
            self.block(f"for (int64_t k = {lo}; k < {hi}; ++k)", body)

    def print_check_angles(self, statement: ir.CheckAngles) -> None:
        self.small_angles = False
        self.out.add("int large_angle = 0;")

        def test_angles() -> None:
            self.body(statement.body)
            for number in statement.angles:
                f = "f" if self.kernel.values[number].dtype == "float32" else ""
                self.out.add(f"large_angle |= hc_is_large_angle{f}({self.value_texts[number]});")

        self.vector_loop(statement.span, " reduction(| : large_angle)", test_angles)

    def print_select_by_angles(self, statement: ir.SelectByAngles) -> None:
        self.block("if (!large_angle)", statement.small_angles)
        self.block("else", statement.all_angles)

    def print_mark_selection(self, statement: ir.MarkSelection) -> None:
        n, holds = statement.number, self.value_texts[statement.condition]
        self.out.add(f"any_true{n} |= {holds};")
        self.out.add(f"any_false{n} |= !{holds};")

    def print_if_selected(self, statement: ir.IfSelected) -> None:
        self.block(f"if ({'any_true' if statement.holds else 'any_false'}{statement.number})", statement.body)

    def print_store(self, statement: ir.Store) -> None:
        array = self.kernel.array[statement.array]
        if self.vector:
            self.out.add(f"hc_lanes_store(&{self.element(array)}, {self.value_texts[statement.value]});")
        else:
            self.out.add(f"{self.element(array)} = {self.cast(statement.value, array.dtype)};")

    def print_prefetch(self, statement: ir.Prefetch) -> None:
        first, last = statement.first, statement.first + statement.length
        with self.out.block(f"for (int64_t k = k0 + {first}; k < k0 + {last}; k += {statement.step})"):
            for row in statement.rows:
                written = ", 1" if row.sink else ""
                self.out.add(f"__builtin_prefetch({self.rows[row.array, row.offset]} + k{written});")

    def print_streaming_store(self, statement: ir.StreamingStore) -> None:
        target, piece = (self.name_of(self.kernel.array[name]) for name in (statement.array, statement.piece))
        if statement.line:
            self.out.add(f"hc_stream_lines((char *)({target}_to + k0), (char *){piece}, sizeof {piece});")
        else:
            self.out.add(f"hc_stream_row({target}_to + k0, {piece}, k1 - k0);")

    def print_store_fence(self, statement: ir.StoreFence) -> None:
        self.out.add("hc_stream_fence();")

    # --- reductions ---

    def print_open_sum(self, statement: ir.OpenSum) -> None:
        n = statement.number
        self.out.add(f"const hc_splitter split{n} = hc_sum_open(&a->reductions[{statement.slot}]);")
        self.out.add(f"uint64_t {', '.join(f'{part}{n} = 0' for part in PARTS)};")

    def print_lane_sums(self, statement: ir.LaneSums) -> None:
        for n in statement.numbers:
            lanes = ", ".join(f"{part}{n}_lanes[{statement.length}] = {{}}" for part in PARTS)
            self.out.add(f"alignas(64) uint64_t {lanes};")

    def print_add_to_sum(self, statement: ir.AddToSum) -> None:
        n, lanes = statement.number, "_lanes[k - k0]" if statement.lanes else ""
        parts = ", ".join(f"{part}{n}{lanes}" for part in PARTS)
        self.out.add(f"hc_sum_split(split{n}, {self.element(self.kernel.array[statement.array])}, {parts});")

    def print_add_lane_sums(self, statement: ir.AddLaneSums) -> None:
        for part in PARTS:
            sign, total = ("|", "any") if part == "outside" else ("+", "sum")
            name = f"{part}{statement.number}"
            self.out.add(f"{name} {sign}= hc_{total}_lanes({name}_lanes);")

    def print_close_sum(self, statement: ir.CloseSum) -> None:
        n, array = statement.number, self.kernel.array[statement.array]
        parts, (lo, hi) = ", ".join(f"{part}{n}" for part in PARTS), self.span(array.span)
        target = f"&a->reductions[{statement.slot}], split{n}"
        self.out.add(f"hc_sum_close({target}, {parts}, {self.name_of(array)}, {hi} - {lo});")

    def print_reduce_buffer(self, statement: ir.ReduceBuffer) -> None:
        array = self.kernel.array[statement.array]
        target, (lo, hi) = f"&a->reductions[{statement.slot}]", self.span(array.span)
        self.out.add(f"hc_{statement.kind}_deposit({target}, {self.name_of(array)}, {hi} - {lo});")

    # --- values ---

    def edges(self, axis: int) -> tuple[str, str]:
        """Return the bounds of the nest along an axis."""
        (lower, upper), ndim = self.extent[axis], self.kernel.ndim
        lo = f"box->lo[{axis}]" + (f" - {lower}" if lower else "")
        hi = f"box->hi[{axis}]" + (f" + {upper}" if upper else "")
        if padded(self.nest.top, ndim)[axis]:
            hi += f" + box->top[{axis}]"
        if self.nest.cell is not None:
            cell = padded(self.nest.cell, ndim)[axis]
            lo = f"hc_max_index({lo}, {cell} - a->origin[{axis}])"
            hi = f"hc_min_index({hi}, {cell} + 1 - a->origin[{axis}])"
        return lo, hi

    def vector_elements(self, lo: str, hi: str) -> str:
        """Return the number of elements from `lo` to `hi`, rounded up to whole vectors."""
        stored = (s.array for s in ir.flat(self.nest.body) if isinstance(s, ir.Store))
        item = min(ITEMSIZE[self.kernel.array[name].dtype] for name in stored)
        return f"hc_whole({hi} - ({lo}), {item})"

    def span(self, span: str) -> tuple[str, str]:
        """Return the bounds of a stretch of the row."""
        named = {"row": self.bounds, "band": ("b0", "b1"), "piece": ("k0", "k1"), "block": ("c0", "c1")}
        return named[span] if span != "line" else ("k0", f"k0 + {self.length}")

    def element(self, array: Array) -> str:
        """Return the current element of a stored array, or of a buffer."""
        if array.kind in ("field", "scratch"):
            return f"{self.name_of(array)}_to[k]"
        return f"{self.name_of(array)}[k - {self.span(array.span)[0]}]"

    def print_lanes(self, statement: ir.Lanes) -> None:
        """Print a loop with explicit vectors."""
        out, (lo, hi) = self.out, self.span(statement.span)
        ctype = C_TYPES[statement.dtype]
        self.vector = f"hc_lanes_{ctype}"
        places = [
            (self.reserve_name(f"previous{n}"), self.reserve_name(f"current{n}"))
            for n in range(len(statement.columns))
        ]
        with out.block():
            out.add(f"constexpr int64_t lanes = sizeof({self.vector}) / sizeof({ctype});")
            for previous, current in places:
                out.add(f"{self.vector} {previous} = {{}}, {current} = {{}};")
            loop = f"for (int64_t k = {lo} - {statement.first} * lanes; k < {hi}; k += lanes)"
            with out.block(loop), self.scope():
                self.in_next_vector = True
                self.body(statement.next_vector)
                self.in_next_vector = False
                ends = [self.value_texts[number] for number in statement.columns]
                self.places = [(*place, end) for place, end in zip(places, ends, strict=True)]
                if statement.first:
                    self.block(f"if (k >= {lo})", statement.body)
                else:
                    self.body(statement.body)
                for previous, current, following in self.places:
                    out.add(f"{previous} = {current}, {current} = {following};")
        self.vector, self.places = "", []

    def print_let(self, statement: ir.Let) -> None:
        if not self.vector:
            super().print_let(statement)
            return
        for number in statement.values:
            value = self.kernel.values[number]
            if value.op == "shifted":
                column, step = value.attribute
                shift = f"hc_lanes_shifted<{step}>({', '.join(self.places[column])})"
                self.value_texts[number] = shift if step else self.places[column][1]
            elif value.op == "load":
                self.value_texts[number] = self.loaded(value)
            else:
                args = [self.lane(arg, value.dtype) for arg in value.args]
                if value.op == "fma":
                    text = f"hc_lanes_fma({', '.join(args)})"
                else:
                    text = operation(self.out, value, args, self.dialect)
                self.value_texts[number] = self.declared(
                    value, self.reserve_name(f"t{len(self.names_in_use)}"), text
                )

    def lane(self, number: int, dtype: str) -> str:
        """Return a value as a vector."""
        if self.kernel.values[number].depth == 3:
            return self.value_texts[number]
        return f"hc_lanes_all({self.cast(number, dtype)})"

    def declared(self, value: Value, name: str, text: str) -> str:
        if not self.vector:
            return super().declared(value, name, text)
        self.out.add(f"const {self.vector} {name} = {text};")
        return name

    def loaded(self, value: Value) -> str:
        name, grid_offset = value.attribute
        array = self.kernel.array[name]
        if array.kind in ("band", "intermediate"):
            element = self.element(array)
            text = f"hc_lanes_load(&{element})" if self.vector else element
            number = array.name.partition("intermediate")[2]
            variable = f"loaded{number}" if array.kind == "intermediate" else f"t{len(self.names_in_use)}"
            return self.declared(value, self.reserve_name(variable), text)
        if self.vector:
            offset = padded(grid_offset, self.kernel.ndim)
            address = f"{self.rows[name, offset[:2]]} + k{' + lanes' if self.in_next_vector else ''}"
            return self.declared(
                value, self.reserve_name(f"t{len(self.names_in_use)}"), f"hc_lanes_load({address})"
            )
        return super().loaded(value)

    def load_text(self, array: Array, offset: ir.Offset) -> str:
        step = f"k {'+' if offset[2] > 0 else '-'} {abs(offset[2])}" if offset[2] else "k"
        return f"{self.rows[array.name, offset[:2]]}[{step}]"
