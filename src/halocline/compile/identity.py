"""Digest of a program and its grid: programs with equal digests have equal schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

from halocline.compile.dependence import stages_below
from halocline.lang import blocks, boundary, origin
from halocline.lang import program as lang
from halocline.lang.expression import Expr
from halocline.lang.grid import Field, Grid

# objects of the data classes in these modules are equal if their attributes are equal
DATA_CLASS_MODULES = tuple(module.__name__ for module in (blocks, boundary, lang, origin))


def identity(program: lang.Program, grid: Grid) -> bytes | None:
    """Return a digest of the properties of a program and its grid that `compile_program` reads.

    Return None if the program contains a user function whose result may change between calls: a boundary
    kernel, a boundary value, a boundary condition of a user class, or the map of a stretched axis. Return
    None also for a boundary value with several locations. Two stages with the same name and formula may
    differ in storage, location or source line; the function then also returns None. Digests of expressions do
    not include these differences.
    """
    expressions = (e for statement in program.all_statements() for e in lang.expressions_of(statement))
    stages: dict[tuple[str, bytes], Any] = {}
    for stage in stages_below(expressions):
        attributes = stage.storage, stage.staggered, stage.line
        if stages.setdefault((stage.name, stage.definition.digest), attributes) != attributes:
            return None
    facts = (
        (program.statements, sorted(program.cuts), [*program.parameters], stages),
        (grid.periodic, grid.walls, grid.maps, grid.blocks),
        [(f, f.dtype, f.staggered, f.boundary) for f in grid.fields.values()],
    )
    try:
        return blake2b(repr(_contents(facts, grid)).encode(), digest_size=16).digest()
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """Error for a value whose type does not allow a comparison."""


def _contents(value: Any, grid: Grid) -> Any:
    """Return a value with its fields, scalars and expressions replaced by text, numbers and digests."""
    if value is None or type(value) in (bool, int, str, bytes):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (tuple, list)):
        return [_contents(entry, grid) for entry in value]
    if isinstance(value, Mapping):
        return _contents([*value.items()], grid)
    if isinstance(value, Expr) and value.grid in (None, grid):
        places = () if value.placement is None else tuple(value.placement.places)
        if len(places) <= 1:
            return value.digest, places
    if isinstance(value, lang.Scalar) or (isinstance(value, Field) and value.grid is grid):
        return type(value).__name__, value.name
    if is_dataclass(value) and type(value).__module__ in DATA_CLASS_MODULES:
        return [type(value).__name__, *(_contents(getattr(value, f.name), grid) for f in fields(value))]
    raise _UnknownError
