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
from halocline.physics.cases import case_named
from halocline.ranges import NODES, POINTS, RANKS, THREADS, whole_numbers
from halocline.run.host.command_line import command_line
from halocline.run.ranks.launchers import launcher

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
    own = studies()[name]
    problem = f"./{problem}" if problem.startswith("-") else problem  # else the runs read an option
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="halocline-")))
        asked = _asked(own, problem, options, scratch, results)
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
        found, report = _measured(asked, results, repeat)
        _leave(
            found,
            report,
            results,
            title=f"{own.title}: {found[0]['case']}",
            record=found if asked.is_linear else None,
            drawn=[] if asked.drawn is None else sorted(asked.drawn.glob("*.png")),
        )


def _asked(own: Study, problem: str, options: Mapping[str, Any], scratch: Path, results: Files) -> Asked:
    """What the options ask for."""
    from halocline.study.study import Asked

    given = dict(options)
    sizes = given.pop("n", None)
    numbers = None if sizes is None else tuple(sorted(whole_numbers(sizes, "--n", POINTS)))
    command = _command(own, problem, given)
    ranks, threads = _layouts(given.pop("ranks"), given.pop("threads"), command.device)
    drawn = scratch / "pictures" if results["pictures"] or results["html"] else None
    return Asked(own, command, numbers, ranks, threads, given, scratch, drawn)


def _command(study: Study, problem: str, given: dict[str, Any]) -> Command:
    """What is measured; options that the problem does not take are refused."""
    from halocline.problems.files import is_file
    from halocline.study.measuring.command import Command

    device, settings = given.pop("device", None), tuple(given.pop("settings", ()) or ())
    taken = {name: given.pop(name, None) for name in ("dim", "decomposition", "patch", *OF_LINEAR)}
    steps = {name: given.get(name) for name in OF_STEPS}
    if problem in study.beside:
        decided = {**taken, **steps, "set": settings or None}
        decided["decomposition"] = None if taken["decomposition"] == "optimal" else taken["decomposition"]
        _refuse(decided, f"the study decides that of {problem}")
        return Command(study.beside[problem], problem, {}, (), device)
    if is_file(problem):
        orders = {"orders": given.get("orders")} if study.options else {}
        how = {name: taken.pop(name) for name in ("decomposition", "patch")}
        if how["decomposition"] == "optimal":  # the option's default: the file decides
            how["decomposition"] = None
        _refuse({**taken, **steps, **orders}, f"{problem} is a file, which decides that itself")
        return Command("run", problem, {k: v for k, v in how.items() if v is not None}, settings, device)
    linear = case_named(problem).linear
    if linear:
        _refuse(steps, f"{problem} is a linear problem, which has none")
    else:
        _refuse({name: taken[name] for name in OF_LINEAR}, f"{problem} is no linear problem")
    settings += tuple(f"{name}={taken[name]}" for name in ("method", "rtol") if taken[name] is not None)
    own = {name: value for name, value in {**taken, **steps}.items() if name not in (*OF_LINEAR, "warm_up")}
    own |= {"steps": taken["max_iterations"]} if linear else {}
    return Command("run", problem, {k: v for k, v in own.items() if v is not None}, settings, device)


def _refuse(options: Mapping[str, Any], why: str) -> None:
    """Raise InputError for an option that is given."""
    for name, value in options.items():
        if value is not None and value is not False:
            text = "" if value is True else f" {value}"
            raise InputError(f"--{name.replace('_', '-')}{text}: {why}: leave it out")


def _layouts(ranks: str | int | None, threads: str | int | None, device: str | None) -> Any:
    """The numbers of ranks and of threads; more than one thread on devices is refused."""
    from halocline.run.domain.execution import chosen_devices
    from halocline.run.domain.threads import default_threads
    from halocline.run.ranks.communicator import Communicator

    on_devices = chosen_devices(device).interface != "cpu"
    if not isinstance(ranks, str):  # one run, with as many threads as it takes by default
        each = 1 if on_devices else default_threads(Communicator(ranks_of_node=ranks or 1))
        return (ranks or 1,), (threads or each,)
    found = tuple(sorted(whole_numbers(ranks, "--ranks", RANKS)))
    several = tuple(sorted(whole_numbers(str(threads), "--threads", THREADS)))
    if on_devices and max(several) > 1:
        raise InputError(f"--threads {threads}: on devices each rank has 1 thread, which looks after these")
    return found, several


