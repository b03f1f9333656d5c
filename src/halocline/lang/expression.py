"""Expressions: a graph of unique nodes that is built by tracing plain Python functions.

The graph is hash-consed: equal formulas are the same node, so common subexpressions are shared. Nodes are
immutable.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary, ref

from halocline.errors import InputError
from halocline.lang.advice import missing_attribute, numpy_advice, untraceable
from halocline.lang.axes import whole_number
from halocline.lang.location import Place, Placement, common_places, form_at
from halocline.lang.values import as_real, plain
from halocline.words import short_repr

if TYPE_CHECKING:
    from halocline.lang.grid import Grid

Offset = tuple[int, ...]
Operand: TypeAlias = "Operators | int | float"

COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
SELECTIONS = ("where", "branch")  # `branch` may skip the side that is not selected
COMMUTATIVE = {"add", "mul", "min", "max", "eq", "ne", "and", "or"}


def _forward(op: str) -> Callable[[Any, Operand], Expr]:
    """Return the method of a binary operator."""

    def _apply(operand: Operators, other: Operand) -> Expr:
        # a tuple is a Vector, whose reflected operator applies the operation by component
        return NotImplemented if isinstance(other, tuple) else binary(op, operand, other)

    return _apply


def _reflected(op: str) -> Callable[[Any, Operand], Expr]:
    """Return the method of a binary operator whose left operand is neither a field nor an expression."""
    return lambda operand, other: binary(op, other, operand)


class Operators:
    """Arithmetic and comparison operators of all operands of equations."""

    __slots__ = ()
    # Prevents iteration of NumPy over a field; `__array_ufunc__` maps the functions of NumPy.
    __array_priority__ = 1000

    @property
    def expr(self) -> Expr:
        """Node of this operand in the expression graph."""
        raise NotImplementedError(type(self).__name__)

    __add__, __radd__ = _forward("add"), _reflected("add")
    __sub__, __rsub__ = _forward("sub"), _reflected("sub")
    __mul__, __rmul__ = _forward("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _forward("div"), _reflected("div")
    __lt__ = _forward("lt")
    __le__ = _forward("le")
    __gt__ = _forward("gt")
    __ge__ = _forward("ge")
    __and__ = _forward("and")
    __or__ = _forward("or")

    def __pow__(self, exponent: Operand) -> Expr:
        return NotImplemented if isinstance(exponent, tuple) else power(self, exponent)

    def __rpow__(self, base: Operand) -> Expr:
        return power(base, self)

    def __neg__(self) -> Expr:
        return unary("neg", self)

    def __pos__(self) -> Expr:
        return self.expr

    def __abs__(self) -> Expr:
        return unary("abs", self)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (Operators, int, float)):
            return binary("eq", self, other)
        return NotImplemented

    def __ne__(self, other: object) -> Any:
        if isinstance(other, (Operators, int, float)):
            return binary("ne", self, other)
        return NotImplemented

    def __invert__(self) -> Expr:
        return unary("not", self)

    # Live objects have distinct hashes, so a dictionary does not call ==, which would create a node.
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InputError(
            "a condition on fields or scalars has no truth value while equations are traced: "
            "use hc.where(condition, a, b), & and | instead of 'and' and 'or', or until= of hc.loop"
        )

    def __float__(self) -> float:
        raise TypeError(
            f"must be real number, not {type(self).__name__}: functions such as math.sin cannot be traced. "
            "Use the functions of halocline or NumPy."
        )

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(
            f"a {type(self).__name__.lower()} cannot be iterated over. Use [offset] to read a neighbour."
        )

    def __getitem__(self, offset: int | Offset) -> Expr:
        return shift(without_location(self.expr), as_offset(offset, self.expr.grid))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from halocline.lang.functions import UFUNCS  # imported here, because that module imports this module

        function = UFUNCS.get(ufunc.__name__)
        if function is None or method != "__call__" or kwargs:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            if function is not None and kwargs:
                keywords = ", ".join(f"{keyword}=" for keyword in kwargs)
                raise InputError(f"NumPy's {name} with {keywords} cannot be traced; leave {keywords} out")
            reductions = {"add.reduce": "sum", "maximum.reduce": "max", "minimum.reduce": "min"}
            known_as = reductions.get(name, name)
            advice = numpy_advice(known_as)
            known = "" if advice else f"; these can: {', '.join(sorted(UFUNCS))}"
            raise untraceable(known_as, f"NumPy's {name} cannot be traced into a kernel{advice}{known}")
        return function(*(as_expr(x) if _is_numpy_scalar(x) else x for x in inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        name = function.__name__
        if name == "where" and len(args) == 3:
            return where(*args)
        if name == "clip" and len(args) == 3 and not kwargs and None not in args[1:]:
            from halocline.lang.functions import maximum, minimum

            return minimum(maximum(*args[:2]), args[2])
        advice = numpy_advice(name)
        raise untraceable(
            name, f"NumPy's {name} cannot be traced into a kernel{advice or ': write a formula for one cell'}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise missing_attribute(type(self).__name__, name, dir(self))


def _is_numpy_scalar(value: Any) -> bool:
    return hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0 and not isinstance(value, Operators)


class Assignable(Operators):
    """Base class of fields and scalars: operands that a program can assign."""

    __slots__ = ()

    def __setitem__(self, offset: Any, value: Any) -> None:
        name = getattr(self, "name", "u")
        raise InputError(
            f"{name}[...] = ... assigns nothing: write {name}.set(...) in a program, with "
            f"hc.where(condition, value, {name}) for a part of the cells"
        )


def reject_in_place(kind: type, target: Callable[[Any], str | None]) -> None:
    """Make the in-place operators of a class raise InputError, since they would only rebind a Python name.

    `target` returns the name of an operand, or None for an operand whose in-place operators return an
    expression.
    """

    def method_for(sign: str) -> Callable[[Any, Any], Any]:
        def reject(self: Any, other: Any) -> Any:
            name = target(self)
            if name is None:
                return NotImplemented
            raise InputError(
                f"{name} {sign}= ... assigns nothing: write {name}.set({name} {sign} ...) in a program, or "
                f"assign the result to another name, result = {name} {sign} ..."
            )

        return reject

    for method, sign in IN_PLACE.items():
        setattr(kind, method, method_for(sign))


IN_PLACE = {
    "__iadd__": "+", "__isub__": "-", "__imul__": "*", "__imatmul__": "@", "__itruediv__": "/",
    "__ifloordiv__": "//", "__imod__": "%", "__ipow__": "**", "__ilshift__": "<<", "__irshift__": ">>",
    "__iand__": "&", "__ixor__": "^", "__ior__": "|",
}  # fmt: skip

reject_in_place(Assignable, lambda operand: str(operand.name))


class Expr(Operators):
    """Node of the expression graph: an operation on other nodes, or a leaf.

    Attributes
    ----------
    op : str
        "const", "scalar", "index", "read", "stage", "reduce" or the name of an operation.
    args : tuple of Expr
        Operands.
    attribute : object
        const: the float; scalar: (name, version); index: (axis, step); read: (field, version, offset);
        stage: (stage, offset); reduce: (kind, cell or None, place); cast: the precision; lookup: the numbers
        in the format of float.hex.
    grid : Grid or None
        Grid whose cells the value belongs to; None for numbers and scalars.
    condition : bool
        True if the value is a Boolean.
    varies : bool
        True if the value differs from cell to cell.
    digest : bytes
        Identifier of the formula, independent of the process and of the order in which nodes are created.
    precision : str or None
        Precision of the fields in the expression. None for numbers, scalars and coordinates, and for stages
        that contain only these. Such values are computed in float64 and adopt the precision of the expression
        that contains them. Random numbers and table entries always have the precision None.
    placement : Placement or None
        Locations of the value, see halocline.lang.location. None for numbers, scalars and expressions that
        read at explicit offsets. The placement of a node that is an argument of another node is None too.
        Locations are checked while expressions are formed, and are not part of the graph.
    notation : (str, object, tuple of Expr) or None
        Operator that formed the node, its detail and its operands; see `with_notation`. It is not part of the
        graph.
    """

    __slots__ = (
        "__weakref__", "args", "attribute", "below", "condition", "digest", "grid", "notation", "odd_reads",
        "op", "placement", "precision", "varies",
    )  # fmt: skip

    op: str
    args: tuple[Expr, ...]
    attribute: Any
    grid: Grid | None
    condition: bool
    varies: bool
    digest: bytes
    precision: str | None
    placement: Placement | None
    notation: tuple[str, Any, tuple[Expr, ...]] | None
    below: tuple[Expr, ...] | None  # all nodes below this one, stored by the first `walk`
    odd_reads: Any  # see `halocline.lang.ghost_products`

    @property
    def expr(self) -> Expr:
        return self

    def __repr__(self) -> str:
        return text(self)

    def _repr_latex_(self) -> str:
        from halocline.lang.latex import formula

        return f"$\\displaystyle {formula(self)}$"


_nodes: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()


def node(
    op: str,
    args: tuple[Expr, ...] = (),
    attribute: Any = None,
    *,
    key: Any = None,
    label: bytes = b"",
    grid: Grid | None = None,
) -> Expr:
    """Return the node with the given operation, arguments and attribute; create it if it does not exist.

    Parameters
    ----------
    op : str
    args : tuple of Expr
    attribute : object
        See `Expr`.
    key : object
        Identifier of the attribute in this process. The key contains only weak references to objects that may
        keep nodes alive, such as grids.
    label : bytes
        Identifier of the attribute in the digest.
    grid : Grid, optional
        Grid of a leaf.
    """
    args = tuple(map(without_location, args))
    if op in COMMUTATIVE and args[1].digest < args[0].digest:
        args = args[::-1]  # a + b and b + a are the same node
    # Weak references: an argument may keep the node alive, and `_nodes` would then never release either node.
    identity = op, key, tuple(map(ref, args))
    existing = _nodes.get(identity)
    if existing is not None:
        return existing
    for arg in args:
        if arg.grid is not None:
            if grid is not None and arg.grid is not grid:
                raise InputError(
                    f"an expression mixes fields of two grids: {grid!r} and {arg.grid!r}. Create all fields "
                    "of one problem with the same Grid object."
                )
            grid = arg.grid
    parts = (arg.digest for arg in args)
    result = Expr.__new__(Expr)
    result.op, result.args, result.attribute = op, args, attribute
    result.digest = blake2b(b"\0".join((op.encode(), label, *parts)), digest_size=16).digest()
    result.condition = op in COMPARISONS or op in ("and", "or", "not")
    result.varies = op in ("read", "stage", "index") or (op != "reduce" and any(a.varies for a in args))
    result.grid = grid
    result.precision = _precision(op, args, attribute)
    result.placement = result.notation = result.below = result.odd_reads = None
    _nodes[identity] = result
    return result


_located: WeakValueDictionary[tuple[Any, ...], Expr] = WeakValueDictionary()


def without_location(e: Expr) -> Expr:
    """Return the node without a location."""
    return e if e.placement is None else e.placement.node


def with_places(
    value: Expr,
    places: Mapping[Place, int],
    build: Callable[..., Expr] | None = None,
    operands: tuple[Expr, ...] = (),
) -> Expr:
    """Return the node with locations; see `Placement`.

    For a single place, equal arguments give the same object.
    """
    if not value.varies:
        return value
    key = ref(value), *places
    cached = _located.get(key) if len(places) == 1 else None
    if cached is not None:
        return cached
    result = Expr.__new__(Expr)
    result.op, result.args, result.attribute, result.grid = value.op, value.args, value.attribute, value.grid
    result.digest, result.condition, result.varies = value.digest, value.condition, value.varies
    result.precision, result.below, result.odd_reads = value.precision, value.below, value.odd_reads
    if len(places) == 1:
        result.placement = Placement(value, places)
        _located[key] = result
    else:
        result.placement = Placement(value, places, build, operands)
    return result


def with_location(e: Expr, staggered: Iterable[bool]) -> Expr:
    """Return the expression with the given location instead of its present location."""
    return with_places(without_location(e), {tuple(staggered): 0})


def with_notation(e: Expr, name: str, operands: Iterable[Expr], detail: Any = None) -> Expr:
    """Store the operator that formed an expression, and return the expression.

    Formulas in LaTeX show this operator instead of its differences. If several operators form the same node,
    the first one is stored.
    """
    value, parts = without_location(e), tuple(map(without_location, operands))
    if value.args and value.notation is None and all(value is not part for part in parts):
        value.notation = name, detail, parts
    return e


def pointwise(make: Callable[..., Expr], *operands: Expr) -> Expr:
    """Return the node that `make` forms from the operands, at their common location.

    Raises
    ------
    InputError
        Two operands lie at different locations.
    """
    if all(e.placement is None for e in operands):
        return make(*operands)
    places = common_places(operands)
    if places is None:
        return make(*map(without_location, operands))
    first = next(iter(places))
    value = make(*(form_at(e, first) for e in operands))
    if len(places) == 1:
        return with_places(value, places)
    return with_places(value, places, lambda place, *args: make(*args), operands)


def _precision(op: str, args: tuple[Expr, ...], attribute: Any) -> str | None:
    if op == "read":
        return str(attribute[0].dtype)
    if op in ("random", "lookup"):
        return None
    if op == "cast":
        return str(attribute)
    if op == "stage":
        definition: Expr = attribute[0].definition
        return definition.precision
    operands = args[1:] if op in SELECTIONS else args
    precisions = (arg.precision for arg in operands if arg.precision is not None)
    return max(precisions, default=None)  # "float64" > "float32"


def constant(value: float) -> Expr:
    """Return the node of a literal number."""
    value = float(value)
    bits = struct.pack("<d", value)
    return node("const", attribute=value, key=bits, label=bits)


def as_expr(value: Any, label: str = "operand") -> Expr:
    """Return the node of a field, scalar, stage, expression or number."""
    if isinstance(value, Operators):
        return value.expr
    number = as_real(value)
    if number is not None:
        return constant(number)
    shape = getattr(value, "shape", None)
    if shape:
        raise InputError(
            f"{label} is an array of shape {shape}; expected a field, a scalar, an expression or a number. "
            "Store the array in a field, sim[f] = array."
        )
    kind = type(value).__name__
    if getattr(getattr(value, "dtype", None), "kind", "") == "O":
        raise InputError(
            f"{label} is a NumPy array made from a field, but np.array and np.vectorize cannot be traced; "
            "expected the field itself"
        )
    raise InputError(
        f"{label} is {short_repr(value)} of type {kind}; "
        "expected a field, a scalar, an expression or a number" + _number_advice(value)
    )


def _number_advice(value: Any) -> str:
    """Return advice for a value that cannot be an operand, as the end of a message."""
    if isinstance(value, int):
        return " in the range of float64"
    if isinstance(value, (tuple, list)):
        return ": use one component, v[0], or the length, hc.sqrt(hc.dot(v, v))"
    return ": fields hold real numbers, so use one field for each part" if isinstance(value, complex) else ""


def as_offset(offset: Any, grid: Grid | None) -> Offset:
    """Return an offset as a tuple with one int per axis of the grid."""
    steps = offset if isinstance(offset, tuple) else (offset,)
    if grid is None:
        raise InputError(f"[{offset}] reads a neighbour, but the expression contains no field of a grid")
    entries = [o for o in map(whole_number, steps) if o is not None]
    if not len(entries) == len(steps) == grid.ndim:
        raise InputError(
            f"offset {offset!r} does not fit a grid of {grid.ndim} axes; expected {grid.ndim} whole "
            "numbers, one per axis"
        )
    return tuple(entries)


def _fold(op: str, a: float, b: float) -> float | None:
    """Return the exact IEEE result of an operation on two literals, or None to compute it at run time."""
    if op == "add":
        return a + b
    if op == "sub":
        return a - b
    if op == "mul":
        return a * b
    if op == "div" and b != 0:
        return a / b
    return None


def binary(op: str, left: Operand, right: Operand) -> Expr:
    """Return an operation on two operands, after simplifications that change no value.

    A literal 0 as a factor, summand or dividend comes from the structure of a formula. An example is a
    derivative along an axis that the grid lacks. Such an operation is simplified even if the other operand
    may be infinite, NaN or a zero of the other sign.
    """
    return pointwise(partial(_binary, op), as_expr(left), as_expr(right))


def _binary(op: str, a: Expr, b: Expr) -> Expr:
    logical = op in ("and", "or")
    for operand in (a, b):
        if operand.condition != logical and not (op in ("eq", "ne") and a.condition == b.condition):
            kind = "a condition" if logical else "a number"
            raise InputError(f"operator '{op}' needs {kind} on both sides, got {operand!r}")
    if a.op == "const" and b.op == "const" and not logical:
        folded = _fold(op, a.attribute, b.attribute)
        if folded is not None and math.isfinite(folded):
            return constant(folded)
    av = a.attribute if a.op == "const" else None
    bv = b.attribute if b.op == "const" else None
    if op == "add":
        if av == 0:
            return b
        if bv == 0:
            return a
        if b.op == "neg":
            return _binary("sub", a, b.args[0])
        if a.op == "neg":
            return _binary("sub", b, a.args[0])
    elif op == "sub":
        if bv == 0:
            return a
        if av == 0:
            return _unary("neg", b)
        if b.op == "neg":
            return _binary("add", a, b.args[0])
    elif op == "mul":
        if av == 0 or bv == 0:
            return constant(0.0)
        if av == 1:
            return b
        if bv == 1:
            return a
        if av == -1:
            return _unary("neg", b)
        if bv == -1:
            return _unary("neg", a)
        if a.op == "neg" and b.op == "neg":
            return _binary("mul", a.args[0], b.args[0])
        if a.op == "neg":
            return _unary("neg", _binary("mul", a.args[0], b))
        if b.op == "neg":
            return _unary("neg", _binary("mul", a, b.args[0]))
    elif op == "div":
        if av == 0:
            return constant(0.0)
        if bv == 1:
            return a
        if (
            bv is not None
            and bv != 0
            and math.isfinite(bv)
            and abs(math.frexp(bv)[0]) == 0.5
            and abs(bv) < 2.0**1000
        ):
            return _binary("mul", a, constant(1.0 / bv))  # a power of two: the reciprocal is exact
    return node(op, (a, b))


def unary(op: str, operand: Operand) -> Expr:
    """Return an operation on one operand, after simplifications that change no value."""
    return pointwise(partial(_unary, op), as_expr(operand))


def _unary(op: str, a: Expr) -> Expr:
    if a.condition != (op == "not"):
        raise InputError(f"'{op}' needs {'a condition' if op == 'not' else 'a number'}, got {a!r}")
    if op == "neg":
        if a.op == "const":
            return constant(-a.attribute)
        if a.op == "neg":
            return a.args[0]
    if op == "abs" and a.op in ("abs", "neg"):
        return _unary("abs", a.args[0]) if a.op == "neg" else a
    if op == "sqrt" and a.op == "const" and a.attribute >= 0:
        return constant(math.sqrt(a.attribute))
    if op == "not" and a.op == "not":
        return a.args[0]
    return node(op, (a,))


def power(base: Operand, exponent: Operand) -> Expr:
    """Return base ** exponent: products for small integer exponents, sqrt for 1/2, pow otherwise."""
    b, e = as_expr(base), as_expr(exponent)
    if e.op == "const":
        value = e.attribute
        if abs(value) <= 16 and value == int(value):
            remaining = int(abs(value))
            result, square = constant(1.0), b
            while remaining:
                if remaining & 1:
                    result = binary("mul", result, square)
                remaining >>= 1
                if remaining:
                    square = binary("mul", square, square)
            return result if value >= 0 else binary("div", 1.0, result)
        if value == 0.5:
            return unary("sqrt", b)
        if value == -0.5:
            return binary("div", 1.0, unary("sqrt", b))
    return operation("pow", b, e)


def where(condition: Operand, then: Any, otherwise: Any) -> Any:
    """Return `then` where a condition holds, and `otherwise` elsewhere.

    Both sides are evaluated; the side that is not selected may have any value, such as NaN.

    Parameters
    ----------
    condition : expression
        A comparison, or comparisons joined with &, | and ~.
    then, otherwise : field, expression or number, or vectors by component

    See Also
    --------
    branch : Selection for an expensive side that few cells need.
    """
    return _select("where", condition, then, otherwise)


def as_number(value: Expr) -> Expr:
    """Return 1 where a condition holds and 0 elsewhere; return any other expression unchanged."""
    number: Expr = where(value, 1.0, 0.0) if value.condition else value
    return number


def branch(condition: Operand, then: Any, otherwise: Any) -> Any:
    """Return `then` where a condition holds, and `otherwise` elsewhere, without computing unused sides.

    The result has the same bits as the result of `where`. On a CPU, a side is skipped if none of 128 adjacent
    cells of a row needs it. On a device, each cell computes only the side that it needs. The function saves
    time if a side is expensive and neighbouring cells mostly need the same side. Examples are a fallback at
    shocks, and a flux from the left or from the right. Expressions that both sides contain are computed once,
    before the decision. A cheap side is computed everywhere.

    Parameters
    ----------
    condition : expression
        A comparison, or comparisons joined with &, | and ~.
    then, otherwise : field, expression or number, or vectors by component
    """
    return _select("branch", condition, then, otherwise)


def _select(op: str, condition: Operand, then: Any, otherwise: Any) -> Any:
    if any(isinstance(x, tuple) for x in (condition, then, otherwise)):
        from halocline.lang.grid import by_component  # imported here, because that module imports this module

        return by_component(partial(_select, op))(condition, then, otherwise)
    condition = plain(condition)
    if isinstance(condition, bool):
        return as_expr(then) if condition else as_expr(otherwise)
    c = as_expr(condition)
    if not c.condition:
        raise InputError(f"hc.{op}() needs a condition such as u > 0 as its first argument, got {c!r}")
    return pointwise(partial(_selection, op), c, as_expr(then), as_expr(otherwise))


def _selection(op: str, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    return then if then is otherwise else node(op, (condition, then, otherwise))


def operation(op: str, *operands: Expr, **details: Any) -> Expr:
    """Return the node of an operation without simplification; `details` are passed to `node`."""
    return pointwise(lambda *args: node(op, args, **details), *operands)


def walk(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Yield the roots and every node below them once, arguments before the nodes that use them.

    The definitions of stages are not visited.
    """
    visited: dict[Expr, None] = {}
    for root in roots:
        # The same root is visited many times, so the root stores the nodes below it. The root itself is not
        # stored, since that would be a reference cycle.
        below = root.below
        if below is None:
            below = root.below = tuple(postorder(root.args, attrgetter("args")))
        visited.update(dict.fromkeys(below))
        visited[root] = None
    return iter(visited)


