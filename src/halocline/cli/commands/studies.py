"""The commands of `halocline study`: one for each declared study, and those for papers and reports."""

from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import EXAMPLES, ablation, command, group, overlap, parameters
from halocline.cli.options import (
    Execution,
    how,
    keyword,
    one_of,
    panel,
    place,
    problem,
    results,
    take,
    where,
    whole,
)
from halocline.study.study import Study, studies

app = group("")
RTOL = how("--rtol X", options.POSITIVE, f"{options.TOLERANCE} Of a linear problem.")
MAX_ITERATIONS = how(
    "--max-iterations K", whole(ranges.STEPS), f"{options.MOST_ITERATIONS} Of a linear problem."
)
of_study = panel("The study")
cluster = panel("On a cluster")


@dataclass
class OfProblem:
    """Options of the problem that each run solves.

    Attributes
    ----------
    n
        Points or cells along the first axis, the others in the problem's own proportion, for each run; by
        default what suits the study.
    dim
        Axes, where a problem can have several numbers of them.
    """

    n: Annotated[str | None, problem("--n N,N,...")] = None
    dim: Annotated[int | None, problem("--dim 1|2|3", whole(ranges.AXES))] = None
    settings: Annotated[list[str], options.SETTINGS] = options.NO_TEXTS


@dataclass
class OfSteps:
    """Options of runs that are a number of steps.

    Attributes
    ----------
    steps
        Steps of each run; by default those of the case.
    warm_up
        The first K steps are not timed; by default two, where there are more.
    """

    steps: Annotated[int | None, problem("--steps S", whole(ranges.SOME_STEPS))] = None
    warm_up: Annotated[int | None, problem("--warm-up K", whole(ranges.STEPS))] = None
    order: Annotated[int | None, options.ORDER_OF_CASE] = None
    scheme: Annotated[str | None, options.SCHEME_OF_CASE] = None


@dataclass
class OfLinear:
    """Options of a linear problem."""

    method: Annotated[str | None, options.METHOD_OF_CASE] = None
    rtol: Annotated[float | None, RTOL] = None
    max_iterations: Annotated[int | None, MAX_ITERATIONS] = None


@dataclass
class OfRuns:
    """Options of each run, beside those of `halocline.cli.options.Execution`."""

    ranks: Annotated[int | None, options.RANKS] = None
    repeat: Annotated[int | None, options.REPEAT] = None


@dataclass
class Results:
    """Options of the results of a study.

    Attributes
    ----------
    pictures
        Draw the plots in that folder.
    """

    json: Annotated[str | None, options.JSON] = None
    csv: Annotated[Path | None, options.CSV] = None
    html: Annotated[Path | None, options.HTML] = None
    pictures: Annotated[Path | None, results("--pictures FOLDER", place("folder"))] = None


@dataclass
class Submit:
    """Options of the jobs that run a study on a cluster.

    Attributes
    ----------
    submit
        Do not run the study, but write one job script for each K; the names of the scripts hold what the
        study varies.
    nodes
        Nodes of each job (default: 1).
    per_node
        Ranks of a node; by default those of --ranks, if that is one number.
    time
        Time limit of a job; an hour by default. Slurm also takes D-HH:MM:SS and minutes.
    partition
        Of the cluster: a partition of Slurm, a queue of PBS.
    account
        Whom the jobs are charged to.
    overwrite
        Replace scripts and results of another study that have the same names.
    """

    submit: Annotated[str | None, cluster("--submit slurm|pbs")] = None
    nodes: Annotated[str | None, cluster("--nodes K,K,...")] = None
    per_node: Annotated[int | None, cluster("--per-node R", whole(ranges.RANKS_PER_NODE))] = None
    time: Annotated[str | None, cluster("--time HH:MM:SS")] = None
    partition: Annotated[str | None, cluster("--partition NAME")] = None
    account: Annotated[str | None, cluster("--account NAME")] = None
    overwrite: Annotated[bool, cluster("--overwrite")] = False


@dataclass
class Problem:
    """Problem of a study.

    Attributes
    ----------
    problem
        A case of `halocline cases`, or a Python file.
    """

    problem: Annotated[str, typer.Argument(metavar="CASE|FILE.py")]


def add(app: typer.Typer, study: Study, name: str) -> None:
    """Add the command of a study to a group."""
    sweeps = [(sweep.form, sweep.help, sweep.default) for sweep in study.sweeps]
    options = [_parameter(of_study, *option) for option in (*sweeps, *study.options)]
    if study.to_the_end:
        layout = [*parameters(OfRuns, "ranks"), *parameters(Execution, "threads")]
    else:
        ranks = "--ranks R,R,...", "Processes; one run for each.", study.ranks
        threads = "--threads T,T,...", "Threads of each rank; one run for each.", study.threads
        layout = [_parameter(where, *ranks), _parameter(where, *threads)]

    @command(
        app,
        name,
        *([] if name == "CASE" else [Problem]),
        options,
        OfProblem,
        *([] if study.to_the_end else [OfSteps]),
        OfLinear,
        layout,
        parameters(Execution, "device", "decomposition", "patch"),
        parameters(OfRuns, "repeat"),
        Results,
        Submit,
        text=f"{study.about}\n\n{study.help}{EXAMPLES}" + "\n".join(study.examples),
    )
    def run(context: typer.Context, **values: Any) -> None:
        from halocline.cli.study import study as carry_out

        problem = values.pop("problem", context.info_name)
        results, submit = take(Results, values), take(Submit, values)
        source = context.get_parameter_source
        carry_out(study.name, problem, results=results, submit=submit, source=source, **values)


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


@command(app, "paper", Results)
def paper(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    n: Annotated[str | None, problem("--n N,N,...")] = None,
    nodes: Annotated[str | None, where("--nodes K,K,...")] = None,
    machine: Annotated[str | None, where("--machine NAME|FILE")] = None,
    here: Annotated[bool, where("--here/--not-here")] = True,
    ranks: Annotated[str | None, where("--ranks R,R,...")] = None,
    threads: Annotated[str | None, where("--threads T,T,...")] = None,
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

    Examples
    --------
    halocline study paper umbc-4.1 --n 1024 --nodes 1,2
    halocline study paper astaroth-fig12
    """
    from halocline.cli.study import paper

    measured = {"ranks": ranks, "threads": threads}
    paper(name, n=n, nodes=nodes, machine=machine, here=here, results=values, **measured)


@command(app, "papers")
def papers() -> None:
    """List the tables and figures of papers.

    Examples
    --------
    halocline study papers
    """
    from halocline.cli.study import list_papers

    list_papers()


@command(app, "report", Results)
def report(files: Annotated[list[str], typer.Argument(metavar="FILES...")], **values: Any) -> None:
    """Join measurement files, which --json of studies has left on any machines, with any MPI and at any
    commit, into one set of tables and one page.

    Parameters
    ----------
    files
        Measurement files.

    Examples
    --------
    halocline study report here.json cluster/*.json --html report.html
    """
    from halocline.cli.study import report

    report(files, results=values)


made = typer.main.get_command(app)
assert isinstance(made, TyperGroup)
commands = made.commands
