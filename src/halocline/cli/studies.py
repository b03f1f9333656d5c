"""`halocline study`."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.options import whole_numbers
from halocline.cli.output import check_files, note, say, write, write_json, written
from halocline.cli.progress import TERMINAL, progress, terminal
from halocline.cli.ranks import spread
from halocline.errors import InputError
from halocline.ranges import POINTS, RANKS, THREADS
from halocline.run.host.command_line import command_line
from halocline.run.ranks.launchers import launcher

if TYPE_CHECKING:
    from halocline.study.measure import Measurement, Solve


PICTURES = ("solution.png", "error.png", "timeline.png")  # of the last run


def convergence(
    case: Solve,
    *,
    n: str,
    ranks: int | None,
    threads: int | None,
    repeat: int,
    json: str | None,
    csv: Path | None,
    html: Path | None,
    pictures: Path | None,
) -> None:
    """Measure, and print the table beside the published one."""
    from halocline.study import convergence as study

    alone()
    ns = sorted(whole_numbers(n, "--n", POINTS))
    names = _pictures(case)
    drawn = None if pictures is None else tuple(pictures / name for name in names)
    check_files(json, csv, html, *(drawn or ()))
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        folder = pictures or (Path(scratch) if html else None)
        measured = _measure(case, [(n, ranks or 1, threads) for n in ns], repeat, folder)
        if json != "-":
            say("\n" + study.table(measured).text())
            say("\n".join(study.verdicts(measured)))
        if html and folder:
            from halocline.io.style import styled
            from halocline.study.page import CLOCK, Page, facts_of_measurements

            with styled():
                page = Page(
                    title=f"Convergence study: {case.name} in {case.dim}D",
                    lead=lead(f"{case.method} to {case.rtol:g}", measured),
                    said=study.verdicts(measured),
                    tables=[study.table(measured)],
                    figure=study.plot(measured),
                    pictures=[(Path(name).stem, folder / name) for name in names],
                    facts=facts_of_measurements(measured),
                    command=command(),
                    commands=[m["command"] for m in measured],
                    footer=CLOCK,
                )
                write(html, page.html())
    _leave(measured, json, csv, [html, *(drawn or ())])


def strong(
    case: Solve,
    *,
    n: str,
    ranks: str,
    threads: str,
    repeat: int,
    json: str | None,
    csv: Path | None,
    html: Path | None,
) -> None:
    """Measure on every number of ranks and threads, and print the tables."""
    from halocline.study import strong as study

    alone()
    ns = sorted(whole_numbers(n, "--n", POINTS))
    there = layouts(ranks, threads, case.device)
    check_files(json, csv, html)
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        lanes = PICTURES[-1] in _pictures(case)
        folder = Path(scratch) if html and lanes else None
        measured = _measure(case, [(n, r, t) for n in ns for r, t in there], repeat, folder)
        tables = study.tables(measured)
        if json != "-":
            for table in tables:
                say("\n" + table.text())
            say("\n".join(study.verdicts(measured)))
        if html:
            from halocline.io.style import styled
            from halocline.study.page import CLOCK, Page, facts_of_measurements

            with styled():
                page = Page(
                    title=f"Strong scaling: {case.name} in {case.dim}D",
                    lead=lead(f"{case.method} to {case.rtol:g}", measured),
                    said=study.verdicts(measured),
                    tables=tables,
                    figure=study.plot(measured),
                    pictures=[("timeline of the last run", folder / PICTURES[-1])] if folder else [],
                    facts=facts_of_measurements(measured),
                    command=command(),
                    commands=[m["command"] for m in measured],
                    footer=CLOCK,
                )
                write(html, page.html())
    _leave(measured, json, csv, [html])


def ablation(
    *,
    n: int,
    dim: int,
    radius: int,
    fields: int,
    dtype: str,
    machine: str,
    repeat: int,
    ranks: int | None,
    json: str | None,
    csv: Path | None,
    html: Path | None,
    execution: Mapping[str, Any],
) -> None:
    """Time the exchange with one thing changed at a time, and print the tables."""
    spread(ranks)
    from halocline.plan.machine import load_machine
    from halocline.run.devices.devices import devices_in_use, summary
    from halocline.run.host.machine import this_machine
    from halocline.run.ranks.mpi import world
    from halocline.study import ablation as study
    from halocline.study.exchange import weak_shape
    from halocline.study.table import as_rows, counted

    check_files(json, csv, html)
    there = load_machine(machine)
    comm = world()
    shape = weak_shape(n, comm.size, dim)
    how: dict[str, Any] = {"fields": fields, "radius": radius, "dtype": dtype}
    with devices_in_use() as met, progress("all variants in turn", f"of {repeat} rounds") as on_progress:
        found = study.measure(shape, **how, repeats=repeat, on_progress=on_progress, **execution)
    places = met(comm)
    if comm.rank != 0:
        return
    found += study.place(there, weak_shape(n, len(there.devices), dim), **how)
    cells = "x".join(map(str, shape))
    what = f"{counted(fields, dtype + ' field')} of {cells} cells, radius {radius}"
    lead = f"{what}, on {counted(comm.size, 'rank')}" + (f", {summary(places)}" if places else "")
    tables = study.table(found)
    record = {**how, "shape": shape, "ranks": comm.size, "devices": [asdict(place) for place in places]}
    if json != "-":
        say(f"{lead}\n")
        for table in tables:
            say(table.text())
        say("\n".join(study.verdicts(found)))
    write_json(json, {**record, "variants": [asdict(m) for m in found]})
    if csv:
        write(csv, as_rows([asdict(m) for m in found]))
    if html:
        from halocline.io.style import styled
        from halocline.study.page import Page, facts_of_machine

        with styled():
            page = Page(
                title="Ablation study: the exchange",
                lead=lead,
                said=study.verdicts(found),
                tables=tables,
                figure=study.plot(found),
                pictures=[],
                facts=facts_of_machine(this_machine().as_dict()),
                command=command(),
                footer="Time is that of one exchange on the slowest rank: the median of runs of 30, all "
                "variants in turn.",
            )
            write(html, page.html())
    written([json, csv, html])


def _pictures(case: Solve) -> tuple[str, ...]:
    """Those that the last run draws: no timeline where devices compute, of which nothing is traced."""
    from halocline.run.domain.execution import chosen_devices

    return PICTURES if chosen_devices(case.device).interface == "cpu" else PICTURES[:-1]


def alone() -> None:
    """A study starts ranks of its own, so it cannot be one of several."""
    if launcher() is not None:
        raise InputError("a study starts mpiexec itself: run it without mpiexec, and name --ranks")


def prepare() -> None:
    """Before the first run of a study."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the run under way ends too
    name = terminal()
    if name:
        os.environ[TERMINAL] = name  # the runs, whose output is taken, show there how far they are


