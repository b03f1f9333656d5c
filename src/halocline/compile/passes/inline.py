"""Selection of the stages that are recomputed at each load."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel, Table, below, renumbered
from halocline.compile.passes.reach import Codes, add_reads, sums

# costs of operations; all other operations cost 1, like a multiply-add
EXPENSIVE = {
    "cast": 0, "div": 4, "sqrt": 4, "exp": 20, "log": 20, "sin": 20, "cos": 20, "pow": 40, "lookup": 4,
    "random": 80,
}  # fmt: skip
# up to this number of operations per cell, recomputation of a stage costs no more than a load
CHEAP = 8


def cost(kernel: Kernel, root: int) -> int:
    """Return the arithmetic cost of a value per cell, in units of one simple operation."""
    return price(kernel, kernel.below((root,)))


def price(kernel: Kernel, numbers: Iterable[int]) -> int:
    """Return the arithmetic cost of a set of values per cell, in units of one simple operation."""
    values = (kernel.values[number] for number in numbers)
    return sum(EXPENSIVE.get(value.op, 1) for value in values if value.args and value.depth > 0)


def inline(kernel: Kernel) -> Kernel:
    """Inline cheap stages, and stages that the user declares as "inline"."""
    stages = {s.array: s for s in kernel.body if isinstance(s, ir.Stage)}
    results = [s.value for s in kernel.body if isinstance(s, (ir.Store, ir.Reduce))]
    origin: Codes = frozenset((0,))
    demands: dict[str, Codes] = {}
    for value in results:
        add_reads(kernel, value, origin, demands)
    chosen: set[str] = set()
    # uses precede definitions: the loads of an inlined stage determine those of the stages that it reads
    for name, stage in reversed(stages.items()):
        recomputations = len(demands.get(name, ())) - 1
        if stage.storage == "inline" or (
            stage.storage == "auto" and cost(kernel, stage.value) * recomputations <= CHEAP
        ):
            chosen.add(name)
        add_reads(kernel, stage.value, demands.get(name, origin) if name in chosen else origin, demands)
    return without(kernel, chosen)


def without(kernel: Kernel, chosen: set[str]) -> Kernel:
    """Return a kernel in which the stages in `chosen` are recomputed at each load."""
    table = Table(kernel.grid, kernel.arrays)
    new_numbers: dict[int, int] = {}
    definitions: dict[str, int] = {}

    def add(root: int) -> int:
        for number in kernel.below((root,), new_numbers):
            value = kernel.values[number]
            if value.op == "load" and value.attribute[0] in chosen:
                name, offset = value.attribute
                new_numbers[number] = shifted(table, definitions[name], offset)
            else:
                new_numbers[number] = table.with_arguments(
                    value, tuple(new_numbers[arg] for arg in value.args)
                )
        return new_numbers[root]

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
    return replace(kernel, arrays=arrays, values=tuple(table.values), body=renumbered(body, new_numbers))


def shifted(table: Table, root: int, offset: ir.Offset) -> int:
    """Return the number of the value that has the formula of `root` at a neighbouring cell."""
    if not any(offset):
        return root
    new_numbers: dict[int, int] = {}
    for number in below(table.values, (root,)):
        value = table.values[number]
        attribute = value.attribute
        if value.op == "load":
            attribute = attribute[0], sums(attribute[1], offset)
        elif value.op == "index":
            attribute = attribute[0], attribute[1] + offset[attribute[0]]
        if attribute is value.attribute:
            new_numbers[number] = table.with_arguments(value, tuple(new_numbers[arg] for arg in value.args))
        else:
            new_numbers[number] = table.add(value.op, (), attribute, value.dtype, value.depth)
    return new_numbers[root]
