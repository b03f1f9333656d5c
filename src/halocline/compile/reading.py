"""What expressions and kernels read besides fields."""

from __future__ import annotations

from collections.abc import Iterable

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.lang.expression import Expr, walk


def scalars_in(found: Iterable[Expr]) -> list[str]:
    """The scalars that expressions read, in order."""
    return [leaf.attribute[0] for leaf in walk(found) if leaf.op == "scalar"]


def scalars_of(kernel: Kernel) -> list[str]:
    """The scalars that a kernel reads, in order."""
    values = (kernel.values[number] for number in kernel.below(ir.roots(kernel.body)))
    return [value.attribute for value in values if value.op == "scalar"]
