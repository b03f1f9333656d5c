"""`halocline study`: any study of any problem, tables of papers, and reports of measurement files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.options import keyword
from halocline.cli.output import check_files, note, say, write, written
from halocline.cli.progress import TERMINAL, progress, terminal
from halocline.cli.report import Files, leave
from halocline.errors import InputError
from halocline.ranges import NODES, POINTS, RANKS, THREADS, whole_numbers
from halocline.run.host.process import command_line
from halocline.run.ranks.library import launcher

if TYPE_CHECKING:
    from halocline.study.measurement import Measurement
    from halocline.study.measuring.command import Command
    from halocline.study.reporting.report import Report
    from halocline.study.study import Asked, Study

OF_LINEAR = ("method", "rtol", "max_iterations")
OF_STEPS = ("order", "scheme", "steps", "warm_up")


def study(
    name: str,
    problem: str,
    *,
    results: Files,
    submit: Mapping[str, Any],
    source: Callable[[str], Any],
    repeat: int | None = None,
    **options: Any,
) -> None:
    """Measure, and print the tables."""
    from halocline.study.study import studies

    _alone()
    declared = studies()[name]
    problem = f"./{problem}" if problem.startswith("-") else problem  # else the runs read an option
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="halocline-")))
        asked = _asked(declared, problem, options, scratch, results)
        if submit["submit"] is not None:
            page = "halocline study report makes the page and tables of all jobs"
            _refuse(results, page)
            if submit["per_node"] is not None and source("ranks").name == "COMMANDLINE":
                _refuse({"ranks": options["ranks"]}, "--per-node says how many ranks each node has")
            _submit(asked, submit)
            return
        _refuse(
            {name: value for name, value in submit.items() if name != "submit"},
            "it is for the jobs of --submit",
        )
        measurements, report = _measured(asked, results, repeat)
        _leave(
            measurements,
            report,
            results,
            title=f"{declared.title}: {measurements[0]['case']}",
            record=measurements if asked.is_linear else None,
            drawn=[] if asked.drawn is None else sorted(asked.drawn.glob("*.png")),
        )


def _asked(study: Study, problem: str, options: Mapping[str, Any], scratch: Path, results: Files) -> Asked:
    """Return the request that the options make."""
    from halocline.study.study import Asked

    given = dict(options)
    sizes = given.pop("n", None)
    numbers = None if sizes is None else tuple(sorted(whole_numbers(sizes, "--n", POINTS)))
    command = _command(study, problem, given)
    ranks, threads = _layouts(given.pop("ranks"), given.pop("threads"), command.device)
    drawn = scratch / "pictures" if results["pictures"] or results["html"] else None
    return Asked(study, command, numbers, ranks, threads, given, scratch, drawn)


def _command(study: Study, problem: str, given: dict[str, Any]) -> Command:
    """Return the command that is measured; InputError for options that the problem does not take."""
    from halocline.problems.files import is_file
    from halocline.problems.problem import Problem
    from halocline.study.measuring.command import Command

    device, settings = given.pop("device", None), tuple(given.pop("settings", ()) or ())
    taken = {name: given.pop(name, None) for name in ("dim", "decomposition", "patch", *OF_LINEAR)}
    steps = {name: given.get(name) for name in OF_STEPS}
    decomposition = None if taken["decomposition"] == "optimal" else taken["decomposition"]  # the default
    if study.verb != "run":
        decided = {**taken, **steps, "set": settings or None, "decomposition": decomposition}
        _refuse(decided, f"the study decides that of {problem}")
        return Command(study.verb, problem, {}, (), device)
    if is_file(problem):
        orders = {"orders": given.get("orders")} if study.options else {}
        how = {"decomposition": decomposition, "patch": taken.pop("patch")}
        decided = {**taken, **steps, **orders, "decomposition": None}
        _refuse(decided, f"{problem} is a file, which decides that itself")
        return Command("run", problem, {k: v for k, v in how.items() if v is not None}, settings, device)
    linear = Problem(problem).is_linear
    if linear:
        _refuse(steps, f"{problem} is a linear problem, which has none")
    else:
        _refuse({name: taken[name] for name in OF_LINEAR}, f"{problem} is no linear problem")
    settings += tuple(f"{name}={taken[name]}" for name in ("method", "rtol") if taken[name] is not None)
    how = {name: value for name, value in {**taken, **steps}.items() if name not in (*OF_LINEAR, "warm_up")}
    how |= {"steps": taken["max_iterations"]} if linear else {}
    return Command("run", problem, {k: v for k, v in how.items() if v is not None}, settings, device)


def _refuse(options: Mapping[str, Any], why: str) -> None:
    """Raise InputError for an option with a value."""
    for name, value in options.items():
        if value is not None and value is not False:
            text = "" if value is True else f" {value}"
            raise InputError(f"--{name.replace('_', '-')}{text}: {why}: leave it out")


def _layouts(ranks: str | int | None, threads: str | int | None, device: str | None) -> Any:
    """Return the numbers of ranks and of threads; InputError for more than one thread on devices."""
    from halocline.run.domain.domain import default_threads
    from halocline.run.domain.execution import chosen_devices
    from halocline.run.ranks.communicator import Communicator

    on_devices = chosen_devices(device).interface != "cpu"
    if not isinstance(ranks, str):  # one run, with as many threads as it takes by default
        default = 1 if on_devices else default_threads(Communicator(ranks_of_node=ranks or 1))
        return (ranks or 1,), (threads or default,)
    counts = tuple(sorted(whole_numbers(ranks, "--ranks", RANKS)))
    several = tuple(sorted(whole_numbers(str(threads), "--threads", THREADS)))
    if on_devices and max(several) > 1:
        raise InputError(f"--threads {threads}: on devices each rank has 1 thread, which looks after these")
    return counts, several


def _measured(asked: Asked, results: Files, repeat: int | None = None) -> tuple[list[Measurement], Report]:
    """Return all measurements of a study, and their report."""
    from halocline.study import engine

    study, folder = asked.study, results["pictures"]
    runs = engine.plan(asked)
    pictures = [folder / name for name in study.pictures] if folder else []
    check_files(results["json"], results["csv"], results["html"], *pictures)
    exchanged = engine.formula_of(asked, runs) if asked.command.verb != "bench" else {}
    _prepare()
    measurements = engine.carry_out(study, runs, repeat or study.repeat, note)
    theory = engine.theory_of(exchanged, measurements)
    return measurements, engine.reported(study, measurements, theory)


def _leave(
    found: Sequence[Measurement],
    report: Report,
    results: Files,
    *,
    title: str,
    record: Any = None,
    drawn: Sequence[Path] = (),
) -> None:
    """Print and write the report of measurements; the record is that of a study by default."""
    from halocline.study.measuring.command import as_csv
    from halocline.study.reporting.page import facts_of_measurements

    leave(
        report,
        results,
        title=title,
        lead=_lead(report.what, found),
        record=record or {"measurements": list(found), **report.facts},
        rows=as_csv(found) if results["csv"] else "",
        facts=facts_of_measurements(found),
        commands=[m["command"] for m in found],
        drawn=drawn,
    )


def _lead(what: str, found: Sequence[Measurement]) -> str:
    """Return the sentence below the heading of a page: what was measured, where and when."""
    from halocline import __version__
    from halocline.study.measuring.command import devices_of

    machine = found[0]["machine"]
    on = devices_of(found[-1]) or machine["cpu"]
    return f"{what} with Halocline {__version__} on {machine['host']}, {on}, {found[0]['started'][:10]}"


def _alone() -> None:
    """Raise InputError in one of several ranks, as a study starts ranks of its own."""
    started = launcher()
    if started is not None and started.size != 1:
        raise InputError("a study starts mpiexec itself: run it without mpiexec, and name --ranks")


def _prepare() -> None:
    """Give the terminal to the runs, whose own output is captured, so that they show their progress."""
    name = terminal()
    if name:
        os.environ[TERMINAL] = name  # the runs, whose output is taken, show there how far they are


# -- papers --------------------------------------------------------------------------------------------------


def paper(
    name: str,
    *,
    n: str | None,
    nodes: str | None,
    machine: str | None,
    here: bool,
    results: Files,
    **options: Any,
) -> None:
    """Show the published values, the prediction for the machine of the paper, and the same measured here."""
    from halocline.io.table import as_rows
    from halocline.study import engine
    from halocline.study.registry import papers
    from halocline.study.reporting.report import Report
    from halocline.study.study import studies

    _alone()
    known = papers()
    if name not in known:
        from halocline.lang.grid import unknown

        raise unknown("table or figure", name, list(known))
    paper = known[name]
    sizes, counts = (
        None if text is None else whole_numbers(text, option, numbers)
        for text, option, numbers in ((n, "--n", POINTS), (nodes, "--nodes", NODES))
    )
    places, there = paper.places_of(sizes, counts), paper.there(machine)
    study = None if paper.study is None else studies()[paper.study]
    if study is None or not here:
        _refuse(options, f"{name} has nothing to measure" if study is None else "--not-here measures nothing")
    measurements: list[Measurement] = []
    measured = Report([], [])
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        asked = None
        if here and study is not None:
            chosen = {option: value for option, value in options.items() if value}
            given = {**_defaults(study), **paper.options, **paper.here, **chosen}
            for option in ("ranks", "threads") if study.to_the_end else ():
                if "," in given[option]:
                    raise InputError(
                        f"--{option} {given[option]}: study {study.name} takes one number: give one"
                    )
            asked = _asked(study, paper.problem, given, Path(scratch), results)
            engine.plan(asked)
        check_files(results["json"], results["csv"], results["html"])
        if there is not None and places:
            with progress(f"{paper.title} on {there.name}", f"of {len(places)} places") as on_progress:
                places = paper.predict(places, there, on_progress)
        if asked is not None:
            measurements, measured = _measured(asked, results)

    def figures() -> dict[str, Any]:
        picture = paper.draw(places)
        return ({} if picture is None else {f"{name}.png": picture}) | measured.figures()

    cited = {"name": name, "source": paper.data.source, "place": paper.data.place}
    facts = {"paper": {**cited, "settings": list(paper.options.get("settings", ()))}, "places": places}
    report = Report(
        [*paper.tables(places, there), *measured.tables],
        [*paper.said, *measured.said],
        figures,
        {**facts, **measured.facts},
        paper.title,
        measured.footer,
    )
    title = f"{paper.data.place.partition(',')[0]}: {paper.title}"
    if measurements:
        record = {**facts, "measurements": measurements}
        _leave(measurements, report, results, title=title, record=record)
    else:
        rows = as_rows(places or paper.data.rows or [{"n": ""}])
        leave(report, results, title=title, lead=paper.data.source, record=facts, rows=rows)


def _defaults(study: Study) -> dict[str, Any]:
    """Return the options of a study, as they are by default."""
    lists = {"ranks": study.ranks, "threads": study.threads or "1"}
    return lists | {keyword(form): default for form, _, default in study.options}


def list_papers() -> None:
    """List the tables and figures of papers."""
    from halocline.io.table import Table
    from halocline.study.registry import papers

    rows = tuple((name, paper.title, paper.study or "", paper.about) for name, paper in papers().items())
    heads, last = ("name", "", "study", "about"), "halocline study paper NAME runs one."
    say(Table("Tables and figures of papers", heads, rows, left=4, note=last).text().rstrip())


# -- other machines ------------------------------------------------------------------------------------------


def _submit(asked: Asked, submit: Mapping[str, Any]) -> None:
    """Write the scripts of jobs that run the study on a cluster."""
    from halocline.study import engine, jobs

    counts = whole_numbers(submit["nodes"] or "1", "--nodes", NODES)
    engine.plan(asked)  # what cannot be is found here
    made = jobs.scripts(asked, command_line(), submit["submit"], counts, submit)
    jobs.check_new(made, overwrite=submit["overwrite"])
    check_files(*made)
    for path, text in made.items():
        write(path, text)
    written(made)
    say(jobs.advice(submit["submit"], list(made)))


def report(files: Sequence[str], *, results: Files) -> None:
    """Join measurement files of any machines into one set of tables and one page."""
    from halocline.study import joining

    check_files(results["json"], results["csv"], results["html"])
    found, made = joining.joined([Path(file) for file in files])
    names = ", ".join(dict.fromkeys(m["study"] for m in found))
    _leave(found, made, results, title=f"Report: {names}")
