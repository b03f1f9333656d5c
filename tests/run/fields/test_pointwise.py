"""Programs that are evaluated point by point have the bits of compiled ones, and compile nothing.

Fixed expressions cover every operation. Random ones nest all operations in each other.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.errors import InputError
from halocline.lang.expression import as_expr, cast
from halocline.run.engine.prepared import Prepared
from halocline.run.fields import pointwise as module
from halocline.run.fields.pointwise import OPERATIONS, Pointwise

README = (Path(__file__).parents[3] / "README.md").read_text()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Choose whether all programs are compiled, or none that can be evaluated point by point."""

    def choose(always: bool) -> None:
        monkeypatch.setattr(module, "MOST_WORK", -1 if always else 2**40)

    return choose


Makes = Callable[[Any, Any, Any], Any]

EXPRESSIONS: list[Makes] = [
    lambda g, u, v: 0.1 * g.x + hc.sin(3 * g.x) * g.y - 2.0,
    lambda g, u, v: hc.exp(-50 * ((g.x - 0.5) ** 2 + (g.y - 0.5) ** 2)) / (1.0 + hc.sqrt(abs(u))),
    lambda g, u, v: hc.cos(1e9 * u) + hc.sin(g.y * v) - hc.log(abs(v) + 1e-300) ** 3,
    lambda g, u, v: (abs(u) + 0.25) ** 0.3 + hc.minimum(u, v) * hc.maximum(u, -v, g.x),
    lambda g, u, v: hc.where((u > v) & ~(u < 0.25) | (g.x >= 0.5), u * v + g.x, hc.branch(u != v, v, 1.5)),
    lambda g, u, v: hc.random(7, index=g.cell_number()) - 0.5 + hc.sign(v) * hc.where(u == v, 2.0, -u),
    lambda g, u, v: hc.where((u <= v) | (u == 0.5), 1e300 * u, -v) + u * v - v * u + u * u,
    lambda g, u, v: cast(u / 3.0, "float32") + 1.0 / (v + 3.0),
    lambda g, u, v: hc.lookup([0.5, -1.0, 3.0], 4 * g.x - 1) + hc.symmetric_sum(u, v, g.x),
]

NUMBERS: list[Makes] = [
    lambda g, u, v: hc.max(u),
    lambda g, u, v: hc.min(abs(v)) + hc.sum(u * v) * hc.sum(g.x * u),
    lambda g, u, v: hc.norm(u - hc.sum(u) / 35.0),
    lambda g, u, v: hc.count(u > 0.25) + hc.dot(u, v),
    lambda g, u, v: hc.value(u, at=(3, 4)) - 2.0 * hc.value(v, at=(6, 0)),
    lambda g, u, v: hc.max(u / v) + hc.sum(hc.exp(v)),
]


