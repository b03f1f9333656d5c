"""Operations of a program: sweeps, scalars, loops and stops in program order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halocline as hc
from halocline.compile.lower import LoopGraph, ScalarGraph, StopGraph, SweepGraph, lower, scalars_in, sweeps
from halocline.errors import InputError


def lowered(program: Callable[..., None]) -> list[Any]:
    """Return the operations of a program of two fields."""
    grid = hc.Grid((8, 8), periodic=True)
    return lower(hc.program(program).trace(grid.field("u"), grid.field("v")))


def test_statements_of_a_cell_are_one_sweep() -> None:
    def program(u: Any, v: Any) -> None:
        u.set(2.0 * u)
        v.set(u - v)

    (sweep,) = lowered(program)
    assert isinstance(sweep, SweepGraph)
    assert [field.name for field in sweep.sets] == ["u", "v"]
    assert sweep.reductions == {}


def test_a_loop_contains_its_operations() -> None:
    def program(u: Any, v: Any) -> None:
        with hc.loop(limit=3):
            u.set(u[0, 1])
            hc.stop(hc.max(u) > 1.0, "large")
        v.set(u[1, 0])

    operations = lowered(program)
    (loop,) = [operation for operation in operations if isinstance(operation, LoopGraph)]
    assert any(isinstance(operation, StopGraph) for operation in loop.body)
    lowered_sweeps = sweeps(operations)
    assert [[field.name for field in sweep.sets] for sweep in lowered_sweeps] == [["u"], ["v"]]
    assert lowered_sweeps[0] in loop.body


def test_scalars_are_named_in_order() -> None:
    def program(u: Any, v: Any) -> None:
        a, b = hc.scalar("a"), hc.scalar("b")
        a.set(hc.sum(u))
        b.set(a * a + 1.0)

    graphs = [operation for operation in lowered(program) if isinstance(operation, ScalarGraph)]
    statements = [statement for graph in graphs for statement in graph.statements]
    assert [name for name, _ in statements] == ["a", "b"]
    assert set(scalars_in([statements[1][1]])) == {"a"}


def test_a_program_without_statements_is_an_error() -> None:
    with pytest.raises(InputError, match="has no statements and sets nothing"):
        lowered(lambda u, v: None)
