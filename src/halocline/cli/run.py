"""`halocline run`: a problem file or a case, from its start to its report."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from halocline.cli.output import check_files, note, say, write, write_json, written
from halocline.cli.progress import progress, terminal
from halocline.cli.ranks import spread
from halocline.cli.summary import judgement, part_line, rows_of, summary
from halocline.cli.texts import check_part
from halocline.errors import InputError
from halocline.explanation.timeline import draw_timeline
from halocline.problems.problem import CHECK, Problem
from halocline.run.devices.devices import DEVICE_VARIABLE, chosen_here, devices_in_use
from halocline.run.domain.execution import Execution, chosen_devices
from halocline.run.host import process
from halocline.run.host.machine import this_machine
from halocline.run.host.streams import is_lost_output
from halocline.run.ranks.abort import report
from halocline.run.ranks.library import launcher
from halocline.run.ranks.mpi import world
from halocline.words import counted, joined

if TYPE_CHECKING:
    from halocline.cli.keeping import Kept
    from halocline.problems.result import Result
    from halocline.run.simulation.checks import Check

ENVIRONMENT = ("threads", "device")  # options that a file without a problem may read in its environment


def run(
    name: str,
    *,
    n: Sequence[int] | None = None,
    given: Mapping[str, float | str] | None = None,
    dim: int | None = None,
    order: int | None = None,
    scheme: str | None = None,
    steps: int | None = None,
    until: float | None = None,
    every: int | None = None,
    warm_up: int = 0,
    only: str | None = None,
    ranks: int | None = None,
    json: str | None = None,
    csv: Path | None = None,
    pictures: Path | None = None,
    check: bool = False,
    state: Path | None = None,
    arguments: Sequence[str] = (),
    execution: Mapping[str, Any],
    kept: Kept,
) -> None:
    """Run a file or a case, print how it went, and end with status 1 where its check fails."""
    options: dict[str, Any] = {"dim": dim, "order": order, "scheme": scheme}
    try:
        if kept.resume is None:
            problem = Problem(name, n, given, **options)
        else:
            problem = Problem.of_checkpoint(name, kept.resume, n, given, **options)
    except InputError as error:
        if isinstance(error.__cause__, SyntaxError):  # reported as `python FILE` does
            error.__cause__.__traceback__ = None
            raise SystemExit(report(error.__cause__)) from None
        raise
    trace, device, threads = (execution.get(key) for key in ("trace", "device", "threads"))
    choice = chosen_devices(device)
    Execution(**{key: value for key, value in execution.items() if key != "gpudirect"})
    _check_options(problem, check=check, csv=csv)
    if only is not None:
        others = {
            "--until": until, "--every": every, "--csv": csv, "--pictures": pictures, "--state": state,
            "--trace": trace, **kept.given, "--check": check or None,
        }  # fmt: skip
        check_part(only, others)
    if problem.has_settings and launcher() is None and ((ranks or 1) > 1 or kept.io_ranks):
        _ = problem.program  # wrong parameters are found before ranks are started
    spread(ranks, kept.io_ranks)
    with world().agreement(f"find devices {str(choice)!r}"):
        chosen_here(choice, DEVICE_VARIABLE if device is None else "")
    check_files(
        json, csv, state, trace, None if pictures is None else pictures / f"{problem.script.file.stem}.png"
    )
    environment = {} if device is None else {DEVICE_VARIABLE: str(choice)}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    if not problem.has_settings:
        process.as_usual()
    begun = time.monotonic()
    series: list[dict[str, Any]] = []
    has_rows = every is not None and json != "-" and problem.has_settings
    # rows that come while it runs say how far it is
    has_line = problem.has_settings and not has_rows and only is None
    line = progress(lambda: _heading(problem), lambda: f"{problem.unit}s") if has_line else nullcontext()
    checks: list[Check] | None = None
    try:
        with _environment(environment), devices_in_use() as met, line as on_progress:
            result = problem.run(
                arguments, steps=steps, until=until, every=every, warm_up=warm_up, only=only, series=series,
                on_look=rows_of(problem) if has_rows else None, on_progress=on_progress,
                share=world().bcast(has_line and terminal() is not None), **kept.options(),
                change=tuple(given or ()), **execution,
            )  # fmt: skip
            if check:
                checks = problem.check(result)
    except BaseException as error:
        if every is not None and series:  # what led to the end is what one wants to see of a run that failed
            _write_series(csv, series)
        if not problem.is_file or not isinstance(error, Exception):
            raise
        if isinstance(error, OSError) and is_lost_output(error):
            raise
        # the story begins where the user's own text does
        step = error.__traceback__
        while step is not None and step.tb_frame.f_code.co_filename != str(problem.script.file):
            step = step.tb_next
        if step is None:  # before the file began, or after its end
            raise
        error.__traceback__ = step
        raise SystemExit(report(error)) from None
    kept = _note_nothing(problem, result, kept, steps=steps, until=until)
    if json != "-":
        _say(problem, result, checks, has_rows=has_rows, only=only)
    # results are written before the errors about options without effect, so that none is lost
    has_problem = result.observer.problem is not None
    if state is not None and has_problem:
        result.write_state(state)
    if json is not None:
        facts = {"file": name, "arguments": list(arguments), "ranks": world().size, "threads": threads}
        facts |= {"device": str(choice), "devices": [asdict(place) for place in met(world())]}
        facts |= {"seconds": time.monotonic() - begun}
        write_json(json, _as_json(problem, result, checks, facts))
    if result.record is not None and result.record.series is not None:
        _write_series(csv, result.record.series)
    stores = [] if result.observer.finished is not None else result.observer.stores
    drawn = [] if pictures is None or not has_problem else _draw(problem, result, pictures, trace is not None)
    written([json, csv, *([state, trace] if has_problem else []), *drawn, *stores])
    if "--checkpoint" not in result.observer.unused:
        kept.note_checkpoints()
    result.observer.check_used()
    _check_problem(problem, result, {**execution, "state": state, "pictures": pictures})
    if checks is not None and not all(each.passed for each in checks):
        raise typer.Exit(1)


def _check_options(problem: Problem, *, check: bool, csv: Path | None) -> None:
    """Raise InputError for options that need names which the file does not define."""
    defined, name = problem.script.defined, problem.spelling
    if check and CHECK not in defined:
        if problem.is_file:
            raise InputError(f"--check: {name} has no function {CHECK}(problem) at its top: write one")
        raise InputError(f"--check: {name} has no check; `halocline cases` marks the cases that have one")
    if csv is not None and "diagnostics" not in defined:
        raise InputError(
            f"--csv {csv}: {name} has no function diagnostics() at its top, and so no series of times: leave "
            "it out, or write numbers over time with hc.Output(fields={...}) in the file"
        )


def _check_problem(problem: Problem, result: Result, options: Mapping[str, Any]) -> None:
    """Raise InputError for an option that needs a problem, if the file has made none."""
    for name, value in options.items():
        if value is not None and name not in ENVIRONMENT and result.observer.problem is None:
            raise InputError(
                f"--{name.replace('_', '-')} {value}: {problem.spelling} makes no simulation and no linear "
                "problem, so the option has no effect: leave it out"
            )


def _heading(problem: Problem) -> str:
    """Return the name of a problem, with its cells where they are known."""
    return joined(problem.name, " x ".join(map(str, problem.shape)) if problem.is_known else "")


def _note_nothing(
    problem: Problem, result: Result, kept: Kept, *, steps: int | None, until: float | None
) -> Kept:
    """Note a run without a step, and return what it leaves on disk."""
    record, finished = result.record, result.observer.finished
    if finished is not None:
        time = "" if record is None or record.time is None else f" (time {record.time:g})"
        note(f"nothing was done: {kept.resume} is at step {finished:,}{time} already")
        return replace(kept, output=[], checkpoint=None)
    if problem.has_settings and record is not None and record.time is not None and record.steps == 0:
        outcome = result.outcome
        if outcome is not None and outcome.reason in (problem.names.ends or ()):
            end = f"it is {outcome.reason} there, which"
        else:
            end = f"step {steps}" if until is None else f"time {until:g}"
        note(f"nothing was done: the run begins at time {record.time:g}, and {end} is its end")
    return kept


def _say(
    problem: Problem, result: Result, checks: Sequence[Check] | None, *, has_rows: bool, only: str | None
) -> None:
    """Print the summary of a run, and its checks; a file without settings prints its results itself."""
    if problem.has_settings:
        if result.record is not None:
            say(("\n" if has_rows else "") + summary(problem, result))
    elif only is not None:
        say(part_line(problem, result, only))
    if checks is not None and _is_assertion(checks):
        why = checks[0].about
        say(f"check FAILED: {why}" if why else "check passed")
    elif checks is not None:
        say("\n" + judgement(checks))


def _is_assertion(checks: Sequence[Check]) -> bool:
    """Return True for the check of a file that asserts."""
    return [(each.name, each.most) for each in checks] == [(CHECK, 0.0)]


def _as_json(
    problem: Problem, result: Result, checks: Sequence[Check] | None, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the results of a run: those of a case at the top, those of a file as its "run"."""
    record = None if result.record is None else asdict(result.record)
    machine = {"machine": this_machine().as_dict()}
    if problem.is_file:
        data = {**facts, **machine, "run": record}
    else:
        data = {**(record or {}), **problem.findings(result), **machine}
    if checks is not None and _is_assertion(checks):
        data["checks"] = [{"name": CHECK, "passed": each.passed, "about": each.about} for each in checks]
    elif checks is not None:
        data["checks"] = [_facts(each) for each in checks]
    return data


