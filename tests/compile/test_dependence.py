"""Assignment of statements to sweeps, and errors for values that are overwritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halocline as hc
from halocline.compile.dependence import Progress, Use, Verdict, Walls, layers
from halocline.compile.lower import LoopGraph, OperationGraph, ScalarGraph, StopGraph, SweepGraph, lower
from halocline.errors import InputError
from halocline.lang.program import Program


def fields(*names: str, **options: Any) -> tuple[hc.Grid, list[hc.Field]]:
    grid = hc.Grid((8, 8), periodic=options.pop("periodic", True))
    return grid, [grid.field(name, **options) for name in names]


def traced(function: Callable[..., None], *arguments: Any) -> Program:
    return hc.program(function).trace(*arguments)


def summary_of(operations: list[OperationGraph]) -> list[Any]:
    """Return the fields that each sweep sets, with its sums; "s" for scalars, "stop", and lists for loops."""
    summary: list[Any] = []
    for operation in operations:
        if isinstance(operation, SweepGraph):
            sums = [name.lstrip("'").rstrip("0123456789") for name in operation.reductions.values()]
            summary.append(" ".join([*(f.name for f in operation.sets), *sums]))
        elif isinstance(operation, LoopGraph):
            summary.append(summary_of(operation.body))
        elif isinstance(operation, (ScalarGraph, StopGraph)):
            summary.append("s" if isinstance(operation, ScalarGraph) else "stop")
    return summary


def sweeps(function: Callable[..., None], *arguments: Any) -> list[Any]:
    return summary_of(lower(traced(function, *arguments)))


# -- statements that join a sweep, and statements that wait ------------------------------------------


def test_assigned_values_are_read_in_the_sweep_or_at_neighbours_after_it() -> None:
    _, (u, v, w) = fields("u", "v", "w")

    def in_place(u: Any, v: Any) -> None:
        u.set(v + 1)
        w.set(u * 2)

    def beside(u: Any, v: Any) -> None:
        u.set(v + 1)
        w.set(u[1, 0] * 2)

    assert sweeps(in_place, u, v) == ["u w"]
    assert sweeps(beside, u, v) == ["u", "w"]


def test_stages_read_at_neighbours_wait_for_the_sweep() -> None:
    """A stage that is read in place joins the sweep; one that is read at a neighbour waits."""
    _, (u, v) = fields("u", "v")

    def at(*offset: int, deep: bool) -> Callable[..., None]:
        def program(u: Any, v: Any) -> None:
            u.set(v + 1)
            stage = hc.stage(hc.exp(u), "a")
            stage = hc.stage(stage + v[0, 1], "b") if deep else stage
            v.set(stage[offset])

        return program

    for deep in (False, True):
        assert sweeps(at(0, 0, deep=deep), u, v) == ["u v"]
        assert sweeps(at(1, 0, deep=deep), u, v) == ["u", "v"]


def test_sums_include_the_sweep_and_their_uses_wait() -> None:
    _, (u, v) = fields("u", "v")

    def program(u: Any, v: Any) -> None:
        total, half = hc.scalars("total half")
        u.set(v + 1)
        total.set(hc.sum(u))
        half.set(0.5 * total)
        v.set(v + 2)  # independent of the sum: same sweep
        u.set(u - half)

    assert sweeps(program, u, v) == ["u v sum", "s", "u"]


def test_points_outside_a_field_are_ghosts() -> None:
    """A face field that is set from a cell field in place reads a ghost at the upper wall."""
    grid = hc.Grid((8, 8))
    u = grid.field("u", boundary=hc.Symmetric())
    f = grid.field("f", location="face-x", boundary=hc.Symmetric())

    def program(u: Any, f: Any) -> None:
        u.set(u + 1)
        f.set(u[0, 0] * 2)

    assert sweeps(program, u, f) == ["u", "f"]


@pytest.mark.parametrize("reads", ["field", "scalar", "through another"])
def test_ghosts_depend_on_the_reads_of_their_conditions(reads: str) -> None:
    grid = hc.Grid((8, 8), periodic=(False, True))
    v = grid.field("v", boundary=hc.Symmetric())
    middle = grid.field("middle", boundary=hc.BoundaryKernel(lambda m: m.of(v)[0]))
    kernel = {
        "field": lambda u: u.of(v)[0],
        "scalar": lambda u: hc.parameter("level") - u[0],
        "through another": lambda u: u.of(middle)[0],
    }[reads]
    u = grid.field("u", boundary=hc.BoundaryKernel(kernel))
    w = grid.field("w", boundary=hc.Symmetric())

    def program(u: Any, v: Any, w: Any) -> None:
        level = hc.scalar("level") if reads == "scalar" else None
        v.set(v + 1)
        if level is not None:
            level.set(hc.max(v))
        w.set(u[1, 0])

    waits = ["v max", "s", "w"] if reads == "scalar" else ["v", "w"]
    assert sweeps(program, u, v, w) == waits

    def inside(u: Any, v: Any, w: Any) -> None:
        v.set(v + 1)
        w.set(u)  # no ghost

    assert sweeps(inside, u, v, w) == ["v w"]


# -- values that are overwritten ---------------------------------------------------------------------


def test_a_sweep_ends_before_a_needed_value_is_overwritten() -> None:
    """The statement of v waits for neighbours of u, in one sweep with that of w, whose old value it reads."""
    _, (u, v, w) = fields("u", "v", "w")

    def program(u: Any, v: Any, w: Any, beside: bool) -> None:
        old, total = w * 2, hc.scalar("total")
        u.set(u + 1)
        total.set(hc.sum(u))
        w.set(w + 1)
        v.set((u[1, 0] if beside else u) + old)

    assert sweeps(program, u, v, w, True) == ["u sum", "s", "w v"]
    assert sweeps(program, u, v, w, False) == ["u w v sum", "s"]


def test_overwrites_may_end_several_sweeps_in_a_row() -> None:
    _, (u, v, w, x, y) = fields("u", "v", "w", "x", "y")

    def program(u: Any, v: Any, w: Any, x: Any, y: Any) -> None:
        first, second = w * 2, x * 3
        one, two = hc.scalars("one two")
        u.set(u + 1)
        one.set(hc.sum(u))
        w.set(w + 1)
        v.set(u[1, 0] + first)
        two.set(hc.sum(v))
        x.set(x + 1)
        y.set(v[1, 0] + second)

    assert sweeps(program, u, v, w, x, y) == ["u sum", "s", "w v sum", "s", "x y"]


def test_adjacent_assignments_are_cut_together_or_not_at_all() -> None:
    _, (u, v, w) = fields("u", "v", "w")

    def program(u: Any, v: Any, w: Any) -> None:
        old = w * 2
        u.set(u + 1)
        w.set(w + 1)
        v.set(u[1, 0] + old)

    with pytest.raises(InputError, match="value that field 'w' had before"):
        lower(traced(program, u, v, w))


def test_an_overwritten_value_is_reported_with_its_line() -> None:
    _, (u, v) = fields("u", "v")

    def of_a_field(u: Any, v: Any) -> None:
        old = u * 2
        u.set(v[1, 0])
        v.set(u[1, 0])
        v.set(old)

    with pytest.raises(InputError, match=r"test_dependence\.py:\d+: .*value that field 'u' had before"):
        lower(traced(of_a_field, u, v))

    def of_a_scalar(u: Any) -> None:
        a = hc.scalar("a")
        a.set(hc.sum(u))
        old = a + 1
        a.set(2 * hc.max(u))
        u.set(u[1, 0] + a)
        u.set(u[1, 0] + old)

    with pytest.raises(InputError, match=r"value that scalar 'a' had before it was set again"):
        lower(traced(of_a_scalar, u))


def test_loops_distinguish_values_of_successive_passes() -> None:
    _, (u, v) = fields("u", "v")

    def program(u: Any, v: Any) -> None:
        old = u + 0.5
        with hc.loop(limit=3):
            u.set(u + 1)
            v.set(old)

    with pytest.raises(InputError, match="value that field 'u' had before"):
        lower(traced(program, u, v))

    def fine(u: Any, v: Any) -> None:
        with hc.loop(limit=3):
            old = u + 0.5
            u.set(u + 1)
            v.set(old)
        v.set(v[1, 0])
        hc.stop(hc.sum(v) > 1, "enough")

    assert sweeps(fine, u, v) == ["s", ["u v"], "v sum", "s", "stop"]


# -- parts of the analysis ---------------------------------------------------------------------------


def test_dependences_have_the_expected_kind() -> None:
    grid, (u, v) = fields("u", "v")
    progress = Progress(Walls(traced(lambda u, v: u.set(v), u, v)))
    assert progress.verdict(Use(u, 0)) is Verdict.READS
    progress.set(u)
    assert progress.verdict(Use(u, 0, beyond=True)) is Verdict.READS  # reads the value from before the sweep
    assert progress.verdict(Use(u, 1)) is Verdict.FORWARDS
    assert progress.verdict(Use(u, 1, beyond=True)) is Verdict.WAITS
    progress.end_sweep()
    assert progress.verdict(Use(u, 0)) is Verdict.GONE
    assert progress.verdict(Use(u, 1, beyond=True)) is Verdict.READS
    progress.set("a")
    assert progress.verdict(Use("a", 1, in_kernel=False)) is Verdict.READS
    assert progress.verdict(Use("a", 1)) is Verdict.WAITS
    assert progress.verdict(Use("a", 0)) is Verdict.READS
    assert progress.verdict(Use("a", 0, in_kernel=False)) is Verdict.GONE
    assert grid is u.grid


def test_layers_follow_the_longest_path_through_stages() -> None:
    _, (u,) = fields("u")

    def program(u: Any) -> None:
        a = hc.stage(u[2, 0] - u, "a")
        b = hc.stage(a[1, 0] + u[0, -1], "b")
        c = hc.stage(u[0, 3], "c")
        u.set(b[0, 1] + c + a[-1, 0])

    assert layers(traced(program, u)) == 1 + 1 + 1 + 2  # less than the sum over all stages, 1 + 1 + 1 + 2 + 3


def test_an_error_in_a_user_kernel_is_raised_unchanged() -> None:
    """The error is raised if the program reads the layer; a condition for an unread layer may fail."""

    def kernel(u: Any, layer: int) -> Any:
        if layer == 1:
            raise InputError("this condition knows one layer")
        return u[0]

    grid = hc.Grid((8, 8))
    grid.field("u", boundary=hc.BoundaryKernel(kernel))
    hc.Simulation(grid, hc.program(lambda u: u.set(u[1, 0])))
    with pytest.raises(InputError, match="this condition knows one layer"):
        hc.Simulation(grid, hc.program(lambda u: u.set(u[2, 0])))