def _measured(asked: Asked, results: Files, repeat: int | None = None) -> tuple[list[Measurement], Report]:
    """All measurements, and what they show."""
    from halocline.study import engine

    own = asked.study
    runs = engine.plan(asked)
    names = [*own.files, *(figure.file for contents in own.contents for figure in contents.figures)]
    folder = results["pictures"]
    check_files(
        results["json"],
        results["csv"],
        results["html"],
        *(folder / name for name in dict.fromkeys(names) if folder),
    )
    exchanged = engine.formula_of(asked, runs) if asked.command.verb != "bench" else {}
    _prepare()
    says = own.says or engine.outcome
    found = engine.carry_out(runs, repeat or own.repeat, note, study=own.name, says=says)
    if own.finish is not None:
        found = own.finish(runs, found)
    return found, engine.reported(own, found, engine.theory_of(exchanged, found))


def _leave(
    found: Sequence[Measurement],
    report: Report,
    results: Files,
    *,
    title: str,
    record: Any = None,
    drawn: Sequence[Path] = (),
) -> None:
    """What measurements show; the record is that of a study, where none is given."""
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
    """The sentence below a page's heading: what was measured, with what and where."""
    from halocline import __version__
    from halocline.study.measuring.command import devices_of

    machine = found[0]["machine"]
    on = devices_of(found[-1]) or machine["cpu"]
    return f"{what} with Halocline {__version__} on {machine['host']}, {on}, {found[0]['started'][:10]}"


def _alone() -> None:
    """A study starts ranks of its own, so it cannot be one of several."""
    started = launcher()
    if started is not None and started.size != 1:
        raise InputError("a study starts mpiexec itself: run it without mpiexec, and name --ranks")


def _prepare() -> None:
    """Before the first run of a study."""
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
    """What a paper published, what the model predicts for its machine, and the same measured here."""
    from halocline.io.table import as_rows
    from halocline.study import engine
    from halocline.study.papers import papers
    from halocline.study.reporting.report import Report
    from halocline.study.study import studies

    _alone()
    known = papers()
    if name not in known:
        from halocline.lang.grid import unknown

        raise unknown("table or figure", name, list(known))
    own = known[name]
    sizes, counts = (
        None if text is None else whole_numbers(text, option, numbers)
        for text, option, numbers in ((n, "--n", POINTS), (nodes, "--nodes", NODES))
    )
    places, there = own.places_of(sizes, counts), own.there(machine)
    study = None if own.study is None else studies()[own.study]
    if study is None or not here:
        _refuse(options, f"{name} has nothing to measure" if study is None else "--not-here measures nothing")
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        asked = None
        if here and study is not None:
            given = {**_defaults(study), **own.options, **own.here, **{k: v for k, v in options.items() if v}}
            for each in ("ranks", "threads") if study.to_the_end else ():
                if "," in given[each]:
                    raise InputError(f"--{each} {given[each]}: study {study.name} takes one number: give one")
            asked = _asked(study, own.problem, given, Path(scratch), results)
            engine.plan(asked)
        check_files(results["json"], results["csv"], results["html"])
        if there is not None and places:
            with progress(f"{own.title} on {there.name}", f"of {len(places)} places") as on_progress:
                places = own.predict(places, there, on_progress)
        found, measured = ([], None) if asked is None else _measured(asked, results)
    tables = own.tables(places, there)
    paper: dict[str, Any] = {"name": name, "source": own.data.source, "place": own.data.place}
    paper["settings"] = list(own.options.get("settings", ()))
    facts: dict[str, Any] = {"paper": paper, "places": places}
    drawn = own.draw if places else None

    def figures() -> dict[str, Any]:
        made = {} if measured is None else measured.figures()
        picture = None if drawn is None else drawn(places)
        return ({} if picture is None else {f"{name}.png": picture}) | made

    report = Report(
        [*tables, *([] if measured is None else measured.tables)],
        [*own.said, *([] if measured is None else measured.said)],
        figures,
        {**facts, **({} if measured is None else measured.facts)},
        own.title,
        "" if measured is None else measured.footer,
    )
    title = f"{own.data.place.partition(',')[0]}: {own.title}"
    record = {**facts, "measurements": found} if found else facts
    if found:
        _leave(found, report, results, title=title, record=record)
    else:
        lead = own.data.source
        rows = as_rows(places or own.data.rows or [{"n": ""}])
        leave(report, results, title=title, lead=lead, record=record, rows=rows)


def _defaults(study: Study) -> dict[str, Any]:
    """The options of a study, as they are by default."""
    made = {"ranks": study.ranks, "threads": study.threads or "1"}
    return made | {keyword(form): default for form, _, default in study.options}


def list_papers() -> None:
    """The tables and figures of papers, with what each shows."""
    from halocline.io.table import Table
    from halocline.study.papers import papers

    rows = tuple((name, own.title, own.study or "", own.about) for name, own in papers().items())
    note_ = "halocline study paper NAME runs one."
    say(
        Table("Tables and figures of papers", ("name", "", "study", "about"), rows, left=4, note=note_)
        .text()
        .rstrip()
    )


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
