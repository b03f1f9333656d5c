"""Implementation of `halocline run`, which runs a problem file or case and prints a report."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from halocline.cli.options import ResultOptions
from halocline.cli.output import check_files, note, report_written, say, write, write_json
from halocline.cli.ranks import start_ranks
from halocline.cli.summary import judgement, part_line, rows_of, summary
from halocline.cli.texts import check_part, reject
from halocline.errors import InputError
from halocline.explanation.timeline import draw_timeline
from halocline.problems.problem import Problem
from halocline.problems.result import CHECK, fields_of
from halocline.run.devices.devices import DEVICE_VARIABLE, devices_in_use, select_local_devices
from halocline.run.domain.execution import Execution, chosen_devices
from halocline.run.host import process
from halocline.run.host.machine import this_machine
from halocline.run.host.streams import is_lost_output
from halocline.run.ranks.abort import report
from halocline.run.ranks.library import launcher
from halocline.run.ranks.mpi import world
from halocline.run.simulation.progress import progress, terminal
from halocline.words import counted, joined

if TYPE_CHECKING:
    from halocline.problems.result import Result
    from halocline.run.simulation.checks import Check

ENVIRONMENT = ("threads", "device")  # options that set environment variables, which any file can read


def run(
    name: str,
    of_problem: Mapping[str, Any],
    of_runs: Mapping[str, Any],
    results: ResultOptions,
    *,
    ranks: int | None = None,
    arguments: Sequence[str] = (),
    execution: Mapping[str, Any],
) -> None:
    """Run a file or a case, print its summary, and exit with status 1 if its check fails.

    Parameters
    ----------
    name : str
        Name of a case, or path of a file.
    of_problem : mapping
        Options of `halocline.problems.problem.Problem`.
    of_runs : mapping
        Options of `halocline.problems.run_options.RunOptions`.
    results : ResultOptions
    ranks : int, optional
    arguments : sequence of str
        Arguments of the file.
    execution : mapping
        Options of `halocline.run.domain.execution.Execution` that the command line sets.
    """
    until, every, only, resume, io_ranks = (
        of_runs.get(key) for key in ("until", "every", "only", "resume", "io_ranks")
    )
    if launcher() is not None:  # I/O ranks remain in this call until the end of the run
        start_ranks(ranks, io_ranks or 0)
    problem = _problem(name, resume, of_problem)
    trace, device, threads, per_node = (
        execution.get(key) for key in ("trace", "device", "threads", "ranks_per_node")
    )
    choice = chosen_devices(device)
    Execution(**{key: value for key, value in execution.items() if key != "gpudirect"})
    json, csv, pictures, state = results.json, results.csv, results.pictures, results.state
    _check_options(problem, check=results.check, csv=csv)
    if only is not None:
        other_options = {"until": until, "every": every, "csv": csv, "pictures": pictures, "state": state}
        store_paths = {key: of_runs[key].path for key in ("output", "checkpoint") if of_runs[key] is not None}
        check_part(
            only, {**other_options, "trace": trace, **store_paths, "resume": resume, "check": results.check}
        )
    if problem.has_settings and launcher() is None and ((ranks or 1) > 1 or io_ranks):
        _ = problem.program  # detects invalid parameters before ranks start
    start_ranks(ranks, io_ranks or 0, threads, per_node)
    with world().agreement(f"find devices {str(choice)!r}"):
        select_local_devices(choice, DEVICE_VARIABLE if device is None else "")
    check_files(
        json, csv, state, trace, None if pictures is None else pictures / f"{problem.script.file.stem}.png"
    )
    environment = {} if device is None else {DEVICE_VARIABLE: str(choice)}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    if not problem.has_settings:
        process.as_usual()
    started_at = time.monotonic()
    series: list[dict[str, Any]] = []
    has_rows = every is not None and json != "-" and problem.has_settings
    # rows printed during the run show the progress
    has_line = problem.has_settings and not has_rows and only is None
    line = progress(lambda: _heading(problem), lambda: f"{problem.unit}s") if has_line else nullcontext()
    checks: list[Check] | None = None
    try:
        with process.environment(environment), devices_in_use() as devices_met, line as on_progress:
            result = problem.run(
                arguments, series=series, on_row=rows_of(problem) if has_rows else None,
                on_progress=on_progress, share=world().bcast(has_line and terminal() is not None),
                change=tuple(of_problem.get("replacements") or ()), **of_runs, **execution,
            )  # fmt: skip
            if results.check:
                checks = result.check()
    except BaseException as error:
        if every is not None and series:  # the series before a failure helps to find the cause of the failure
            _write_series(csv, series)
        _report_of_file(problem, error)
        raise
    observer, has_problem = result.observer, result.problem is not None
    _note_nothing(problem, result, of_runs)
    if json != "-":
        _say(problem, result, checks, has_rows=has_rows, only=only)
    # Write results before errors about options without effect are raised, so that no result is lost.
    if state is not None and has_problem:
        result.write_state(state)
    if json is not None:
        facts = {"file": name, "arguments": list(arguments), "ranks": world().size, "threads": threads}
        facts |= {"device": str(choice), "devices": [asdict(place) for place in devices_met(world())]}
        facts |= {"seconds": time.monotonic() - started_at}
        write_json(json, _as_json(problem, result, checks, facts))
    if result.record is not None and result.record.series is not None:
        _write_series(csv, result.record.series)
    picture_files: list[Path] = []
    if pictures is not None and has_problem:
        picture_files = _draw(problem, result, pictures, trace is not None)
    is_finished = observer.finished_step is not None
    stores = [] if is_finished else observer.output.stores
    report_written([json, csv, *([state, trace] if has_problem else []), *picture_files, *stores])
    checkpoint = of_runs.get("checkpoint")
    if checkpoint is not None and "--checkpoint" not in observer.unused and not is_finished:
        note(f"checkpoints are in {checkpoint.path}; restart with --resume {checkpoint.path}")
    if result.fault is not None:
        raise result.fault
    observer.options.check_used(observer.unused, problem.spelling)
    if not has_problem:
        reject(
            {
                **{key: value for key, value in execution.items() if key not in ENVIRONMENT},
                **{"state": state, "pictures": pictures},
            },
            f"{problem.spelling} creates no simulation and no linear problem, so the option has no effect. "
            "Leave the option out.",
        )
    if checks is not None and not all(check.passed for check in checks):
        raise typer.Exit(1)


def _problem(name: str, resume: Path | None, options: Mapping[str, Any]) -> Problem:
    """Return the problem of a name or of a checkpoint. Raise SystemExit for a file with a syntax error."""
    try:
        if resume is None:
            return Problem(name, **options)
        from halocline.problems.checkpointed import problem_of_checkpoint

        return problem_of_checkpoint(name, resume, **options)
    except InputError as error:
        if isinstance(error.__cause__, SyntaxError):  # reported as `python FILE` does
            error.__cause__.__traceback__ = None
            raise SystemExit(report(error.__cause__)) from None
        raise


def _report_of_file(problem: Problem, error: BaseException) -> None:
    """Report an error in a user's file, with a traceback that begins in the file, and raise SystemExit.

    The function returns if the error did not occur in a line of the file.
    """
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != str(problem.script.file):
        step = step.tb_next
    is_lost = isinstance(error, OSError) and is_lost_output(error)
    if problem.is_file and isinstance(error, Exception) and not is_lost and step is not None:
        error.__traceback__ = step
        raise SystemExit(report(error)) from None


def _check_options(problem: Problem, *, check: bool, csv: Path | None) -> None:
    """Raise InputError for options that require names that the file does not define."""
    defined, name = problem.script.defined, problem.spelling
    if check and CHECK not in defined:
        if problem.is_file:
            raise InputError(
                f"--check: {name} has no function {CHECK}(problem) at its top level. Define the function."
            )
        raise InputError(
            f"--check: {name} has no check. `halocline cases NAME` shows whether a case has a check."
        )
    if csv is not None and "diagnostics" not in defined:
        raise InputError(
            f"--csv {csv}: {name} has no function diagnostics() at its top level, so the run has no time "
            "series. Leave --csv out, or write a time series with hc.Output(fields={...}) in the file."
        )
    if csv is not None and not problem.has_settings:
        raise InputError(
            f"--csv {csv}: {name} declares no settings, but commands call diagnostics() only for files with "
            "settings. Declare the cells with hc.cells, or a parameter with hc.setting."
        )


def _heading(problem: Problem) -> str:
    """Return the name of a problem, with its numbers of cells if they are known."""
    return joined(problem.name, " x ".join(map(str, problem.shape)) if problem.is_known else "")


def _note_nothing(problem: Problem, result: Result, of_runs: Mapping[str, Any]) -> None:
    """Print a note about a run without a step."""
    record, finished = result.record, result.observer.finished_step
    if finished is not None:
        time = "" if record is None or record.time is None else f" (time {record.time:g})"
        note(f"no step was computed: checkpoint {of_runs['resume']} is already at step {finished:,}{time}")
    elif problem.has_settings and record is not None and record.time is not None and record.steps == 0:
        outcome = result.outcome
        if outcome is not None and outcome.reason in (problem.names.ends or ()):
            end = f"the run is already {outcome.reason} at this time"
        else:
            until = of_runs.get("until")
            end = f"its end is step {of_runs.get('steps')}" if until is None else f"its end is time {until:g}"
        note(f"no step was computed: the run begins at time {record.time:g}, and {end}")


def _say(
    problem: Problem, result: Result, checks: Sequence[Check] | None, *, has_rows: bool, only: str | None
) -> None:
    """Print the summary and the checks of a run; a file without settings has no summary."""
    if problem.has_settings:
        if result.record is not None:
            say(("\n" if has_rows else "") + summary(problem, result))
    elif only is not None:
        say(part_line(problem, result, only))
    if checks is not None and _is_assertion(checks):
        reason = checks[0].about
        say(f"check FAILED: {reason}" if reason else "check passed")
    elif checks is not None:
        say("\n" + judgement(checks))


def _is_assertion(checks: Sequence[Check]) -> bool:
    """Return True for the check of a file with assertions."""
    return [(check.name, check.maximum) for check in checks] == [(CHECK, 0.0)]


def _as_json(
    problem: Problem, result: Result, checks: Sequence[Check] | None, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the results of a run for JSON: at the top level for a case, under the key "run" for a file."""
    record = None if result.record is None else asdict(result.record)
    machine = {"machine": this_machine().as_dict()}
    if problem.is_file:
        findings = result.findings() if problem.has_settings else {}
        data = {**findings, **facts, **machine, "run": record}
    else:
        data = {**(record or {}), **result.findings(), **machine}
    if checks is not None and _is_assertion(checks):
        data["checks"] = [{"name": CHECK, "passed": check.passed, "about": check.about} for check in checks]
    elif checks is not None:
        data["checks"] = [_facts(check) for check in checks]
    return data


