"""Rows of stages are extended to whole vectors if that is safe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halocline.compile.ir.kernel import Kernel, Value
from halocline.compile.ir.statements import (
    Nest,
    Store,
)
from halocline.compile.ir.verify import ARGUMENTS, InvalidKernel, verify
from halocline.compile.passes.loops import BOUNDED, whole_vectors
from halocline.compile.passes.scratch import scratch
from kernels import small

HERE = ((0, 0),)


# -- rows of whole vectors ---------------------------------------------------------------------------------


def wholes(kernel: Kernel) -> list[bool]:
    """Return, for each nest, True if its rows may be extended."""
    marked = whole_vectors(scratch(kernel))
    verify(marked)
    return [nest.whole_vectors for nest in marked.body if isinstance(nest, Nest)]


def test_rows_of_stages_are_whole_vectors_and_those_of_fields_are_not() -> None:
    assert wholes(small()) == [True, False]
    field = Nest((Store("r", 6),), HERE, (0,))
    assert wholes(replace(small(), body=(small().body[0], field))) == [True, False]
    *before, last = scratch(small()).body
    with pytest.raises(
        InvalidKernel, match="field 'r' is written in rows of whole vectors, which extend beyond"
    ):
        verify(replace(small(), body=(*before, replace(last, whole_vectors=True))))


def test_rows_that_cannot_be_padded_are_unchanged() -> None:
    kernel = small()
    stored = replace(kernel, body=(*kernel.body, Nest((Store("u", 6),), HERE, (0,))))
    assert wholes(stored)[0] is False  # another thread may store a value beyond the patch that this row reads
    u, r, s = kernel.arrays
    values = (*kernel.values[:1], Value("cast", (0,), dtype="float32"), *kernel.values[2:])
    values = tuple(replace(v, dtype="float32") if v.attribute == ("s", (-1,)) else v for v in values)
    narrow = replace(kernel, arrays=(u, r, replace(s, dtype="float32")), values=values)
    assert (
        not whole_vectors(scratch(narrow)).body[-2].whole_vectors
    )  # a vector holds more float32 than float64 numbers
    table = replace(kernel, values=(kernel.values[0], Value("exp", (0,)), *kernel.values[2:]))
    assert wholes(table)[0] is False  # an index outside the table would be read


def test_every_operation_is_classified_by_its_valid_operands() -> None:
    """Each operation is in one of the two sets, since rows of whole vectors contain uninitialized numbers."""
    accepts_any = {
        "const", "scalar", "index", "load", "invariant", "neg", "abs", "sign", "sqrt", "cast", "not", "add",
        "sub", "mul", "div", "fma", "sum2", "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or",
        "where", "branch",
    }  # fmt: skip
    assert not accepts_any & BOUNDED
    assert accepts_any | BOUNDED == set().union(*ARGUMENTS.values())
