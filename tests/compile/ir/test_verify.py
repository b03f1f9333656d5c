"""Verification of the intermediate representation of kernels: rejected kernels and invalid passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from halocline.compile.ir import pipeline
from halocline.compile.ir.kernel import Array, Kernel, Value
from halocline.compile.ir.statements import (
    Allocate,
    Axis,
    Barrier,
    Body,
    Let,
    Nest,
    Reduce,
    Row,
    Store,
    Strip,
    rewritten,
)
from halocline.compile.ir.verify import InvalidKernel, verify
from halocline.compile.passes.loops import loops, place
from halocline.compile.passes.pieces import pieces
from halocline.compile.passes.scratch import scratch
from kernels import small

NONE = ((0, 0),)


def changed(body: Callable[[Nest, Nest], tuple[Nest, ...]]) -> Kernel:
    kernel = small()
    first, second = kernel.body
    assert isinstance(first, Nest)
    assert isinstance(second, Nest)
    return replace(kernel, body=body(first, second))


def row_loop(kind: str = "stream", body: Body = ()) -> Axis:
    return Axis((0,), kind, 1, body)


def within(loop: Axis) -> Kernel:
    """Return a kernel whose first nest contains a loop."""
    return changed(lambda a, b: (replace(a, body=(*a.body, loop)), b))


def with_value(number: int, value: Value) -> Kernel:
    values = list(small().values)
    values[number] = value
    return replace(small(), values=tuple(values))


def after_place(change: Callable[[Strip], tuple[object, ...]]) -> Kernel:
    kernel = place(pieces(loops(scratch(small()))))

    def strips(statement: object) -> tuple[object, ...]:
        return change(statement) if isinstance(statement, Strip) else (statement,)

    return replace(kernel, body=rewritten(kernel.body, strips))  # type: ignore[arg-type]


def without_lets(strip: Strip) -> tuple[object, ...]:
    (let,) = (s for s in strip.body if isinstance(s, Let))
    fewer = Let(let.values[1:])
    return (replace(strip, body=tuple(fewer if s is let else s for s in strip.body)),)


def twice(strip: Strip) -> tuple[object, ...]:
    return (replace(strip, body=(strip.body[0], *strip.body)),)


WRONG: dict[str, tuple[Callable[[], Kernel], str]] = {
    "operation": (lambda: with_value(1, Value("square", (0,))), "unknown operation"),
    "arguments": (lambda: with_value(1, Value("mul", (0,))), "1 arguments, expected 2"),
    "order": (
        lambda: with_value(1, Value("mul", (0, 4))),
        "takes value 4; expected one with a smaller number",
    ),
    "precision": (lambda: with_value(1, Value("mul", (0, 0), dtype="float16")), "unknown precision"),
    "condition": (
        lambda: with_value(4, Value("and", (2, 3))),
        "argument 0, value 2, is a number; expected a condition",
    ),
    "number": (lambda: with_value(4, Value("lt", (2, 3))), "is a condition; expected a number"),
    "depth": (lambda: with_value(4, Value("sub", (2, 3), depth=0)), "varies along 0 axes, expected 3"),
    "array": (lambda: with_value(2, Value("load", (), ("v", (1,)))), "there is no array 'v'"),
    "axes": (
        lambda: with_value(2, Value("load", (), ("u", (1, 0)))),
        r"offset \(1, 0\) into array 'u'; expected 1",
    ),
    "kind of number": (
        lambda: with_value(2, Value("load", (), ("u", (1,)), "float32")),
        "it is float32, but array 'u' is float64",
    ),
    "names": (lambda: replace(small(), arrays=(*small().arrays, Array("u", "float64"))), "two arrays have"),
    "store": (lambda: changed(lambda a, b: (a, replace(b, body=(Store("q", 6),)))), "there is no array 'q'"),
    "stage before use": (lambda: changed(lambda a, b: (b, a)), "'s' is read before it is stored"),
    "stage twice": (lambda: changed(lambda a, b: (a, a, b)), "'s' is stored twice"),
    "extent": (
        lambda: changed(lambda a, b: (replace(a, extent=NONE), b)),
        r"'s' is read at \(-1,\), beyond \(\(0, 0\),\)",
    ),
    "upper wall": (
        lambda: changed(lambda a, b: (a, replace(b, top=(2,)))),
        r"'s' is read at \(-1,\), beyond \(\(1, 0\),\)",
    ),
    "room": (
        lambda: replace(changed(lambda a, b: (b,)), body=(Allocate("s", NONE, (0,)), small().body[1])),
        "beyond",
    ),
    "reductions": (
        lambda: changed(lambda a, b: (a, replace(b, body=(*b.body, Reduce(0, "min", 0))))),
        "two reductions have the same number",
    ),
    "nest in a nest": (lambda: changed(lambda a, b: (replace(a, body=(a,)), b)), "a nest in a nest"),
    "loop outside": (lambda: replace(small(), body=(row_loop(), *small().body)), "Axis outside of Nest"),
    "loop of an unknown kind": (lambda: within(row_loop("sideways")), "of kind 'sideways' with step 1"),
    "loop without step": (lambda: within(replace(row_loop(), step=0)), "of kind 'stream' with step 0"),
    "repeated loop": (lambda: within(row_loop(body=(row_loop(),))), "two loops over axis 0"),
    "several axes": (
        lambda: within(Axis((0, 1), "stream", 1, ())),
        r"over axes \(0, 1\); expected 0, 1 or 2",
    ),
    "barrier of some threads": (
        lambda: within(Axis((0,), "block", 0, (row_loop("thread", (Barrier(),)),))),
        "Barrier within the cells of a thread",
    ),
    "nests that depend on each other": (
        lambda: changed(lambda a, b: (replace(a, kernel=0), replace(b, kernel=0))),
        r"two nests of device kernel 0 depend on each other by \['s'\]",
    ),
    "threads without blocks": (lambda: within(row_loop("thread")), "but thread blocks do not"),
    "row outside": (lambda: replace(small(), body=(Row("u", (0, 0)), *small().body)), "Row outside of Nest"),
    "span": (
        lambda: after_place(lambda strip: (replace(strip, span="block"),)),
        "Strip over a block outside of RowBlocks",
    ),
    "placed late": (lambda: after_place(without_lets), "before value 0, its argument|before the value is"),
    "placed twice": (lambda: after_place(twice), "is computed again"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_invalid_kernels_are_rejected(mistake: str) -> None:
    make, words = WRONG[mistake]
    with pytest.raises(InvalidKernel, match=words):
        verify(make())


def test_a_pass_that_breaks_a_kernel_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kernel: Kernel) -> Kernel:
        return replace(kernel, arrays=())

    monkeypatch.setattr(pipeline, "verifies", True)
    with pytest.raises(InvalidKernel, match="there is no array 'u'"):
        pipeline.run(small(), broken)
    monkeypatch.setattr(pipeline, "verifies", False)
    pipeline.run(small(), broken)
