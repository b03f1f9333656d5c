"""Commands of `halocline study`: one for each study, and commands for papers and reports."""

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
from halocline.cli.options import (
    NO_TEXTS,
    Execution,
    ReportFileOptions,
    execution_option,
    one_of,
    panel,
    problem_option,
    take_options,
    whole_number,
)
from halocline.cli.output import STDOUT, check_files, note, report_written, say, write, write_json
from halocline.cli.report import Files, write_report
from halocline.cli.texts import reject
from halocline.errors import InputError
from halocline.io.table import Table, as_rows
from halocline.lang.grid import unknown_name_error
from halocline.ranges import NODES, POINTS, RANKS, RANKS_PER_NODE, THREADS, whole_numbers
from halocline.run.host.process import command_line, cores
from halocline.run.ranks.library import launcher
from halocline.run.simulation.progress import progress, share_terminal
from halocline.study.layout import AFFINITIES
from halocline.study.measurement import Measurement
from halocline.study.registry import papers as declared_papers
from halocline.study.registry import register
from halocline.study.reporting.report import Report, with_note
from halocline.study.study import Study, StudyRequest, keyword, studies

if TYPE_CHECKING:
    from halocline.study.measuring.command import Command

app = group("")
LINEAR_OPTIONS = ("method", "rtol", "max_iterations")
EXECUTION_OPTIONS = ("device", "decomposition", "subdomains_per_rank", "patch", "methods", "overlap")
STEP_OPTIONS = ("order", "scheme", "steps", "warm_up")
CASE_OR_FILE = typer.Argument(metavar="CASE|FILE.py", help="Case of `halocline cases`, or Python file.")
PROBLEM = Parameter("problem", Parameter.KEYWORD_ONLY, annotation=Annotated[str, CASE_OR_FILE])
study_option = panel("Study")
cluster_option = panel("Cluster jobs")


@dataclass
class StudyRunOptions(options.CaseOptions):
    """Options of the runs of a study, in addition to `halocline.cli.options.Execution`.

    Attributes
    ----------
    n
        Numbers of points or cells along the first axis, one run for each number. The other axes keep the
        proportions of the problem. The default depends on the study.
    steps
        Number of steps per run. Default: the steps of the case.
    warm_up
        Exclude the first K steps from the timing. Default: 2, for runs of more than two steps.
    """

    n: Annotated[str | None, problem_option("--n N,N,...")] = None
    steps: Annotated[int | None, problem_option("--steps S", whole_number(ranges.SOME_STEPS))] = None
    warm_up: Annotated[int | None, problem_option("--warm-up K", whole_number(ranges.STEPS))] = None
    rtol: Annotated[float | None, options.RTOL] = None
    max_iterations: Annotated[int | None, options.MAX_ITERATIONS] = None
    ranks: Annotated[int | None, options.RANKS] = None
    repeat: Annotated[int | None, options.REPEAT] = None


@dataclass
class Nodes:
    """Options of the nodes of the runs of a study.

    Attributes
    ----------
    nodes
        Numbers of nodes, one run for each number. Default: 1, with the ranks of --ranks.
    per_node
        Numbers of ranks per node, one run for each number. This option replaces --ranks. If the job has fewer
        nodes than --nodes, each group of R ranks counts as a node. Ranks of different groups exchange only
        MPI messages.
    affinity
        Thread binding. [bold]close[/]: OMP_PROC_BIND=close with OMP_PLACES=cores. [bold]spread[/]:
        OMP_PROC_BIND=spread with OMP_PLACES=cores. [bold]threads[/]: OMP_PROC_BIND=close with
        OMP_PLACES=threads. [bold]scatter[/]: KMP_AFFINITY=scatter. [bold]none[/]: no binding. Default: the
        setting of the environment.
    """

    nodes: Annotated[str | None, execution_option("--nodes K,K,...")] = None
    per_node: Annotated[str | None, execution_option("--per-node R,R,...")] = None
    affinity: Annotated[
        str | None, execution_option("--affinity " + "|".join(AFFINITIES), one_of(*AFFINITIES))
    ] = None


