"""Operands of a kernel in order, and the buffers of its results: the field itself or a second buffer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Array, Kernel


def second_buffer(name: str) -> str:
    """Return the name of the second buffer of a field."""
    return name + "'next"


def double_buffered(
    kernel: Kernel, sinks: Mapping[str, str], offsets: Mapping[str, Collection[tuple[int, ...]]]
) -> set[str]:
    """Return the fields that need a second buffer.

    If the results for these fields were written to their sinks, other cells or later nests would still read
    the old values of the sinks.

    Parameters
    ----------
    kernel : Kernel
    sinks : mapping of str to str
        Array for the results of each field: the field itself, or another field that the sweep sets.
    offsets : mapping of str to offsets
        Offsets at which the sweep reads each field.
    """
    unsafe = {sink for sink in sinks.values() if any(any(o) for o in offsets.get(sink, ()))}
    written: set[str] = set()
    for nest in kernel.body:
        assert isinstance(nest, ir.Nest)
        unsafe |= {name for name, _ in kernel.loads(ir.roots(nest.body))} & written
        written |= {sinks[s.array] for s in nest.body if isinstance(s, ir.Store) and s.array in sinks}
    return {name for name, sink in sinks.items() if sink in unsafe}


@dataclass(frozen=True)
class Operands:
    """Arrays of a sweep.

    Parameters
    ----------
    read : tuple of str
        Fields that the sweep reads, in order.
    sinks : mapping of str to str
        For each field whose values the sweep stores, the written array: the field itself, its second buffer,
        or a field that takes over its buffer.
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
