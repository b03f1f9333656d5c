"""When the results of reductions are waited for: not before something needs them.

A reduction over all ranks takes as long as a message through a tree. What follows a sweep and does not depend
on its results goes on meanwhile; scalar statements that do depend on them, and that nothing needs yet, move
behind the wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from halocline.compile.lower import AwaitGraph, LoopGraph, OperationGraph, ScalarGraph, SweepGraph, scalars_in
from halocline.lang.expression import Expr


def awaited(
    operations: list[OperationGraph], reads: Callable[[SweepGraph], set[str]]
) -> list[OperationGraph]:
    """The operations with a wait after each sweep that reduces, as late as can be: before its results are
    used, before another reduction, a loop or a stop statement, and at the end of the loop's body.

    Parameters
    ----------
    operations : list of OperationGraph
    reads : callable
        The scalars that a sweep reads, in its kernels and at walls.
    """
    body = _Body()
    for operation in operations:
        if isinstance(operation, SweepGraph):
            if operation.reductions or body.missing & reads(operation):
                body.wait()
            body.made.append(operation)
            body.missing |= set(operation.reductions.values())
        elif isinstance(operation, ScalarGraph):
            body.scalars(operation)
        else:
            body.wait()
            if isinstance(operation, LoopGraph):
                operation.body = awaited(operation.body, reads)
            body.made.append(operation)
    body.wait()
    return body.made


@dataclass
class _Body:
    """Operations of a program or loop, as far as they are arranged."""

    made: list[OperationGraph] = field(default_factory=list)
    missing: set[str] = field(default_factory=set)  # scalars without their value, since a wait is to come
    moved: list[tuple[str, Expr]] = field(default_factory=list)  # statements that are to follow the wait
    used: set[str] = field(default_factory=set)  # scalars that these read

    def scalars(self, graph: ScalarGraph) -> None:
        """Append scalar statements, but for those that must follow the wait."""
        at_once = []
        for name, value in graph.statements:
            read = set(scalars_in([value]))
            if self.missing & read or name in self.missing or name in self.used:
                self.moved.append((name, value))
                self.missing.add(name)
                self.used |= read
            else:
                at_once.append((name, value))
        if at_once:
            self.made.append(ScalarGraph(at_once))

    def wait(self) -> None:
        """Append a wait, if one is due, and what has moved behind it."""
        if self.missing:
            self.made.append(AwaitGraph())
        if self.moved:
            self.made.append(ScalarGraph(self.moved))
        self.missing, self.moved, self.used = set(), [], set()