def _facts(check: Check) -> dict[str, Any]:
    """Return a check for JSON, which knows no NaN."""
    value = float(check.value)
    return asdict(check) | {"value": value if math.isfinite(value) else None, "passed": check.passed}


def _write_series(csv: Path | None, series: Sequence[Mapping[str, Any]]) -> None:
    if csv is not None:
        from halocline.io.table import as_rows

        write(csv, as_rows(series))


def _draw(problem: Problem, result: Result, folder: Path, traced: bool) -> list[Path]:
    """Draw pictures, figures and the time line of the threads; return the files."""
    from halocline.io.picture import picture

    fields, files = result.fields_of_problem, []
    about = f"{problem.name}, {' x '.join(map(str, fields.grid.shape))} cells"
    about = joined(about, _when(problem, result))
    pictures = problem.pictures(result)
    for name in pictures.keys() & result.names.figures.keys():
        raise InputError(f"{folder / name}.png is to hold two things: give a figure another name")
    for name, quantity in pictures.items():
        files.append(folder / f"{name}.png")
        picture(fields, quantity, files[-1], title=f"{name}, {about}", label=name)
    for name, figure in problem.figures(result).items():
        from halocline.io.figure import draw

        files.append(folder / f"{name}.png")
        with fields.domain.comm.agreement(f"draw {files[-1]}"):
            if figure is not None:
                draw(figure, files[-1], title=about)
    if traced and not fields.domain.devices:  # with devices, the host threads only wait
        files.append(folder / "timeline.png")
        draw_timeline(fields.domain, files[-1])
    return files


def _when(problem: Problem, result: Result) -> str:
    """Return the time that pictures show, or the end of a run that has no time."""
    record, outcome = result.record, result.outcome
    if record is None:
        return ""
    passes = counted(record.steps, problem.unit)
    if outcome is not None and outcome.reason in (problem.names.ends or ()):
        return f"{outcome.reason} after {passes}"
    return f"after {passes}" if record.time is None else f"t = {record.time:.4g}"


@contextmanager
def _environment(chosen: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment during the block."""
    before = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
