"""Multiply-add selection: the code generator chooses every fused multiply-add, the compiler none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ELEMENTARY, POINT, Kernel, Table, renumbered


def contract(kernel: Kernel) -> Kernel:
    """a*b + c becomes fma(a, b, c) wherever the product is used once.

    Where both summands are such products, the digest decides which one is fused, so that the choice depends
    on the formula alone; of a difference it is the first, so that differences along all axes are alike. A
    product that varies along fewer axes than the sum is left alone: it is computed once outside. So is one of
    another precision, such as coordinates in a sum of float32: fused it would lose digits that it has.
    """
    values = kernel.values
    table = Table(kernel.grid, kernel.arrays)
    before = Table(kernel.grid, kernel.arrays, values)
    wanted = ir.roots(kernel.body)
    order = kernel.below(wanted)
    uses = Counter(wanted)
    for number in order:
        uses.update(values[number].args)

    def product(candidate: int, inside: int) -> bool:
        e = values[candidate].args[0] if values[candidate].op == "neg" else candidate
        once = uses[e] == 1 and uses[candidate] == 1
        alike = values[e].depth == values[inside].depth and values[e].dtype == values[inside].dtype
        return values[e].op == "mul" and once and alike

    made: dict[int, int] = {}

    def negated(number: int) -> int:
        """The opposite of a value that is made already."""
        value = table.values[number]
        if value.op == "const":
            return table.add("const", (), -value.attribute, value.dtype, value.depth)
        if value.op == "neg":
            return value.args[0]
        return table.add("neg", (number,), None, value.dtype, value.depth)

    for number in order:
        value = values[number]
        args = tuple(made[arg] for arg in value.args)
        fused = [n for n in (0, 1) if product(value.args[n], number)] if value.op in ("add", "sub") else []
        if len(fused) == 2 and value.op == "add":
            fused.sort(key=lambda n: before.digest(value.args[n]))
        if not fused:
            made[number] = table.like(value, args)
            continue
        which = fused[0]
        factor = values[value.args[which]]
        negative = factor.op == "neg"
        a, b = table.values[made[factor.args[0]] if negative else args[which]].args
        other = args[1 - which]
        if value.op == "sub" and which == 0:  # a*b - c
            other = negated(other)
        elif value.op == "sub":  # c - a*b
            negative = not negative
        fma = (negated(a) if negative else a, b, other)
        made[number] = table.add("fma", fma, None, value.dtype, value.depth)
    return replace(kernel, values=tuple(table.values), body=renumbered(kernel.body, made))


# what counts as one operation; an fma is two, a comparison or a selection none
_OPERATIONS = {"add", "sub", "mul", "div", "sqrt", "sum2", "min", "max", *ELEMENTARY}


def count_flops(kernel: Kernel) -> int:
    """Floating-point operations per cell, of all nests: a function is one, see `_OPERATIONS`."""
    total = 0
    for statement in kernel.body:
        found = (kernel.values[n] for n in kernel.below(ir.roots((statement,))))
        for value in found:
            if value.depth == POINT:
                total += 2 if value.op == "fma" else value.op in _OPERATIONS
    return total
