"""Text of a program: its statements in order, identical in every process.

Two programs with the same text compute the same results. The text is stored with the files that a run writes.
A run that restarts from a checkpoint compares its own text with the stored text and reports the differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from operator import add

from halocline.lang import program as lang
from halocline.lang.boundary import Ghost
from halocline.lang.expression import SIGNS, Expr, walk
from halocline.lang.grid import AXES, Field, Grid
from halocline.lang.trace import INTERNAL

Reaches = dict[Field, tuple[int, ...]]  # maximum distance of the reads of each field along each axis

# Text of the statements that count time and steps. Other statements of a program may set dt and t too.
_COUNTS_TIME = re.compile(
    r"\s*(repeat (until \((t|t_reached_) >= pause_\) )?at most steps times:"
    r"|dt = (dt_wanted_|where\(.*\b(until|step_end_)\b.*)|t = (t_next_|where\(.*\buntil\b.*)"
    r"|t_(next|reached|before)_ = .*"
    r"|stop when .*: the time step is not a positive number)"
)

SHORT = 24  # repeated expressions with more characters get a name


def equations(program: lang.Program) -> str:
    """Return the statements of a program as text.

    A name with a mark, such as ``u@1``, denotes an earlier value of a field or scalar: a value that a
    later assignment replaced. The number counts the versions of the value.
    """
    return "\n".join(_statements(program.statements, lang.Versions()))


def without_time(text: str) -> str:
    """Return the text of a program without the statements that count time and steps.

    Different versions of Halocline count time and steps in different ways. Two programs compute the same
    results if their texts are equal without these statements.
    """
    return "\n".join(line for line in text.splitlines() if not _COUNTS_TIME.fullmatch(line))


def fields(grid: Grid, program: lang.Program) -> str:
    """Return the fields that a program reads or sets, with locations and boundary conditions, as text."""
    reaches: Reaches = {}
    stages: dict[lang.Stage, Reaches] = {}
    for statement in program.all_statements():
        if isinstance(statement, lang.Assign):
            _extend(reaches, dict.fromkeys(statement.values, (0,) * grid.ndim))
        for root in lang.expressions_of(statement):
            _extend(reaches, _reach(root, stages))
    ghosts: dict[tuple[Field, str, int], Expr] = {}
    while missing := [key for key in _ghosts(reaches) if key not in ghosts]:
        for f, side, layer in missing:
            axis = AXES.index(side[0])
            at = Ghost(f, axis, -1 if side[1] == "-" else 1, layer)
            ghost = ghosts[f, side, layer] = f.boundary[side].ghost(at)
            inward = {g: (*r[:axis], 0, *r[axis + 1 :]) for g, r in _reach(ghost, stages).items()}
            _extend(reaches, inward)
    lines: list[str] = []
    for f in filter(reaches.__contains__, grid.fields.values()):
        lines.append(f"{f.name}: {f.dtype}, {f.location}")
        for g, side, layer in _ghosts(reaches):
            if g is f:
                kind = f"{side} {type(f.boundary[side]).__name__}" if layer == 0 else f"  layer {layer + 1}"
                lines.append(f"  {kind}: {expression(ghosts[f, side, layer])}")
    return "\n".join(lines)


def expression(root: Expr) -> str:
    """Return an expression as text."""
    return _text(root, lang.Versions())


def grid_text(grid: Grid) -> str:
    """Return the positions of the points of a grid as text."""
    lines = []
    for axis, n in enumerate(grid.shape):
        end = "periodic" if grid.periodic[axis] else f"walls on a {grid.walls[axis]}"
        low, high = grid.origin[axis], grid.origin[axis] + grid.extent[axis]
        lines.append(f"{AXES[axis]}: {n} cells from {low!r} to {high!r}, {end}")
        if grid.maps[axis] is not None:
            lines.append(f"  stretched to {expression(grid.coordinates()[axis])}")
    if grid.blocks is not None:
        lines.append(f"in {' x '.join(map(str, grid.blocks.counts))} blocks, of which some are active")
    return "\n".join(lines)


def _ghosts(reaches: Reaches) -> Iterator[tuple[Field, str, int]]:
    """Yield the ghost layers that are read beyond walls, as tuples of field, side and layer."""
    for f, reach in reaches.items():
        for side, condition in f.boundary.items():
            axis = AXES.index(side[0])
            if not f.grid.periodic[axis] and not isinstance(condition, lang.NoGhosts):
                yield from ((f, side, layer) for layer in range(reach[axis]))


def _reach(root: Expr, stages: dict[lang.Stage, Reaches]) -> Reaches:
    """Return the maximum distance of the reads of each field along each axis, including reads in stages.

    Parameters
    ----------
    root : Expr
    stages : dict of Stage to Reaches
        Results for stages from earlier calls. The function adds the results for further stages.
    """
    reaches: Reaches = {}
    for e in walk((root,)):
        if e.op not in ("read", "stage"):
            continue
        offset = tuple(map(abs, e.attribute[-1]))
        inner = {e.attribute[0]: offset}
        if e.op == "stage":
            stage = e.attribute[0]
            if stage not in stages:
                stages[stage] = _reach(stage.definition, stages)
            inner = {f: tuple(map(add, reach, offset)) for f, reach in stages[stage].items()}
        _extend(reaches, inner)
    return reaches


def _extend(reaches: Reaches, more: Mapping[Field, tuple[int, ...]]) -> None:
    for f, reach in more.items():
        reaches[f] = tuple(map(max, reaches.get(f, reach), reach))


def _statements(
    statements: Sequence[lang.Statement], versions: lang.Versions, indent: str = ""
) -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, lang.Assign):
            named = _Names([*statement.values.values()], versions)
            yield from (indent + line for line in named.lines)
            for f, value in statement.values.items():
                yield f"{indent}{f.name} = {named.text(value)}"
        elif isinstance(statement, lang.AssignScalar):
            yield f"{indent}{_scalar_name(statement.scalar.name)} = {_text(statement.expression, versions)}"
        elif isinstance(statement, lang.StopWhen):
            yield f"{indent}stop when {_text(statement.condition, versions)}: {statement.reason}"
        else:
            yield indent + _head(statement, versions)
            versions.enter_loop(lang.assigned(statement.body))
            yield from _statements(statement.body, versions, indent + "  ")
        if not isinstance(statement, lang.Repeat):
            for thing in lang.assigned([statement]):
                versions.set(thing)


def _head(loop: lang.Repeat, versions: lang.Versions) -> str:
    until = "" if loop.until is None else f" until {_text(loop.until, versions)}"
    limit = "" if loop.limit is None else f" at most {_text(loop.limit, versions)} times"
    return f"repeat{until}{limit}:"


def _text(root: Expr, versions: lang.Versions) -> str:
    named = _Names([root], versions)
    formula = named.text(root)
    return formula if not named.lines else f"{formula} where {'; '.join(named.lines)}"


class _Names:
    """Text of expressions in which each repeated part is written once, as a line "name = ...".

    Attributes
    ----------
    lines : list of str
        Definitions of the names. A line uses only names of earlier lines.
    """

    def __init__(self, roots: Sequence[Expr], versions: lang.Versions) -> None:
        self.lines: list[str] = []
        self._versions = versions
        self._uses: dict[Expr, int] = {}
        self._written: dict[Expr, str] = {}
        self._counted: set[lang.Stage] = set()
        self._stages: dict[lang.Stage, str] = {}  # names of stages in the text
        for root in roots:
            self._count(root)
        for root in roots:
            self.text(root)

    def _count(self, root: Expr) -> None:
        """Count the uses of each node as an operand, including nodes in stages."""
        for e in walk((root,)):
            if e in self._uses:
                continue
            self._uses[e] = 0
            for arg in e.args:
                self._uses[arg] = self._uses.get(arg, 0) + 1
            if e.op == "stage" and e.attribute[0] not in self._counted:
                self._counted.add(e.attribute[0])
                self._count(e.attribute[0].definition)

    def text(self, root: Expr) -> str:
        """Return an expression as text, and append the definitions that it needs to `lines`."""
        for e in walk((root,)):
            if e in self._written:
                continue
            if e.op == "stage" and e.attribute[0] not in self._stages:
                self._define(e.attribute[0])
            written = self._node(e)
            if self._uses.get(e, 0) > 1 and len(written) > SHORT:
                name = f"_{len(self.lines) + 1}"
                self.lines.append(f"{name} = {written}")
                written = name
            self._written[e] = written
        return self._written[root]

    def _define(self, stage: lang.Stage) -> None:
        count = sum(other.name == stage.name for other in self._stages)
        name = self._stages[stage] = stage.name + (f"_{count + 1}" if count else "")
        self.lines.append(f"{name} = {self.text(stage.definition)}")

    def _node(self, e: Expr) -> str:
        if e.op == "const":
            return repr(e.attribute)
        if e.op == "scalar":
            return _scalar_name(e.attribute[0]) + self._mark(*e.attribute)
        if e.op == "index":
            axis, step = e.attribute
            return f"index_{AXES[axis]}" + (f"[{step}]" if step else "")
        if e.op in ("read", "stage"):
            thing, offset = e.attribute[0], e.attribute[-1]
            mark = self._mark(thing, e.attribute[1]) if e.op == "read" else ""
            name: str = thing.name + mark if e.op == "read" else self._stages[thing]
            return name + (str(list(offset)) if any(offset) else "")
        inner = [self._written[a] for a in e.args]
        if e.op in SIGNS:
            return f"({inner[0]} {SIGNS[e.op]} {inner[1]})"
        if e.op == "neg":
            return f"-{inner[0]}"
        if e.op == "reduce":
            kind, cell, _ = e.attribute
            return f"{kind}({inner[0]}{'' if cell is None else f' at {cell}'})"
        if e.op in ("cast", "lookup"):
            inner = [str(e.attribute), *inner]
        return f"{e.op}({', '.join(inner)})"

    def _mark(self, thing: lang.Key, version: int) -> str:
        """Return the mark of a version, such as "@1", or empty text for the present version."""
        return "" if self._versions.is_current(thing, version) else f"@{version}"


def _scalar_name(name: str) -> str:
    """Return the name of a scalar, with an underscore as the mark of internal scalars."""
    return name.replace(INTERNAL, "_")
