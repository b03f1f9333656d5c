"""Operands of a kernel in order, and the buffers of its results: the field itself or a second buffer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel


def second_buffer(name: str) -> str:
    """Return the name of the second buffer of a field."""
    return name + "'next"


def double_buffered(kernel: Kernel, offsets: Mapping[str, Collection[tuple[int, ...]]]) -> set[str]:
    """Return the fields that need a second buffer.

    Other cells or later nests still read the old values of these fields when the new values are written.
    `offsets` contains the offsets at which each field is read.
    """
    read_later: set[str] = set()
    written: set[str] = set()
    for nest in kernel.body:
        assert isinstance(nest, ir.Nest)
        read_later |= {name for name, _ in kernel.loads(ir.roots(nest.body))} & written
        written |= {s.array for s in nest.body if isinstance(s, ir.Store)}
    written = {name for name in written if kernel.array[name].kind == "field"}
    return {name for name in read_later if name in written} | {
        name for name in written if any(any(o) for o in offsets.get(name, ()))
    }


@dataclass(frozen=True)
class Operands:
    """Arrays of a sweep.

    Parameters
    ----------
    read : tuple of str
        Fields that the sweep reads, in order.
    sinks : mapping of str to str
        For each field that the sweep sets, the written array: the field or its second buffer.
    """

    read: tuple[str, ...]
    sinks: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """All arrays without duplicates; the arrays that are read come first."""
        return tuple(dict.fromkeys((*self.read, *self.sinks.values())))


def operands(
    kernel: Kernel, sweep_arrays: Operands, numbers: Mapping[str, int], only: bool = False
) -> Kernel:
    """Replace the stored arrays of a kernel by their buffers, and set the numbers of its arrays.

    If `only` is True, the result contains only the arrays that this kernel uses itself.
    """

    def change(store: ir.Store) -> ir.Body:
        return (replace(store, array=sweep_arrays.sinks.get(store.array, store.array)),)

    body = ir.replaced(kernel.body, ir.Store, change)
    fields = {
        sweep_arrays.sinks[name]: replace(kernel.array[name], name=sweep_arrays.sinks[name])
        for name in sweep_arrays.sinks
    }
    fields |= {name: kernel.array[name] for name in sweep_arrays.read}
    stored = [s.array for s in ir.flat(body) if isinstance(s, ir.Store)]
    used_arrays = {*stored, *(name for name, _ in kernel.loads(ir.roots(body)))}
    arrays: list[Array] = [
        replace(fields[name], number=numbers[name], written=name in sweep_arrays.sinks.values())
        for name in sweep_arrays.names
        if name in used_arrays or not only
    ]
    arrays += [array for array in map(kernel.array.get, stored) if array and array.kind == "scratch"]
    return replace(kernel, arrays=tuple(arrays), body=body)
