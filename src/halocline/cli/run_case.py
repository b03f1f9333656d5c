"""`halocline run CASE`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from halocline.cli.output import check_files, note, say, write, write_json, written
from halocline.cli.progress import progress, terminal
from halocline.cli.ranks import spread
from halocline.cli.summary import number, rows_of, summary
from halocline.cli.texts import check_part
from halocline.errors import InputError
from halocline.explanation.timeline import draw_timeline
from halocline.physics import cases
from halocline.run.host.machine import this_machine
from halocline.run.ranks.mpi import world
from halocline.words import counted

if TYPE_CHECKING:
    from halocline.cli.keeping import Kept
    from halocline.io.figure import Figure
    from halocline.physics.case import Check
    from halocline.problems.case import CaseRun
    from halocline.problems.result import Result


def case(
    name: str,
    *,
    n: Sequence[int] | None = None,
    given: Mapping[str, float | str] | None = None,
    dim: int | None = None,
    steps: int | None = None,
    until: float | None = None,
    order: int | None = None,
    scheme: str | None = None,
    only: str | None = None,
    warm_up: int = 0,
    every: int | None = None,
    ranks: int | None = None,
    json: str | None = None,
    csv: Path | None = None,
    pictures: Path | None = None,
    check: bool = False,
    execution: Mapping[str, Any],
    kept: Kept,
) -> None:
    """Run a case from its start, print how it went, and end with status 1 where its check fails."""
    from halocline.problems.named import case_run, check_kind

    known = cases.case_named(name)
    check_kind(name, known, scheme=scheme)
    if csv is not None and known.linear:
        raise InputError(
            f"--csv {csv}: {name} is a linear problem, which has no series of times: leave it out"
        )
    trace = execution.get("trace")
    if only is not None:
        without = {
            "--until": until, "--every": every, "--csv": csv, "--pictures": pictures, "--trace": trace,
            **kept.given, "--check": check or None,
        }  # fmt: skip
        check_part(only, without)
    if check and known.check is None:
        judged = ", ".join(each for each, own in cases.cases().items() if own.check is not None) or "none"
        raise InputError(f"--check: {name} has no check; cases that have one: {judged}")
    ready = case_run(name, n, given, kept.resume, dim=dim, order=order, scheme=scheme)
    spread(ranks, kept.io_ranks)
    shown = {} if pictures is None else {pictures / f"{key}.png": (key, e) for key, e in ready.shown.items()}
    figures = {} if pictures is None else {name: pictures / f"{name}.png" for name in ready.case.figures}
    timeline = pictures / "timeline.png" if pictures is not None and trace is not None else None
    check_files(json, csv, trace, timeline, *shown, *figures.values())
    shape = " x ".join(map(str, ready.shape))
    if only is not None:
        result = ready.time_part(only, steps=steps, warm_up=warm_up, **execution)
    else:
        series: list[dict[str, Any]] = []
        rows = rows_of(ready.columns) if every is not None and json != "-" else None
        # rows that come while it runs say how far it is
        line = progress(f"{name}, {shape}", f"{ready.unit}s") if rows is None else nullcontext()
        try:
            with line as on_progress:
                result = ready.run(
                    steps=steps, until=until, every=every, warm_up=warm_up, series=series, on_look=rows,
                    **kept.options(), change=tuple(given or ()),
                    share=world().bcast(rows is None and terminal() is not None),
                    on_progress=on_progress, **execution,
                )  # fmt: skip
        except BaseException:  # what led to the end is what one wants to see of a run that failed
            if every is not None and series:
                _write_series(csv, series)
            raise
    record = result.record
    resumed = getattr(result.simulation, "resumed", None)
    if kept.resume is not None and resumed is not None and resumed.step == record.steps:
        note(f"nothing was done: {kept.resume} is at step {record.steps:,} (time {record.time:g}) already")
        kept = replace(kept, output=[], checkpoint=None)
    elif kept.resume is None and only is None and record.time is not None and record.steps == 0:
        if result.outcome is not None and result.outcome.reason in ready.ends:
            end = f"it is {result.outcome.reason} there, which"
        else:
            end = f"step {steps}" if until is None else f"time {until:g}"
        note(f"nothing was done: the run begins at time {record.time:g}, and {end} is its end")
    checks = ready.check(result) if check else None
    if json != "-":
        say(("\n" if every is not None else "") + summary(ready, result))
        if checks is not None:
            say("\n" + _judgement(checks))
    if json is not None:
        found = asdict(record) | ready.findings(result)
        found |= {} if checks is None else {"checks": [_facts(each) for each in checks]}
        write_json(json, found | {"machine": this_machine().as_dict()})
    if record.series is not None:
        _write_series(csv, record.series)
    when = "" if pictures is None else _when(result, ready)
    for path, (key, what) in shown.items():
        _draw(result, key, what, path, when)
    if figures:
        for key, figure in ready.figures(result).items():
            _draw_figure(result, figure, figures[key], when)
    if record.devices:
        timeline = None  # hosts wait for them, which is nothing to see
    if timeline is not None:
        draw_timeline(result.simulation.domain, timeline)
    written([json, csv, trace, timeline, *shown, *figures.values(), *kept.stores])
    kept.note_checkpoints()
    if checks is not None and not all(each.passed for each in checks):
        raise typer.Exit(1)


def _write_series(csv: Path | None, series: Sequence[Mapping[str, Any]]) -> None:
    if csv is not None:
        from halocline.io.table import as_rows

        write(csv, as_rows(series))


def _when(result: Result, ready: CaseRun) -> str:
    """What pictures show, in words: a time, or what a case ends with that has none."""
    r, outcome = result.record, result.outcome
    if outcome is not None and outcome.reason in ready.ends:
        return f"{outcome.reason} after {counted(r.steps, ready.unit)}"
    return f"after {counted(r.steps, ready.unit)}" if r.time is None else f"t = {r.time:.4g}"


def _draw(result: Result, name: str, what: Any, path: Path, when: str) -> None:
    from halocline.io.picture import picture

    r = result.record
    title = f"{name}, {r.case}, {' x '.join(map(str, r.shape))} cells, {when}"
    picture(result.simulation, what, path, title=title, label=name)


def _draw_figure(result: Result, figure: Figure | None, path: Path, when: str) -> None:
    from halocline.io.figure import draw

    r, comm = result.record, result.simulation.domain.comm
    with comm.agreement(f"draw {path}"):
        if figure is not None:
            shape = " x ".join(map(str, r.shape))
            draw(figure, path, title=f"{r.case}, {shape} cells, {when}")


def _facts(check: Check) -> dict[str, Any]:
    """A check for JSON, which knows no NaN."""
    value = float(check.value)
    return asdict(check) | {"value": value if math.isfinite(value) else None, "passed": check.passed}


def _verdict(check: Check) -> str:
    if not check.compared:
        return ""
    return "passed" if check.passed else "FAILED"


def _judgement(checks: Sequence[Check]) -> str:
    """The table of checks."""
    from halocline.io.table import Table

    rows = tuple(
        (
            each.name,
            each.about,
            number(float(each.value)) if each.compared else "",
            each.bound,
            _verdict(each),
        )
        for each in checks
    )
    failed = sum(not each.passed for each in checks)
    left_out = sum(not each.compared for each in checks)
    note = f"{counted(failed, 'check')} of {len(checks)} failed." if failed else "All checks passed."
    note += f" {left_out} could not be made." if left_out else ""
    heads = ("check", "what it compares", "value", "expected", "result")
    return Table("Checks", heads, rows, left=2, note=note).text().rstrip()
