"""Programs as text: those with the same text do the same."""

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
    made = hc.Grid(SHAPE, periodic=True)
    return made, [made.field("u"), made.field("v")]


def drawn(draw: random.Random) -> tuple[str, tuple[float, ...]]:
    """The text of a random program, and what it makes of two numbers in the place of its fields: this
    follows the statements itself, with values in the place of expressions."""
    _, fields = grid()
    program, values = Program("random"), [2.0, 3.0]
    kept: list[tuple[Any, float]] = [(fields[0].expr, values[0])]
    with trace.tracing(program):
        for _ in range(draw.randint(1, 5)):
            where = draw.randrange(2)
            kind = draw.choice(["keep", "stage", "set", "use", "use", "swap"])
            if kind == "keep":
                kept.append((hc.sqrt(fields[where]), values[where] ** 0.5))
            elif kind == "stage":
                kept.append((stage(fields[where] + 1.0, "named").expr, values[where] + 1.0))
            elif kind == "set":
                fields[where].set(2.0 * fields[where])
                values[where] *= 2.0
            elif kind == "use":
                expression, value = draw.choice(kept)
                fields[where].set(fields[where] + expression)
                values[where] += value
            else:
                hc.assign({fields[0]: fields[1].expr, fields[1]: fields[0].expr})
                values.reverse()
    return equations.equations(program), tuple(values)


def test_programs_with_the_same_text_do_the_same() -> None:
    draw, found, again = random.Random(4), dict[str, tuple[float, ...]](), 0
    for _ in range(3000):
        text, result = drawn(draw)
        again += text in found
        assert found.setdefault(text, result) == result, text
    assert again > 500  # programs whose text had been there
    assert any("@" in text for text in found)


def text_of(body: Any) -> str:
    _, (u, v) = grid()
    program = Program("one")
    with trace.tracing(program):
        body(u, v)
    return equations.equations(program)


def test_what_was_read_before_it_was_set_anew_is_marked() -> None:
    def before(u: Any, v: Any) -> None:
        e = hc.sqrt(u)
        u.set(2.0 * u)
        v.set(e)

    def after(u: Any, v: Any) -> None:
        u.set(2.0 * u)
        v.set(hc.sqrt(u))

    assert text_of(before) == "u = (u * 2.0)\nv = sqrt(u@0)"
    assert text_of(after) == "u = (u * 2.0)\nv = sqrt(u)"


def test_scalars_and_loops_are_marked_too() -> None:
    def looped(u: Any, v: Any) -> None:
        s = hc.scalar("s")
        s.set(1.0)
        old, still = s + u, 3.0 * v
        with hc.loop(limit=2):
            u.set(old + s)
            v.set(still + v)
            s.set(s + 1.0)

    # of the second pass the values before the loop are no longer those of the pass before
    assert text_of(looped).splitlines()[2:] == [
        "  u = ((u@0 + s@1) + s)",
        "  v = (v + (3.0 * v@0))",
        "  s = (1.0 + s)",
    ]


def kernel(function: Any, offsets: tuple[int, int] = (0, 1)) -> str:
    """The text of fields that are read so far beyond walls where a function gives ghosts."""
    made = hc.Grid(SHAPE)
    u, v = made.field("u", boundary=hc.BoundaryKernel(function)), made.field("v", boundary=hc.Value(1.0))
    program = Program("one")
    with trace.tracing(program):
        inner = stage(u[0, 1] - u)
        v.set(inner[offsets])
    return equations.fields(made, program)


def test_those_layers_count_that_are_read() -> None:
    def far(value: float) -> Any:
        return lambda u, layer: u[0] + (value if layer == 1 else 0.0)

    assert kernel(far(1.0), (0, 0)) == kernel(far(2.0), (0, 0))
    assert kernel(far(1.0)) != kernel(far(2.0))
    assert "Value" not in kernel(far(1.0))  # no neighbour of v is read


def test_a_condition_that_fails_is_not_passed_over() -> None:
    with pytest.raises(InputError, match="ZeroDivisionError"):
        kernel(lambda u: u[0] * (1 / 0))


def test_chains_of_stages_are_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads the one before twice: there are 2^60 ways through them."""
    walks, walk = [], equations.walk

    def counted(roots: Any) -> Any:
        walks.append(roots)
        assert len(walks) < 1000
        return walk(roots)

    monkeypatch.setattr(equations, "walk", counted)
    made = hc.Grid(SHAPE)
    u = made.field("u", boundary=hc.Value(0.0))
    program = Program("one")
    with trace.tracing(program):
        last: Any = u
        for _ in range(60):
            last = stage(last[1, 0] - last)
        u.set(last[0, 1])
    assert "layer 60" in equations.fields(made, program)
    assert equations.equations(program)
