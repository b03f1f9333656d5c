"""How values of expressions are spelled in generated code: for the CPU, CUDA and OpenCL alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from halocline.compile.contract import depth
from halocline.compile.text import Text, identifiers, padded, suffix
from halocline.lang.dtype import kept_dtype
from halocline.lang.expression import COMPARISONS, Expr, walk
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Stage

C_TYPES = {"float64": "double", "float32": "float"}
VARIABLES = ("i", "j", "k")
ANGULAR = ("sin", "cos")
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "sum2": "+"}
_CALLS = {"exp", "log", "sin", "cos", "pow", "min", "max", "abs", "sign", "random"}


@dataclass(frozen=True)
class Dialect:
    """What differs between C++ for the CPU and the C of devices.

    Parameters
    ----------
    fma, sqrt : str
        The functions' names for float64; with an f behind, for float32.
    nan, infinity : str
    arguments : str
        What the members of the kernel's arguments are named with.
    int32 : str
    """

    fma: str = "__builtin_fma"
    sqrt: str = "__builtin_sqrt"
    nan: str = '__builtin_nan("")'
    infinity: str = "__builtin_inf()"
    arguments: str = "a->"
    int32: str = "int32_t"


DEVICE = Dialect(
    fma="hc_fma", sqrt="hc_sqrt", nan="HC_NAN", infinity="HC_INFINITY", arguments="f.", int32="int"
)


@dataclass(kw_only=True)
class ValueWriter:
    """Declares the values of expressions at one cell, each after what it depends on.

    Parameters
    ----------
    sources : mapping of Field to str
        The name in the code of the array that each field is read from.
    scalar_names : mapping of scalar name to name in the code
    beyond : bool
        Whether the cells may lie beyond the subdomain: in the halo, or ghosts.
    """

    grid: Grid
    sources: Mapping[Field, str]
    scalar_names: Mapping[str, str]
    dialect: Dialect = field(default_factory=Dialect)
    beyond: bool = False
    out: Text = field(default_factory=Text)
    arrays: frozenset[str] = frozenset()  # names of operands
    extent: tuple[tuple[int, int], ...] = ((0, 0),) * 3  # of the present nest, on three axes
    stage_names: dict[Stage, str] = field(default_factory=dict)
    types: dict[int, str | None] = field(default_factory=dict)
    near: bool = False  # the angles of sines and cosines are known to be near
    used: set[str] = field(default_factory=set)

    def unique(self, name: str) -> str:
        """A name that nothing has yet."""
        taken = {*self.arrays, *self.stage_names.values(), *self.used, *self.scalar_names.values()}
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        return candidate

    def literal(self, value: float) -> str:
        """A double that reads back to the same bits."""
        if value != value:
            return self.dialect.nan
        if value in (float("inf"), float("-inf")):
            return self.dialect.infinity if value > 0 else f"-{self.dialect.infinity}"
        spelled = repr(value)
        return f"({spelled})" if spelled.startswith("-") else spelled

    def declare(
        self,
        level: int,
        roots: list[Expr],
        values: dict[int, str],
        depths: dict[int, int],
    ) -> None:
        """Declare every value that varies along axis level - 1 but no further (0: along none)."""
        for current in walk(roots, frozenset(values)):
            if depth(current, depths) > level:
                continue
            if current.op == "const":
                values[id(current)] = self.literal(current.attribute)
            elif current.op == "scalar":
                values[id(current)] = self.scalar_names[current.attribute[0]]
            elif current.op == "index":
                values[id(current)] = self._index(*current.attribute)
            elif current.op in ("read", "stage"):
                self._load(current, values)
            elif current.condition:
                values[id(current)] = self.condition(current, values)
            else:
                dtype = kept_dtype(current, self.types)
                name = f"t{len(self.used)}"
                self.used.add(name)
                self.out.add(f"const {C_TYPES[dtype]} {name} = {self.operation(current, dtype, values)};")
                values[id(current)] = name

    def _index(self, own: int, step: int) -> str:
        """Declare the global index along an axis of the grid; beyond a periodic end indices start again."""
        axis = own + 3 - self.grid.ndim
        name = f"index{axis}" + (f"_{suffix((step,))}" if step else "")
        there = f"{self.dialect.arguments}origin[{axis}] + {VARIABLES[axis]}" + (f" + {step}" if step else "")
        wraps = self.grid.periodic[own] and (step or self.beyond or any(self.extent[axis]))
        if wraps:
            value = f"hc_around({there}, {self.dialect.arguments}shape[{axis}])"
        else:
            value = f"(double)({self.dialect.int32})({there})"
        self.out.add(f"const double {name} = {value};")
        return name

    def _load(self, current: Expr, values: dict[int, str]) -> None:
        """Declare what a field or stage holds at an offset."""
        name = self.array(current)
        offset = padded(current.attribute[-1], self.grid.ndim)
        variable = self.unique(f"{name}_{suffix(offset[3 - self.grid.ndim :])}")
        self.used.add(variable)
        ctype = C_TYPES[kept_dtype(current, self.types)]
        self.out.add(f"const {ctype} {variable} = {self.spelled_read(name, offset)};")
        values[id(current)] = variable

    def array(self, leaf: Expr) -> str:
        """The name of the array that a field or stage is read from."""
        thing = leaf.attribute[0]
        return self.sources[thing] if leaf.op == "read" else self.stage_names[thing]

    def spelled_read(self, name: str, offset: tuple[int, ...]) -> str:
        """How an array is read at an offset on three axes from the present cell."""
        raise NotImplementedError

    def cast(self, arg: Expr, dtype: str, values: dict[int, str]) -> str:
        """The value of an argument in the precision wanted."""
        mine = kept_dtype(arg, self.types)
        spelled = values[id(arg)]
        return spelled if mine == dtype else f"({C_TYPES[dtype]}){spelled}"

    def condition(self, current: Expr, values: dict[int, str]) -> str:
        """A condition, in terms of the values of its arguments."""
        if current.op == "not":
            return f"!({values[id(current.args[0])]})"
        if current.op in ("and", "or"):
            # bitwise: both sides are evaluated, which is what vectorises
            sign = "&" if current.op == "and" else "|"
            return f"(({values[id(current.args[0])]}) {sign} ({values[id(current.args[1])]}))"
        dtype = kept_dtype(current, self.types)
        left, right = (self.cast(a, dtype, values) for a in current.args)
        return f"({left} {COMPARISONS[current.op]} {right})"

    def operation(self, current: Expr, dtype: str, values: dict[int, str]) -> str:
        """The result of an operation in the precision wanted, in terms of the values of its arguments."""
        f = "f" if dtype == "float32" else ""
        if current.op == "where":
            test = values[id(current.args[0])]
            then, otherwise = (self.cast(a, dtype, values) for a in current.args[1:])
            return f"{test} ? {then} : {otherwise}"
        args = [self.cast(a, dtype, values) for a in current.args]
        if current.op == "cast":
            return args[0]
        if current.op == "neg":
            return f"-{args[0]}"
        if current.op == "fma":
            return f"{self.dialect.fma}{f}({', '.join(args)})"
        if current.op == "sqrt":
            return f"{self.dialect.sqrt}{f}({args[0]})"
        if current.op == "lookup":
            return f"{self._table(current.attribute)}[hc_entry({args[0]}, {len(current.attribute)})]"
        if current.op in _CALLS:
            reach = "_near" if self.near and current.op in ANGULAR else ""
            return f"hc_{current.op}{f}{reach}({', '.join(args)})"
        return f"{args[0]} {INFIX[current.op]} {args[1]}"

    def _table(self, spelled: tuple[str, ...]) -> str:
        """The name of a table of these numbers, which is defined before the function."""
        numbers = ", ".join(self.literal(float.fromhex(number)) for number in spelled)
        name = f"hc_table_{blake2b(numbers.encode(), digest_size=8).hexdigest()}"
        self.out.constants[name] = f"HC_TABLE double {name}[{len(spelled)}] = {{{numbers}}};"
        return name


def scalar_values(
    out: Text, roots: list[Expr], scalars: dict[str, int], dialect: Dialect | None = None
) -> dict[int, str]:
    """Declare the values of expressions of scalars, which lie in the array `s` by number; how each is
    spelled, by the identity of the expression."""
    values: dict[int, str] = {}
    names = identifiers(leaf.attribute[0] for leaf in walk(roots) if leaf.op == "scalar")
    writer = ValueWriter(
        grid=None,  # type: ignore[arg-type]
        sources={},
        scalar_names=names,
        dialect=dialect or Dialect(),
        out=out,
    )
    for current in walk(roots):
        if current.op == "scalar":
            name = names[current.attribute[0]]
            out.add(f"const double {name} = s[{scalars[current.attribute[0]]}];")
            values[id(current)] = name
        elif current.op == "const":
            values[id(current)] = writer.literal(current.attribute)
        elif current.condition:
            values[id(current)] = writer.condition(current, values)
        else:
            name = f"t{len(values)}"
            out.add(f"const double {name} = {writer.operation(current, 'float64', values)};")
            values[id(current)] = name
    return values
