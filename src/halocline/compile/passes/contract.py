"""Selection of fused multiply-adds by the code generator; the compiler selects none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import ELEMENTARY, POINT, Kernel, Table, renumbered


def contract(kernel: Kernel) -> Kernel:
    """Replace a*b + c by fma(a, b, c) if the product is used once.

    If both summands are such products, their digests determine which product is fused, so that the choice
    depends on the formula alone. In a difference of two products, the first product is fused, so that
    differences along all axes have the same form. A product that varies along fewer axes than the sum is not
    fused, since it is computed once outside of the loop. A product of another precision, such as coordinates
    in a sum of float32, is not fused either, since the fused product would lose digits.
    """
    values = kernel.values
    table = Table(kernel.grid, kernel.arrays)
    before = Table(kernel.grid, kernel.arrays, values)
    results = ir.roots(kernel.body)
    order = kernel.below(results)
    uses = Counter(results)
    for number in order:
        uses.update(values[number].args)

    def product(candidate: int, inside: int) -> bool:
        e = values[candidate].args[0] if values[candidate].op == "neg" else candidate
        once = uses[e] == 1 and uses[candidate] == 1
        similar = values[e].depth == values[inside].depth and values[e].dtype == values[inside].dtype
        return values[e].op == "mul" and once and similar

    new_numbers: dict[int, int] = {}

    def negated(number: int) -> int:
        """Return the number of the negative of a value in the new table."""
        value = table.values[number]
        if value.op == "const":
            return table.add("const", (), -value.attribute, value.dtype, value.depth)
        if value.op == "neg":
            return value.args[0]
        return table.add("neg", (number,), None, value.dtype, value.depth)

    for number in order:
        value = values[number]
        args = tuple(new_numbers[arg] for arg in value.args)
        fused = [n for n in (0, 1) if product(value.args[n], number)] if value.op in ("add", "sub") else []
        if len(fused) == 2 and value.op == "add":
            fused.sort(key=lambda n: before.digest(value.args[n]))
        if not fused:
            new_numbers[number] = table.with_arguments(value, args)
            continue
        position = fused[0]
        factor = values[value.args[position]]
        negative = factor.op == "neg"
        a, b = table.values[new_numbers[factor.args[0]] if negative else args[position]].args
        other = args[1 - position]
        if value.op == "sub" and position == 0:  # a*b - c
            other = negated(other)
        elif value.op == "sub":  # c - a*b
            negative = not negative
        fma = (negated(a) if negative else a, b, other)
        new_numbers[number] = table.add("fma", fma, None, value.dtype, value.depth)
    return replace(kernel, values=tuple(table.values), body=renumbered(kernel.body, new_numbers))


# operations that count as one; an fma counts as two; comparisons and selections do not count
_OPERATIONS = {"add", "sub", "mul", "div", "sqrt", "sum2", "min", "max", *ELEMENTARY}


def count_flops(kernel: Kernel) -> int:
    """Return the floating-point operations per cell of all nests; a function counts as one."""
    total = 0
    for statement in kernel.body:
        values = (kernel.values[n] for n in kernel.below(ir.roots((statement,))))
        for value in values:
            if value.depth == POINT:
                total += 2 if value.op == "fma" else value.op in _OPERATIONS
    return total
