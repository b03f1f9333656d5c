"""Kernels as text, for people: what `halocline explain --code --passes` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel


def show_trail(trail: Iterable[tuple[str, Kernel]]) -> str:
    """What each pass has left of each kernel: kernel by kernel, pass by pass."""
    kernels: dict[str, list[tuple[str, Kernel]]] = {}
    for name, kernel in trail:
        kernels.setdefault(kernel.comment, []).append((name, kernel))
    return "\n".join(
        f"After {name}, {number} of {len(passes)}\n{show(kernel)}"
        for passes in kernels.values()
        for number, (name, kernel) in enumerate(passes, 1)
    )


def show(kernel: Kernel) -> str:
    """A kernel, statement by statement; where none says where values are computed, with all of them first."""
    lines = [f"kernel {kernel.comment}" if kernel.comment else "kernel"]
    for array in kernel.arrays:
        shape = f", {array.length} long" if array.length else f", {array.shape}" if array.shape else ""
        lines.append(f"  array {array.name}: {array.dtype} {array.kind}{shape}")
    placed = {n for s in ir.flat(kernel.body) if isinstance(s, ir.Let) for n in s.values}
    for number in kernel.below(ir.roots(kernel.body), placed):
        lines.append(f"  {spelled(kernel, number)}")
    lines += _body(kernel, kernel.body, 1)
    return "\n".join(lines) + "\n"


def spelled(kernel: Kernel, number: int) -> str:
    """A value: its number, what it is, and its precision where that is not float64."""
    value = kernel.values[number]
    args = "".join(f" v{arg}" for arg in value.args)
    attribute = ""
    if value.op in ("load", "index", "shifted", "invariant"):
        thing, where = value.attribute
        attribute = f" {thing}{list(where) if isinstance(where, tuple) else f'[{where}]'}"
    elif value.op == "lookup":
        attribute = f" of {len(value.attribute)} numbers"
    elif value.attribute is not None:
        attribute = f" {value.attribute}"
    precision = "" if value.dtype == "float64" else f" ({value.dtype})"
    return f"v{number} = {value.op}{attribute}{args}{precision}"


def _body(kernel: Kernel, body: ir.Body, level: int) -> Iterator[str]:
    indent = "  " * level
    for statement in body:
        if isinstance(statement, ir.Let):
            yield from (indent + spelled(kernel, number) for number in statement.values)
            continue
        yield indent + _line(statement)
        parts = list(ir.bodies(statement))
        for name, inner in parts:
            if len(parts) > 1:
                yield f"{indent}  {name}:"
            yield from _body(kernel, inner, level + 1 + (len(parts) > 1))


def _line(statement: ir.Statement) -> str:
    """A statement without what is in it; the user's line behind."""
    words = [type(statement).__name__.lower()]
    for each in fields(statement):
        value = getattr(statement, each.name)
        if each.type == "Body" or each.name == "origin" or value == each.default or value in ((), None):
            continue
        if each.name in ("value", "condition"):
            value = f"v{value}"
        elif each.name in ("values", "angles", "columns"):
            value = " ".join(f"v{number}" for number in value)
        positional = each.name in ("array", "value", "axis", "kind")
        words.append(str(value) if positional else f"{each.name}={value}")
    origin = getattr(statement, "origin", "")
    return " ".join(words) + (f"  # {origin}" if origin else "")
