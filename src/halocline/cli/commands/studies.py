"""The commands of `halocline study`: one for each declared study, and those for papers and reports."""

from __future__ import annotations

from functools import partial

from halocline.cli import options
from halocline.cli.commands import CaseByName
from halocline.cli.declare import (
    PLACE,
    REQUIRED,
    TEXT,
    TEXTS,
    Command,
    Commands,
    FromLine,
    Group,
    Kind,
    Option,
    one_of,
    whole,
)
from halocline.ranges import RANKS_PER_NODE, SOME_STEPS
from halocline.study.study import Study, studies

PROBLEM = Option(
    None, "problem CASE|FILE.py", "A case of `halocline cases`, or a Python file.", TEXT, REQUIRED
)
EACH_N = options.problem(
    "--n N,N,...",
    "Points or cells along the first axis, the others in the problem's own proportion, for each run; by "
    "default what suits the study.",
)
DIM = options.DIM.but("Axes, where a problem can have several numbers of them.", default=None)
LINEAR = (
    options.METHOD_OF_CASE,
    options.RTOL.but(f"{options.RTOL.help} Of a linear problem.", default=None),
    options.MAX_ITERATIONS.but(f"{options.MAX_ITERATIONS.help} Of a linear problem."),
)
STEPS = (
    options.STEPS.but("Steps of each run; by default those of the case.", kind=whole(SOME_STEPS)),
    options.WARM_UP.but(
        "The first K steps are not timed; by default two, where there are more.", default=None
    ),
    *(options.ORDER_OF_CASE, options.SCHEME_OF_CASE),
)
RUNS = (options.DEVICE, options.DECOMPOSITION, options.PATCH)
RESULTS = Group(
    "results",
    (*options.REPORT, options.results("--pictures FOLDER", "Draw the plots in that folder.", PLACE)),
)
SUBMIT = Group(
    "submit",
    tuple(
        Option("On a cluster", form, help, kind)
        for form, help, kind in (
            (
                "--submit slurm|pbs",
                "Do not run the study, but write one job script for each K; the names of the scripts hold "
                "what the study varies.",
                TEXT,
            ),
            ("--nodes K,K,...", "Nodes of each job (default: 1).", TEXT),
            (
                "--per-node R",
                "Ranks of a node; by default those of --ranks, if that is one number.",
                whole(RANKS_PER_NODE),
            ),
            (
                "--time HH:MM:SS",
                "Time limit of a job; an hour by default. Slurm also takes D-HH:MM:SS and minutes.",
                TEXT,
            ),
            ("--partition NAME", "Of the cluster: a partition of Slurm, a queue of PBS.", TEXT),
            ("--account NAME", "Whom the jobs are charged to.", TEXT),
            ("--overwrite", "Replace scripts and results of another study that have the same names.", TEXT),
        )
    ),
)


def command_of(study: Study, name: str, problem: Option | FromLine = PROBLEM) -> Command:
    """The command that carries a study out."""
    lists = (
        options.RANKS.but(
            "Processes; one run for each.", form="--ranks R,R,...", kind=TEXT, default=study.ranks
        ),
        options.THREADS.but(
            "Threads of each rank; one run for each.",
            form="--threads T,T,...",
            kind=TEXT,
            default=study.threads,
        ),
    )
    own = [Option("The study", each.form, each.help, TEXT, each.default) for each in study.sweeps]
    own += [Option("The study", form, help, _kind(form), default) for form, help, default in study.options]
    return Command(
        name=name,
        does=partial(_study, study.name),
        help=f"{study.about}\n\n{study.help}",
        examples=study.examples,
        takes=(
            (problem, tuple(own), EACH_N, DIM, options.SETTINGS),
            () if study.to_the_end else STEPS,
            LINEAR,
            (options.RANKS, options.THREADS) if study.to_the_end else lists,
            (RUNS, options.REPEAT.but(default=None), RESULTS, SUBMIT),
            FromLine("source", "get_parameter_source"),
        ),
    )


def _kind(form: str) -> Kind:
    """What an option of a study takes: one of some values, or a text."""
    values = form.partition(" ")[2].split("|")
    return one_of(*values) if len(values) > 1 else TEXT


def _study(name: str, problem: str, **given: object) -> None:
    from halocline.cli.study import study

    study(name, problem, **given)  # type: ignore[arg-type]