def simulation() -> tuple[hc.Simulation, hc.Field, hc.Field]:
    """Return a simulation of fields with random values, and two of the fields."""
    grid = hc.Grid((7, 5), extent=(1.0, 2.0), periodic=True)
    u, v = grid.field("u"), grid.field("v")
    results = [grid.field(f"w{n}", dtype=("float64", "float32")[n % 2]) for n in range(len(EXPRESSIONS))]
    sim = hc.Simulation(grid, lambda: {f: -f for f in (u, v, *results)}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[u], sim[v] = np.random.default_rng(5).normal(size=(2, 7, 5))
    return sim, u, v


def evaluated(sim: hc.Simulation, u: hc.Field, v: hc.Field) -> list[Any]:
    """Return checksums of all expressions, evaluated in one program, and all numbers, in another."""
    fields = [sim.grid.fields[f"w{n}"] for n in range(len(EXPRESSIONS))]
    for field, make in zip(fields, EXPRESSIONS, strict=True):
        sim[field] = make(sim.grid, u, v)
    sums = [sim.checksum(field) for field in fields]
    numbers = sim.evaluate(*(make(sim.grid, u, v) for make in NUMBERS), hc.max(fields[1]))
    return [*sums, *(number.hex() for number in numbers)]


@pytest.mark.ranks(1, 2)
def test_values_have_the_bits_of_compiled_programs(compiled: Callable[[bool], None]) -> None:
    results = []
    for always in (False, True):
        compiled(always)
        sim, u, v = simulation()
        results.append(evaluated(sim, u, v))
        programs = [*sim._programs.values()]
        assert len(programs) == 2
        assert all(isinstance(program, Prepared if always else Pointwise) for program in programs)
        if not always:
            sweeps = [step for p in programs for step in p.steps if not isinstance(step, tuple)]
            assert {value.op for sweep in sweeps for value in sweep.kernel.values} == OPERATIONS
    assert results[0] == results[1]
    assert len(set(results[0])) == len(EXPRESSIONS) + len(NUMBERS) + 1


@pytest.mark.parametrize("location", ["node", pytest.param("face-x", marks=pytest.mark.long)])
def test_values_on_walls_have_the_bits_of_compiled_programs(
    location: str, compiled: Callable[[bool], None]
) -> None:
    found = []
    for always in (False, True):
        compiled(always)
        grid = hc.Grid((6, 5))
        w = grid.field("w", location=location, boundary=hc.Value(lambda x, y: 1.0 + x + y))
        sim = hc.Simulation(grid, lambda w: {w: -w}, scheme=hc.Euler(), dt=0.1, threads=1)
        sim[w] = lambda x, y: np.cos(x) + 2.0 * y
        first = sim.checksum(w)
        found.append((first, sim.evaluate(hc.sum(w)), sim.evaluate(hc.max(w))))
    assert found[0] == found[1]


# Numbers of operands and functions of a drawn detail and the operands, by name.
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
    # a sum of float64: programs with operations in float32 are compiled
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


# An example takes seconds to compile: none is made smaller.
few = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@settings(few, max_examples=1)
@given(described=st.lists(trees, min_size=16, max_size=16))
def test_random_expressions_have_the_bits_of_compiled_ones(
    described: list[Any], compiled: Callable[[bool], None]
) -> None:
    check_random_expressions(described, compiled)


@pytest.mark.long
@settings(few, max_examples=25)
@given(described=st.lists(trees, min_size=48, max_size=48))
def test_many_random_expressions_have_the_bits_of_compiled_ones(
    described: list[Any], compiled: Callable[[bool], None]
) -> None:
    check_random_expressions(described, compiled)


def test_programs_with_neighbours_are_compiled(compiled: Callable[[bool], None]) -> None:
    compiled(False)
    sim, u, v = simulation()
    sim._forget_programs()
    for expression in (hc.max(u[1, 0]), hc.sum(hc.laplacian(u))):
        sim.evaluate(expression)
    assert [type(p) for p in sim._programs.values()] == [Prepared] * 2
    sim.evaluate(hc.max(u + v))
    assert type([*sim._programs.values()][-1]) is Pointwise


def test_a_program_that_runs_often_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    sim, u, _ = simulation()
    first = sim.evaluate(hc.max(u))
    (program,) = sim._programs.values()
    assert isinstance(program, Pointwise)
    assert program.done == program.work == 2 * 35  # a load and a result for each point
    monkeypatch.setattr(module, "MOST_WORK", 3 * program.work)
    for _ in range(2):
        assert sim.evaluate(hc.max(u)) == first
    assert type(*sim._programs.values()) is Pointwise
    assert sim.evaluate(hc.max(u)) == first
    assert type(*sim._programs.values()) is Prepared


def test_a_parameter_without_a_value_is_rejected(compiled: Callable[[bool], None]) -> None:
    messages = []
    for always in (False, True):
        compiled(always)
        sim, u, _ = simulation()
        with pytest.raises(InputError) as caught:
            sim.evaluate(hc.max(u) * hc.parameter("kapa"))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "kapa" in messages[0]


def test_the_first_program_of_the_readme_compiles_one_library(tmp_path: Path) -> None:
    """Also from a constant start, which needs no other one."""
    program = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    before, start, after = re.split(r"(^sim\[T\] = .*\n)", program, flags=re.MULTILINE)
    environment = os.environ | {"HALOCLINE_CACHE": str(tmp_path / "cache")}
    for setting, expected in ((start, 0.59975), ("sim[T] = 1.0\n", 1.0)):
        done = subprocess.run(
            [sys.executable, "-c", before + setting + after], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        checksum, largest = done.stdout.split()
        assert len(checksum) == 32
        assert float(largest) == pytest.approx(expected, abs=1e-5)
        assert len(list((tmp_path / "cache").glob("*.so"))) == 1
