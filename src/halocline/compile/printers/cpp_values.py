"""Values in C++: where loops run, how elements are spelled, loops written with vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from halocline.compile.ir import statements as ir
from halocline.compile.ir.axes import padded
from halocline.compile.ir.kernel import Array, Value
from halocline.compile.printers.spelling import C_TYPES, ValuePrinter, operation
from halocline.lang.dtype import ITEMSIZE


@dataclass(kw_only=True)
class CppValues(ValuePrinter):
    """Declares the values of a nest, in numbers or in vectors."""

    rows: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)  # of the present nest
    bounds: tuple[str, str] = ("", "")  # of the present row
    length: int = 0  # of the present line
    # within Lanes: where the values of columns are, before, here and ahead
    vector: str = ""
    ahead: bool = False
    places: list[tuple[str, str, str]] = field(default_factory=list)

    def body(self, body: ir.Body) -> None:
        for statement in body:
            self.write(statement)

    def write(self, statement: ir.Statement) -> None:
        """Write a statement."""
        raise NotImplementedError

    def block(self, line: str, body: ir.Body | Callable[[], None], first: str = "") -> None:
        """A line that opens braces, and what stands in them, after a `first` line."""
        self.out.open(line)
        if first:
            self.out.add(first)
        with self.scope():
            body() if callable(body) else self.body(body)
        self.out.close()

    def points(self, extra: ir.Offset, planes: int = 0) -> list[str]:
        """How many points there are along each axis for a patch, or in a ring of planes."""
        found = [f"box->hi[{a}] - box->lo[{a}] + {more}" for a, more in enumerate(extra)]
        if planes:
            found[3 - self.kernel.ndim] = str(planes)
        return found

    def edges(self, axis: int) -> tuple[str, str]:
        """Where the nest begins and ends along an axis."""
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

    def whole(self, lo: str, hi: str) -> str:
        """How many elements there are from `lo` to `hi`, and more up to the end of a vector."""
        stored = (s.array for s in ir.flat(self.nest.body) if isinstance(s, ir.Store))
        item = min(ITEMSIZE[self.kernel.array[name].dtype] for name in stored)
        return f"hc_whole({hi} - ({lo}), {item})"

    def span(self, span: str) -> tuple[str, str]:
        """Where a stretch begins and ends."""
        named = {"row": self.bounds, "band": ("b0", "b1"), "piece": ("k0", "k1"), "block": ("c0", "c1")}
        return named[span] if span != "line" else ("k0", f"k0 + {self.length}")

    def element(self, array: Array) -> str:
        """The present element of an array that is written, or of a buffer."""
        if array.kind in ("field", "scratch"):
            return f"{self.name_of(array)}_to[k]"
        return f"{self.name_of(array)}[k - {self.span(array.span)[0]}]"

    def lanes(self, statement: ir.Lanes) -> None:
        """Write a loop with vectors."""
        out, (lo, hi) = self.out, self.span(statement.span)
        ctype = C_TYPES[statement.dtype]
        self.vector = f"hc_lanes_{ctype}"
        places = [(self.named(f"before{n}"), self.named(f"here{n}")) for n in range(len(statement.columns))]
        out.open("")
        out.add(f"constexpr int64_t lanes = sizeof({self.vector}) / sizeof({ctype});")
        for before, here in places:
            out.add(f"{self.vector} {before} = {{}}, {here} = {{}};")
        out.open(f"for (int64_t k = {lo} - {statement.first} * lanes; k < {hi}; k += lanes)")
        with self.scope():
            self.ahead = True
            self.body(statement.ahead)
            self.ahead = False
            ends = [self.spelled[number] for number in statement.columns]
        self.places = [(*place, end) for place, end in zip(places, ends, strict=True)]
        if statement.first:
            self.block(f"if (k >= {lo})", statement.body)
        else:
            with self.scope():
                self.body(statement.body)
        for before, here, after in self.places:
            out.add(f"{before} = {here}, {here} = {after};")
        out.close()
        out.close()
        self.vector, self.places = "", []

    def let(self, statement: ir.Let) -> None:
        if not self.vector:
            super().let(statement)
            return
        for number in statement.values:
            value = self.kernel.values[number]
            if value.op == "shifted":
                column, step = value.attribute
                there = f"hc_lanes_shifted<{step}>({', '.join(self.places[column])})"
                self.spelled[number] = there if step else self.places[column][1]
            elif value.op == "load":
                self.spelled[number] = self.loaded(value)
            else:
                args = [self.lane(arg, value.dtype) for arg in value.args]
                if value.op == "fma":
                    spelled = f"hc_lanes_fma({', '.join(args)})"
                else:
                    spelled = operation(self.out, value, args, self.dialect)
                self.spelled[number] = self.declared(value, self.named(f"t{len(self.used)}"), spelled)

    def lane(self, number: int, dtype: str) -> str:
        """A value as a vector."""
        if self.kernel.values[number].depth == 3:
            return self.spelled[number]
        return f"hc_lanes_all({self.cast(number, dtype)})"

    def declared(self, value: Value, name: str, spelled: str) -> str:
        if not self.vector:
            return super().declared(value, name, spelled)
        self.out.add(f"const {self.vector} {name} = {spelled};")
        return name

    def loaded(self, value: Value) -> str:
        name, own = value.attribute
        array = self.kernel.array[name]
        if array.kind in ("band", "kept"):
            element = self.element(array)
            spelled = f"hc_lanes_load(&{element})" if self.vector else element
            number = array.name.partition("kept")[2]
            own_name = f"left{number}" if array.kind == "kept" else f"t{len(self.used)}"
            return self.declared(value, self.named(own_name), spelled)
        if self.vector:
            offset = padded(own, self.kernel.ndim)
            there = f"{self.rows[name, offset[:2]]} + k{' + lanes' if self.ahead else ''}"
            return self.declared(value, self.named(f"t{len(self.used)}"), f"hc_lanes_load({there})")
        return super().loaded(value)

    def spelled_load(self, array: Array, offset: ir.Offset) -> str:
        step = f"k {'+' if offset[2] > 0 else '-'} {abs(offset[2])}" if offset[2] else "k"
        return f"{self.rows[array.name, offset[:2]]}[{step}]"