PER_RANK = options.CELLS.but("Cells along an axis for each rank.", default=128)
EXCHANGE = Command(
    name="exchange",
    does="halocline.cli.ablation:ablation",
    help="Time the exchange of some fields on a periodic grid with one thing changed at a time: the "
    "transfer methods (+remote, +colo, +peer, +self of Pearson et al. 2020, and mailboxes), edges "
    "and corners, halos of one width or of each field's own, decompositions; and predict what the "
    "placement of subdomains is worth on a node of another machine.",
    examples=[
        "halocline study ablation exchange --n 128 --ranks 2 --subdomains-per-rank 2",
        "halocline study ablation exchange --n 96 --ranks 4 --ranks-per-node 2 --html ablation.html",
    ],
    takes=(
        (PER_RANK, options.DIM.but(default=3), options.RADIUS, options.FIELDS, options.DTYPE),
        options.MACHINE.but("The machine on whose node placements are compared.", default="summit"),
        (options.REPEAT.but(default=7), options.RANKS),
        options.EXECUTION.only(
            *(options.THREADS, options.DEVICE, options.SUBDOMAINS_PER_RANK),
            *(options.RANKS_PER_NODE, options.MAILBOXES),
        ),
        options.REPORT,
    ),
)
HIDDEN = (
    "Times whole steps, steps whose patches wait for all messages, steps without messages, and steps without "
    "kernels, all in turn, by each transfer method between ranks. What is hidden is "
    "1 - (step - compute alone) / exchange alone."
)
HIDDEN_BY = (
    options.REPEAT.but(default=15),
    options.RANKS,
    options.EXECUTION.without(options.METHODS, options.OVERLAP, *options.TO_COMPARE),
    options.JSON,
)
OVERLAP = Commands(
    name="overlap",
    help="How much of the exchange of halos is hidden behind computing, from runs of each alone.",
    examples=[
        "halocline study overlap heat --n 128 --ranks 2",
        "halocline study overlap acoustic.py --ranks 2",
    ],
    cls=CaseByName,
    commands=[
        Command(
            name="heat",
            does="halocline.cli.overlap:heat",
            help=f"Explicit steps of heat in a periodic box, order 2 R in space.\n\n{HIDDEN}",
            examples=[
                "halocline study overlap heat --n 128 --ranks 2",
                "halocline study overlap heat --n 96 --ranks 2 --threads 4 --radius 3 --fields 4 --dtype "
                "float32",
            ],
            takes=(
                (PER_RANK, options.DIM.but(default=3), options.RADIUS.but(default=1)),
                (options.FIELDS.but(default=1), options.DTYPE.but(default="float64")),
                HIDDEN_BY,
            ),
        ),
        Command(
            name="CASE",
            does="halocline.cli.overlap:case",
            help=f"Steps or iterations of a case of `halocline cases`, or of a Python file.\n\n{HIDDEN}",
            examples=[
                "halocline study overlap poisson --n 1024 --ranks 2",
                "halocline study overlap mhd-benchmark --n 64 --ranks 2",
            ],
            takes=(options.CASE, options.OF_CASE, options.METHOD_OF_CASE, HIDDEN_BY),
        ),
    ],
)
PAPER = Command(
    name="paper",
    does="halocline.cli.study:paper",
    help="A table or figure of a paper: what is published, what the model predicts for its machine, and the "
    "same measured here, reduced to what this machine has. `halocline study papers` lists them.",
    examples=["halocline study paper umbc-4.1 --n 1024 --nodes 1,2", "halocline study paper astaroth-fig12"],
    takes=(
        Option(None, "name NAME", "Of the table or figure: umbc-4.1.", TEXT, REQUIRED),
        options.problem("--n N,N,...", "Sizes that are predicted; by default one or a few of the paper's."),
        options.where("--nodes K,K,...", "Nodes that are predicted; by default all of the paper's."),
        options.MACHINE.but("Another machine to predict for.", default=None),
        Option("Where it runs", "--here/--not-here", "Whether the study is measured here too.", default=True),
        options.RANKS.but("Ranks that are measured here.", form="--ranks R,R,...", kind=TEXT),
        options.THREADS.but("Threads that are measured here.", form="--threads T,T,...", kind=TEXT),
        RESULTS,
    ),
)
REPORT = Command(
    name="report",
    does="halocline.cli.study:report",
    help="Join measurement files, which --json of studies has left on any machines, with any MPI and at any "
    "commit, into one set of tables and one page.",
    examples=["halocline study report here.json cluster/*.json --html report.html"],
    takes=(Option(None, "files FILES...", "Measurement files.", TEXTS, REQUIRED), RESULTS),
)
PAPERS = Command(
    name="papers",
    does="halocline.cli.study:list_papers",
    help="List the tables and figures of papers.",
    examples=["halocline study papers"],
    takes=(),
)


BESIDE = {"ablation": EXCHANGE}  # commands that follow the word of a study, beside cases


def commands() -> list[Command | Commands]:
    """The commands of all studies, and those that are none of a declared study."""
    return [*map(_of_study, studies().values()), OVERLAP, PAPER, PAPERS, REPORT]


def _of_study(study: Study) -> Command | Commands:
    if study.name not in BESIDE:
        return command_of(study, study.name)
    beside = BESIDE[study.name]
    return Commands(
        name=study.name,
        help=study.about,
        examples=(*study.examples, *beside.examples[:1]),
        commands=[beside, command_of(study, "CASE", FromLine("problem", "info_name"))],
        cls=CaseByName,
    )
