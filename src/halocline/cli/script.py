"""`halocline run FILE`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from halocline.cli.keeping import kept
from halocline.cli.output import check_files, note, say, write_json, written
from halocline.cli.ranks import spread
from halocline.cli.texts import check_part
from halocline.errors import InputError
from halocline.explanation.timeline import draw_timeline
from halocline.lang.callables import check_callback
from halocline.run.devices.devices import DEVICE_VARIABLE, chosen_here, devices_in_use
from halocline.run.domain.execution import Execution, chosen_devices
from halocline.run.host import collector
from halocline.run.host.machine import this_machine
from halocline.run.host.streams import is_lost_output
from halocline.run.ranks.abort import report
from halocline.run.ranks.mpi import world
from halocline.run.simulation.observers import Observer, observing
from halocline.run.simulation.script import Script
from halocline.words import counted, duration

if TYPE_CHECKING:
    from halocline.problems.record import Record

ENVIRONMENT = ("threads", "device")  # options that a file without a problem may read in its environment


def script(
    file: Path,
    *,
    n: str | None,
    settings: Sequence[str],
    ranks: int | None,
    steps: int | None,
    until: float | None,
    every: int | None,
    only: str | None,
    json: str | None,
    check: bool,
    state: Path | None,
    pictures: Path | None,
    keeping: Mapping[str, Any],
    execution: Mapping[str, Any],
    arguments: Sequence[str],
) -> None:
    """Run a Python file as `python FILE` does, on as many ranks and with the options that are given."""
    from halocline.problems.file import values_of
    from halocline.problems.file_options import FileRuns, RunOptions
    from halocline.problems.file_run import CHECK, record_of, write_state
    from halocline.problems.named import texts_of

    source = _read(file)
    given = values_of(source, None if n is None else _cells(n), texts_of(settings))
    device, threads, trace = (execution.get(name) for name in ("device", "threads", "trace"))
    choice = chosen_devices(device)
    asked = dict(execution)
    _check_asked(asked)
    if check and CHECK not in source.functions:
        raise InputError(f"--check: {file} has no function {CHECK}(problem) at its top: write one")
    writes = kept(**keeping, of_file=True)
    if only is not None:
        others = {
            "--until": until, "--every": every, "--pictures": pictures, "--state": state, "--trace": trace,
            **writes.given, "--check": check or None,
        }  # fmt: skip
        check_part(only, others)
    options = RunOptions(
        steps=steps,
        until=until,
        every=every,
        output=writes.output[0] if writes.output else None,
        checkpoint=writes.checkpoint,
        resume=writes.resume,
        change=bool(settings),
        **{name: keeping[name] for name in ("overwrite", "io_threads", "io_ranks")},
    )
    spread(ranks, writes.io_ranks)
    with world().agreement(f"find devices {str(choice)!r}"):
        chosen_here(choice, DEVICE_VARIABLE if device is None else "")
    check_files(json, state, trace, None if pictures is None else pictures / f"{file.stem}.png")
    environment = {} if device is None else {DEVICE_VARIABLE: str(choice)}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    collector.as_usual()
    begun, observer = time.monotonic(), FileRuns(file, options, world(), asked)
    wanted = bool(json or check or state or only or pictures or asked or options.given)
    failed = ""
    try:
        with _environment(environment), devices_in_use() as met:
            with observing(observer) if wanted else nullcontext():
                top = source.run(arguments, given)
            if check:
                failed = _checked(file, top.get(CHECK), observer)
    except Exception as error:
        if isinstance(error, OSError) and is_lost_output(error):
            raise
        # the story begins where the user's own text does
        step = error.__traceback__
        while step is not None and step.tb_frame.f_code.co_filename != str(file):
            step = step.tb_next
        error.__traceback__ = step
        raise SystemExit(report(error)) from None
    # write results before the errors about options without effect, so that no result is lost
    has_problem = observer.problem is not None
    if state is not None and has_problem:
        write_state(observer, state)
    picture_files = []
    if pictures is not None and has_problem:
        picture_files = _draw(observer, file, pictures, timeline=trace is not None)
    if json is not None or only is not None:
        found = record_of(observer, file.name, {**source.names, **given}, top, only)
        if only is not None and json != "-":
            say(_line(found, only, file))
    if json is not None:
        record = {"file": str(file), "arguments": list(arguments), "ranks": world().size, "threads": threads}
        record |= {"device": str(choice), "devices": [asdict(place) for place in met(world())]}
        record |= {"seconds": time.monotonic() - begun, "machine": this_machine().as_dict()}
        record |= {"run": None if found is None else asdict(found)}
        if check:
            record["checks"] = [{"name": CHECK, "passed": not failed, "about": failed}]
        write_json(json, record)
    written([json, *([state, trace] if has_problem else []), *picture_files, *observer.stores])
    if "--checkpoint" not in observer.unused:
        writes.note_checkpoints()
    if observer.finished is not None:
        note(f"nothing was done: {options.resume} is at step {observer.finished} already")
    if check and json != "-":
        say(f"check FAILED: {failed}" if failed else "check passed")
    observer.check_used()
    _check_problem(file, observer, {**asked, "state": state, "pictures": pictures})
    if failed:
        raise typer.Exit(1)


def _check_problem(file: Path, observer: Observer, options: Mapping[str, Any]) -> None:
    """Raise InputError for an option that needs a problem, if the file has made none."""
    for name, value in options.items():
        if value is not None and name not in ENVIRONMENT and observer.problem is None:
            raise InputError(
                f"--{name.replace('_', '-')} {value}: {file} makes no simulation and no linear problem, so "
                "the option has no effect: leave it out"
            )


def _draw(observer: Observer, file: Path, folder: Path, *, timeline: bool) -> list[Path]:
    """Draw the fields of the last problem, and the time line of its threads; return the files."""
    from halocline.io.picture import picture
    from halocline.problems.file_run import fields_of, results

    fields, files = fields_of(observer.problem), []
    cells = " x ".join(map(str, fields.grid.shape))
    for field in results(fields):
        files.append(folder / f"{field.name}.png")
        picture(fields, field, files[-1], title=f"{field.name}, {file.name}, {cells} cells", label=field.name)
    if timeline and not fields.domain.devices:  # with devices, the host threads only wait
        files.append(folder / "timeline.png")
        draw_timeline(fields.domain, files[-1])
    return files


def _read(file: Path) -> Script:
    """The file; wrong Python is reported as `python FILE` does."""
    try:
        return Script(file)
    except SyntaxError as error:
        error.__traceback__ = None
        raise SystemExit(report(error)) from None


def _check_asked(asked: Mapping[str, Any]) -> None:
    """Raise InputError for an option that cannot be, before the file begins."""
    Execution(**{name: value for name, value in asked.items() if name != "gpudirect"})


def _line(found: Record | None, only: str, file: Path) -> str:
    """What a part of the steps took."""
    if found is None:
        raise InputError(f"--only {only}: {file} has run no problem whose steps could be timed")
    from halocline.problems.case import PARTS

    ns = found.ns_per_cell_step
    each = "" if ns is None else f", {ns:.4g} ns a cell and step"
    return f"{PARTS[only]}: {duration(found.seconds)} for {counted(found.steps, 'step')}{each}"


def _cells(text: str) -> int:
    if not (text.strip().isdecimal() and int(text) > 0):
        raise InputError(f"--n {text}: expected a whole number of cells from 1, for the name n of the file")
    return int(text)


def _checked(file: Path, check: Any, observer: Observer) -> str:
    """Call the check of a file with its last problem.

    Return the reason of the failure on the first rank that fails, or an empty text.
    """
    if not callable(check):
        raise InputError(f"--check: {file} ended before it defined check(problem)")
    check_callback(check, f"check of {file}", "the problem")
    why = ""
    try:
        check(observer.problem)
    except AssertionError as error:
        why = str(error) or "an assertion does not hold"
    except SystemExit as end:
        why = "" if end.code in (None, 0) else f"it ended with status {end.code}"
    return next(filter(None, world().allgather(why)), "")


@contextmanager
def _environment(chosen: Mapping[str, str]) -> Iterator[None]:
    """These variables of the environment meanwhile."""
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
