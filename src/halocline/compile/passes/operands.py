"""Where results go: to the field itself, or to a second buffer; and the operands of a kernel, in order."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel


def second(name: str) -> str:
    """The second buffer of a field."""
    return name + "'next"


def doubled(kernel: Kernel, offsets: Mapping[str, Collection[tuple[int, ...]]]) -> set[str]:
    """The fields whose old values other cells, or later nests, still read when the new ones are written.

    `offsets`: where fields are read around a point.
    """
    found: set[str] = set()
    written: set[str] = set()
    for nest in kernel.body:
        assert isinstance(nest, ir.Nest)
        found |= {name for name, _ in kernel.loads(ir.roots(nest.body))} & written
        written |= {s.array for s in nest.body if isinstance(s, ir.Store)}
    written = {name for name in written if kernel.array[name].kind == "field"}
    return {name for name in found if name in written} | {
        name for name in written if any(any(o) for o in offsets.get(name, ()))
    }


@dataclass(frozen=True)
class Operands:
    """The arrays of a sweep.

    Parameters
    ----------
    read : tuple of str
        Fields that it reads, in order.
    sinks : mapping of str to str
        Where it writes each field that it sets: the field or its second buffer.
    """

    read: tuple[str, ...]
    sinks: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Every array once, those that are read first."""
        return tuple(dict.fromkeys((*self.read, *self.sinks.values())))


def operands(kernel: Kernel, of: Operands, numbers: Mapping[str, int], only: bool = False) -> Kernel:
    """The kernel with its results in the buffers that they go to, and its arrays numbered in this order;
    `only` those that it touches itself."""

    def change(store: ir.Store) -> ir.Body:
        return (replace(store, array=of.sinks.get(store.array, store.array)),)

    body = ir.replaced(kernel.body, ir.Store, change)
    fields = {of.sinks[name]: replace(kernel.array[name], name=of.sinks[name]) for name in of.sinks}
    fields |= {name: kernel.array[name] for name in of.read}
    stored = [s.array for s in ir.flat(body) if isinstance(s, ir.Store)]
    touched = {*stored, *(name for name, _ in kernel.loads(ir.roots(body)))}
    arrays: list[Array] = [
        replace(fields[name], number=numbers[name], written=name in of.sinks.values())
        for name in of.names
        if name in touched or not only
    ]
    arrays += [array for array in map(kernel.array.get, stored) if array and array.kind == "scratch"]
    return replace(kernel, arrays=tuple(arrays), body=body)
