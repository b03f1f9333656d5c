"""Functions of expressions, applied in each cell, and of vectors, applied to each component.

The functions of NumPy with the same meaning are mapped to the functions of this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from halocline.errors import InputError
from halocline.lang import expression as graph
from halocline.lang.expression import Expr, Operand, Operators, branch, where
from halocline.lang.grid import Vector, by_component
from halocline.lang.values import as_real
from halocline.words import short_repr

LARGEST_TABLE = 8192  # maximum number of entries: 64 KiB, the constant memory of devices


@by_component
def sqrt(x: Operand) -> Expr:
    """Return the square root, correctly rounded."""
    return graph.unary("sqrt", x)


@by_component
def exp(x: Operand) -> Expr:
    """Return the exponential function, with an error below 1 ulp."""
    return graph.unary("exp", x)


@by_component
def log(x: Operand) -> Expr:
    """Return the natural logarithm, with an error below 1 ulp."""
    return graph.unary("log", x)


@by_component
def sin(x: Operand) -> Expr:
    """Return the sine of an angle in radians, with an error below 1 ulp."""
    return graph.unary("sin", x)


@by_component
def cos(x: Operand) -> Expr:
    """Return the cosine of an angle in radians, with an error below 1 ulp."""
    return graph.unary("cos", x)


@by_component
def pow(x: Operand, y: Operand) -> Expr:
    """Return x to the power y, with an error below 2 ulp; small integer exponents become products."""
    return graph.power(x, y)


@by_component
def abs(x: Operand) -> Expr:
    """Return the absolute value; of a vector, by component.

    The length of a vector is ``hc.sqrt(hc.dot(v, v))``.
    """
    return graph.unary("abs", x)


@by_component
def sign(x: Operand) -> Expr:
    """Return the sign as -1, 0 or 1; zeros keep their sign."""
    return graph.unary("sign", x)


@by_component
def minimum(a: Operand, b: Operand, *more: Operand) -> Expr:
    """Return the minimum of the operands, or NaN if an operand is NaN; -0 is less than +0."""
    return _select("min", a, b, *more)


@by_component
def maximum(a: Operand, b: Operand, *more: Operand) -> Expr:
    """Return the maximum of the operands, or NaN if an operand is NaN; -0 is less than +0."""
    return _select("max", a, b, *more)


def _select(op: str, first: Operand, *rest: Operand) -> Expr:
    def extreme(a: Expr, b: Expr) -> Expr:
        return a if a is b else graph.operation(op, a, b)

    result = graph.as_expr(first)
    for operand in rest:
        result = graph.pointwise(extreme, result, graph.as_expr(operand))
    return result


def symmetric_sum(*terms: Any) -> Any:
    """Return a sum whose bits do not depend on the order of its terms, for mirror-symmetric schemes.

    The compiler fuses no product with these additions. Two terms are added directly, since addition commutes.
    With three terms a, b and c, the result is the median of (a + b) + c, (b + c) + a and (c + a) + b. If all
    terms change sign, only the sign of the sum changes. More than three terms are sorted by value before they
    are added.

    Parameters
    ----------
    *terms : fields, expressions or numbers; or vectors of them, which are added by component
    """
    if any(isinstance(t, tuple) for t in terms):
        if not all(isinstance(t, tuple) and len(t) == len(terms[0]) for t in terms):
            raise InputError(
                f"terms of symmetric_sum are {short_repr(terms)}; expected expressions only, or vectors "
                "of the same number of components only"
            )
        return Vector(symmetric_sum(*components) for components in zip(*terms, strict=True))
    values = [graph.as_expr(t) for t in terms]
    if len(values) == 3:
        a, b, c = values
        lower, upper = _sort_pair(
            _commutative_sum(_commutative_sum(a, b), c), _commutative_sum(_commutative_sum(b, c), a)
        )
        median = _sort_pair(upper, _commutative_sum(_commutative_sum(c, a), b))[0]
        return _sort_pair(lower, median)[1]
    # odd-even transposition sort, then the sum in ascending order
    for phase in range(len(values) if len(values) > 3 else 0):
        for i in range(phase % 2, len(values) - 1, 2):
            values[i], values[i + 1] = _sort_pair(values[i], values[i + 1])
    total = values[0] if values else graph.as_expr(0.0)
    for value in values[1:]:
        total = _commutative_sum(total, value)
    return total


def _commutative_sum(a: Expr, b: Expr) -> Expr:
    return graph.operation("sum2", a, b)


def _sort_pair(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Return two values in ascending order. Both values are kept, even if one is NaN."""
    in_order = a < b
    return where(in_order, a, b), where(in_order, b, a)


