"""Identity of programs: those with equal identities are compiled to equal schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

from halocline.compile.dependence import stages_below
from halocline.lang import boundary, origin
from halocline.lang import program as lang
from halocline.lang.expression import Expr
from halocline.lang.grid import Field, Grid

MODULES = (boundary.__name__, lang.__name__, origin.__name__)  # their data classes are compared by attributes


def identity(program: lang.Program, grid: Grid) -> bytes | None:
    """Return a digest of all that `compile_program` reads of a program and its grid.

    Return None where functions of the user may return something else at the next call: as boundary kernels,
    boundary values and maps of stretched axes. Return None too for stages that differ in their storage only,
    which digests of expressions do not distinguish.
    """
    expressions = (e for statement in program.flat() for e in lang.expressions_of(statement))
    stages: dict[tuple[str, bytes], Any] = {}
    for stage in stages_below(expressions):
        attributes = stage.storage, stage.staggered, stage.line
        if stages.setdefault((stage.name, stage.definition.digest), attributes) != attributes:
            return None
    facts = (
        (program.name, program.statements, sorted(program.cuts), [*program.parameters], stages),
        (grid.shape, grid.extent, grid.origin, grid.periodic, grid.walls, grid.maps),
        None if grid.blocks is None else grid.blocks.digest,
        [(f, f.dtype, f.staggered, f.boundary) for f in grid.fields.values()],
    )
    try:
        return blake2b(repr(_contents(facts, grid)).encode(), digest_size=16).digest()
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """The contents of a value are not known."""


def _contents(value: Any, grid: Grid) -> Any:
    """Return a value with its fields, scalars and expressions as text, numbers and digests."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value
    if isinstance(value, (tuple, list)):
        return [_contents(entry, grid) for entry in value]
    if isinstance(value, Mapping):
        return _contents([*value.items()], grid)
    if isinstance(value, Expr) and (value.placement is None or len(value.placement.places) == 1):
        places = () if value.placement is None else tuple(value.placement.places)
        return value.digest, places
    if isinstance(value, lang.Scalar) or (isinstance(value, Field) and value.grid is grid):
        return type(value).__name__, value.name
    if is_dataclass(value) and type(value).__module__ in MODULES:
        return [type(value).__name__, *(_contents(getattr(value, f.name), grid) for f in fields(value))]
    raise _UnknownError
