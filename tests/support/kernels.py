"""Small kernels for tests of passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halocline.compile.ir.kernel import Array, Kernel, Value
from halocline.compile.ir.statements import Nest, Reduce, Stage, Store
from halocline.compile.passes.contract import contract
from halocline.compile.translate import Translation
from halocline.lang.expression import Expr


def kernel_of(*expressions: Expr, contracted: bool = True) -> Kernel:
    """Return a kernel with multiply-adds that stores the expressions in arrays r0, r1, ..."""
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
    """Return the kernel with its results in one nest."""
    none = ((0, 0),) * kernel.ndim
    return replace(kernel, body=(Nest(kernel.body, none, (0,) * kernel.ndim),))


def results(kernel: Kernel) -> list[int]:
    """Return the values that a kernel stores."""
    return [s.value for s in kernel.body if isinstance(s, Store)]


def ops(kernel: Kernel) -> list[str]:
    """Return the operations of a kernel, without loads and numbers."""
    values = (kernel.values[n] for n in kernel.below(results(kernel)))
    return [value.op for value in values if value.args]


def loads(
    kernel: Kernel, values: Iterable[int], known: Iterable[int] = ()
) -> list[tuple[str, tuple[int, ...]]]:
    """Return all loads (array, offset) below some values, without those below known values."""
    reachable = (kernel.values[n] for n in kernel.below(values, frozenset(known)))
    return [value.attribute for value in reachable if value.op == "load"]


def small() -> Kernel:
    """Return the kernel of r = 2 (u[1] - s[-1]), with a stage s = u * u and a sum of u over all cells."""
    values = (
        Value("load", (), ("u", (0,))),
        Value("mul", (0, 0)),
        Value("load", (), ("u", (1,))),
        Value("load", (), ("s", (-1,))),
        Value("sub", (2, 3)),
        Value("const", (), 2.0, depth=0),
        Value("mul", (4, 5)),
    )
    return Kernel(
        name="k",
        comment="k",
        ndim=1,
        periodic=(True,),
        arrays=(Array("u", "float64"), Array("r", "float64"), Array("s", "float64", "scratch")),
        values=values,
        body=(
            Nest((Store("s", 1, "gas.py:7"),), ((1, 0),), (0,)),
            Nest((Store("r", 6, "gas.py:9"), Reduce(0, "sum", 0)), ((0, 0),), (0,)),
        ),
    )


def staged(storage: str = "auto") -> Kernel:
    """Return the kernel of `small` as translation leaves it; s has 8 additional operations."""
    kernel = small()
    return replace(kernel, body=(Stage("s", 1, storage), Store("r", 6), Reduce(0, "sum", 0)))