def random(seed: Operand, step: Operand = 0, index: Operand = 0) -> Expr:
    """Return a random number, uniform in [0, 1), as a function of three integers only.

    The same integers always give the same bits, on every rank and device. For a field of random numbers, pass
    the result of `Grid.cell_number` as `index`. For further random numbers in the same cell and step, use
    another `seed`, such as ``seed + 1``. The seed may be a parameter.

    Parameters
    ----------
    seed, step, index : expression, scalar or number
        Integers from 0 to 2**53 - 1. If a value that is computed in a run is not such an integer, the result
        is NaN.

    Raises
    ------
    InputError
        A number in the call is not such an integer.

    Notes
    -----
    The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2,
    3, SC11, 2011). The counter is (index low, index high, step low, step high), and the key is (seed low,
    seed high), in words of 32 bits. The number is formed from the first two words of the result, w0 and w1:
    the upper 53 bits of 2**32 w1 + w0, times 2**-53. In a float32 field, the number is rounded to float32,
    and a number above 1 - 2**-25 becomes 1.

    Examples
    --------
    >>> import halocline as hc
    >>> grid = hc.Grid((64, 32), periodic=True)
    >>> noise = 0.01 * (hc.random(7, index=grid.cell_number()) - 0.5)
    """
    arguments = {"seed": seed, "step": step, "index": index}
    return graph.operation("random", *(_counter(value, name) for name, value in arguments.items()))


def _counter(value: Operand, name: str) -> Expr:
    """Return an argument of `random` as an expression."""
    number: Any = value
    if not isinstance(value, int):  # an int may be too large for a float
        argument = graph.as_expr(value, name)
        number = argument.attribute if argument.op == "const" else 0
        if argument.condition:
            raise InputError(f"hc.random: {name} is the condition {argument!r}; expected a whole number")
    if not (0 <= number < 2**53 and number == int(number)):
        raise InputError(
            f"{name} of random is {short_repr(number)}; expected a whole number from 0 to 2**53 - 1"
        )
    return graph.as_expr(value, name)


def lookup(values: Sequence[float], index: Operand) -> Expr:
    """Return an entry of a table of numbers, chosen by its index: ``values[index]`` at each cell.

    Parameters
    ----------
    values : sequence of float
        Finite numbers, at most 8192, which become constants of the generated code.
    index : expression, scalar or number
        Index, truncated toward zero. An index below 0 selects the first entry. An index beyond the end, or
        NaN, selects the last entry.

    Raises
    ------
    InputError
        The table is empty or too large, or an entry is not a finite number.

    Examples
    --------
    >>> import halocline as hc
    >>> wave_numbers = (1.0, 2.0, 4.0)
    >>> k = hc.lookup(wave_numbers, 3 * hc.random(7, step=hc.parameter("step")))
    """
    if not isinstance(values, Iterable) or isinstance(values, (str, Operators)):
        raise InputError(f"values of lookup are {values!r}; expected a sequence of numbers")
    numbers = [_table_entry(value, position) for position, value in enumerate(values)]
    if not 0 < len(numbers) <= LARGEST_TABLE:
        raise InputError(f"lookup in {len(numbers)} values; expected 1 to {LARGEST_TABLE}")
    index_value = graph.as_expr(index, "index")
    if index_value.condition:
        raise InputError(f"hc.lookup: index is the condition {index_value!r}; expected a whole number")
    if index_value.op == "const":
        last, at = len(numbers) - 1, index_value.attribute
        return graph.as_expr(numbers[(int(at) if at > 0 else 0) if at < last else last])
    hex_texts = tuple(number.hex() for number in numbers)  # unlike numbers, these texts distinguish -0 from 0
    return graph.operation(
        "lookup", index_value, attribute=hex_texts, key=hex_texts, label=repr(hex_texts).encode()
    )


