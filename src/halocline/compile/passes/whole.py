"""Rows of stages as whole vectors: a few elements beyond their end are computed too, and nobody reads them.

A vector loop would otherwise finish with a part of a vector and single elements: in rows of 64 cells and a
few more that is a tenth of the time, and more than half of the code. Rows of scratch memory end with a cache
line, and fields have lines to spare after their last row, so that there is memory to read and to write.
"""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel

# Operations that do no harm to numbers that mean nothing: none of them looks into a table.
HARMLESS = {
    "const", "scalar", "invariant", "load", "index", "neg", "abs", "sign", "sqrt", "cast", "not", "add",
    "sub", "mul", "div", "fma", "sum2", "min", "max", "lt", "le", "gt", "ge", "eq", "ne", "and", "or",
    "where", "branch",
}  # fmt: skip


def whole(kernel: Kernel) -> Kernel:
    """Mark the nests whose rows may be lengthened."""
    body = (replace(s, whole=True) if isinstance(s, ir.Nest) and _may(kernel, s) else s for s in kernel.body)
    return replace(kernel, body=tuple(body))


def _may(kernel: Kernel, nest: ir.Nest) -> bool:
    stored = _stored(nest)
    if len(stored) < len(nest.body) or any(kernel.array[name].kind != "scratch" for name in stored):
        return False
    values = [kernel.values[n] for n in kernel.below(ir.roots(nest.body))]
    read = {kernel.array[v.attribute[0]] for v in values if v.op == "load"}
    # beyond the patch another thread may be at work on a field
    written = {array for each in kernel.body if isinstance(each, ir.Nest) for array in _stored(each)}
    if any(a.kind not in ("field", "scratch") or (a.kind == "field" and a.name in written) for a in read):
        return False
    precisions = {a.dtype for a in read} | {kernel.array[name].dtype for name in stored}
    precisions |= {v.dtype for v in values if v.args}
    return len(precisions) == 1 and all(v.op in HARMLESS for v in values)


def _stored(nest: ir.Nest) -> list[str]:
    return [s.array for s in nest.body if isinstance(s, ir.Store)]
