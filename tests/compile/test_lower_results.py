"""Waits for results of reductions: as late as possible, and before the first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halocline as hc
from halocline.compile.lower import (
    AwaitGraph,
    LoopGraph,
    OperationGraph,
    ScalarGraph,
    SweepGraph,
    lower,
    with_waits,
)


def arranged(program: Callable[..., None], reads: set[str] = frozenset()) -> list[Any]:
    """Return the operations of a program as words: sweep, wait, the names of scalars; lists for loops."""
    grid = hc.Grid((8, 8), periodic=True)
    operations = lower(hc.program(program).trace(grid.field("u"), grid.field("v")))

    def words(operations: list[OperationGraph]) -> list[Any]:
        summary: list[Any] = []
        for operation in operations:
            if isinstance(operation, SweepGraph):
                summary.append("sweep")
            elif isinstance(operation, AwaitGraph):
                summary.append("wait")
            elif isinstance(operation, ScalarGraph):
                summary.append(" ".join(name for name, _ in operation.statements))
            elif isinstance(operation, LoopGraph):
                summary.append(words(operation.body))
        return summary

    return words(with_waits(operations, lambda sweep: set(reads)))


def test_independent_operations_overlap_with_a_reduction() -> None:
    def program(u: Any, v: Any) -> None:
        total = hc.scalar("total")
        total.set(hc.sum(u))
        v.set(u[1, 0] - v)
        v.set(v[0, 1] - u)
        hc.scalar("half").set(0.5 * total)

    operations = arranged(program)
    assert operations[-2:] == ["wait", "total half"]
    assert operations.count("sweep") >= 2
    assert operations.count("wait") == 1


def test_a_reduction_waits_for_the_previous_one() -> None:
    def program(u: Any, v: Any) -> None:
        hc.scalar("first").set(hc.sum(u))
        v.set(u[1, 0])
        hc.scalar("second").set(hc.sum(u * v[1, 0]))

    operations = arranged(program)
    assert operations.count("wait") == 2
    assert operations.index("wait") < len(operations) - 1 - operations[::-1].index("sweep")


def test_the_body_of_a_loop_ends_with_its_wait() -> None:
    def program(u: Any, v: Any) -> None:
        with hc.loop(limit=3):
            u.set(u[0, 1])
            hc.scalar("most").set(hc.max(u))

    (body,) = [operation for operation in arranged(program) if isinstance(operation, list)]
    assert body[-1] == "wait" or body[-2] == "wait"
