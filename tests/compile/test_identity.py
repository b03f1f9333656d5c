"""Identity of programs: equal programs are compiled once, and all others separately."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import halocline as hc
from compiled_programs import schedule_of
from halocline.compile import compiler
from halocline.compile.compiler import compile_program
from halocline.compile.identity import identity
from halocline.compile.ir.pipeline import recorded
from halocline.compile.strategy import Strategy
from halocline.errors import InputError
from halocline.lang.grid import Grid
from halocline.lang.program import Program
from random_programs import Case, Recipe, recipes


class OwnValue(hc.Value):
    """Boundary condition of the user, with unrestricted behaviour."""


SHAPE, EXTENT = (17, 15, 13), (1.5, 0.75, 1.0)


@given(recipes())
def test_equal_programs_have_equal_identities_and_schedules(recipe: Recipe) -> None:
    one, other = (Case(recipe, SHAPE[: recipe.ndim], EXTENT[: recipe.ndim]) for _ in range(2))
    programs = [(case.program.trace(), case.grid) for case in (one, other)]
    first, second = (identity(*program) for program in programs)
    assert first == second
    functions = "'kernel'" in str(recipe) or "'function'" in str(recipe)
    assert (first is None) == functions
    if not functions:
        schedules = [compiler._compile(*program, "read", None, 0) for program in programs]
        assert schedules[0] == schedules[1]


def diffusion(
    shape: tuple[int, ...] = (12, 10),
    *,
    order: int = 2,
    factor: float = 0.1,
    storage: str = "patch",
    wall: Any = None,
    dtype: str = "float64",
    location: str = "cell",
    parameter: str = "kappa",
    limit: int = 3,
    record: bool = False,
    often: int | None = None,
    reason: str = "large",
    cut: bool = False,
    swapped: bool = False,
    **grid_options: Any,
) -> tuple[Program, Grid]:
    """Return a program of diffusion and its grid; each option changes one property."""
    grid = hc.Grid(shape, **grid_options)
    boundary = hc.Value(0.0) if wall is None else wall(grid) if callable(wall) else wall
    for field in ("v", "u") if swapped else ("u", "v"):
        grid.field(field, dtype=dtype, location=location, boundary=boundary)

    def step(u: Any, v: Any) -> None:
        rate, total = factor * hc.parameter(parameter), hc.scalar("total")
        change = hc.stage(rate * hc.laplacian(u, order=order), "change", storage=storage)
        with hc.loop(limit=limit, record=[total] if record else []):
            v.set(u * 2.0)
            total.set(hc.sum(v))
        u.set(u + change[0, 0])
        hc.stop(total > 1.0, reason)
        with hc.loop(limit=2) if often is None else hc.every(often):
            v.set(v - u[1, 0])

    program = hc.program(step).trace(grid.fields["u"], grid.fields["v"])
    if cut:
        program.cuts.add(2)
    return program, grid


MASK = np.array([True, True, False, True, True, True])
DIFFERENCES: list[dict[str, Any]] = [
    {"periodic": (True, False)}, {"walls": "node"}, {"active": MASK.reshape(2, 3)}, {"order": 4},
    {"factor": 0.2}, {"factor": -0.1}, {"storage": "inline"}, {"wall": hc.Value(-0.0)},
    {"wall": hc.Value(0.0, 3)}, {"wall": hc.Derivative(0.0)}, {"wall": hc.Value(hc.parameter("kappa"))},
    {"wall": {side: hc.Value(float(side == "y+")) for side in ("x-", "x+", "y-", "y+")}},
    {"dtype": "float32"}, {"location": "face-x"}, {"parameter": "nu"}, {"limit": 4},
    {"record": True}, {"often": 2}, {"often": 3},
    {"reason": "much"}, {"cut": True}, {"swapped": True},
]  # fmt: skip


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: next(iter(difference)))
def test_each_difference_changes_the_identity(difference: dict[str, Any]) -> None:
    same = identity(*diffusion())
    assert same is not None
    assert same == identity(*diffusion())
    assert identity(*diffusion(**difference)) not in (None, same)


@pytest.mark.parametrize("options", [
    pytest.param({"wall": hc.BoundaryKernel(lambda u: u[0])}, id="boundary kernel"),
    pytest.param({"wall": hc.Value(lambda x, y: x)}, id="boundary value"),
    pytest.param({"wall": lambda grid: hc.Value(grid.x)}, id="expression with several locations"),
    pytest.param({"wall": OwnValue(0.0)}, id="condition of another class"),
    pytest.param({"stretch": {"x": lambda x: x * (0.5 + 0.5 * x)}}, id="stretched axis"),
])  # fmt: skip
def test_functions_of_the_user_are_called_for_each_program(options: dict[str, Any]) -> None:
    assert identity(*diffusion(**options)) is None
    program, grid = diffusion(**options)
    assert compile_program(program, grid) is not compile_program(program, grid)


def test_different_block_shapes_are_different_programs() -> None:
    one, other = (identity(*diffusion(active=MASK.reshape(shape))) for shape in ((2, 3), (3, 2)))
    assert None not in (one, other)
    assert one != other


@pytest.mark.parametrize("options", [
    [{"storage": "inline"}, {"storage": "patch"}], [{"location": "cell"}, {"location": "face-x"}],
], ids=["storage", "location"])  # fmt: skip
def test_stages_of_the_same_name_and_formula_have_no_identity(options: list[dict[str, str]]) -> None:
    grid = hc.Grid(8, periodic=True)
    grid.field("u")

    def step(u: Any) -> None:
        one, other = (hc.stage(u[0] * u[1], "product", **different) for different in options)
        u.set(one[1] - other[-1])

    assert identity(hc.program(step).trace(grid.fields["u"]), grid) is None


def test_all_attributes_read_by_the_compiler_are_in_the_identity() -> None:
    """A new attribute is part of the identity, or is listed as one that the compiler does not read."""
    program, grid = diffusion()
    read = {
        "Program": {"statements", "parameters", "cuts"},
        "Grid": {"periodic", "walls", "maps", "blocks", "fields"},
        "Field": {"grid", "name", "dtype", "staggered", "boundary"},
    }
    not_read = {
        "Program": {"name", "scheme", "notices", "meanings", "in_body"},
        "Grid": {"shape", "extent", "origin", "ndim", "digest", "vectors", "dtype", "has_default_dtype"},
        "Field": {"location", "has_default_dtype"},
    }
    for value in (program, grid, grid.fields["u"]):
        kind = type(value).__name__
        assert {name for name in vars(value) if name[0] != "_"} == read[kind] | not_read[kind]


def test_equal_programs_are_compiled_once() -> None:
    """A program is compiled once for grids of any shape and extent."""
    first = compile_program(*diffusion())
    assert compile_program(*diffusion((20, 17), extent=2.0, origin=0.5)) is first
    assert compile_program(*diffusion(), device=Strategy()) is not first
    assert compile_program(*diffusion()) is first
    assert compile_program(*diffusion(), halo="uniform") is not first
    assert compile_program(*diffusion(factor=0.3)) is not first


def test_programs_on_different_lines_are_different_programs() -> None:
    """Programs with different line numbers differ, since errors of a loop name its line."""

    def one(u: Any) -> None:
        total = hc.scalar("total")
        with hc.loop(until=total > 1.0):
            total.set(hc.sum(u))

    def other(u: Any) -> None:
        total = hc.scalar("total")
        with hc.loop(until=total > 1.0):
            total.set(hc.sum(u))

    other.__name__ = "one"
    schedules = []
    for function in (one, other, one):
        grid = hc.Grid(8, periodic=True)
        grid.field("u")
        schedules.append(schedule_of(grid, function))
    assert schedules[0] is schedules[2]
    assert schedules[0] != schedules[1]


def test_a_cached_schedule_is_not_used_for_another_grid() -> None:
    def step(s: Any, u: Any) -> None:
        total = hc.scalar("total")
        total.set(hc.sum(u))
        s.set(s + total)

    grids = [hc.Grid(8, periodic=True) for _ in range(2)]
    for grid in grids:
        for name in ("s", "u"):
            grid.field(name)
    local, foreign = (hc.program(step).trace(grids[0].fields["s"], grid.fields["u"]) for grid in grids)
    compile_program(local, grids[0])
    with pytest.raises(InputError, match="grid"):
        compile_program(foreign, grids[0])


def test_passes_are_recorded_for_a_cached_program() -> None:
    compile_program(*diffusion())
    with recorded() as trail:
        compile_program(*diffusion())
    assert "translate" in [name for name, _ in trail]


def test_recently_used_schedules_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "MOST_SCHEDULES", 2)
    monkeypatch.setattr(compiler, "_schedules", {})
    schedules = {factor: compile_program(*diffusion(factor=factor)) for factor in (1.0, 2.0)}
    assert compile_program(*diffusion(factor=1.0)) is schedules[1.0]
    compile_program(*diffusion(factor=3.0))
    assert compile_program(*diffusion(factor=1.0)) is schedules[1.0]
    assert compile_program(*diffusion(factor=2.0)) is not schedules[2.0]
    assert len(compiler._schedules) == 2
