"""Programs of many fields."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.lang.grid import Field, Grid
from halocline.lang.program import Program
from halocline.lang.trace import tracing

Statements = Callable[[Program, list[Field]], None]


def sums(program: Program, fields: list[Field]) -> None:
    """Sum each field."""
    for number, field in enumerate(fields):
        program.internal_scalar(f"result{number}").set(hc.sum(field))


def products(program: Program, fields: list[Field]) -> None:
    """Compute the dot products of each field with the next one."""
    for number, (left, right) in enumerate(itertools.pairwise(fields)):
        program.internal_scalar(f"result{number}").set(hc.dot(left, right))


def steps(program: Program, fields: list[Field]) -> None:
    """Advance each field by a step of diffusion and sum it."""
    for number, field in enumerate(fields):
        field.set(field + 0.1 * hc.laplacian(field))
        program.internal_scalar(f"result{number}").set(hc.sum(field))


def compiled(statements: Statements, count: int) -> Schedule:
    """Return the schedule of these statements for the given number of fields."""
    grid = Grid((8, 8), periodic=(True, False))
    fields = [grid.field(f"f{number}", boundary=hc.Value(0)) for number in range(count)]
    program = Program("many")
    with tracing(program):
        statements(program, fields)
    return compile_program(program, grid)
