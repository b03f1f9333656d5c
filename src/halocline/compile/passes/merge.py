"""Nests that one device kernel computes.

Without this pass, each nest of a sweep has a separate kernel, and reads its arrays from device memory again.
Nests that do not depend on each other share a kernel. Each thread block then computes its part of these nests
one after the other, so that later nests find many values in the cache. A thread needs the registers of the
nest that needs most.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel


@dataclass
class _Accesses:
    """Arrays that nests read and write."""

    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)

    def conflicts_with(self, other: _Accesses) -> bool:
        return bool(self.written & (other.read | other.written) or other.written & (self.read | self.written))


def merge(kernel: Kernel) -> Kernel:
    """Set the number of the device kernel for each nest; consecutive nests with stages may share one."""
    number = -1
    together = _Accesses()
    may_join = False
    body: ir.Body = ()
    for statement in kernel.body:
        if isinstance(statement, ir.Nest):
            accesses = _accesses(kernel, statement)
            is_plain = _is_plain(kernel, statement, accesses)
            if not (may_join and is_plain) or together.conflicts_with(accesses):
                number, together = number + 1, _Accesses()
            together = _Accesses(together.read | accesses.read, together.written | accesses.written)
            may_join = is_plain
            statement = replace(statement, kernel=number)
        body += (statement,)
    return replace(kernel, body=body)


def _accesses(kernel: Kernel, nest: ir.Nest) -> _Accesses:
    written = {s.array for s in nest.body if isinstance(s, ir.Store)}
    return _Accesses({name for name, _ in kernel.loads(ir.roots(nest.body))}, written)


def _is_plain(kernel: Kernel, nest: ir.Nest, accesses: _Accesses) -> bool:
    """Return True for a nest that uses stages, and computes all of its cells without a reduction."""
    uses_stages = any(kernel.array[name].kind == "scratch" for name in accesses.read | accesses.written)
    return uses_stages and nest.cell is None and not any(isinstance(s, ir.Reduce) for s in nest.body)
