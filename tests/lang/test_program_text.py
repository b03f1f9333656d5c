"""Programs as text: programs with the same text have the same effect."""

from __future__ import annotations

import random
from typing import Any

import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.lang import equations, trace
from halocline.lang.program import Program, stage

SHAPE = (6, 5)


def grid() -> tuple[hc.Grid, list[Any]]:
    square = hc.Grid(SHAPE, periodic=True)
    return square, [square.field("u"), square.field("v")]


def drawn(draw: random.Random) -> tuple[str, tuple[float, ...]]:
    """Return the text of a random program, and its result for two numbers in place of its fields.

    The function follows the statements itself, with values in place of expressions.
    """
    _, fields = grid()
    program, values = Program("random"), [2.0, 3.0]
    operands: list[tuple[Any, float]] = [(fields[0].expr, values[0])]
    with trace.tracing(program):
        for _ in range(draw.randint(1, 5)):
            target = draw.randrange(2)
            kind = draw.choice(["keep", "stage", "set", "use", "use", "swap"])
            if kind == "keep":
                operands.append((hc.sqrt(fields[target]), values[target] ** 0.5))
            elif kind == "stage":
                operands.append((stage(fields[target] + 1.0, "named").expr, values[target] + 1.0))
            elif kind == "set":
                fields[target].set(2.0 * fields[target])
                values[target] *= 2.0
            elif kind == "use":
                expression, value = draw.choice(operands)
                fields[target].set(fields[target] + expression)
                values[target] += value
            else:
                hc.assign({fields[0]: fields[1].expr, fields[1]: fields[0].expr})
                values.reverse()
    return equations.equations(program), tuple(values)


def test_programs_with_equal_texts_have_equal_results() -> None:
    draw, results, repeated = random.Random(4), dict[str, tuple[float, ...]](), 0
    for _ in range(3000):
        text, result = drawn(draw)
        repeated += text in results
        assert results.setdefault(text, result) == result, text
    assert repeated > 500  # programs whose text occurred before
    assert any("@" in text for text in results)


def text_of(body: Any) -> str:
    _, (u, v) = grid()
    program = Program("one")
    with trace.tracing(program):
        body(u, v)
    return equations.equations(program)


def test_old_values_of_fields_are_marked() -> None:
    def before(u: Any, v: Any) -> None:
        e = hc.sqrt(u)
        u.set(2.0 * u)
        v.set(e)

    def after(u: Any, v: Any) -> None:
        u.set(2.0 * u)
        v.set(hc.sqrt(u))

    assert text_of(before) == "u = (u * 2.0)\nv = sqrt(u@0)"
    assert text_of(after) == "u = (u * 2.0)\nv = sqrt(u)"


def test_old_values_of_scalars_and_loops_are_marked() -> None:
    def looped(u: Any, v: Any) -> None:
        s = hc.scalar("s")
        s.set(1.0)
        old, still = s + u, 3.0 * v
        with hc.loop(limit=2):
            u.set(old + s)
            v.set(still + v)
            s.set(s + 1.0)

    # in the second pass, the values before the loop differ from those of the previous pass
    assert text_of(looped).splitlines()[2:] == [
        "  u = ((u@0 + s@1) + s)",
        "  v = (v + (3.0 * v@0))",
        "  s = (1.0 + s)",
    ]


def kernel(function: Any, offsets: tuple[int, int] = (0, 1)) -> str:
    """Return the text of fields with reads at these offsets beyond walls, with ghosts of a function."""
    grid_with_walls = hc.Grid(SHAPE)
    u, v = (
        grid_with_walls.field("u", boundary=hc.BoundaryKernel(function)),
        grid_with_walls.field("v", boundary=hc.Value(1.0)),
    )
    program = Program("one")
    with trace.tracing(program):
        inner = stage(u[0, 1] - u)
        v.set(inner[offsets])
    return equations.fields(grid_with_walls, program)


def test_the_text_contains_only_layers_that_are_read() -> None:
    def at_second_layer(value: float) -> Any:
        return lambda u, layer: u[0] + (value if layer == 1 else 0.0)

    assert kernel(at_second_layer(1.0), (0, 0)) == kernel(at_second_layer(2.0), (0, 0))
    assert kernel(at_second_layer(1.0)) != kernel(at_second_layer(2.0))
    assert "Value" not in kernel(at_second_layer(1.0))  # no neighbour of v is read


def test_errors_in_boundary_kernels_are_raised() -> None:
    with pytest.raises(InputError, match="ZeroDivisionError"):
        kernel(lambda u: u[0] * (1 / 0))


def test_chains_of_stages_are_visited_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of stages is visited once, although 2^60 paths lead through it.

    Each stage reads the previous one twice.
    """
    walks, walk = [], equations.walk

    def counted(roots: Any) -> Any:
        walks.append(roots)
        assert len(walks) < 1000
        return walk(roots)

    monkeypatch.setattr(equations, "walk", counted)
    grid_with_walls = hc.Grid(SHAPE)
    u = grid_with_walls.field("u", boundary=hc.Value(0.0))
    program = Program("one")
    with trace.tracing(program):
        last: Any = u
        for _ in range(60):
            last = stage(last[1, 0] - last)
        u.set(last[0, 1])
    assert "layer 60" in equations.fields(grid_with_walls, program)
    assert equations.equations(program)
