"""Random expressions, evaluated point by point and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.lang.expression import as_expr, cast
from halocline.run.engine.prepared import Prepared
from halocline.run.fields.pointwise import Pointwise

# Number of operands, and function of a drawn detail and the operands, by name.
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, lambda d, a, b: a + b),
    "sub": (2, lambda d, a, b: a - b),
    "mul": (2, lambda d, a, b: a * b),
    "div": (2, lambda d, a, b: a / b),
    "pow": (2, lambda d, a, b: hc.pow(a, b)),
    "min": (2, lambda d, a, b: hc.minimum(a, b)),
    "max": (2, lambda d, a, b: hc.maximum(a, b)),
    "sum2": (3, lambda d, *terms: hc.symmetric_sum(*terms)),
    "random": (2, lambda d, a, b: hc.random(d, index=hc.lookup([0.0, 7.0, 1e15], a)) - 0.5 + b),
    "lookup": (1, lambda d, a: hc.lookup([0.5, -1.0, 3.0, 1e-3], a)),
    "cast": (1, lambda d, a: cast(as_expr(a), "float32")),
    "neg": (1, lambda d, a: -a),
    "abs": (1, lambda d, a: abs(a)),
    "sign": (1, lambda d, a: hc.sign(a)),
    "sqrt": (1, lambda d, a: hc.sqrt(a)),
    "exp": (1, lambda d, a: hc.exp(a)),
    "log": (1, lambda d, a: hc.log(a)),
    "sin": (1, lambda d, a: hc.sin(a)),
    "cos": (1, lambda d, a: hc.cos(a)),
    "lt": (4, lambda d, a, b, c, e: hc.where(a < b, c, e)),
    "le": (4, lambda d, a, b, c, e: hc.branch(a <= b, c, e)),
    "gt": (4, lambda d, a, b, c, e: hc.where((a > b) & ~(b > c), c, e)),
    "ge": (4, lambda d, a, b, c, e: hc.branch((a >= b) | (c >= e), c, e)),
    "eq": (4, lambda d, a, b, c, e: hc.where(a == b, c, e)),
    "ne": (4, lambda d, a, b, c, e: hc.where(a != b, c, e)),
}
LEAVES: dict[str, Callable[..., Any]] = {
    "u": lambda d, g, u, v: u,
    "v": lambda d, g, u, v: v,
    "x": lambda d, g, u, v: g.x,
    "number": lambda d, g, u, v: as_expr((0.5, -0.25, 1e300, 1e-300, 3.0, 1 / 3, 1e9)[d]),
}
details = st.integers(0, 6)
trees = st.recursive(
    st.tuples(st.sampled_from([*LEAVES]), details),
    lambda inner: st.one_of(
        [st.tuples(st.just(name), details, *[inner] * count) for name, (count, _) in FUNCTIONS.items()]
    ),
    max_leaves=12,
)


def functions_in(tree: Any) -> set[str]:
    """Return the names of the functions in an expression."""
    name, _, *operands = tree
    return {name}.union(*map(functions_in, operands)) & FUNCTIONS.keys()


def built(tree: Any, *values: Any) -> Any:
    """Return an expression of a grid and two fields from its description."""
    name, detail, *operands = tree
    if name in LEAVES:
        return LEAVES[name](detail, *values)
    value = FUNCTIONS[name][1](detail, *(built(operand, *values) for operand in operands))
    # a sum of float64, since programs with float32 operations are compiled
    return value + values[1] if name == "cast" else value


def check_random_expressions(described: list[Any], choose: Callable[[bool], None]) -> None:
    """Compare the bits of many expressions, in one program, with those of compiled kernels."""
    assume(set().union(*map(functions_in, described)) == FUNCTIONS.keys())
    results = []
    for always in (False, True):
        choose(always)
        grid = hc.Grid((7, 5), extent=(1.0, 2.0), periodic=True)
        u, v = grid.field("u"), grid.field("v")
        stored = [grid.field(f"w{n}", dtype=("float64", "float32")[n % 2]) for n in range(len(described))]
        sim = hc.Simulation(
            grid, lambda u, v, f=(u, v, *stored): {w: -w for w in f}, scheme=hc.Euler(), dt=0.1, threads=1
        )
        sim[u], sim[v] = np.random.default_rng(7).normal(scale=3.0, size=(2, 7, 5))
        for field, tree in zip(stored, described, strict=True):
            sim[field] = hc.where(u == u, built(tree, grid, u, v), u)  # varies from cell to cell
        results.append([sim.gather(field).tobytes() for field in stored])
        (program,) = sim._programs.values()
        assert isinstance(program, Prepared if always else Pointwise)
    differing = [tree for tree, *bits in zip(described, *results, strict=True) if bits[0] != bits[1]]
    assert not differing


# An example takes seconds to compile, so that hypothesis does not shrink it.
few = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
