"""Which stages are computed anew where they are read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel, Table, below, renumbered
from halocline.compile.passes.reach import Codes, demanded, sums

# operations that a multiply-add pipeline does in one go; the others cost more
EXPENSIVE = {
    "cast": 0, "div": 4, "sqrt": 4, "exp": 20, "log": 20, "sin": 20, "cos": 20, "pow": 40, "lookup": 4,
    "random": 80,
}  # fmt: skip
# recomputing a stage at every load is free up to this many operations a cell: a load costs as much
CHEAP = 8


def cost(kernel: Kernel, root: int) -> int:
    """Arithmetic of a value at a cell, in units of one simple operation."""
    return price(kernel, kernel.below((root,)))


def price(kernel: Kernel, numbers: Iterable[int]) -> int:
    """Arithmetic of values at a cell."""
    values = (kernel.values[number] for number in numbers)
    return sum(EXPENSIVE.get(value.op, 1) for value in values if value.args and value.depth > 0)


def inline(kernel: Kernel) -> Kernel:
    """The stages that the user wants so, and cheap ones, are computed anew at each load."""
    stages = {s.array: s for s in kernel.body if isinstance(s, ir.Stage)}
    results = [s.value for s in kernel.body if isinstance(s, (ir.Store, ir.Reduce))]
    here: Codes = frozenset((0,))
    wanted: dict[str, Codes] = {}
    for value in results:
        demanded(kernel, value, here, wanted)
    chosen: set[str] = set()
    # uses come before definitions: a stage that an inline stage reads is computed wherever that one is
    for name, stage in reversed(stages.items()):
        again = len(wanted.get(name, ())) - 1
        if stage.storage == "inline" or (
            stage.storage == "auto" and cost(kernel, stage.value) * again <= CHEAP
        ):
            chosen.add(name)
        demanded(kernel, stage.value, wanted.get(name, here) if name in chosen else here, wanted)
    return without(kernel, chosen)


def without(kernel: Kernel, chosen: set[str]) -> Kernel:
    """A kernel in which some stages are computed anew at each load."""
    table = Table(kernel.grid, kernel.arrays)
    made: dict[int, int] = {}
    definitions: dict[str, int] = {}

    def add(root: int) -> int:
        for number in kernel.below((root,), made):
            value = kernel.values[number]
            if value.op == "load" and value.attribute[0] in chosen:
                name, offset = value.attribute
                made[number] = shifted(table, definitions[name], offset)
            else:
                made[number] = table.like(value, tuple(made[arg] for arg in value.args))
        return made[root]

    body: ir.Body = ()
    for statement in kernel.body:
        if isinstance(statement, ir.Stage):
            definitions[statement.array] = add(statement.value)
            if statement.array in chosen:
                continue
        body += (statement,)
    for value in ir.roots(body):
        add(value)
    arrays = tuple(array for array in table.arrays.values() if array.name not in chosen)
    return replace(kernel, arrays=arrays, values=tuple(table.values), body=renumbered(body, made))


def shifted(table: Table, root: int, offset: ir.Offset) -> int:
    """A value of a table as it is at a neighbouring cell."""
    if not any(offset):
        return root
    made: dict[int, int] = {}
    for number in below(table.values, (root,)):
        value = table.values[number]
        attribute = value.attribute
        if value.op == "load":
            attribute = attribute[0], sums(attribute[1], offset)
        elif value.op == "index":
            attribute = attribute[0], attribute[1] + offset[attribute[0]]
        if attribute is value.attribute:
            made[number] = table.like(value, tuple(made[arg] for arg in value.args))
        else:
            made[number] = table.add(value.op, (), attribute, value.dtype, value.depth)
    return made[root]