@dataclass
class Submit:
    """Options of the jobs that run a study on a cluster.

    Attributes
    ----------
    submit
        Write job scripts instead of running the study. Each script is for one combination of numbers of
        nodes, ranks per node and threads.
    time
        Time limit of a job. Default: one hour. Slurm also accepts D-HH:MM:SS and minutes.
    partition
        Slurm partition or PBS queue of the jobs.
    account
        Account that the jobs are charged to.
    exclusive
        Request exclusive use of the nodes of each job.
    directive
        Additional directive of the scheduler, such as '--constraint=skx'. The option may be repeated.
    overwrite
        Replace existing scripts and results that have the same names but belong to another study.
    """

    submit: Annotated[str | None, cluster_option("--submit slurm|pbs")] = None
    time: Annotated[str | None, cluster_option("--time HH:MM:SS")] = None
    partition: Annotated[str | None, cluster_option("--partition NAME")] = None
    account: Annotated[str | None, cluster_option("--account NAME")] = None
    exclusive: Annotated[bool, cluster_option("--exclusive")] = False
    directive: Annotated[list[str], cluster_option("--directive LINE")] = NO_TEXTS
    overwrite: Annotated[bool, cluster_option("--overwrite")] = False


def add(app: typer.Typer, study: Study, name: str) -> None:
    """Add the command of a study to a group."""
    varied_forms = [(option.form, option.help, option.default) for option in study.varied_options]
    varied_names = {keyword(option.form) for option in study.varied_options}
    options = [_parameter(study_option, *option) for option in (*varied_forms, *study.options)]
    if study.runs_to_end:
        layout = [*parameters(StudyRunOptions, "ranks"), *parameters(Execution, "threads")]
    else:
        ranks = "--ranks R,R,...", "Numbers of processes, one run for each.", study.ranks
        threads = "--threads T,T,...", "Numbers of threads per rank, one run for each.", study.threads
        layout = [_parameter(execution_option, *ranks), _parameter(execution_option, *threads)]

    arguments = [] if name == "CASE" else [[PROBLEM]]
    steps = () if study.runs_to_end else ("steps", "warm_up", "order", "scheme")

    @command(
        app,
        name,
        *arguments,
        options,
        parameters(StudyRunOptions, "n", "dim", "settings", *steps, "dtype", *LINEAR_OPTIONS),
        layout,
        [option for option in parameters(Nodes) if option.name not in varied_names],
        parameters(Execution, *(name for name in EXECUTION_OPTIONS if name not in varied_names)),
        parameters(StudyRunOptions, "repeat"),
        ReportFileOptions,
        Submit,
        text=f"{study.about}\n\n{study.help}{EXAMPLES}" + "\n".join(study.examples),
    )
    def run(context: typer.Context, **values: Any) -> None:
        problem = values.pop("problem", context.info_name)
        measure(study, problem, context.get_parameter_source, **values)


