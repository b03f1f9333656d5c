"""Terminal output of a run: rows of diagnostics during the run, and a summary at its end."""

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
from halocline.run.devices.devices import hardware_text
from halocline.run.measurements.bandwidth import yardstick
from halocline.run.simulation.checks import Check
from halocline.solvers.linear import Solution
from halocline.words import amount, counted, duration

WIDEST = 11  # characters of a number: -1.2346e-05


def number(value: Any) -> str:
    """Return a number as text with five digits, or "-" for None."""
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def rows_of(problem: Problem) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that prints diagnostics as rows of a table during a run."""
    columns: list[str] = []

    def line(cells: Iterable[str]) -> str:
        widths = (max(len(column), WIDEST) for column in columns)
        return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))

    def row(diagnostics: Mapping[str, Any]) -> None:
        if not columns:
            columns.extend(("step", "time", "time_step", *problem.names.key_diagnostics))
            heads = line(columns)
            say(f"Diagnostics\n\n{heads}\n{'─' * len(heads)}")
        say(line(number(diagnostics.get(column)) for column in columns))

    return row


def part_line(problem: Problem, result: Result, only: str) -> str:
    """Return a line with the time that one part of each step takes, summed over all steps."""

    record = result.record
    if record is None:
        raise InputError(
            f"--only {only}: {problem.spelling} ran no problem with steps, so there is nothing to time"
        )
    ns = record.ns_per_cell_step
    time_per_cell = "" if ns is None else f", {ns:.4g} ns per cell and step"
    return f"{PARTS[only]}: {duration(record.seconds)} for {counted(record.steps, 'step')}{time_per_cell}"


def judgement(checks: Sequence[Check]) -> str:
    """Return the table of checks."""

    def verdict(check: Check) -> str:
        if not check.compared:
            return ""
        return "passed" if check.passed else "FAILED"

    columns: dict[str, Callable[[Check], str]] = {
        "check": lambda check: check.name,
        "description": lambda check: check.about,
        "value": lambda check: number(float(check.value)) if check.compared else "",
        "expected": lambda check: check.bound,
        "result": verdict,
    }
    failed = sum(not check.passed for check in checks)
    left_out = sum(not check.compared for check in checks)
    note = f"{failed} of {counted(len(checks), 'check')} failed." if failed else "All checks passed."
    note += f" {counted(left_out, 'check')} could not be evaluated." if left_out else ""
    return table_of("Checks", checks, columns, left=2, note=note).text().rstrip()


Row = tuple[str, str, str]  # quantity, value with its unit, explanation


def table(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table of quantities. Values without an explanation do not widen their column."""
    quantities = max(len(quantity) for quantity, _, _ in rows)
    values = max((len(value) for _, value, note in rows if note), default=0)
    return [f"{quantity:{quantities}}  {value:{values}}  {note}".rstrip() for quantity, value, note in rows]