def _table_entry(value: Any, position: int) -> float:
    """Return an entry of a table as a float."""
    number = as_real(value)
    if number is None or not math.isfinite(number):
        raise InputError(
            f"entry {position} of the values of lookup is {short_repr(value)}; expected a finite number"
        )
    return number


# tanh a = a - a z P(z) / Q(z) with z = a a: Lambert's continued fraction a / (1 + z / (3 + z / (5 + ...))) up
# to 13, rearranged. The relative error is 7e-18 below 0.625.
_TANH_ABOVE = (675675.0, 45045.0, 594.0, 1.0)
_TANH_BELOW = (2027025.0, 945945.0, 51975.0, 630.0, 1.0)

# sinh a = a + a z S(z): Taylor's series. The relative error is 2e-20 below 1.
_SINH = tuple(1.0 / math.factorial(n) for n in range(3, 21, 2))


def _polynomial(coefficients: Sequence[float], z: Expr) -> Expr:
    """Return a polynomial in z from its coefficients, beginning with the constant term."""
    total = graph.as_expr(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * z + c
    return total


@by_component
def tanh(x: Operand) -> Expr:
    """Return the hyperbolic tangent, with an error below 3 ulp and without overflow for any argument."""
    a = graph.unary("abs", x)
    z = a * a
    is_small = a < 0.625
    e = exp(-2.0 * a)
    above: Expr = where(is_small, a * z * _polynomial(_TANH_ABOVE, z), 2.0 * e)
    below: Expr = where(is_small, _polynomial(_TANH_BELOW, z), 1.0 + e)
    start: Expr = where(is_small, a, 1.0)
    return sign(x) * (start - above / below)


def _half_exp(a: Expr) -> Expr:
    """Return exp(a) / 2, even if exp(a) is out of range."""
    root = exp(0.5 * a)
    return 0.5 * root * root


def _sinh(x: Operand) -> Expr:
    """Return the hyperbolic sine, with an error below 4 ulp."""
    a = graph.unary("abs", x)
    z = a * a
    half = _half_exp(a)
    size: Expr = where(a < 1.0, a + a * (z * _polynomial(_SINH, z)), half - 0.25 / half)
    return sign(x) * size


def _cosh(x: Operand) -> Expr:
    """Return the hyperbolic cosine, with an error below 4 ulp."""
    half = _half_exp(graph.unary("abs", x))
    return half + 0.25 / half


# Equivalents of the functions of NumPy, by name.
_BINARY = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "less": "lt", "less_equal": "le",
    "greater": "gt", "greater_equal": "ge", "equal": "eq", "not_equal": "ne", "logical_and": "and",
    "logical_or": "or",
}  # fmt: skip
UFUNCS: Mapping[str, Callable[..., Any]] = {
    **{name: partial(graph.binary, op) for name, op in _BINARY.items()},
    "power": graph.power,
    "float_power": graph.power,
    "negative": lambda a: graph.unary("neg", a),
    "positive": graph.as_expr,
    "absolute": abs,
    "fabs": abs,
    "sign": sign,
    "sqrt": sqrt,
    "square": lambda a: graph.power(a, 2),
    "reciprocal": lambda a: graph.binary("div", 1.0, a),
    "exp": exp,
    "log": log,
    "sin": sin,
    "cos": cos,
    "tan": lambda a: sin(a) / cos(a),
    "tanh": tanh,
    "cosh": _cosh,
    "sinh": _sinh,
    "log10": lambda a: log(a) / math.log(10.0),
    "minimum": minimum,
    "maximum": maximum,
    "logical_not": lambda a: graph.unary("not", a),
}


__all__ = [
    "abs", "branch", "cos", "exp", "log", "lookup", "maximum", "minimum", "pow", "random", "sign", "sin",
    "sqrt", "symmetric_sum", "tanh", "where",
]  # fmt: skip
