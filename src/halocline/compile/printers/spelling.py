"""Printer parts for the CPU, CUDA and OpenCL: names, values, blocks and scratch memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ANGULAR, ELEMENTARY, Array, Kernel, Value, padded, padded_extent
from halocline.compile.schedule import INVARIANTS
from halocline.lang.expression import SELECTIONS
from halocline.lang.trace import INTERNAL


@dataclass
class Text:
    """Lines of C++ with indentation.

    Attributes
    ----------
    constants : dict of str to str
        Definitions that precede the lines, by name. Joined texts may share definitions.
    """

    lines: list[str] = field(default_factory=list)
    level: int = 0
    constants: dict[str, str] = field(default_factory=dict)

    def add(self, line: str) -> None:
        self.lines.append("  " * self.level + line if line else "")

    @contextmanager
    def block(self, line: str = "") -> Iterator[None]:
        """Print a line with an opening brace, and the closing brace after the with block."""
        self.add(f"{line} {{" if line else "{")
        self.level += 1
        yield
        self.level -= 1
        self.add("}")

    def __str__(self) -> str:
        once = (
            f"#ifndef {name.upper()}\n#define {name.upper()}\n{text}\n#endif"
            for name, text in self.constants.items()
        )
        return "\n".join([*once, *self.lines]) + "\n"


def suffix(offset: Sequence[int]) -> str:
    """Return an offset as part of a name: (-1, 0, 2) is m1_0_p2."""
    return "_".join("0" if o == 0 else (f"p{o}" if o > 0 else f"m{-o}") for o in offset)


def identifier(name: str, reserved: Collection[str] = ()) -> str:
    """Return the C++ identifier for a user name; change names that are reserved or used by kernels."""
    name = name.replace(INTERNAL, "_")
    if _SYSTEM.match(name):
        name = "user_" + name
    while name in reserved or name in _RESERVED or _OWN.fullmatch(name):
        name += "_"
    return name


def identifiers(names: Iterable[str], reserved: Iterable[str] = ()) -> dict[str, str]:
    """Return a different C++ identifier for each name; no identifier is in `reserved`."""
    result: dict[str, str] = {}
    known = set(reserved)
    for name in names:
        result[name] = identifier(name, known)
        known.add(result[name])
    return result


# patterns of names that the languages and the headers reserve: types, functions, macros
_SYSTEM = re.compile(r"hc_|HC_|__|_[A-Z]|(u?int|image)\w*_t$|[A-Z][A-Z0-9_]{2,}$")

# names that kernels define: temporaries, and names derived from that of a field or stage
_OWN = re.compile(
    r"(t|piece|split|band|intermediate|loaded|previous|current|slot|size|any_true|any_false|origin|shape)\d+|(high|middle|low|outside)\d+(_lanes)?"
    r"|index\d+(_[mp]\d+)?|layer|free_scratch|large_angle|around"
    r"|.*_(next|s0|s1|to|base|origin|at(_(0|[mp]\d+))*)"
    # names in kernels for devices
    r"|(partial|state)\d*|lo[0-2]|n[0-2]?|tile_(lo|hi)[0-2]|.*_(begin|end|data|layout|argument|cell|tile|plane\d*|queue\d*_(0|[mp]\d+))"
)

_RESERVED = frozenset(
    """
    a box i j k k0 k1 b0 b1 c0 c1 end band_end row_end s plane memcpy NULL errno
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t
    class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend
    goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private
    protected public register reinterpret_cast requires return short signed size_t sizeof static
    static_assert static_cast struct switch template this thread_local throw true try typedef typeid
    typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    cell cells control copied end end_plane ends f group invariants kinds lanes loop notes number partials row
    scalars scratch shared wall walls why
    complex constant event_t global half imaginary kernel local pipe read_only read_write restrict
    sampler_t uniform vec_step write_only double2 float2 float4
    """.split()  # noqa: SIM905
)


C_TYPES = {"float64": "double", "float32": "float"}
VARIABLES = ("i", "j", "k")
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "sum2": "+",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
    "and": "&", "or": "|",  # bitwise: compilers vectorise code that evaluates both sides
}  # fmt: skip
_CALLS = {*ELEMENTARY, "min", "max", "abs", "sign"}

# Maximum number of inlined elementary functions in a kernel. A kernel with more elementary functions calls
# them. The time of register allocation in g++ grows as the square of the number of operations in a loop. For
# 80 cosines, it is 14 s with inlined functions and 1.1 s with calls.
MAX_INLINE = 16


@dataclass(frozen=True)
class Dialect:
    """Differences between C++ for the CPU and C for devices.

    Parameters
    ----------
    fma, sqrt : str
        Names of the functions for float64; the suffix f is added for float32.
    nan, infinity : str
    origin, shape : str
        Global index of the first cell, and number of cells of the grid, along an axis. Both are format
        strings into which the axis is inserted.
    int32 : str
    integer : str
        Type of indices and strides.
    memory : str
        Qualifier of pointers to fields and scratch memory.
    box : str
        Bounds of the box of a kernel: a format string into which "lo" or "hi" and the axis are inserted.
    extent : str
        Number of cells of the box along an axis, or an upper bound: a format string for the axis.
    calls : bool
        True if elementary functions are called, False if they are inlined.
    """

    fma: str = "__builtin_fma"
    sqrt: str = "__builtin_sqrt"
    nan: str = '__builtin_nan("")'
    infinity: str = "__builtin_inf()"
    origin: str = "origin{}"  # a variable: a load on one side of a selection prevents vectorisation
    shape: str = "shape{}"
    int32: str = "int32_t"
    integer: str = "int64_t"
    memory: str = ""
    box: str = "box->{}[{}]"
    extent: str = "box->hi[{0}] - box->lo[{0}]"
    calls: bool = False


CPU = Dialect()
DEVICE = Dialect(
    fma="hc_fma", sqrt="hc_sqrt", nan="HC_NAN", infinity="HC_INFINITY", origin="f.origin[{}]",
    shape="f.shape[{}]", int32="int", integer="hc_int64", memory="HC_GLOBAL ", box="f.box_{}[{}]",
    extent="HC_EXTENT({})",
)  # fmt: skip


def cpu_dialect(kernels: Iterable[Kernel]) -> Dialect:
    """Return the dialect of a CPU function that computes some kernels."""
    count = sum(k.values[n].op in ELEMENTARY for k in kernels for n in k.below(ir.roots(k.body)))
    return replace(CPU, calls=count > MAX_INLINE)


@dataclass(frozen=True)
class Names:
    """Names of arrays and scalars in the code.

    Parameters
    ----------
    arrays : mapping of str to str
        Names of fields, by the name of their array.
    scalars : mapping of str to str
    numbers : mapping of str to int
        Numbers of scalars.
    """

    arrays: Mapping[str, str] = field(default_factory=dict)
    scalars: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)


def literal(value: float, dialect: Dialect) -> str:
    """Return a double as text that converts back to the same bits."""
    if value != value:
        return dialect.nan
    if value in (float("inf"), float("-inf")):
        return dialect.infinity if value > 0 else f"-{dialect.infinity}"
    text = repr(value)
    return f"({text})" if text.startswith("-") else text


def condition(value: Value, args: list[str]) -> str:
    """Return the text of a condition whose arguments are given as text."""
    if value.op == "not":
        return f"!({args[0]})"
    if value.op in ("and", "or"):
        args = [f"({arg})" for arg in args]
    return f"({args[0]} {INFIX[value.op]} {args[1]})"


def operation(out: Text, value: Value, args: list[str], dialect: Dialect, small_angles: bool = False) -> str:
    """Return the text of an operation on arguments that are given as text in the operation's precision."""
    f = "f" if value.dtype == "float32" else ""
    if value.op in SELECTIONS:
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if value.op == "cast":
        return args[0]
    if value.op == "neg":
        return f"-{args[0]}"
    if value.op == "fma":
        return f"{dialect.fma}{f}({', '.join(args)})"
    if value.op == "sqrt":
        return f"{dialect.sqrt}{f}({args[0]})"
    if value.op == "lookup":
        return f"{_table(out, value.attribute, dialect)}[hc_entry({args[0]}, {len(value.attribute)})]"
    if value.op in _CALLS:
        domain = "_small" if small_angles and value.op in ANGULAR else ""
        name = f"hc_{value.op}{f}{domain}"
        if dialect.calls and value.op in ELEMENTARY:
            name = _called(out, name, value)
        return f"{name}({', '.join(args)})"
    return f"{args[0]} {INFIX[value.op]} {args[1]}"


