"""Translation of expressions to kernels: the values of a sweep, its results and its stages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from halocline.compile.dependence import stages_below
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import POINT, Array, Kernel, Table
from halocline.compile.lower import SweepGraph
from halocline.compile.rotation import stored_fields
from halocline.lang.expression import Expr, text, walk
from halocline.lang.grid import Field, Grid
from halocline.lang.origin import Line
from halocline.lang.program import Stage as NamedStage


class Translation:
    """Expressions on a grid as values of one table."""

    def __init__(self, grid: Grid | None) -> None:
        self.grid = grid
        self.table = Table(b"" if grid is None else grid.digest)
        self._numbers: dict[Expr, int] = {}
        self._stages: dict[NamedStage, str] = {}

    def value(self, root: Expr) -> int:
        """Return the number of the value of an expression."""
        for current in walk((root,)):
            if current not in self._numbers:
                self._numbers[current] = self._add(current)
        return self._numbers[root]

    def _add(self, current: Expr) -> int:
        precision = current.precision or "float64"
        table, args = self.table, tuple(self._operand(arg, precision) for arg in current.args)
        attribute, depth = current.attribute, max((table.values[arg].depth for arg in args), default=0)
        if current.op == "read":
            field, _, offset = current.attribute
            attribute, depth = (self.field(field), offset), POINT
        elif current.op == "stage":
            stage, offset = current.attribute
            attribute, depth = (self._stages[stage], offset), POINT
        elif current.op == "scalar":
            attribute = current.attribute[0]
        elif current.op == "index":
            assert self.grid is not None
            depth = 1 + int(current.attribute[0]) + 3 - self.grid.ndim
        op = "load" if current.op in ("read", "stage") else current.op
        # numbers and coordinates have no precision and adapt to the other operands
        return table.add(op, args, attribute, precision, depth, current.digest)

    def _operand(self, operand: Expr, precision: str) -> int:
        """Return the number of an operand in an operation of this precision.

        A selection between numbers becomes a selection between rounded numbers; the bits are the same.
        """
        number = self._numbers[operand]
        value = self.table.values[number]
        if operand.op != "where" or operand.precision is not None or precision == value.dtype:
            return number
        condition, *sides = operand.args
        args = (self._numbers[condition], *(self._operand(side, precision) for side in sides))
        return self.table.add("where", args, None, precision, value.depth, operand.digest)

    def field(self, field: Field) -> str:
        """Return the name of the array of a field; add the array if it is new."""
        if field.name not in self.table.arrays:
            kind = f"read\0{field.name}|{field.dtype}|{field.staggered}|0|".encode()
            label = kind, field.grid.digest
            self.table.arrays[field.name] = Array(
                field.name, field.dtype, staggered=field.staggered, label=label
            )
        return field.name

    def stage(self, stage: NamedStage) -> ir.Stage:
        """Return the statement of a stage; all stages that it reads must already be translated."""
        value = self.value(stage.definition)
        name = f"{stage.name}.{len(self._stages)}"  # no identifier of the user contains a point
        label = f"stage\0{stage.name}|".encode(), stage.definition.digest
        dtype = self.table.values[value].dtype
        self.table.arrays[name] = Array(name, dtype, "scratch", label=label)
        self._stages[stage] = name
        return ir.Stage(name, value, stage.storage, _origin(stage.line))


def translate(sweep: SweepGraph, grid: Grid) -> Kernel:
    """Return the kernel of a sweep: its stages, then its stores and reductions."""
    translation = Translation(grid)
    # inner stages first, since outer stages load them; values keep the order of their arguments
    stages = [translation.stage(stage) for stage in stages_below(sweep.roots())]
    results: ir.Body = ()
    for field, expression in stored_fields(sweep.sets).items():
        value, origin = translation.value(expression), _origin(sweep.origins.get(field))
        results += (ir.Store(translation.field(field), value, origin),)
    for slot, reduction in enumerate(sweep.reductions):
        kind, cell, place = reduction.attribute
        value, origin = translation.value(reduction.args[0]), _origin(sweep.origins.get(reduction))
        results += (ir.Reduce(slot, kind, value, place, cell, origin),)
    return _kernel(translation, grid, (*stages, *results), _comment(sweep))


def translate_ghost(field: Field, ghost: Expr, fields: Iterable[Field], grid: Grid) -> Kernel:
    """Return the kernel of one layer of ghosts of a field, with the arrays of `fields`."""
    translation = Translation(grid)
    for operand in fields:
        translation.field(operand)
    store = ir.Store(translation.field(field), translation.value(ghost))
    no_extent = ((0, 0),) * grid.ndim
    nest = ir.Nest((store,), no_extent, (0,) * grid.ndim)
    return _kernel(translation, grid, (nest,), brief(ghost), beyond=True)


def translate_scalar(expression: Expr) -> Kernel:
    """Return the kernel of an expression of scalars; its only statement stores the result."""
    translation = Translation(None)
    store = ir.Store("", translation.value(expression))
    values = tuple(translation.table.values)
    return Kernel(name="", comment="", ndim=0, periodic=(), arrays=(), values=values, body=(store,))


def _origin(line: Line | None) -> str:
    """Return the origin of a statement as a short text."""
    return "" if line is None else str(replace(line, file=PurePath(line.file).name))


def _comment(sweep: SweepGraph) -> str:
    labels = [f"{f.name} = {brief(e)}" for f, e in sweep.sets.items()]
    labels += [f"{r.attribute[0]}({brief(r.args[0])})" for r in sweep.reductions]
    return "; ".join(labels) or "an exchange alone"


def brief(root: Expr, limit: int = 100) -> str:
    """Return an expression as a text of at most `limit` characters."""
    formula = text(root, depth=4)
    return formula if len(formula) <= limit else formula[: limit - 3] + "..."


def _kernel(
    translation: Translation, grid: Grid, body: ir.Body, comment: str, *, beyond: bool = False
) -> Kernel:
    table = translation.table
    return Kernel(
        name="",
        comment=comment,
        ndim=grid.ndim,
        periodic=grid.periodic,
        arrays=tuple(table.arrays.values()),
        values=tuple(table.values),
        body=body,
        grid=table.grid,
        beyond=beyond,
    )