def _facts(check: Check) -> dict[str, Any]:
    """Return a check for JSON, with None in place of NaN."""
    value = float(check.value)
    return check.facts() | {"value": value if math.isfinite(value) else None, "passed": check.passed}


def _write_series(csv: Path | None, series: Sequence[Mapping[str, Any]]) -> None:
    if csv is not None:
        from halocline.io.table import as_rows

        write(csv, as_rows(series))


def _draw(problem: Problem, result: Result, folder: Path, traced: bool) -> list[Path]:
    """Draw pictures, figures and the timeline, and return the files."""
    from halocline.io.picture import picture

    fields, files = fields_of(result.problem), []
    about = f"{problem.name}, {' x '.join(map(str, fields.grid.shape))} cells"
    about = joined(about, _when(problem, result))
    pictures = result.pictures()
    for name in pictures.keys() & result.names.figures.keys():
        raise InputError(f"{folder / name}.png is the file of a picture and of a figure. Rename the figure.")
    for name, quantity in pictures.items():
        files.append(folder / f"{name}.png")
        picture(fields, quantity, files[-1], title=f"{name}, {about}", label=name)
    for name, figure in result.figures().items():
        from halocline.io.figure import draw

        files.append(folder / f"{name}.png")
        with fields.domain.comm.agreement(f"draw {files[-1]}"):
            if figure is not None:
                draw(figure, files[-1], title=about)
    if traced:
        files.append(folder / "timeline.png")
        draw_timeline(fields.domain, files[-1])
    return files


def _when(problem: Problem, result: Result) -> str:
    """Return a text with the simulated time of the pictures, or with the number of iterations."""
    record, outcome = result.record, result.outcome
    if record is None:
        return ""
    passes = counted(record.steps, problem.unit)
    if outcome is not None and outcome.reason in (problem.names.ends or ()):
        return f"{outcome.reason} after {passes}"
    return f"after {passes}" if record.time is None else f"t = {record.time:.4g}"
