"""A program as text: what it computes, statement by statement, the same in every process.

Two programs with the same text do the same. It goes with everything that a run leaves behind, and shows where
the program that is to go on differs from the one that left it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from halocline.lang.boundary import Ghost
from halocline.lang.expression import Expr, walk
from halocline.lang.grid import AXES, Field, Grid
from halocline.lang.program import Assign, AssignScalar, Program, Repeat, Stage, Statement, StopWhen
from halocline.lang.trace import OWN

SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip
SHORT = 24  # characters of an expression that is written again rather than named


def equations(program: Program) -> str:
    """The statements of a program as text."""
    return "\n".join(_statements(program.statements))


def fields(grid: Grid, program: Program) -> str:
    """The fields that a program reads or sets, with where they lie and what holds at walls, as text."""
    used: dict[Field, None] = {}
    for statement in program.flat():
        if isinstance(statement, Assign):
            used |= dict.fromkeys(statement.values)
        for root in _roots(statement):
            used |= dict.fromkeys(e.attribute[0] for e in _all(root) if e.op == "read")
    lines: list[str] = []
    for f in grid.fields.values():
        if f in used:
            lines.append(f"{f.name}: {f.dtype}, {f.location}")
            lines += [f"  {side} {text}" for side, text in _walls(f)]
    return "\n".join(lines)


def grid_text(grid: Grid) -> str:
    """Where the points of a grid lie, as text."""
    lines = []
    for axis, n in enumerate(grid.shape):
        end = "periodic" if grid.periodic[axis] else f"walls on a {grid.walls[axis]}"
        low, high = grid.origin[axis], grid.origin[axis] + grid.extent[axis]
        lines.append(f"{AXES[axis]}: {n} cells from {low!r} to {high!r}, {end}")
        if grid.maps[axis] is not None:
            lines.append(f"  stretched to {_text(grid.coordinates()[axis])}")
    return "\n".join(lines)


def _walls(field: Field) -> Iterator[tuple[str, str]]:
    """What a field is in the first layer beyond each wall, and on it."""
    for name, condition in field.boundary.items():
        axis, side = AXES.index(name[0]), -1 if name[1] == "-" else 1
        if field.grid.periodic[axis]:
            continue
        at = Ghost(field, axis, side, 1)
        kind = type(condition).__name__
        try:
            yield name, f"{kind}: {_text(condition.ghost(at))}"
        except Exception:  # one that has no ghosts says so when they are needed
            yield name, kind


def _statements(statements: Sequence[Statement], indent: str = "") -> Iterator[str]:
    for statement in statements:
        if isinstance(statement, Assign):
            named = _Names([*statement.values.values()])
            yield from (indent + line for line in named.lines)
            for f, value in statement.values.items():
                yield f"{indent}{f.name} = {named.text(value)}"
        elif isinstance(statement, AssignScalar):
            yield f"{indent}{_own(statement.scalar.name)} = {_text(statement.expression)}"
        elif isinstance(statement, StopWhen):
            yield f"{indent}stop when {_text(statement.condition)}: {statement.reason}"
        else:
            yield indent + _head(statement)
            yield from _statements(statement.body, indent + "  ")


def _head(loop: Repeat) -> str:
    until = "" if loop.until is None else f" until {_text(loop.until)}"
    limit = "" if loop.limit is None else f" at most {_text(loop.limit)} times"
    return f"repeat{until}{limit}:"


def _roots(statement: Statement) -> list[Expr]:
    if isinstance(statement, Assign):
        return list(statement.values.values())
    if isinstance(statement, AssignScalar):
        return [statement.expression]
    if isinstance(statement, StopWhen):
        return [statement.condition]
    return [e for e in (statement.until, statement.limit) if e is not None]


def _all(root: Expr) -> Iterator[Expr]:
    """All nodes of an expression, those of stages too."""
    seen: set[Expr] = set()
    todo = [root]
    while todo:
        for e in walk((todo.pop(),)):
            if e in seen:
                continue
            seen.add(e)
            yield e
            if e.op == "stage":
                todo.append(e.attribute[0].definition)


def _text(root: Expr) -> str:
    named = _Names([root])
    whole = named.text(root)
    return whole if not named.lines else f"{whole} where {'; '.join(named.lines)}"


class _Names:
    """Text of expressions in which what stands several times is written once, as a line "name = ...".

    Attributes
    ----------
    lines : list of str
        In the order in which they depend on each other.
    """

    def __init__(self, roots: Sequence[Expr]) -> None:
        self.lines: list[str] = []
        self._uses: dict[Expr, int] = {}
        self._written: dict[Expr, str] = {}
        self._counted: set[Stage] = set()
        self._defined: set[Stage] = set()
        for root in roots:
            self._count(root)
        for root in roots:
            self.text(root)

    def _count(self, root: Expr) -> None:
        """How often each node is an operand, those of stages first."""
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
        """An expression, with the lines that it needs added before."""
        for e in walk((root,)):
            if e in self._written:
                continue
            if e.op == "stage" and e.attribute[0] not in self._defined:
                stage = e.attribute[0]
                self._defined.add(stage)
                self.lines.append(f"{stage.name} = {self.text(stage.definition)}")
            written = self._node(e)
            if self._uses.get(e, 0) > 1 and len(written) > SHORT:
                name = f"_{len(self.lines) + 1}"
                self.lines.append(f"{name} = {written}")
                written = name
            self._written[e] = written
        return self._written[root]

    def _node(self, e: Expr) -> str:
        if e.op == "const":
            return repr(e.attribute)
        if e.op == "scalar":
            return _own(str(e.attribute[0]))
        if e.op == "index":
            axis, step = e.attribute
            return f"index_{AXES[axis]}" + (f"[{step}]" if step else "")
        if e.op in ("read", "stage"):
            offset = e.attribute[-1]
            name: str = e.attribute[0].name
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


def _own(name: str) -> str:
    """The name of a scalar, also where it is the program's own."""
    return name.replace(OWN, "_")
