"""The commands of `halocline study`: one for each declared study, and those for papers and reports."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import EXAMPLES, ablation, command, group, overlap, parameters
from halocline.cli.options import NO_TEXTS, Execution, ReportFiles, one_of, panel, problem, take, where, whole
from halocline.cli.output import STDOUT, check_files, note, say, write, write_json, written
from halocline.cli.progress import progress, share_terminal
from halocline.cli.report import Files, leave
from halocline.cli.texts import refuse
from halocline.errors import InputError
from halocline.io.table import Table, as_rows
from halocline.lang.grid import unknown
from halocline.ranges import NODES, POINTS, RANKS, RANKS_PER_NODE, THREADS, whole_numbers
from halocline.run.host.process import command_line, cores
from halocline.run.ranks.library import launcher
from halocline.study.layout import AFFINITIES
from halocline.study.measurement import Measurement
from halocline.study.registry import papers as declared_papers
from halocline.study.registry import register
from halocline.study.reporting.report import Report, with_note
from halocline.study.study import Asked, Study, keyword, studies

if TYPE_CHECKING:
    from halocline.study.measuring.command import Command

app = group("")
OF_LINEAR = ("method", "rtol", "max_iterations")
OF_EXECUTION = ("device", "decomposition", "subdomains_per_rank", "patch", "methods", "overlap")
OF_STEPS = ("order", "scheme", "steps", "warm_up")
CASE_OR_FILE = typer.Argument(metavar="CASE|FILE.py", help="A case of `halocline cases`, or a Python file.")
PROBLEM = Parameter("problem", Parameter.KEYWORD_ONLY, annotation=Annotated[str, CASE_OR_FILE])
of_study = panel("The study")
cluster = panel("On a cluster")


@dataclass
class OfRuns(options.OfCase):
    """Options of the runs of a study, beside those of `halocline.cli.options.Execution`.

    Attributes
    ----------
    n
        Points or cells along the first axis, the others in the problem's own proportion, for each run; by
        default what suits the study.
    steps
        Steps of each run; by default those of the case.
    warm_up
        The first K steps are not timed; by default two, where there are more.
    """

    n: Annotated[str | None, problem("--n N,N,...")] = None
    steps: Annotated[int | None, problem("--steps S", whole(ranges.SOME_STEPS))] = None
    warm_up: Annotated[int | None, problem("--warm-up K", whole(ranges.STEPS))] = None
    rtol: Annotated[float | None, options.RTOL] = None
    max_iterations: Annotated[int | None, options.MAX_ITERATIONS] = None
    ranks: Annotated[int | None, options.RANKS] = None
    repeat: Annotated[int | None, options.REPEAT] = None


@dataclass
class Nodes:
    """Options of the nodes that the runs of a study are on.

    Attributes
    ----------
    nodes
        Nodes; one run for each. By default one, with the ranks of --ranks.
    per_node
        Ranks of each node, instead of --ranks; one run for each. Where a job has fewer nodes, such as on one
        machine, every R ranks count as a node, and send messages to others by MPI alone.
    affinity
        How threads are bound: [bold]close[/] to the first one of a rank or [bold]spread[/], by
        OMP_PROC_BIND and OMP_PLACES=cores; [bold]threads[/], close, on hardware threads;
        [bold]scatter[/], by KMP_AFFINITY; [bold]none[/]. By default as the environment says.
    """

    nodes: Annotated[str | None, where("--nodes K,K,...")] = None
    per_node: Annotated[str | None, where("--per-node R,R,...")] = None
    affinity: Annotated[str | None, where("--affinity " + "|".join(AFFINITIES), one_of(*AFFINITIES))] = None


@dataclass
class Submit:
    """Options of the jobs that run a study on a cluster.

    Attributes
    ----------
    submit
        Do not run the study, but write one job script for each number of nodes, of ranks of a node and of
        threads; the names of the scripts hold what the study varies.
    time
        Time limit of a job; an hour by default. Slurm also takes D-HH:MM:SS and minutes.
    partition
        Of the cluster: a partition of Slurm, a queue of PBS.
    account
        Whom the jobs are charged to.
    exclusive
        No other job runs on the nodes of a job meanwhile.
    directive
        A further directive of the scheduler, such as '--constraint=skx'; may be given several times.
    overwrite
        Replace scripts and results of another study that have the same names.
    """

    submit: Annotated[str | None, cluster("--submit slurm|pbs")] = None
    time: Annotated[str | None, cluster("--time HH:MM:SS")] = None
    partition: Annotated[str | None, cluster("--partition NAME")] = None
    account: Annotated[str | None, cluster("--account NAME")] = None
    exclusive: Annotated[bool, cluster("--exclusive")] = False
    directive: Annotated[list[str], cluster("--directive LINE")] = NO_TEXTS
    overwrite: Annotated[bool, cluster("--overwrite")] = False


def add(app: typer.Typer, study: Study, name: str) -> None:
    """Add the command of a study to a group."""
    sweeps = [(sweep.form, sweep.help, sweep.default) for sweep in study.sweeps]
    swept = {keyword(sweep.form) for sweep in study.sweeps}
    options = [_parameter(of_study, *option) for option in (*sweeps, *study.options)]
    if study.to_the_end:
        layout = [*parameters(OfRuns, "ranks"), *parameters(Execution, "threads")]
    else:
        ranks = "--ranks R,R,...", "Processes; one run for each.", study.ranks
        threads = "--threads T,T,...", "Threads of each rank; one run for each.", study.threads
        layout = [_parameter(where, *ranks), _parameter(where, *threads)]

    arguments = [] if name == "CASE" else [[PROBLEM]]
    steps = () if study.to_the_end else ("steps", "warm_up", "order", "scheme")

    @command(
        app,
        name,
        *arguments,
        options,
        parameters(OfRuns, "n", "dim", "settings", *steps, "dtype", *OF_LINEAR),
        layout,
        [option for option in parameters(Nodes) if option.name not in swept],
        parameters(Execution, *(name for name in OF_EXECUTION if name not in swept)),
        parameters(OfRuns, "repeat"),
        ReportFiles,
        Submit,
        text=f"{study.about}\n\n{study.help}{EXAMPLES}" + "\n".join(study.examples),
    )
    def run(context: typer.Context, **values: Any) -> None:
        problem = values.pop("problem", context.info_name)
        measure(study, problem, context.get_parameter_source, **values)


def _parameter(option: Any, form: str, help: str, default: Any) -> Parameter:
    """Return the parameter of an option of a study, whose metavar may list the values that it takes."""
    metavar = form.partition(" ")[2]
    reader = one_of(*metavar.split("|")) if "|" in metavar else None
    kind: Any = str | None if metavar else bool
    annotation = Annotated[kind, option(form, reader, help)]
    return Parameter(keyword(form), Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


GROUPS = {"ablation": ablation.app, "overlap": overlap.app}  # commands beside the study of that name
for declared in studies().values():
    if declared.name in GROUPS:
        add(GROUPS[declared.name], declared, "CASE")
    else:
        add(app, declared, declared.name)
for name, commands_of_group in GROUPS.items():
    app.add_typer(commands_of_group, name=name)


@command(app, "paper", ReportFiles)
def paper(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    n: Annotated[str | None, problem("--n N,N,...")] = None,
    nodes: Annotated[str | None, where("--nodes K,K,...")] = None,
    machine: Annotated[str | None, where("--machine NAME|FILE")] = None,
    here: Annotated[bool, where("--here/--not-here")] = True,
    ranks: Annotated[str | None, where("--ranks R,R,...")] = None,
    threads: Annotated[str | None, where("--threads T,T,...")] = None,
    device: Annotated[str | None, where("--device cpu|cuda[:i,j]|opencl[:i,j]")] = None,
    pythons: Annotated[str | None, where("--pythons P,P,...")] = None,
    **values: Any,
) -> None:
    """A table or figure of a paper: what is published, what the model predicts for its machine, and the same
    measured here, reduced to what this machine has. `halocline study papers` lists them.

    Parameters
    ----------
    name
        Of the table or figure: umbc-4.1.
    n
        Sizes that are predicted; by default one or a few of the paper's.
    nodes
        Nodes that are predicted; by default all of the paper's.
    machine
        Another machine to predict for.
    here
        Whether the study is measured here too.
    ranks
        Ranks that are measured here.
    threads
        Threads that are measured here.
    device
        What computes here: the processor, or devices.
    pythons
        Interpreters of environments with other MPI libraries, to compare them here.

    Examples
    --------
    halocline study paper umbc-4.1 --n 1024 --nodes 1,2
    halocline study paper cavity-table3 --device opencl
    """
    from halocline.study import engine

    _alone()
    chosen = {"ranks": ranks, "threads": threads, "device": device, "pythons": pythons}
    given = {option: value for option, value in chosen.items() if value}
    known = declared_papers()
    if name not in known:
        raise unknown("table or figure", name, list(known))
    paper = known[name]
    sizes, counts = (
        None if text is None else whole_numbers(text, option, numbers)
        for text, option, numbers in ((n, "--n", POINTS), (nodes, "--nodes", NODES))
    )
    places, there = paper.places_of(sizes, counts), paper.there(machine)
    if not (paper.measured and here):
        why = "--not-here measures nothing" if paper.measured else f"{name} has nothing to measure"
        refuse(chosen, f"{why}: leave it out")
    measurements: list[Measurement] = []
    reports: list[Report] = []
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        every = [
            (_of_paper(study, paper.problem, options, given, Path(scratch), values), options.get("repeat"))
            for study, options in paper.measured
            if here
        ]
        for asked, _ in every:
            engine.plan(asked)
        check_files(values["json"], values["csv"], values["html"])
        if paper.facts and here:
            reports.append(paper.facts(paper))
        if there is not None and places:
            with progress(f"{paper.title} on {there.name}", f"of {len(places)} places") as on_progress:
                places = paper.predict(places, there, on_progress)
        for asked, repeat in every:
            found, report = _measured(asked, {**values, "json": None}, repeat)
            measurements += found
            reports.append(replace(report, tables=with_note(report.tables, paper.differences(found))))

    def figures() -> dict[str, Any]:
        picture = paper.draw(places)
        drawn = {} if picture is None else {f"{name}.png": picture}
        for number, report in enumerate(reports, 1):
            prefix = f"{number}-" if len(reports) > 1 else ""
            drawn |= {prefix + file: figure for file, figure in report.figures().items()}
        return drawn

    cited = {"name": name, "source": paper.data.source, "place": paper.data.place}
    facts = {"paper": {**cited, "settings": list(paper.options.get("settings", ()))}, "places": places}
    report = Report(
        [
            *([] if paper.facts and here else paper.tables(places, there)),
            *(table for each in reports for table in each.tables),
        ],
        [*paper.said, *(text for each in reports for text in each.said)],
        figures,
        facts | {key: value for each in reports for key, value in each.facts.items()},
        paper.title,
        "\n".join(dict.fromkeys(each.footer for each in reports)),
    )
    title = f"{paper.data.place.partition(',')[0]}: {paper.title}"
    if measurements:
        record = {**facts, "measurements": measurements}
        _leave(measurements, report, values, title=title, record=record)
    else:
        rows = as_rows(places or paper.data.rows or [{"n": ""}])
        leave(report, values, title=title, lead=paper.data.source, record=report.facts, rows=rows)


def _of_paper(
    study: str,
    problem: str,
    options: Mapping[str, Any],
    chosen: Mapping[str, Any],
    scratch: Path,
    results: Files,
) -> Asked:
    """Return the request for a study that measures a table or figure here."""
    declared = studies()[study]
    given: dict[str, Any] = {"ranks": declared.ranks, "threads": declared.threads}
    given |= {keyword(form): default for form, _, default in declared.options} | dict(options) | dict(chosen)
    given.pop("repeat", None)
    if "ranks" in chosen:
        given |= {"nodes": None, "per_node": None}
    if "pythons" in chosen and not any(keyword(sweep.form) == "pythons" for sweep in declared.sweeps):
        raise InputError(
            f"--pythons {chosen['pythons']}: study {study} compares no MPI libraries: leave it out"
        )
    for option in ("ranks", "threads") if declared.to_the_end else ():
        if "," in given[option]:
            raise InputError(f"--{option} {given[option]}: study {declared.name} takes one number: give one")
    asked = _asked(declared, problem, given, scratch, results)
    return asked if "ranks" in chosen else replace(asked, cores=len(cores()))


@command(app, "papers")
def papers() -> None:
    """List all tables and figures of five papers, each with the command that has the same quantity, or the
    reason why there is none.

    Examples
    --------
    halocline study papers
    """
    entries = register()
    rows = tuple((own.paper, own.result, own.kind, own.what, own.command or own.reason) for own in entries)
    heads = ("paper", "", "kind", "what it shows", "command of halocline, or why there is none")
    commands = sum(bool(own.command) for own in entries)
    note = f"{commands} of {len(rows)} have a command."
    say(Table("Tables and figures of papers", heads, rows, left=5, note=note).text().rstrip())


@command(app, "report", ReportFiles)
def report(files: Annotated[list[str], typer.Argument(metavar="FILES...")], **values: Any) -> None:
    """Join measurement files, which --json of studies has left on any machines, with any MPI and at any
    commit, into one set of tables and one page.

    Parameters
    ----------
    files
        Measurement files; NAME=FILE names a file, such as by its network, and separates it from the others.

    Examples
    --------
    halocline study report here.json cluster/*.json --html report.html
    halocline study report NewRiver=newriver.json Cascades=cascades.json
    """
    from halocline.study import joining

    check_files(values["json"], values["csv"], values["html"])
    named = [joining.labelled(file) for file in files]
    paths = [path for _, path in named]
    found, made = joining.joined(
        {path: label for label, path in named} if len(set(paths)) == len(paths) else paths
    )
    names = ", ".join(dict.fromkeys(m["study"] for m in found))
    _leave(found, made, values, title=f"Report: {names}")


# -- the work of the commands --------------------------------------------------------------------------------


def measure(
    study: Study, problem: str, source: Callable[[str], Any], *, repeat: int | None = None, **values: Any
) -> None:
    """Carry out a study, and print its tables."""
    _alone()
    results, submit = take(ReportFiles, values), take(Submit, values)
    problem = f"./{problem}" if problem.startswith("-") else problem  # else the runs read an option
    if (values["nodes"] or values["per_node"]) and source("ranks").name == "COMMANDLINE":
        refuse({"ranks": values["ranks"]}, "--per-node says how many ranks each node has: leave it out")
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        asked = _asked(study, problem, values, Path(scratch), results)
        if submit["submit"] is not None:
            refuse(results, "halocline study report makes the page and tables of all jobs: leave it out")
            _submit(asked, submit)
            return
        refuse(
            {**submit, "directive": submit["directive"] or None},
            "it is for the jobs of --submit: leave it out",
        )
        measurements, report = _measured(asked, results, repeat)
        _leave(
            measurements,
            report,
            results,
            title=f"{study.title}: {measurements[0]['case']}",
            record=measurements if asked.is_linear else None,
            drawn=[] if asked.drawn is None else sorted(asked.drawn.glob("*.png")),
        )


def _asked(study: Study, problem: str, options: Mapping[str, Any], scratch: Path, results: Files) -> Asked:
    """Return the request that the options make."""
    given = dict(options)
    sizes = given.pop("n", None)
    numbers = None if sizes is None else tuple(sorted(whole_numbers(sizes, "--n", POINTS)))
    command = _command(study, problem, given)
    nodes, per_node = given.pop("nodes", None), given.pop("per_node", None)
    ranks, threads = given.pop("ranks"), given.pop("threads")
    if nodes or per_node:
        ranks = per_node or "1"
        nodes = tuple(sorted(whole_numbers(nodes or "1", "--nodes", NODES)))
    option = "--per-node" if nodes else "--ranks"
    ranks, threads = _layouts(ranks, threads, command.device, option)
    if study.to_the_end and (len(nodes or (1,)), len(ranks)) != (1, 1):
        raise InputError(
            f"study {study.name} takes one number of nodes, and one of their ranks: give one each"
        )
    drawn = scratch / "pictures" if results["pictures"] or results["html"] else None
    return Asked(study, command, numbers, ranks, threads, given, scratch, drawn, nodes=nodes or ())


def _command(study: Study, problem: str, given: dict[str, Any]) -> "Command":
    """Return the command that is measured; InputError for options that the problem does not take."""
    from halocline.problems.problem import Problem
    from halocline.study.measuring.command import EXECUTION, Command

    device, settings = given.pop("device", None), tuple(given.pop("settings", ()) or ())
    swept = {keyword(sweep.form) for sweep in study.sweeps}
    affinity = None if "affinity" in swept else given.pop("affinity", None)
    environment = {} if affinity is None else AFFINITIES[affinity]
    how = {name: given.pop(name, None) for name in OF_EXECUTION[1:] if name not in swept}
    how = {name: value for name, value in how.items() if value != EXECUTION[name]}
    taken = {name: given.pop(name, None) for name in ("dim", "dtype", *OF_LINEAR)}
    steps = {name: given.get(name) for name in OF_STEPS}
    if study.verb != "run":
        refuse(
            {**taken, **steps, "set": settings or None, **how},
            f"the study decides that of {problem}: leave it out",
        )
        return Command(study.verb, problem, {}, (), device, environment)
    own = Problem(problem)
    if not own.has_settings:
        orders = {"orders": given.get("orders")} if study.options else {}
        how["dtype"] = taken.pop("dtype")
        decided = {**taken, **steps, **orders}
        refuse(decided, f"{problem} is a file without settings, which decides that itself: leave it out")
    else:
        of_linear = {name: taken.pop(name) for name in OF_LINEAR}
        how |= {**taken, **steps}
        del how["warm_up"]
        if own.is_linear:
            refuse(steps, f"{problem} is a linear problem, which has none: leave it out")
            how["steps"] = of_linear.pop("max_iterations")
        else:
            refuse(of_linear, f"{problem} is no linear problem: leave it out")
        settings += tuple(f"{name}={value}" for name, value in of_linear.items() if value is not None)
    options = {name: value for name, value in how.items() if value is not None}
    return Command("run", problem, options, settings, device, environment)


def _layouts(
    ranks: str | int | None, threads: str | int | None, device: str | None, option: str = "--ranks"
) -> Any:
    """Return the numbers of ranks and of threads; InputError for more than one thread on devices."""
    from halocline.run.domain.domain import default_threads
    from halocline.run.domain.execution import chosen_devices
    from halocline.run.ranks.communicator import Communicator

    on_devices = chosen_devices(device).interface != "cpu"
    if not isinstance(ranks, str):  # one run, with as many threads as it takes by default
        default = 1 if on_devices else default_threads(Communicator(ranks_of_node=ranks or 1))
        return (ranks or 1,), (threads or default,)
    counts = tuple(sorted(whole_numbers(ranks, option, RANKS if option == "--ranks" else RANKS_PER_NODE)))
    several = tuple(sorted(whole_numbers(str(1 if threads is None else threads), "--threads", THREADS)))
    if on_devices and max(several) > 1:
        raise InputError(f"--threads {threads}: on devices each rank has 1 thread, which looks after these")
    return counts, several


def _measured(asked: Asked, results: Files, repeat: int | None = None) -> tuple[list[Measurement], Report]:
    """Return all measurements of a study, and their report."""
    from halocline.study import engine
    from halocline.study.reporting.theory import Theory

    study, folder = asked.study, results["pictures"]
    runs = engine.plan(asked)
    pictures = [folder / name for name in study.pictures] if folder else []
    check_files(results["json"], results["csv"], results["html"], *pictures)
    exchanged = engine.formula_of(asked, runs) if asked.command.verb != "bench" else {}
    share_terminal()  # the runs, whose output is captured, show their progress there

    def keep(done: list[Measurement]) -> None:  # a job that ends before the last run keeps the others
        if results["json"] != STDOUT:
            write_json(results["json"], {"measurements": done})

    measurements = engine.carry_out(study, runs, repeat or study.repeat, note, keep)
    return measurements, engine.reported(study, measurements, Theory.of(exchanged, measurements))


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
    from halocline import __version__
    from halocline.study.measuring.command import as_csv, devices_of
    from halocline.study.reporting.page import facts_of_measurements

    host = found[0]["machine"]["host"]
    on = devices_of(found[-1]) or found[0]["machine"]["cpu"]
    leave(
        report,
        results,
        title=title,
        lead=f"{report.what} with Halocline {__version__} on {host}, {on}, {found[0]['started'][:10]}",
        record=record or {"measurements": list(found), **report.facts},
        rows=as_csv(found) if results["csv"] else "",
        facts=facts_of_measurements(found),
        commands=[m["command"] for m in found],
        drawn=drawn,
    )


def _alone() -> None:
    """Raise InputError in one of several ranks, as a study starts ranks of its own."""
    started = launcher()
    if started is not None and started.size != 1:
        raise InputError("a study starts mpiexec itself: run it without mpiexec, and name --ranks")


def _submit(asked: Asked, submit: Mapping[str, Any]) -> None:
    """Write the scripts of jobs that run the study on a cluster."""
    from halocline.study import engine, jobs

    engine.plan(asked)  # what cannot be is found here
    made = jobs.scripts(asked, command_line(), submit["submit"], submit)
    jobs.check_new(made, overwrite=submit["overwrite"])
    check_files(*made)
    for path, text in made.items():
        write(path, text)
    written(made)
    say(jobs.advice(submit["submit"], list(made)))


made = typer.main.get_command(app)
assert isinstance(made, TyperGroup)
commands = made.commands
