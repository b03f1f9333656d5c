"""Readable text form of kernels, which `halocline explain --code --passes` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel


def show_trail(trail: Iterable[tuple[str, Kernel]]) -> str:
    """Return the text of all kernels after each pass, grouped by kernel."""
    kernels: dict[str, list[tuple[str, Kernel]]] = {}
    for name, kernel in trail:
        kernels.setdefault(kernel.comment, []).append((name, kernel))
    return "\n".join(
        f"After {name}, {number} of {len(passes)}\n{show(kernel)}"
        for passes in kernels.values()
        for number, (name, kernel) in enumerate(passes, 1)
    )


def show(kernel: Kernel) -> str:
    """Return the text of a kernel, statement by statement.

    Values that are not yet part of a `Let` precede the statements.
    """
    lines = [f"kernel {kernel.comment}" if kernel.comment else "kernel"]
    for array in kernel.arrays:
        shape = f", {array.length} long" if array.length else f", {array.shape}" if array.shape else ""
        lines.append(f"  array {array.name}: {array.dtype} {array.kind}{shape}")
    placed = {n for s in ir.flat(kernel.body) if isinstance(s, ir.Let) for n in s.values}
    for number in kernel.below(ir.roots(kernel.body), placed):
        lines.append(f"  {value_text(kernel, number)}")
    lines += _body(kernel, kernel.body, 1)
    return "\n".join(lines) + "\n"


def value_text(kernel: Kernel, number: int) -> str:
    """Return the text of a value: its number, operation, and precision if that is not float64."""
    value = kernel.values[number]
    args = "".join(f" v{arg}" for arg in value.args)
    attribute = ""
    if value.op in ("load", "index", "shifted", "invariant"):
        subject, position = value.attribute
        attribute = f" {subject}{list(position) if isinstance(position, tuple) else f'[{position}]'}"
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
            yield from (indent + value_text(kernel, number) for number in statement.values)
            continue
        yield indent + _line(statement)
        parts = list(ir.bodies(statement))
        for name, inner in parts:
            if len(parts) > 1:
                yield f"{indent}  {name}:"
            yield from _body(kernel, inner, level + 1 + (len(parts) > 1))


def _line(statement: ir.Statement) -> str:
    """Return the text of a statement without its bodies, followed by the source line of the user."""
    if isinstance(statement, ir.Axis):
        step = "" if statement.step == 1 else f" step={statement.step}"
        return f"axis {','.join(map(str, statement.axes))} {statement.kind}{step}"
    words = [ir.name_of(statement)]
    for entry in fields(statement):
        value = getattr(statement, entry.name)
        if entry.type == "Body" or entry.name == "origin" or value == entry.default or value in ((), None):
            continue
        if entry.name in ("value", "condition"):
            value = f"v{value}"
        elif entry.name in ("values", "angles", "columns"):
            value = " ".join(f"v{number}" for number in value)
        positional = entry.name in ("array", "value", "kind")
        words.append(str(value) if positional else f"{entry.name}={value}")
    origin = getattr(statement, "origin", "")
    return " ".join(words) + (f"  # {origin}" if origin else "")
