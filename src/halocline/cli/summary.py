"""What a run of a case says on the terminal: rows while it goes on, and a summary at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from halocline.cli.output import say
from halocline.errors import InputError
from halocline.io.table import table_of
from halocline.problems.problem import Problem
from halocline.problems.record import Record
from halocline.problems.result import Result
from halocline.problems.run_options import PARTS
from halocline.run.devices.devices import where
from halocline.run.measurements.bandwidth import yardstick
from halocline.run.simulation.checks import Check
from halocline.solvers.linear import Solution
from halocline.words import amount, counted, duration

WIDEST = 11  # characters of a number: -1.2346e-05


def number(value: Any) -> str:
    """Of five digits; - where there is none."""
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def rows_of(problem: Problem) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that prints diagnostics as they come, as rows of a table."""
    columns: list[str] = []

    def line(cells: Iterable[str]) -> str:
        widths = (max(len(column), WIDEST) for column in columns)
        return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))

    def row(found: Mapping[str, Any]) -> None:
        if not columns:
            columns.extend(("step", "time", "time_step", *problem.names.shown))
            heads = line(columns)
            say(f"Diagnostics\n\n{heads}\n{'─' * len(heads)}")
        say(line(number(found.get(column)) for column in columns))

    return row


def part_line(problem: Problem, result: Result, only: str) -> str:
    """Return a line on the time of a part of the steps."""

    record = result.record
    if record is None:
        raise InputError(f"--only {only}: {problem.spelling} has run no problem whose steps could be timed")
    ns = record.ns_per_cell_step
    each = "" if ns is None else f", {ns:.4g} ns a cell and step"
    return f"{PARTS[only]}: {duration(record.seconds)} for {counted(record.steps, 'step')}{each}"


def judgement(checks: Sequence[Check]) -> str:
    """Return the table of checks."""

    def verdict(check: Check) -> str:
        if not check.compared:
            return ""
        return "passed" if check.passed else "FAILED"

    columns: dict[str, Callable[[Check], str]] = {
        "check": lambda check: check.name,
        "what it compares": lambda check: check.about,
        "value": lambda check: number(float(check.value)) if check.compared else "",
        "expected": lambda check: check.bound,
        "result": verdict,
    }
    failed = sum(not check.passed for check in checks)
    left_out = sum(not check.compared for check in checks)
    note = f"{counted(failed, 'check')} of {len(checks)} failed." if failed else "All checks passed."
    note += f" {left_out} could not be made." if left_out else ""
    return table_of("Checks", checks, columns, left=2, note=note).text().rstrip()


