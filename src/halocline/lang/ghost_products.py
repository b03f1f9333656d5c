"""Notices (messages before a run) about differences of nonlinear expressions across walls.

A difference next to a wall reads its operand beyond the wall, where each field has its own ghosts. With
`hc.Value` the ghosts are odd about the wall, and the product of two such fields is even. Therefore the
product does not satisfy the boundary condition.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from halocline.lang import trace
from halocline.lang.axes import AXES
from halocline.lang.boundary import Value
from halocline.lang.expression import SELECTIONS, Expr, postorder
from halocline.lang.origin import calling_frames, calling_line, framework_origin

if TYPE_CHECKING:
    from halocline.lang.grid import Field, Grid
    from halocline.lang.location import Place

LINEAR = ("add", "sub", "neg", "sum2")


class _Reads(NamedTuple):
    """Fields in an expression, by name, with ghosts that are odd about a wall.

    Attributes
    ----------
    fields : frozenset of str
        All fields with odd ghosts that the expression reads.
    nonlinear : frozenset of str
        Fields with odd ghosts that occur in a product of two such fields, or in another nonlinear function.
    """

    fields: frozenset[str]
    nonlinear: frozenset[str]


class _Operand(NamedTuple):
    """Nonlinear operand of a difference operator, and the call of the operator."""

    operator: str
    expression: Expr
    line: str


_NONE = _Reads(frozenset(), frozenset())
_operand: ContextVar[_Operand | None] = ContextVar("operand", default=None)


def operand_of_call(expression: Expr) -> _Operand | None:
    """Return the operand of the operator that is being called, or None if it cannot cause a notice."""
    grid = expression.grid
    if trace.active() is None or grid is None or all(grid.periodic):
        return None
    if not _reads(expression).nonlinear:
        return None
    names = [frame.f_code.co_name for frame in calling_frames()][:-1]
    operator = [name for name in names if not name.startswith(("_", "<"))][-1]
    return _Operand(operator, expression, str(calling_line() or framework_origin("the framework")))


def reporting_operand(operand: _Operand | None) -> AbstractContextManager[_Operand | None]:
    """Set the operand that `note_difference` reports."""
    return trace.setting(_operand, operand)


def note_difference(grid: Grid, axis: int, place: Place, layers: int, *, staggered: bool = False) -> None:
    """Add a notice if a difference of a nonlinear operand reads beyond a wall.

    Parameters
    ----------
    grid : Grid
    axis : int
        Axis of the difference.
    place : Place
        Location of the operand; see halocline.lang.location.
    layers : int
        Number of points that the difference reads on each side.
    staggered : bool
        True for a difference halfway between the points of the operand.
    """
    operand, program = _operand.get(), trace.active()
    if operand is None or program is None or grid.periodic[axis]:
        return
    has_face_walls = grid.walls[axis] == "face"
    is_on_wall = has_face_walls == bool(axis < len(place) and place[axis])
    if layers - (is_on_wall or (staggered and not has_face_walls)) < 1:
        return
    nonlinear = _reads(operand.expression).nonlinear
    names = " and ".join(sorted(name for name in nonlinear if _is_odd(grid.fields[name], axis)))
    # One notice per user line. A second trace may write the operands of a product in the other order, so the
    # texts of notices cannot be compared.
    if names and not any(notice.startswith(f"{operand.line}: ") for notice in program.notices):
        program.notices.append(
            f"{operand.line}: {operand.operator} of {operand.expression!r}: beyond a wall, this expression "
            f"is computed from the ghosts of {names}. hc.Value holds for {names}, but not for the "
            "expression. Store the expression in a field with its own boundary condition, or expand the "
            "derivative."
        )


def _is_odd(field: Field, axis: int | None = None) -> bool:
    """Return True if the ghosts of a field beyond some wall are odd about the value on the wall."""
    axes = range(field.grid.ndim) if axis is None else (axis,)
    conditions = [field.boundary.get(f"{AXES[a]}{side}") for a in axes for side in "-+"]
    return any(isinstance(condition, Value) and condition.order is None for condition in conditions)


def _reads(root: Expr) -> _Reads:
    """Return the fields with odd ghosts that an expression reads.

    The cost is linear in the number of new nodes.
    """

    def missing_arguments(e: Expr) -> list[Expr]:
        return [argument for argument in _arguments(e) if argument.odd_reads is None]

    for e in postorder([root], missing_arguments):
        e.odd_reads = _combined(e)
    reads: _Reads = root.odd_reads
    return reads


def _arguments(e: Expr) -> tuple[Any, ...]:
    return (e.attribute[0].definition,) if e.op == "stage" else e.args


def _combined(e: Expr) -> _Reads:
    """Return the fields with odd ghosts that a node reads, from the results for its arguments."""
    if e.op == "read":
        field = e.attribute[0]
        return _Reads(frozenset({field.name}), frozenset()) if _is_odd(field) else _NONE
    if not e.varies:
        return _NONE
    reads: list[_Reads] = [argument.odd_reads for argument in _arguments(e)]
    nonempty = [r for r in reads if r.fields]
    if not nonempty:
        return _NONE
    if len(nonempty) == 1 and (
        e.op in (*LINEAR, "stage", "mul")
        or (e.op == "div" and reads[0].fields)
        or (e.op in SELECTIONS and not reads[0].fields)
    ):
        return nonempty[0]
    fields = frozenset(name for r in reads for name in r.fields)
    is_linear = e.op in LINEAR or (e.op in SELECTIONS and not reads[0].fields)
    return _Reads(fields, frozenset(name for r in reads for name in r.nonlinear) if is_linear else fields)