def _parameter(option: Any, form: str, help: str, default: Any) -> Parameter:
    """Return the parameter of an option of a study. The metavar in `form` may list the accepted values."""
    metavar = form.partition(" ")[2]
    reader = one_of(*metavar.split("|")) if "|" in metavar else None
    kind: Any = str | None if metavar else bool
    annotation = Annotated[kind, option(form, reader, help)]
    return Parameter(keyword(form), Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


GROUPS = {
    "ablation": ablation.app,
    "overlap": overlap.app,
}  # groups with the study of the same name and further commands
for definition in studies().values():
    if definition.name in GROUPS:
        add(GROUPS[definition.name], definition, "CASE")
    else:
        add(app, definition, definition.name)
for name, commands_of_group in GROUPS.items():
    app.add_typer(commands_of_group, name=name)


@command(app, "paper", ReportFileOptions)
def paper(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    n: Annotated[str | None, problem_option("--n N,N,...")] = None,
    nodes: Annotated[str | None, execution_option("--nodes K,K,...")] = None,
    machine: Annotated[str | None, execution_option("--machine NAME|FILE")] = None,
    measure_here: Annotated[bool, execution_option("--here/--not-here")] = True,
    ranks: Annotated[str | None, execution_option("--ranks R,R,...")] = None,
    threads: Annotated[str | None, execution_option("--threads T,T,...")] = None,
    device: Annotated[str | None, execution_option("--device cpu|cuda[:i,j]|opencl[:i,j]")] = None,
    mpis: Annotated[str | None, execution_option("--mpis L,L,...")] = None,
    **values: Any,
) -> None:
    """Compare a published table or figure with predictions and measurements.

    The report contains the published values, predictions for the machine of the paper, and measurements on
    this machine. The measured problems are small enough for this machine. `halocline study papers` lists the
    tables and figures.

    Parameters
    ----------
    name
        Name of the table or figure, such as umbc-4.1.
    n
        Problem sizes to predict. Default: one or several sizes of the paper.
    nodes
        Numbers of nodes to predict. Default: all numbers of the paper.
    machine
        Machine of the predictions. Default: the machine of the paper.
    measure_here
        Also measure on this machine.
    ranks
        Numbers of ranks to measure.
    threads
        Numbers of threads per rank to measure.
    device
        Processor or devices of the measurements.
    mpis
        MPI libraries to compare, such as package and /usr/lib/x86_64-linux-gnu/libmpi.so.40.

    Examples
    --------
    halocline study paper umbc-4.1 --n 1024 --nodes 1,2
    halocline study paper cavity-table3 --device opencl
    """
    from halocline.study import engine

    _check_single_process()
    measurement_options = {"ranks": ranks, "threads": threads, "device": device, "mpis": mpis}
    explicit_options = {option: value for option, value in measurement_options.items() if value}
    papers_by_name = declared_papers()
    if name not in papers_by_name:
        raise unknown_name_error("table or figure", name, list(papers_by_name))
    paper = papers_by_name[name]
    sizes, counts = (
        None if text is None else whole_numbers(text, option, numbers)
        for text, option, numbers in ((n, "--n", POINTS), (nodes, "--nodes", NODES))
    )
    places, machine_model = paper.select_configurations(sizes, counts), paper.prediction_machine(machine)
    if not (paper.measured_studies and measure_here):
        reason = f"{name} has nothing to measure"
        if paper.measured_studies:
            reason = "with --not-here, the command measures nothing"
        reject(measurement_options, f"{reason}. Leave the option out.")
    measurements: list[Measurement] = []
    reports: list[Report] = []
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        requests = [
            (
                _of_paper(study, paper.problem, options, explicit_options, Path(scratch), values),
                options.get("repeat"),
            )
            for study, options in paper.measured_studies
            if measure_here
        ]
        for request, _ in requests:
            engine.plan_runs(request)
        check_files(values["json"], values["csv"], values["html"])
        if paper.facts and measure_here:
            reports.append(paper.facts(paper))
        if machine_model is not None and places:
            with progress(
                f"{paper.title} on {machine_model.name}", f"of {len(places)} configurations"
            ) as on_progress:
                places = paper.predict(places, machine_model, on_progress)
        for request, repeat in requests:
            new_measurements, report = _measured(request, {**values, "json": None}, repeat)
            measurements += new_measurements
            reports.append(
                replace(report, tables=with_note(report.tables, paper.differences(new_measurements)))
            )

    def figures() -> dict[str, Any]:
        picture = paper.draw(places)
        all_figures = {} if picture is None else {f"{name}.png": picture}
        for number, report in enumerate(reports, 1):
            prefix = f"{number}-" if len(reports) > 1 else ""
            all_figures |= {prefix + file: figure for file, figure in report.figures().items()}
        return all_figures

    cited = {"name": name, "source": paper.data.source, "place": paper.data.place}
    facts = {"paper": {**cited, "settings": list(paper.options.get("settings", ()))}, "places": places}
    report = Report(
        [
            *([] if paper.facts and measure_here else paper.tables(places, machine_model)),
            *(table for single_report in reports for table in single_report.tables),
        ],
        [*paper.sentences, *(text for single_report in reports for text in single_report.sentences)],
        figures,
        facts | {key: value for single_report in reports for key, value in single_report.facts.items()},
        paper.title,
        "\n".join(dict.fromkeys(single_report.footer for single_report in reports)),
    )
    title = f"{paper.data.place.partition(',')[0]}: {paper.title}"
    if measurements:
        record = {**facts, "measurements": measurements}
        _write_report(measurements, report, values, title=title, record=record)
    else:
        rows = as_rows(places or paper.data.rows or [{"n": ""}])
        write_report(report, values, title=title, lead=paper.data.source, record=report.facts, rows=rows)


def _of_paper(
    study: str,
    problem: str,
    options: Mapping[str, Any],
    explicit_options: Mapping[str, Any],
    scratch: Path,
    results: Files,
) -> StudyRequest:
    """Return the request for the study that measures a table or figure on this machine."""
    definition = studies()[study]
    request_options: dict[str, Any] = {"ranks": definition.ranks, "threads": definition.threads}
    request_options |= (
        {keyword(form): default for form, _, default in definition.options}
        | dict(options)
        | dict(explicit_options)
    )
    request_options.pop("repeat", None)
    if "ranks" in explicit_options:
        request_options |= {"nodes": None, "per_node": None}
    if "mpis" in explicit_options and not any(
        keyword(option.form) == "mpis" for option in definition.varied_options
    ):
        raise InputError(
            f"--mpis {explicit_options['mpis']}: study {study} does not compare MPI libraries. Leave "
            "--mpis out."
        )
    for option in ("ranks", "threads") if definition.runs_to_end else ():
        if "," in request_options[option]:
            raise InputError(
                f"--{option} {request_options[option]}: study {definition.name} accepts only one number"
            )
    request = _request(definition, problem, request_options, scratch, results)
    return request if "ranks" in explicit_options else replace(request, cores=len(cores()))


@command(app, "papers")
def papers() -> None:
    """List the tables and figures of five papers, with the commands that reproduce them.

    For a table or figure without a command, the list contains the reason.

    Examples
    --------
    halocline study papers
    """
    entries = register()
    rows = tuple(
        (entry.paper, entry.result, entry.kind, entry.subject, entry.command or entry.reason)
        for entry in entries
    )
    heads = ("paper", "", "kind", "subject", "command or reason")
    commands = sum(bool(entry.command) for entry in entries)
    note = f"{commands} of {len(rows)} tables and figures have a command."
    say(Table("Tables and figures of papers", heads, rows, left=5, note=note).text().rstrip())


@command(app, "report", ReportFileOptions)
def report(files: Annotated[list[str], typer.Argument(metavar="FILES...")], **values: Any) -> None:
    """Combine measurement files of studies into one report.

    The option --json of studies writes these files. They may come from several machines, MPI libraries and
    commits. The report has one set of tables and one HTML page.

    Parameters
    ----------
    files
        Measurement files. NAME=FILE labels the results of a file with a name, such as the name of the
        network. The report shows the labelled results separately.

    Examples
    --------
    halocline study report here.json cluster/*.json --html report.html
    halocline study report NewRiver=newriver.json Cascades=cascades.json
    """
    from halocline.study import joining

    check_files(values["json"], values["csv"], values["html"])
    labelled_files = [joining.parse_label(file) for file in files]
    paths = [path for _, path in labelled_files]
    measurements, joint_report = joining.join_files(
        {path: label for label, path in labelled_files} if len(set(paths)) == len(paths) else paths
    )
    names = ", ".join(dict.fromkeys(m["study"] for m in measurements))
    _write_report(measurements, joint_report, values, title=f"Report: {names}")


# -- implementation of the commands --------------------------------------------------------------------------


def measure(
    study: Study, problem: str, source: Callable[[str], Any], *, repeat: int | None = None, **values: Any
) -> None:
    """Run a study, and print its tables."""
    _check_single_process()
    results, submit = take_options(ReportFileOptions, values), take_options(Submit, values)
    # the parser of a run would read a leading minus as an option
    problem = f"./{problem}" if problem.startswith("-") else problem
    if (values["nodes"] or values["per_node"]) and source("ranks").name == "COMMANDLINE":
        reject({"ranks": values["ranks"]}, "--per-node sets the ranks of each node. Leave --ranks out.")
    with tempfile.TemporaryDirectory(prefix="halocline-") as scratch:
        request = _request(study, problem, values, Path(scratch), results)
        if submit["submit"] is not None:
            reject(results, "halocline study report writes the results of all jobs. Leave the option out.")
            _submit(request, submit)
            return
        reject(
            {**submit, "directive": submit["directive"] or None},
            "the option applies only to jobs of --submit. Leave it out.",
        )
        measurements, report = _measured(request, results, repeat)
        _write_report(
            measurements,
            report,
            results,
            title=f"{study.title}: {measurements[0]['case']}",
            record=measurements if request.is_linear else None,
            run_pictures=(
                [] if request.picture_folder is None else sorted(request.picture_folder.glob("*.png"))
            ),
        )


def _request(
    study: Study, problem: str, options: Mapping[str, Any], scratch: Path, results: Files
) -> StudyRequest:
    """Return the request for a study from its options."""
    remaining = dict(options)
    sizes = remaining.pop("n", None)
    numbers = None if sizes is None else tuple(sorted(whole_numbers(sizes, "--n", POINTS)))
    command = _command(study, problem, remaining)
    nodes, per_node = remaining.pop("nodes", None), remaining.pop("per_node", None)
    ranks, threads = remaining.pop("ranks"), remaining.pop("threads")
    if nodes or per_node:
        ranks = per_node or "1"
        nodes = tuple(sorted(whole_numbers(nodes or "1", "--nodes", NODES)))
    option = "--per-node" if nodes else "--ranks"
    ranks, threads = _layouts(ranks, threads, command.device, option)
    if study.runs_to_end and (len(nodes or (1,)), len(ranks)) != (1, 1):
        raise InputError(
            f"study {study.name} accepts only one number of nodes and one number of ranks per node"
        )
    picture_folder = scratch / "pictures" if results["pictures"] or results["html"] else None
    return StudyRequest(
        study, command, numbers, ranks, threads, remaining, scratch, picture_folder, nodes=nodes or ()
    )


def _command(study: Study, problem: str, remaining: dict[str, Any]) -> "Command":
    """Return the command to measure.

    Raises
    ------
    InputError
        The problem does not accept an option.
    """
    from halocline.problems.problem import Problem
    from halocline.study.measuring.command import EXECUTION, Command

    device, settings = remaining.pop("device", None), tuple(remaining.pop("settings", ()) or ())
    varied_names = {keyword(option.form) for option in study.varied_options}
    affinity = None if "affinity" in varied_names else remaining.pop("affinity", None)
    environment = {} if affinity is None else AFFINITIES[affinity]
    run_options = {
        name: remaining.pop(name, None) for name in EXECUTION_OPTIONS[1:] if name not in varied_names
    }
    run_options = {name: value for name, value in run_options.items() if value != EXECUTION[name]}
    problem_options = {name: remaining.pop(name, None) for name in ("dim", "dtype", *LINEAR_OPTIONS)}
    steps = {name: remaining.get(name) for name in STEP_OPTIONS}
    if study.subcommand != "run":
        reject(
            {**problem_options, **steps, "set": settings or None, **run_options},
            f"the study sets this option for {problem}. Leave the option out.",
        )
        return Command(study.subcommand, problem, {}, (), device, environment)
    subject = Problem(problem)
    if not subject.has_settings:
        orders = {"orders": remaining.get("orders")} if study.options else {}
        run_options["dtype"] = problem_options.pop("dtype")
        decided = {**problem_options, **steps, **orders}
        reject(
            decided, f"{problem} is a file without settings, and sets the value itself. Leave the option out."
        )
    else:
        of_linear = {name: problem_options.pop(name) for name in LINEAR_OPTIONS}
        run_options |= {**problem_options, **steps}
        del run_options["warm_up"]
        if subject.is_linear:
            reject(steps, f"{problem} is a linear problem without time steps. Leave the option out.")
            run_options["steps"] = of_linear.pop("max_iterations")
        else:
            reject(of_linear, f"{problem} is not a linear problem. Leave the option out.")
        settings += tuple(f"{name}={value}" for name, value in of_linear.items() if value is not None)
    options = {name: value for name, value in run_options.items() if value is not None}
    return Command("run", problem, options, settings, device, environment)


def _layouts(
    ranks: str | int | None, threads: str | int | None, device: str | None, option: str = "--ranks"
) -> Any:
    """Return the numbers of ranks and of threads.

    Raises
    ------
    InputError
        A rank with devices has more than one thread.
    """
    from halocline.run.domain.domain import default_threads
    from halocline.run.domain.execution import chosen_devices
    from halocline.run.ranks.communicator import Communicator

    on_devices = chosen_devices(device).interface != "cpu"
    if not isinstance(ranks, str):  # one run with the default number of threads
        default = 1 if on_devices else default_threads(Communicator(ranks_of_node=ranks or 1))
        return (ranks or 1,), (threads or default,)
    counts = tuple(sorted(whole_numbers(ranks, option, RANKS if option == "--ranks" else RANKS_PER_NODE)))
    thread_counts = tuple(sorted(whole_numbers(str(1 if threads is None else threads), "--threads", THREADS)))
    if on_devices and max(thread_counts) > 1:
        raise InputError(f"--threads {threads}: on devices each rank has 1 thread. Leave --threads out.")
    return counts, thread_counts


def _measured(
    request: StudyRequest, results: Files, repeat: int | None = None
) -> tuple[list[Measurement], Report]:
    """Return all measurements of a study, and their report."""
    from halocline.study import engine
    from halocline.study.reporting.theory import Theory

    study, folder = request.study, results["pictures"]
    runs = engine.plan_runs(request)
    pictures = [folder / name for name in study.pictures] if folder else []
    check_files(results["json"], results["csv"], results["html"], *pictures)
    exchanged = engine.exchanges_by_order(request, runs) if request.command.subcommand != "bench" else {}
    share_terminal()  # the study captures the output of the runs, but shows their progress

    # Completed runs are written at once, so that a job that ends early does not lose them.
    def save(measurements: list[Measurement]) -> None:
        if results["json"] != STDOUT:
            write_json(results["json"], {"measurements": measurements})

    measurements = engine.measure_runs(study, runs, repeat or study.repeat, note, save)
    return measurements, engine.build_report(
        study, measurements, Theory.from_measurements(exchanged, measurements)
    )


def _write_report(
    measurements: Sequence[Measurement],
    report: Report,
    results: Files,
    *,
    title: str,
    record: Any = None,
    run_pictures: Sequence[Path] = (),
) -> None:
    """Print and write the report of measurements. By default, the JSON contains measurements and facts."""
    from halocline import __version__
    from halocline.study.measuring.command import csv_text, devices_of
    from halocline.study.reporting.page import facts_of_measurements

    host = measurements[0]["machine"]["host"]
    processors = devices_of(measurements[-1]) or measurements[0]["machine"]["cpu"]
    date = measurements[0]["started"][:10]
    write_report(
        report,
        results,
        title=title,
        lead=f"{report.subject} with Halocline {__version__} on {host}, {processors}, {date}",
        record=record or {"measurements": list(measurements), **report.facts},
        rows=csv_text(measurements) if results["csv"] else "",
        facts=facts_of_measurements(measurements),
        commands=[m["command"] for m in measurements],
        run_pictures=run_pictures,
    )


def _check_single_process() -> None:
    """Raise InputError if several ranks run this command, because a study starts its own ranks."""
    started = launcher()
    if started is not None and started.size != 1:
        raise InputError("a study starts mpiexec itself. Run the command without mpiexec, and set --ranks.")


def _submit(request: StudyRequest, submit: Mapping[str, Any]) -> None:
    """Write the scripts of the jobs that run the study on a cluster."""
    from halocline.study import engine, jobs

    engine.plan_runs(request)  # reports invalid requests
    job_scripts = jobs.scripts(request, command_line(), submit["submit"], submit)
    jobs.check_new(job_scripts, overwrite=submit["overwrite"])
    check_files(*job_scripts)
    for path, text in job_scripts.items():
        write(path, text)
    report_written(job_scripts)
    say(jobs.advice(submit["submit"], list(job_scripts)))


root_command = typer.main.get_command(app)
assert isinstance(root_command, TyperGroup)
commands = root_command.commands