def _called(out: Text, name: str, value: Value) -> str:
    """Define a non-inlined function that calls an elementary function, and return its name.

    Vector loops call the new function for a whole vector, unless it has a branch for angles outside the fast
    range.
    """
    ctype, called_name = C_TYPES[value.dtype], name.replace("hc_", "hc_called_", 1)
    parameters = [f"x{n}" for n in range(len(value.args))]
    declared = ", ".join(f"{ctype} {x}" for x in parameters)
    lines = [
        f"__attribute__((noinline)) static {ctype} {called_name}({declared}) {{",
        f"  return {name}({', '.join(parameters)});",
        "}",
    ]
    if value.op not in ANGULAR or name.endswith("_small"):
        lines.insert(0, "#pragma omp declare simd notinbranch")
    out.constants[called_name] = "\n".join(lines)
    return called_name


def _table(out: Text, entries: tuple[str, ...], dialect: Dialect) -> str:
    """Return the name of a constant table of the numbers `entries`, and add its definition to `out`."""
    numbers = ", ".join(literal(float.fromhex(number), dialect) for number in entries)
    name = f"hc_table_{blake2b(numbers.encode(), digest_size=8).hexdigest()}"
    out.constants[name] = f"HC_TABLE double {name}[{len(entries)}] = {{{numbers}}};"
    return name


