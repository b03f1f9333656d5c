"""The commands of `halocline study`: one for each declared study, and those for papers and reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import EXAMPLES, ablation, command, group, overlap
from halocline.cli.options import how, keyword, one_of, panel, place, problem, results, taken, where, whole
from halocline.study.study import Study, studies

app = group("")
EACH_N = problem(
    "--n N,N,...",
    "Points or cells along the first axis, the others in the problem's own proportion, for each run; by "
    "default what suits the study.",
)
DIM = problem("--dim 1|2|3", "Axes, where a problem can have several numbers of them.", whole(ranges.AXES))
STEPS = problem("--steps S", "Steps of each run; by default those of the case.", whole(ranges.SOME_STEPS))
WARM_UP = problem(
    "--warm-up K",
    "The first K steps are not timed; by default two, where there are more.",
    whole(ranges.STEPS),
)
RTOL = how("--rtol X", f"{options.TOLERANCE} Of a linear problem.", options.POSITIVE)
MAX_ITERATIONS = how(
    "--max-iterations K", f"{options.MOST_ITERATIONS} Of a linear problem.", whole(ranges.STEPS)
)
PICTURES = results("--pictures FOLDER", "Draw the plots in that folder.", place("folder"))
of_study = panel("The study")
cluster = panel("On a cluster")
SUBMIT = cluster(
    "--submit slurm|pbs",
    "Do not run the study, but write one job script for each K; the names of the scripts hold what the study "
    "varies.",
)
PER_NODE = cluster(
    "--per-node R",
    "Ranks of a node; by default those of --ranks, if that is one number.",
    whole(ranges.RANKS_PER_NODE),
)
TIME = cluster(
    "--time HH:MM:SS", "Time limit of a job; an hour by default. Slurm also takes D-HH:MM:SS and minutes."
)
PARTITION = cluster("--partition NAME", "Of the cluster: a partition of Slurm, a queue of PBS.")
OVERWRITE = cluster("--overwrite", "Replace scripts and results of another study that have the same names.")


@dataclass
class OfProblem:
    """Options of the problem that each run solves."""

    n: Annotated[str | None, EACH_N] = None
    dim: Annotated[int | None, DIM] = None
    settings: Annotated[list[str], options.SETTINGS] = options.NO_TEXTS


@dataclass
class OfSteps:
    """Options of runs that are a number of steps."""

    steps: Annotated[int | None, STEPS] = None
    warm_up: Annotated[int | None, WARM_UP] = None
    order: Annotated[int | None, options.ORDER_OF_CASE] = None
    scheme: Annotated[str | None, options.SCHEME_OF_CASE] = None


@dataclass
class OfLinear:
    """Options of a linear problem."""

    method: Annotated[str | None, options.METHOD_OF_CASE] = None
    rtol: Annotated[float | None, RTOL] = None
    max_iterations: Annotated[int | None, MAX_ITERATIONS] = None


@dataclass
class OneLayout:
    """Numbers of ranks and threads of a study to the end of a problem."""

    ranks: Annotated[int | None, options.RANKS] = None
    threads: Annotated[int | None, options.THREADS] = None


@dataclass
class OfRuns:
    """Options of each run, beside ranks and threads."""

    device: Annotated[str | None, options.DEVICE] = None
    decomposition: Annotated[str, options.DECOMPOSITION] = "optimal"
    patch: Annotated[str | None, options.PATCH] = None
    repeat: Annotated[int | None, options.REPEAT] = None


@dataclass
class Results:
    """Options of the results of a study."""

    json: Annotated[str | None, options.JSON] = None
    csv: Annotated[Path | None, options.CSV] = None
    html: Annotated[Path | None, options.HTML] = None
    pictures: Annotated[Path | None, PICTURES] = None


@dataclass
class Submit:
    """Options of the jobs that run a study on a cluster."""

    submit: Annotated[str | None, SUBMIT] = None
    nodes: Annotated[str | None, cluster("--nodes K,K,...", "Nodes of each job (default: 1).")] = None
    per_node: Annotated[int | None, PER_NODE] = None
    time: Annotated[str | None, TIME] = None
    partition: Annotated[str | None, PARTITION] = None
    account: Annotated[str | None, cluster("--account NAME", "Whom the jobs are charged to.")] = None
    overwrite: Annotated[bool, OVERWRITE] = False


@dataclass
class Problem:
    """Problem of a study."""

    problem: Annotated[
        str, typer.Argument(metavar="CASE|FILE.py", help="A case of `halocline cases`, or a Python file.")
    ]


def add(app: typer.Typer, study: Study, name: str) -> None:
    """Add the command of a study to a group."""
    declared = [(each.form, each.help, each.default) for each in study.sweeps]
    varied = [_parameter(of_study, *each) for each in (*declared, *study.options)]
    layout: Signature | type = OneLayout
    if not study.to_the_end:
        ranks = "--ranks R,R,...", "Processes; one run for each.", study.ranks
        threads = "--threads T,T,...", "Threads of each rank; one run for each.", study.threads
        layout = Signature([_parameter(where, *ranks), _parameter(where, *threads)])
    sources = [Signature(varied), OfProblem, OfSteps, OfLinear, layout, OfRuns, Results, Submit]
    if study.to_the_end:
        sources.remove(OfSteps)
    if name != "CASE":
        sources.insert(0, Problem)
    text = f"{study.about}\n\n{study.help}{EXAMPLES}" + "\n".join(study.examples)

    @command(app, name, *sources, text=text)
    def run(context: typer.Context, **values: Any) -> None:
        from halocline.cli.study import study as carry_out

        problem = values.pop("problem", context.info_name)
        output, jobs = taken(Results, values), taken(Submit, values)
        source = context.get_parameter_source
        carry_out(study.name, problem, results=output, submit=jobs, source=source, **values)


def _parameter(option: Any, form: str, help: str, default: Any) -> Parameter:
    """Return the parameter of an option of a study, whose metavar may list the values that it takes."""
    metavar = form.partition(" ")[2]
    reader = one_of(*metavar.split("|")) if "|" in metavar else None
    kind = Annotated[str | None if metavar else bool, option(form, help, reader)]
    return Parameter(keyword(form), Parameter.KEYWORD_ONLY, default=default, annotation=kind)


for each in studies().values():
    if each.name == "ablation":
        add(ablation.app, each, "CASE")
    else:
        add(app, each, each.name)
app.add_typer(ablation.app, name="ablation")
app.add_typer(overlap.app, name="overlap")


@command(app, "paper", Results)
def paper(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the table or figure: umbc-4.1.")],
    n: Annotated[
        str | None,
        problem("--n N,N,...", "Sizes that are predicted; by default one or a few of the paper's."),
    ] = None,
    nodes: Annotated[
        str | None, where("--nodes K,K,...", "Nodes that are predicted; by default all of the paper's.")
    ] = None,
    machine: Annotated[str | None, where("--machine NAME|FILE", "Another machine to predict for.")] = None,
    here: Annotated[bool, where("--here/--not-here", "Whether the study is measured here too.")] = True,
    ranks: Annotated[str | None, where("--ranks R,R,...", "Ranks that are measured here.")] = None,
    threads: Annotated[str | None, where("--threads T,T,...", "Threads that are measured here.")] = None,
    **values: Any,
) -> None:
    """A table or figure of a paper: what is published, what the model predicts for its machine, and the same
    measured here, reduced to what this machine has. `halocline study papers` lists them.

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
def report(
    files: Annotated[list[str], typer.Argument(metavar="FILES...", help="Measurement files.")], **values: Any
) -> None:
    """Join measurement files, which --json of studies has left on any machines, with any MPI and at any
    commit, into one set of tables and one page.

    Examples
    --------
    halocline study report here.json cluster/*.json --html report.html
    """
    from halocline.cli.study import report

    report(files, results=values)


made = typer.main.get_command(app)
assert isinstance(made, TyperGroup)
commands = made.commands
