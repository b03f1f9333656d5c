"""Small kernels for tests of passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halocline.compile.ir.kernel import Array, Kernel
from halocline.compile.ir.statements import Nest, Store
from halocline.compile.passes.contract import contract
from halocline.compile.translate import Translation
from halocline.lang.expression import Expr


def kernel_of(*expressions: Expr, contracted: bool = True) -> Kernel:
    """A kernel that stores each expression in an array of its own, r0, r1, ...; with multiply-adds."""
    grid = next(e.grid for e in expressions if e.grid is not None)
    translation = Translation(grid)
    stores = []
    for number, expression in enumerate(expressions):
        value = translation.value(expression)
        name, dtype = f"r{number}", translation.table.values[value].dtype
        translation.table.arrays[name] = Array(name, dtype, staggered=(False,) * grid.ndim)
        stores.append(Store(name, value))
    table = translation.table
    kernel = Kernel(
        name="k",
        comment="k",
        ndim=grid.ndim,
        periodic=grid.periodic,
        arrays=tuple(table.arrays.values()),
        values=tuple(table.values),
        body=tuple(stores),
        grid=table.grid,
    )
    return contract(kernel) if contracted else kernel


def in_nest(kernel: Kernel) -> Kernel:
    """The results of a kernel in one nest."""
    none = ((0, 0),) * kernel.ndim
    return replace(kernel, body=(Nest(kernel.body, none, (0,) * kernel.ndim),))


def results(kernel: Kernel) -> list[int]:
    """The values that a kernel stores."""
    return [s.value for s in kernel.body if isinstance(s, Store)]


def ops(kernel: Kernel) -> list[str]:
    """The operations of a kernel, without loads and numbers."""
    values = (kernel.values[n] for n in kernel.below(results(kernel)))
    return [value.op for value in values if value.args]


def loads(
    kernel: Kernel, values: Iterable[int], known: Iterable[int] = ()
) -> list[tuple[str, tuple[int, ...]]]:
    """Every (array, offset) that values are loaded from, without those below what is known."""
    found = (kernel.values[n] for n in kernel.below(values, frozenset(known)))
    return [value.attribute for value in found if value.op == "load"]