def check_grid(root: Expr, grid: Grid, label: str) -> None:
    """Raise InputError if an expression belongs to the points of another grid.

    Generated code identifies fields by name only, and would read the fields of `grid` that have these names.
    """
    if root.grid is None or root.grid is grid:
        return
    read = next((leaf for leaf in walk((root,)) if leaf.op in ("read", "stage")), None)
    name = "coordinates" if read is None else f"{read.op.replace('read', 'field')} {read.attribute[0].name!r}"
    raise InputError(
        f"{label} reads {name} of another grid, {root.grid!r}; expected {grid!r}: make all fields of one "
        "problem with the same Grid object, or copy the values to a field of that grid"
    )


N = TypeVar("N")


def postorder(roots: Iterable[N], children: Callable[[N], Iterable[N]]) -> dict[N, None]:
    """Return the nodes of a graph, including `roots`, each once and after its children."""
    ordered: dict[N, None] = {}
    for root in roots:
        stack = [root]
        while stack:
            missing = [child for child in children(stack[-1]) if child not in ordered]
            if missing:
                stack += reversed(missing)
            else:
                ordered[stack.pop()] = None
    return ordered


Apply: TypeAlias = "Callable[[Expr, tuple[Expr, ...]], Expr]"


def replace_leaves(
    root: Expr,
    leaf: Callable[[Expr], Expr],
    memo: dict[Expr, Expr] | None = None,
    *,
    apply: Apply | None = None,
) -> Expr:
    """Return the expression with each leaf replaced by the result of `leaf`, without other changes.

    Parameters
    ----------
    root : Expr
    leaf : callable
        Function of a leaf that returns its replacement.
    memo : dict of Expr to Expr, optional
        Known replacements of nodes; the function adds further replacements.
    apply : callable, optional
        Function of a node and its new arguments that returns the new node; `with_arguments` by default.
    """
    memo = {} if memo is None else memo
    apply = with_arguments if apply is None else apply
    for current in walk((root,)):
        if current in memo:
            continue
        if not current.args:
            memo[current] = leaf(current)
        else:
            memo[current] = apply(current, tuple(memo[a] for a in current.args))
    return memo[root]


