"""What a run of a case says on the terminal: rows while it goes on, and a summary at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from halocline.cli.output import say

if TYPE_CHECKING:
    from halocline.problems.case import CaseRun
    from halocline.problems.record import Record
    from halocline.problems.result import Result
    from halocline.solvers.linear import Solution

WIDEST = 11  # characters of a number: -1.2346e-05


def number(value: Any) -> str:
    """Of five digits; - where there is none."""
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def rows_of(shown: Sequence[str]) -> Callable[[Mapping[str, Any]], None]:
    """What prints diagnostics as they come, as rows of a table."""
    columns = ["step", "time", "time_step", *shown]
    widths = [max(len(column), WIDEST) for column in columns]

    def line(cells: Iterable[str]) -> str:
        return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))

    begun: list[bool] = []

    def row(found: Mapping[str, Any]) -> None:
        if not begun:
            begun.append(True)
            heads = line(columns)
            say(f"Diagnostics\n\n{heads}\n{'─' * len(heads)}")
        say(line(number(found.get(column)) for column in columns))

    return row


def summary(ready: CaseRun, result: Result) -> str:
    """What a run came to, and how fast."""
    from halocline.cli.keeping import writing_lines
    from halocline.problems import events
    from halocline.problems.case import PARTS
    from halocline.run.devices.devices import where
    from halocline.solvers.linear import Solution
    from halocline.words import amount

    r, whole = result.record, result.outcome
    ran = where(r.ranks, r.threads, r.devices)
    lines = [f"{ready.title}, {ran}", ""]
    if r.only is not None:
        lines += [
            f"{'timed':13} {PARTS[r.only]}: {_after(ready, r)}",
            f"{'':13} the fields hold nonsense, so there is no result",
        ]
    elif isinstance(whole, Solution):
        lines += _solved(whole, r)
    else:
        lines += _reached(ready, r)
    if r.error is not None:
        lines.append(f"{'error':13} {r.error:.4e}, {ready.case.error_name}")
    lines += events.lines(r.events or {}, r.steps)
    lines += _speed(result, ready.unit)
    if result.tuned is not None:
        lines.append(f"{'patches':13} {result.tuned}")
    if r.ranks > 1 and whole is not None:
        lines.append(f"{'overlap':13} {whole.overlap}")
    lines += writing_lines(r)
    of = " of the host" if r.devices else ""
    lines.append(f"{'memory':13} {amount(r.memory_bytes)}{of} resident")
    if r.checksum is not None:
        lines.append(f"{'checksum':13} {r.checksum}")
    return "\n".join(lines)


def _after(ready: CaseRun, record: Record) -> str:
    from halocline.words import counted

    not_timed = f", {record.warm_up} of them not timed" if record.warm_up else ""
    return counted(record.steps, ready.unit) + not_timed


def _reached(ready: CaseRun, record: Record) -> list[str]:
    """Of steps: the time, and the diagnostics."""
    reached = f"{'reached':13} t = {record.time:.6g} after {_after(ready, record)}"
    if record.time_step is not None:
        reached += f", the last of {record.time_step:.4g}"
        reached += f", limited by {record.limiter}" if record.limiter else ""
    lines, shown, numbers = [reached], ready.columns, record.diagnostics or {}
    for start in range(0, len(shown) if numbers else 0, 3):
        parts = [f"{name} = {number(numbers.get(name))}" for name in shown[start : start + 3]]
        lines.append(f"{'diagnostics' if start == 0 else '':13} {', '.join(parts)}")
    return lines


def _solved(solution: Solution, record: Record) -> list[str]:
    """Of a linear problem: whether it converged, and how far."""
    from halocline.words import counted

    how = "converged" if solution.converged else "not converged"
    reason = ", since rounding errors are the rest" if solution.reason == "rounding limit" else ""
    return [
        f"{how:13} after {counted(solution.iterations, 'iteration')}, residual "
        f"{solution.residual_relative:.3g} times the right-hand side (asked for: "
        f"{record.parameters['rtol']:g})",
        f"{'':13} computed anew, as b - A x: {solution.true_residual_relative:.3g} times the right-hand side"
        f"{reason}",
    ]


def _speed(result: Result, unit: str) -> list[str]:
    """Times, and rates beside what processors and memory can do; of a step, or an iteration."""
    from halocline.run.measurements.bandwidth import yardstick
    from halocline.words import duration

    r, whole, lines = result.record, result.outcome, []
    ns = r.ns_per_cell_step
    if ns is not None or whole is not None:
        pace = "" if ns is None else f", {ns:.4g} ns a cell and {unit}"
        each = "" if ns is None or unit == "step" else f", {duration(1e-9 * ns * r.cells)} an iteration"
        speed = "" if r.ssspnt is None else f", ssspnt {r.ssspnt:.4g}"
        lines.append(f"{'time':13} {duration(r.seconds)}{each}{pace}{speed}")
    if whole is not None:
        parts = {"compute": whole.compute, "exchange": whole.exchange, "reductions": whole.reduction}
        shares = (f"{name} {each / r.seconds if r.seconds else 0:.0%}" for name, each in parts.items())
        lines.append(f"{'':13} {', '.join(shares)}")
    if ns is not None and r.only != "exchange":
        arithmetic = (
            f"{'arithmetic':13} {r.flops_per_cell_step:,.0f} operations a cell and {unit}, "
            f"{r.flops_per_cell_step / ns:.1f} GFLOP/s"
        )
        if r.share_of_peak is not None and result.peak is not None:
            most = f"{result.peak / 1e9:.1f} GFLOP/s of multiply-adds on as many cores now"
            arithmetic += f", {r.share_of_peak:.0%} of the {most}"
        lines.append(arithmetic)
    if r.share_of_bound is not None and result.bandwidth is not None:
        rate = r.share_of_bound * result.bandwidth
        most = f"{result.bandwidth / 1e9:.1f} GB/s of {yardstick(r.devices)}"
        lines.append(
            f"{'bandwidth':13} {r.bytes_per_cell_step:,.0f} bytes a cell and {unit}, {rate / 1e9:.1f} GB/s, "
            f"{r.share_of_bound:.0%} of the {most}"
        )
    if r.joules_per_cell_step is not None:
        whose = " and ".join(r.joules_of)
        lines.append(f"{'energy':13} {1e9 * r.joules_per_cell_step:.4g} nJ a cell and {unit}, of {whose}")
    return lines