def event_lines(events: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a table of the events that occurred."""
    occurred = [(name, event) for name, event in events.items() if event["count"]]
    if not occurred:
        return []

    def row(name: str, event: Mapping[str, Any]) -> tuple[str, ...]:
        cell, step = event["first_cell"], event["first_step"]
        return (
            name,
            f"{event['count']:,}",
            f"{event['share']:.2g}",
            "-" if cell is None else str(tuple(cell)),
            "-" if step is None else str(step),
        )

    head = ("event", "cells", "share of updates", "first cell", "first step")
    rows = [head, *(row(name, event) for name, event in occurred)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *cells in rows:
        texts = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        lines.append(f"{name.ljust(widths[0])}  {'  '.join(texts)}")
    return lines


def summary(problem: Problem, result: Result) -> str:
    """Return the results and the speed of a run as a table."""

    r, outcome = result.record, result.outcome
    assert r is not None
    title = f"{problem.title}, {hardware_text(r.ranks, r.threads, r.devices)}"
    rows: list[Row] = []
    if r.only is not None:
        rows.append(
            ("timed part", r.only, f"{PARTS[r.only]}, {_steps(problem, r)}; fields have no valid values")
        )
    elif isinstance(outcome, Solution):
        rows += _solved(outcome, result)
    else:
        rows += _reached(problem, r)
    if r.error is not None:
        rows.append(("error", f"{r.error:.4e}", problem.names.error_name))
    events = event_lines(r.events or {})
    if r.events and not events:
        rows.append(("events", "none", f"monitored: {', '.join(r.events)}"))
    rows += _speed(result, problem.unit)
    if result.tuned is not None:
        from halocline.run.tuning.patches import text_of

        rows.append(("patches", text_of(result.tuned), ""))
    if r.ranks > 1 and outcome is not None:
        rows.append(("overlap", str(outcome.overlap), ""))
    rows += _balancing(r)
    rows += _writing(r)
    owner = "host memory" if r.devices else "resident memory"
    rows.append(("memory", amount(r.memory_bytes), f"{owner} of all ranks"))
    if r.checksum is not None:
        rows.append(("checksum", r.checksum, ""))
    lines = [title, "", *table(rows)]
    return "\n".join([*lines, "", *events] if events else lines)


def _steps(problem: Problem, record: Record) -> str:
    """Return the number of steps or iterations."""
    not_timed = f" ({record.warm_up} not timed)" if record.warm_up else ""
    return counted(record.steps, problem.unit) + not_timed


def _reached(problem: Problem, record: Record) -> list[Row]:
    """Return rows with the simulated time at the end and the diagnostics."""
    note = _steps(problem, record)
    if record.time_step is not None:
        note += f", last time step {record.time_step:.4g}"
        note += f", limited by {record.limiter}" if record.limiter else ""
    rows = [("time reached", f"{record.time:.6g}", note)]
    diagnostics = record.diagnostics or {}
    if diagnostics:
        rows += [(name, number(diagnostics.get(name)), "") for name in problem.names.key_diagnostics]
    return rows


def _solved(solution: Solution, result: Result) -> list[Row]:
    """Return rows on the convergence of a linear problem."""

    state = "converged" if solution.converged else "not converged"
    limit = ", limited by rounding errors" if solution.reason == "rounding limit" else ""
    tolerance = result.observer.runs.arguments.rtol
    return [
        ("iterations", str(solution.iterations), f"{state}, tolerance {tolerance:g}"),
        (
            "residual",
            f"{solution.residual_relative:.3g}",
            "norm relative to that of the right-hand side, updated in each iteration",
        ),
        (
            "true residual",
            f"{solution.true_residual_relative:.3g}",
            f"norm of b - A x relative to that of b, computed after the last iteration{limit}",
        ),
    ]


def _speed(result: Result, unit: str) -> list[Row]:
    """Return rows with the time of a step or iteration, and rates relative to the peak and bandwidth."""

    r, outcome = result.record, result.outcome
    rows: list[Row] = []
    assert r is not None
    ns = r.ns_per_cell_step
    if ns is not None or outcome is not None:
        note = ""
        if outcome is not None and r.only is None:
            parts = {
                "compute": outcome.compute,
                "exchange": outcome.exchange,
                "reductions": outcome.reduction,
            }
            shares = (f"{name} {part / r.seconds if r.seconds else 0:.0%}" for name, part in parts.items())
            note = ", ".join(shares)
        rows.append(("wall time", duration(r.seconds), note))
    if ns is not None:
        if unit != "step":
            rows.append((f"per {unit}", duration(1e-9 * ns * r.cells), ""))
        ssspnt = "" if r.ssspnt is None else f"ssspnt {r.ssspnt:.4g}"
        rows.append((f"per cell and {unit}", f"{ns:.4g} ns", ssspnt))
    if ns is not None and r.only in (None, "compute"):
        operations = f"{r.flops_per_cell_step:,.0f} operations per cell and {unit}"
        if r.share_of_peak is not None and result.peak is not None:
            peak = f"{result.peak / 1e9:.1f} GFLOP/s, the peak measured on these cores"
            operations = f"{r.share_of_peak:.0%} of {peak}; {operations}"
        rows.append(("arithmetic", f"{r.flops_per_cell_step / ns:.1f} GFLOP/s", operations))
    if r.share_of_bound is not None and result.bandwidth is not None:
        reference = f"{result.bandwidth / 1e9:.1f} GB/s by {yardstick(r.devices)}"
        traffic = f"{r.bytes_per_cell_step:,.0f} bytes per cell and {unit}"
        rows.append(
            (
                "memory bandwidth",
                f"{r.share_of_bound * result.bandwidth / 1e9:.1f} GB/s",
                f"{r.share_of_bound:.0%} of {reference}; {traffic}",
            )
        )
    if r.joules_per_cell_step is not None:
        energy = f"{1e9 * r.joules_per_cell_step:.4g} nJ"
        rows.append(("energy", energy, f"per cell and {unit}, of {' and '.join(r.joules_of)}"))
    return rows


def _balancing(record: Record) -> list[Row]:
    """Return a row on load balancing; no row if the run did not balance."""
    balances = record.balances
    if balances is None:
        return []
    return [(
        "balances",
        str(int(balances["count"])),
        f"{duration(balances['seconds'])}, {counted(int(balances['moved']), 'subdomain')} moved "
        f"({amount(int(balances['bytes']))}); before the last balance, the rank with the most work had "
        f"{balances['before']:.2f} times the mean work",
    )]  # fmt: skip


def _writing(record: Record) -> list[Row]:
    """Return rows with the cost of output and checkpoints; no rows if nothing was written."""

    if not record.written_bytes:
        return []
    writers = f" by {counted(record.io_ranks, 'I/O rank')}" if record.io_ranks else ""
    return [(
        "written",
        amount(record.written_bytes),
        f"output and checkpoints{writers}; the run paused {duration(record.writing_seconds)} for writing, "
        f"including {duration(record.waiting_seconds)} for the disk",
    )]  # fmt: skip