def rebuild(root: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """Return the expression with each leaf replaced by the result of `leaf`, simplified again.

    If an expression is rebuilt several times and all results must have the same bits, use `replace_leaves`
    instead. Different leaves can lead to different simplifications, and the bits may then differ.
    """
    return replace_leaves(root, leaf, apply=_apply_simplified)


def with_arguments(like: Expr, args: tuple[Expr, ...]) -> Expr:
    """Return the operation of `like` on other arguments, without simplifications.

    A simplification might change the sign of a zero, or remove an infinite value or NaN.
    """
    if all(a is b for a, b in zip(args, like.args, strict=True)):
        return like
    label = b"" if like.attribute is None else repr(like.attribute).encode()
    return node(like.op, args, like.attribute, key=like.attribute, label=label)


def _apply_simplified(like: Expr, args: tuple[Expr, ...]) -> Expr:
    """Apply the operation of the node `like` to other arguments, with the usual simplifications."""
    if all(a is b for a, b in zip(args, like.args, strict=True)):
        return like
    if like.op in SELECTIONS:
        chosen: Expr = _select(like.op, *args)
        return chosen
    if like.attribute is not None or like.op in ("min", "max", "pow", "fma", "sum2", "random"):
        return with_arguments(like, args)
    return binary(like.op, *args) if len(args) == 2 else unary(like.op, args[0])


def cast(operand: Expr, dtype: str) -> Expr:
    """Return a value converted to a precision."""
    return node("cast", (operand,), dtype, key=dtype, label=repr(dtype).encode())


def round_to(operand: Expr, dtype: str) -> Expr:
    """Return a value rounded to a precision; float64 leaves the value unchanged."""
    return operand if dtype == "float64" else pointwise(partial(cast, dtype=dtype), operand)


def reduction(
    kind: str, operand: Expr, cell: Offset | None = None, place: tuple[bool, ...] | None = None
) -> Expr:
    """Return a reduction over the whole grid, a scalar; see halocline.lang.reductions.

    Parameters
    ----------
    kind : str
    operand : Expr
    cell : tuple of int, optional
        Index of the point, for the kind "value".
    place : tuple of bool, optional
        Axes along which the points are staggered; by default the result of `place_of`.
    """
    attribute = kind, cell, place_of(operand) if place is None else place
    return node("reduce", (operand,), attribute, key=attribute, label=repr(attribute).encode())


def place_of(root: Expr) -> tuple[bool, ...]:
    """Return the axes along which the points of an expression are staggered, one flag per axis.

    An expression that reads at explicit offsets may mix locations. Along each axis, such an expression is
    staggered if all its fields and located stages are staggered and read without an offset. For example, a
    difference of values on two faces lies in the cell between the faces.
    """
    assert root.grid is not None
    if root.placement is not None:
        return tuple(map(bool, root.placement.first))
    reads = reads_of(root, keep_stages=True)
    return tuple(
        bool(reads) and all(thing.staggered[axis] and not offset[axis] for thing, offset in reads)
        for axis in range(root.grid.ndim)
    )


def reads_of(root: Expr, *, keep_stages: bool = False) -> set[tuple[Any, Offset]]:
    """Return the fields that an expression reads, each with its offset, including reads through stages.

    Parameters
    ----------
    root : Expr
    keep_stages : bool
        True to return a stage with a location as one entry, instead of the reads in its definition.
    """
    reads: set[tuple[Any, Offset]] = set()
    stages: list[Expr] = []
    visited: set[Expr] = set()
    roots = [root]
    while roots:
        for leaf in walk(roots):
            if leaf.op == "read":
                reads.add((leaf.attribute[0], leaf.attribute[2]))
            elif leaf.op == "stage" and keep_stages and leaf.attribute[0].staggered is not None:
                reads.add(leaf.attribute)
            elif leaf.op == "stage" and leaf not in visited:
                visited.add(leaf)
                stages.append(leaf)
        roots = [shift(leaf.attribute[0].definition, leaf.attribute[1]) for leaf in stages]
        stages = []
    return reads


def shift(root: Expr, offset: Offset) -> Expr:
    """Return the expression at a neighbouring cell."""
    if not any(offset):
        return root

    def leaf(current: Expr) -> Expr:
        if current.op == "read":
            field, version, previous = current.attribute
            return read(field, version, tuple(a + b for a, b in zip(previous, offset, strict=True)))
        if current.op == "stage":
            stage, previous = current.attribute
            return stage_read(stage, tuple(a + b for a, b in zip(previous, offset, strict=True)))
        if current.op == "index":
            axis, step = current.attribute
            assert current.grid is not None
            return index(current.grid, axis, step + offset[axis])
        return current

    return replace_leaves(root, leaf)


def read(field: Any, version: int, offset: Offset) -> Expr:
    """Return the value of a field after its `version`-th assignment, at an offset."""
    label = f"{field.name}|{field.dtype}|{field.staggered}|{version}|{offset}".encode() + field.grid.digest
    return node(
        "read", (), (field, version, offset), key=(ref(field), version, offset), label=label, grid=field.grid
    )


def stage_read(stage: Any, offset: Offset) -> Expr:
    """Return the value of a stage at an offset."""
    label = f"{stage.name}|{offset}".encode() + stage.definition.digest
    return node(
        "stage", (), (stage, offset), key=(ref(stage), offset), label=label, grid=stage.definition.grid
    )


def index(grid: Grid, axis: int, step: int = 0) -> Expr:
    """Return the global index of the cell `step` further along an axis, as a floating-point number.

    Beyond the end of a periodic axis, indices start again at the other end. Beyond walls, indices continue.
    """
    label = f"{axis}|{step}".encode() + grid.digest
    return node("index", (), (axis, step), key=(ref(grid), axis, step), label=label, grid=grid)


SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", **COMPARISONS}


def text(root: Expr, depth: int = 6) -> str:
    """Return an expression as short text, for messages."""
    if root.op == "const":
        short = f"{root.attribute:g}"
        return short if float(short) == root.attribute else repr(root.attribute)
    if root.op == "scalar":
        return str(root.attribute[0]).rstrip("'")  # see trace.INTERNAL
    if root.op == "index":
        axis, step = root.attribute
        return f"index{axis}" + (f"[{step}]" if step else "")
    if root.op in ("read", "stage"):
        offset = root.attribute[-1]
        name: str = root.attribute[0].name
        return name + (str(list(offset)) if any(offset) else "")
    if depth == 0:
        return "..."
    inner = [text(a, depth - 1) for a in root.args]
    if root.op in SIGNS:
        return f"({inner[0]} {SIGNS[root.op]} {inner[1]})"
    if root.op == "neg":
        return f"-{inner[0]}"
    name = root.attribute[0] if root.op == "reduce" else root.op
    if root.op == "lookup":
        inner = [f"{len(root.attribute)} numbers", *inner]
    return f"{name}({', '.join(inner)})"