def layouts(ranks: str, threads: str, device: str | None) -> list[tuple[int, int]]:
    """Each number of ranks with each number of threads.

    Raises
    ------
    InputError
        Lists that cannot be; more than one thread on devices.
    """
    from halocline.run.domain.execution import chosen_devices

    found = [
        (r, t)
        for r in sorted(whole_numbers(ranks, "--ranks", RANKS))
        for t in sorted(whole_numbers(threads, "--threads", THREADS))
    ]
    if chosen_devices(device).interface != "cpu" and any(t > 1 for _, t in found):
        raise InputError(f"--threads {threads}: on devices each rank has 1 thread, which looks after these")
    return found


def threads_each(device: str | None, ranks: int, threads: int | None) -> int:
    """The threads of each rank: as many as asked for, or else what a run takes by default."""
    from halocline.run.domain.execution import chosen_devices
    from halocline.run.domain.threads import default_threads
    from halocline.run.ranks.communicator import Communicator

    if threads is not None:
        return threads
    if chosen_devices(device).interface != "cpu":
        return 1
    return default_threads(Communicator(ranks_of_node=ranks))


def _measure(
    case: Solve, runs: Sequence[tuple[int, int, int | None]], repeat: int, pictures: Path | None
) -> list[Measurement]:
    """All measurements; the last one draws the pictures."""
    from halocline.study.measure import measure
    from halocline.study.table import duration

    prepare()
    measured = []
    for number, (n, ranks, threads) in enumerate(runs, 1):
        threads = threads_each(case.device, ranks, threads)
        extra = None
        if pictures and number == len(runs):
            extra = {"--pictures": str(pictures)}
            if PICTURES[-1] in _pictures(case):
                extra["--trace"] = str(pictures / "trace.json")
        device = case.options().get("--device")
        on = f", device {device}" if device else ""
        note(f"[{number}/{len(runs)}] N = {n}, ranks {ranks}, threads {threads}{on}")
        found = measure(case, n, ranks=ranks, threads=threads, repeat=repeat, extra=extra)
        measured.append(found)
        note(f"      {found['iterations']:,} iterations, {duration(found['seconds'])}")
    return measured


def lead(what: str, measured: Sequence[Measurement]) -> str:
    """The sentence below a page's heading: what was measured, with what and where."""
    from halocline import __version__
    from halocline.study.measure import devices_of

    machine = measured[0]["machine"]
    on = devices_of(measured[-1]) or machine["cpu"]
    where = f"{machine['host']}, {on}, {measured[0]['started'][:10]}"
    return f"{what} with Halocline {__version__} on {where}"


def command() -> str:
    """The command line that was given."""
    return shlex.join(command_line())


def _leave(
    measured: Sequence[Measurement],
    json: str | None,
    csv: Path | None,
    others: Sequence[Path | None],
) -> None:
    from halocline.study.measure import as_csv

    write_json(json, list(measured))
    if csv:
        write(csv, as_csv(measured))
    written([json, csv, *others])