@dataclass(kw_only=True)
class KernelPrinter:
    """Printer of the statements of a kernel, and of its values at the `Let` statements.

    The method ``print_open_sum`` prints the statement `OpenSum`; the same naming applies to all statements.
    """

    kernel: Kernel
    names: Names
    dialect: Dialect = CPU
    out: Text = field(default_factory=Text)
    value_texts: dict[int, str] = field(default_factory=dict)  # texts of the values in scope
    stages: dict[str, str] = field(default_factory=dict)  # names of stages in the code
    rings: dict[str, int] = field(default_factory=dict)  # number of planes in each ring
    names_in_use: set[str] = field(default_factory=set)  # names in use in the nest
    nest: ir.Nest = field(init=False)
    extent: tuple[tuple[int, int], ...] = ((0, 0),) * 3  # extent of the nest along three axes
    small_angles: bool = False  # True if all angles of sines and cosines are known to be small

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Restore the scope at the end of the with block, without the values that the block declared."""
        known = dict(self.value_texts)
        try:
            yield
        finally:
            self.value_texts = known

    def unused_name(self, name: str) -> str:
        """Return an unused name that begins with `name`."""
        candidate, number = name, 1
        known = {*self.names_in_use, *self._given_names, *self.stages.values()}
        while candidate in known:
            number += 1
            candidate = f"{name}_{number}"
        return candidate

    @cached_property
    def _given_names(self) -> set[str]:
        """Names of scalars and fields."""
        fields = {self.name_of(array) for array in self.kernel.arrays if array.kind == "field"}
        return fields | {*self.names.scalars.values()}

    def reserve_name(self, name: str) -> str:
        """Reserve and return an unused name that begins with `name`."""
        name = self.unused_name(name)
        self.names_in_use.add(name)
        return name

    def name_of(self, array: Array) -> str:
        """Return the name of an array in the code."""
        if array.kind == "scratch":
            return self.stages[array.name]
        if array.kind == "field":
            return self.names.arrays[array.name]
        return array.name.partition(":")[2]

    def name_stage(self, name: str) -> str:
        """Reserve and return the name of a stage in the code."""
        unique_name = self.stages[name] = self.unused_name(identifier(name.partition(".")[0]))
        return unique_name

    def body(self, body: ir.Body) -> None:
        """Print statements."""
        for statement in body:
            method = getattr(self, f"print_{ir.name_of(statement)}", None)
            if method is None:
                raise NotImplementedError(
                    f"{type(self).__name__} has no method for {type(statement).__name__}"
                )
            method(statement)

    def block(self, line: str, body: ir.Body | Callable[[], None], *first: str) -> None:
        """Print a line with an opening brace, the lines `first`, a body, and the closing brace."""
        with self.out.block(line), self.scope():
            for text in first:
                self.out.add(text)
            body() if callable(body) else self.body(body)

    def bound(self, end: str, axis: int) -> str:
        """Return the expression of a bound of the box: `end` is "lo" or "hi"."""
        return self.dialect.box.format(end, axis)

    def points(self, extra: ir.Offset, planes: int = 0) -> list[str]:
        """Return the number of points along each axis for a box, or in a ring of planes."""
        counts = [f"{self.dialect.extent.format(a)} + {more}" for a, more in enumerate(extra)]
        if planes:
            counts[3 - self.kernel.ndim] = str(planes)
        return counts

    def slot_bytes(self, slot: ir.Slot) -> str:
        """Return the expression of the bytes of a slot."""
        size = self.points(padded(slot.extra, self.kernel.ndim), slot.planes)
        row = f"hc_padded_row({size[2]}, {slot.item})"
        return f"{slot.item} * {row} * ({size[1]}) * ({size[0]})"

    def declare_scratch(self, statement: ir.Allocate, place: str) -> None:
        """Declare the address, the strides and the first element of a scratch array at a place."""
        out, array, ndim = self.out, self.kernel.array[statement.array], self.kernel.ndim
        name, ctype, integer = self.stages[array.name], C_TYPES[array.dtype], self.dialect.integer
        extent, top = padded_extent(statement.extent, ndim), padded(statement.top, ndim)
        extra = tuple(lo + hi + t for (lo, hi), t in zip(extent, top, strict=True))
        size = self.points(extra, statement.planes)
        out.add(f"const {integer} {name}_s1 = hc_padded_row({size[2]}, sizeof({ctype}));")
        out.add(f"const {integer} {name}_s0 = {name}_s1 * ({size[1]});")
        pointer = f"{self.dialect.memory}{ctype} *"
        out.add(f"{pointer}const {name}_base = ({pointer}){place};")
        first = [f"({self.bound('lo', a)} - {lo})" for a, (lo, _) in enumerate(extent)]
        if statement.planes:
            self.rings[array.name] = statement.planes
            first[3 - ndim] = "0"  # the lowest bits of the index of a plane select a plane of the ring
        origin = f"{first[0]} * {name}_s0 + {first[1]} * {name}_s1 + {first[2]}"
        out.add(f"const {integer} {name}_origin = {origin};")

    def print_let(self, statement: ir.Let) -> None:
        """Declare values; constants, scalars and conditions are printed at each use instead."""
        for number in statement.values:
            value = self.kernel.values[number]
            if value.op == "const":
                self.value_texts[number] = literal(value.attribute, self.dialect)
            elif value.op == "scalar":
                self.value_texts[number] = self.names.scalars[value.attribute]
            elif value.op == "index":
                self.value_texts[number] = self._index(*value.attribute)
            elif value.op == "load":
                self.value_texts[number] = self.loaded(value)
            elif value.op == "invariant":
                self.value_texts[number] = self.invariant(value)
            elif value.condition:
                self.value_texts[number] = condition(value, self.arguments(value))
            else:
                text = operation(self.out, value, self.arguments(value), self.dialect, self.small_angles)
                self.value_texts[number] = self.declared(value, self.temporary(), text)

    def temporary(self) -> str:
        """Reserve and return the name of a temporary."""
        return self.reserve_name(f"t{len(self.names_in_use)}")

    def declared(self, value: Value, name: str, text: str) -> str:
        """Declare a variable, and return its name."""
        self.out.add(f"const {C_TYPES[value.dtype]} {name} = {text};")
        return name

    def arguments(self, value: Value) -> list[str]:
        """Return the arguments of an operation as text, in the precision of the operation."""
        logical = value.op in ("not", "and", "or")
        result = []
        for n, arg in enumerate(value.args):
            is_logical = logical or (value.op in SELECTIONS and n == 0)
            result.append(self.value_texts[arg] if is_logical else self.cast(arg, value.dtype))
        return result

    def cast(self, number: int, dtype: str) -> str:
        """Return a value as text in the precision `dtype`."""
        text = self.value_texts[number]
        return text if self.kernel.values[number].dtype == dtype else f"({C_TYPES[dtype]}){text}"

    def _index(self, grid_axis: int, step: int) -> str:
        """Declare the global index along an axis of the grid, with periodic wrap-around; return its name."""
        axis = grid_axis + 3 - self.kernel.ndim
        name = f"index{axis}" + (f"_{suffix((step,))}" if step else "")
        origin, shape = self.dialect.origin.format(axis), self.dialect.shape.format(axis)
        position = f"{origin} + {VARIABLES[axis]}" + (f" + {step}" if step else "")
        wraps = self.kernel.periodic[grid_axis] and (step or self.kernel.beyond or any(self.extent[axis]))
        value = f"hc_around({position}, {shape})" if wraps else f"(double)({self.dialect.int32})({position})"
        self.out.add(f"const double {name} = {value};")
        return name

    def loaded(self, value: Value) -> str:
        """Declare the value of an array at an offset, and return its name."""
        name, grid_offset = value.attribute
        array = self.kernel.array[name]
        offset = padded(grid_offset, self.kernel.ndim)
        variable = self.reserve_name(f"{self.name_of(array)}_{suffix(grid_offset)}")
        return self.declared(value, variable, self.load_text(array, offset))

    def invariant(self, value: Value) -> str:
        """Return the text that reads an invariant from constant memory."""
        _, place = value.attribute
        cast = f"({C_TYPES[value.dtype]})" if value.dtype != "float64" else ""
        return f"{cast}HC_INVARIANT({INVARIANTS}, {place})"

    def load_text(self, array: Array, offset: ir.Offset) -> str:
        """Return the text that reads an array at an offset on three axes from the current cell."""
        raise NotImplementedError


def scalar_values(out: Text, kernel: Kernel, names: Names, dialect: Dialect) -> str:
    """Declare the values of a kernel of scalars, and return the text of its result.

    The array `s` contains the scalars by number.
    """
    value_texts: dict[int, str] = {}
    (root,) = ir.roots(kernel.body)
    order = kernel.below((root,))
    variables = identifiers(kernel.attributes("scalar"))
    for number in order:
        value = kernel.values[number]
        args = [value_texts[arg] for arg in value.args]
        if value.op == "scalar":
            name = variables[value.attribute]
            out.add(f"const double {name} = s[{names.numbers[value.attribute]}];")
        elif value.op == "const":
            name = literal(value.attribute, dialect)
        elif value.condition:
            name = condition(value, args)
        else:
            name = f"t{len(value_texts)}"
            out.add(f"const double {name} = {operation(out, value, args, dialect)};")
        value_texts[number] = name
    return value_texts[root]


def set_scalars(out: Text, statements: Iterable[tuple[str, Kernel]], names: Names, dialect: Dialect) -> None:
    """Print scalar statements; each is the name of a scalar and the kernel of its value."""
    for target, kernel in statements:
        out.add(f"// {target}")
        with out.block():
            text = scalar_values(out, kernel, names, dialect)
            out.add(f"s[{names.numbers[target]}] = {text};")