def event_lines(events: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a table of the events that happened, or a line that names those that did not."""
    happened = [(name, event) for name, event in events.items() if event["count"]]
    if not happened:
        return [f"{'events':13} none of {', '.join(events)}"] if events else []

    def row(name: str, event: Mapping[str, Any]) -> tuple[str, ...]:
        cell, step = event["first_cell"], event["first_step"]
        return (
            name,
            f"{event['count']:,}",
            f"{event['share']:.2g}",
            "-" if cell is None else str(tuple(cell)),
            "-" if step is None else str(step),
        )

    rows = [("", "cells", "share", "first cell", "in step"), *(row(*each) for each in happened)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, cells in enumerate(rows):
        texts = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        lines.append(f"{'' if number else 'events':13} {cells[0].ljust(widths[0])}  {'  '.join(texts)}")
    return lines


def summary(problem: Problem, result: Result) -> str:
    """Return the results of a run, and its speed."""

    r, whole = result.record, result.outcome
    assert r is not None
    ran = where(r.ranks, r.threads, r.devices)
    lines = [f"{problem.title}, {ran}", ""]
    if r.only is not None:
        lines += [
            f"{'timed':13} {PARTS[r.only]}: {_after(problem, r)}",
            f"{'':13} the fields hold nonsense, so there is no result",
        ]
    elif isinstance(whole, Solution):
        lines += _solved(whole, result)
    else:
        lines += _reached(problem, r)
    if r.error is not None:
        lines.append(f"{'error':13} {r.error:.4e}, {problem.names.error_name}")
    lines += event_lines(r.events or {})
    lines += _speed(result, problem.unit)
    if result.tuned is not None:
        from halocline.run.tuning.patches import text_of

        lines.append(f"{'patches':13} {text_of(result.tuned)}")
    if r.ranks > 1 and whole is not None:
        lines.append(f"{'overlap':13} {whole.overlap}")
    lines += _balancing(r)
    lines += _writing(r)
    of = " of the host" if r.devices else ""
    lines.append(f"{'memory':13} {amount(r.memory_bytes)}{of} resident")
    if r.checksum is not None:
        lines.append(f"{'checksum':13} {r.checksum}")
    return "\n".join(lines)


def _after(problem: Problem, record: Record) -> str:

    not_timed = f", {record.warm_up} of them not timed" if record.warm_up else ""
    return counted(record.steps, problem.unit) + not_timed


def _reached(problem: Problem, record: Record) -> list[str]:
    """Return lines on the time that steps have reached, and the diagnostics."""
    reached = f"{'reached':13} t = {record.time:.6g} after {_after(problem, record)}"
    if record.time_step is not None:
        reached += f", the last of {record.time_step:.4g}"
        reached += f", limited by {record.limiter}" if record.limiter else ""
    lines, shown, numbers = [reached], problem.names.shown, record.diagnostics or {}
    for start in range(0, len(shown) if numbers else 0, 3):
        parts = [f"{name} = {number(numbers.get(name))}" for name in shown[start : start + 3]]
        lines.append(f"{'diagnostics' if start == 0 else '':13} {', '.join(parts)}")
    return lines


def _solved(solution: Solution, result: Result) -> list[str]:
    """Return lines on the convergence of a linear problem."""

    how = "converged" if solution.converged else "not converged"
    reason = ", since rounding errors are the rest" if solution.reason == "rounding limit" else ""
    return [
        f"{how:13} after {counted(solution.iterations, 'iteration')}, residual "
        f"{solution.residual_relative:.3g} times the right-hand side (asked for: "
        f"{result.observer.runs.arguments.rtol:g})",
        f"{'':13} computed anew, as b - A x: {solution.true_residual_relative:.3g} times the right-hand side"
        f"{reason}",
    ]


def _speed(result: Result, unit: str) -> list[str]:
    """Return lines on times of a step or iteration, and rates beside those of processors and memory."""

    r, whole, lines = result.record, result.outcome, []
    assert r is not None
    ns = r.ns_per_cell_step
    if ns is not None or whole is not None:
        pace = "" if ns is None else f", {ns:.4g} ns a cell and {unit}"
        each = "" if ns is None or unit == "step" else f", {duration(1e-9 * ns * r.cells)} an iteration"
        speed = "" if r.ssspnt is None else f", ssspnt {r.ssspnt:.4g}"
        lines.append(f"{'time':13} {duration(r.seconds)}{each}{pace}{speed}")
    if whole is not None and r.only is None:
        parts = {"compute": whole.compute, "exchange": whole.exchange, "reductions": whole.reduction}
        shares = (f"{name} {each / r.seconds if r.seconds else 0:.0%}" for name, each in parts.items())
        lines.append(f"{'':13} {', '.join(shares)}")
    if ns is not None and r.only in (None, "compute"):
        arithmetic = (
            f"{'arithmetic':13} {r.flops_per_cell_step:,.0f} operations a cell and {unit}, "
            f"{r.flops_per_cell_step / ns:.1f} GFLOP/s"
        )
        if r.share_of_peak is not None and result.peak is not None:
            most = f"{result.peak / 1e9:.1f} GFLOP/s of multiply-adds of this precision on as many cores"
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


def _balancing(record: Record) -> list[str]:
    """Return a line on balances, if there were any."""
    found = record.balances
    if found is None:
        return []
    return [
        f"{'balance':13} {counted(int(found['count']), 'time')}, {duration(found['seconds'])}: "
        f"{counted(int(found['moved']), 'subdomain')} moved ({amount(int(found['bytes']))}); before the "
        f"last, the rank with most work had {found['before']:.2f} times the mean"
    ]


def _writing(record: Record) -> list[str]:
    """Return a line on output and checkpoints, if there are any."""

    if not record.written_bytes:
        return []
    by = f" by {counted(record.io_ranks, 'I/O rank')}" if record.io_ranks else ""
    return [
        f"{'written':13} {amount(record.written_bytes)} of output and checkpoints{by}; the run paused "
        f"{duration(record.writing_seconds)} for it, {duration(record.waiting_seconds)} of that to wait for "
        "the disk"
    ]
