"""Options that several commands share, and what their text means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from halocline.errors import InputError
from halocline.plan.transfer import METHODS
from halocline.run.tuning import BY_CACHES, TUNE

PROBLEM, HOW, WHERE, RESULTS = "The problem", "How it is solved", "Where it runs", "Results"


def _option(panel: str, *names: str, metavar: str, help: str) -> object:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


N = Annotated[int, _option(PROBLEM, "--n", metavar="N", help="Interior points along each axis.")]
Cells = Annotated[int, _option(PROBLEM, "--n", metavar="N", help="Cells along each axis.")]
Ns = Annotated[
    str, _option(PROBLEM, "--n", metavar="N,N,...", help="Interior points along each axis, for each run.")
]
CellsOfCase = Annotated[
    str | None,
    _option(
        PROBLEM,
        "--n",
        metavar="N[,M[,K]]",
        help="Cells along the first axis, the others in the case's own proportion; or along each axis.",
    ),
]
Steps = Annotated[
    int | None,
    _option(PROBLEM, "--steps", metavar="S", help="Steps at most; those of the case without --until."),
]
Until = Annotated[
    float | None,
    _option(
        PROBLEM, "--until", metavar="T", help="The time to reach; the last step is shortened to end there."
    ),
]
CaseNs = Annotated[
    str,
    _option(
        PROBLEM,
        "--n",
        metavar="N,N,...",
        help="Cells along the first axis, the others in the case's own proportion, for each run.",
    ),
]
StepsOfStudy = Annotated[
    int | None,
    _option(PROBLEM, "--steps", metavar="S", help="Steps of each run; by default those of the case."),
]
WarmUpOfStudy = Annotated[
    int | None,
    _option(
        PROBLEM,
        "--warm-up",
        metavar="K",
        help="Of the steps, so many at the start are not timed; by default two, where there are more.",
    ),
]
Orders = Annotated[
    str | None,
    _option(
        HOW,
        "--orders",
        metavar="2,4,6,8",
        help="The same with differences of these orders too: a table and a picture, a line for each.",
    ),
]
Parts = Annotated[
    bool,
    typer.Option(
        "--parts",
        help="Time computing alone, the exchange alone, and the exchange with all edges and corners too.",
        rich_help_panel=RESULTS,
    ),
]
WarmUp = Annotated[
    int,
    _option(PROBLEM, "--warm-up", metavar="K", help="Of the steps, so many at the start are not timed."),
]
Only = Annotated[
    str | None,
    _option(
        RESULTS,
        "--only",
        metavar="compute|exchange",
        help="Time the steps without messages, or without kernels. The fields then hold nonsense: no "
        "diagnostics, checksum, pictures or series.",
    ),
]
Settings = Annotated[
    list[str] | None,
    _option(
        PROBLEM,
        "--set",
        metavar="NAME=NUMBER",
        help="A parameter that is not as by default; may be given several times.",
    ),
]
Every = Annotated[
    int | None,
    _option(
        RESULTS,
        "--every",
        metavar="K",
        help="Diagnostics each K steps, as a table, and as a series in --json and --csv.",
    ),
]
SeriesCsv = Annotated[
    Path | None,
    _option(
        RESULTS, "--csv", metavar="FILE", help="Write the series of diagnostics, one line for each time."
    ),
]
FieldPictures = Annotated[
    Path | None,
    _option(RESULTS, "--pictures", metavar="FOLDER", help="Draw each field at the end in that folder."),
]
Dim = Annotated[int, _option(PROBLEM, "--dim", metavar="1|2|3", help="Axes of the problem.")]
Radius = Annotated[int, _option(PROBLEM, "--radius", metavar="R", help="Layers of halo.")]
FieldCount = Annotated[int, _option(PROBLEM, "--fields", metavar="F", help="Fields.")]
Dtype = Annotated[str, _option(PROBLEM, "--dtype", metavar="float32|float64", help="Their precision.")]
Method = Annotated[
    str,
    _option(
        HOW,
        "--method",
        metavar="cg|cg-fused",
        help="[bold]cg[/]: conjugate gradients as in UMBC HPCF-2018-10, 11 streams of memory an iteration. "
        "[bold]cg-fused[/]: the same in two sweeps and 8 streams.",
    ),
]
Scheme = Annotated[
    str, _option(HOW, "--scheme", metavar="euler|rk2|rk3|rk4|ssprk3", help="How time is integrated.")
]
Order = Annotated[
    int, _option(HOW, "--order", metavar="2|4|6|...", help="Order of accuracy of differences in space.")
]
Rtol = Annotated[
    float,
    _option(HOW, "--rtol", metavar="X", help="Stop where the residual norm is at most X times the first."),
]
MaxIterations = Annotated[
    int | None,
    _option(
        HOW,
        "--max-iterations",
        metavar="K",
        help="Stop after K iterations at the latest: a result too, not converged.",
    ),
]
Decomposition = Annotated[
    str,
    _option(
        WHERE,
        "--decomposition",
        metavar="HOW",
        help="How the grid is cut over the ranks: optimal, bisection, morton, row, 1d, 1d-x, 1d-y, 1d-z, 2d, "
        "3d, or the parts along each axis, such as 4x2.",
    ),
]
Patch = Annotated[
    str | None,
    _option(
        WHERE,
        "--patch",
        metavar="B[,B[,B]]|tune|caches",
        help="Edges in cells of the patches that threads work on. [bold]tune[/]: measure some before the "
        "first run, and remember the fastest for later ones; [bold]caches[/]: to suit the caches. By default "
        "what is remembered, else to suit the caches.",
    ),
]
Ranks = Annotated[
    int | None,
    _option(
        WHERE,
        "--ranks",
        metavar="R",
        help="Processes; more than one are started with mpiexec. Under mpiexec it may be left out.",
    ),
]
Threads = Annotated[
    int | None,
    _option(
        WHERE,
        "--threads",
        metavar="T",
        help="Threads of each rank; by default OMP_NUM_THREADS, else the cores shared out among the ranks. "
        "With devices one, which looks after these.",
    ),
]
Device = Annotated[
    str | None,
    _option(
        WHERE,
        "--device",
        metavar="cpu|cuda[:i,j]|opencl[:i,j]",
        help="What computes: the processor, or devices with memory of their own, all that there are or those "
        "whose numbers follow, as in cuda:0,1; a subdomain on each, shared out among the ranks of a node. By "
        "default HALOCLINE_DEVICE, else cpu.",
    ),
]
SubdomainsPerRank = Annotated[
    int,
    _option(
        WHERE,
        "--subdomains-per-rank",
        metavar="K",
        help="Subdomains of each rank; with devices, of each of them.",
    ),
]
RanksPerNode = Annotated[
    int | None,
    _option(
        WHERE,
        "--ranks-per-node",
        metavar="R",
        help="Take every R ranks for a node, whatever they run on; by default nodes are what MPI says.",
    ),
]
Methods = Annotated[
    str | None,
    _option(
        WHERE,
        "--methods",
        metavar="M,M,...",
        help="The transfer methods that may be taken between subdomains, the first that applies: "
        f"{', '.join(METHODS)}; all but rma by default. One process alone copies: self and peer.",
    ),
]
MailboxesOfMessage = Annotated[
    int,
    _option(WHERE, "--mailboxes", metavar="M", help="Mailboxes for each message of method rma."),
]
Schedule = Annotated[
    str,
    _option(
        WHERE,
        "--schedule",
        metavar="guided|static|dynamic",
        help="Which thread of a rank runs which patch: [bold]static[/], the one that it was given to; "
        "[bold]dynamic[/], whichever comes first; [bold]guided[/], the one that it was given to, or one that "
        "has run all of its own.",
    ),
]
Kernels = Annotated[
    str,
    _option(
        WHERE,
        "--kernels",
        metavar="auto|tune|direct|queue|planes",
        help="How threads of a device read the cells around theirs: [bold]direct[/], from memory; "
        "[bold]queue[/], those along the slowest axis from registers; [bold]planes[/], those beside them "
        "from memory that a group shares; [bold]tune[/]: measured before the first run, and remembered; "
        "[bold]auto[/]: what is remembered, else queue.",
    ),
]
PlannedKernels = Annotated[
    str,
    _option(
        WHERE,
        "--kernels",
        metavar="auto|direct|queue|planes",
        help="How threads of a device read the cells around theirs, as for solve; [bold]auto[/]: queue.",
    ),
]
PlannedRanks = Annotated[int, _option(WHERE, "--ranks", metavar="R", help="As many ranks are planned for.")]
PlannedRank = Annotated[
    int | None,
    _option(WHERE, "--rank", metavar="K", help="Which of them is explained; by default one in the middle."),
]
PlannedThreads = Annotated[int, _option(WHERE, "--threads", metavar="T", help="Threads of each rank.")]
Code = Annotated[
    bool,
    typer.Option(
        "--code",
        help="Print the generated C++ too, with all the rest as comments.",
        rich_help_panel=RESULTS,
    ),
]
WhoPicture = Annotated[
    Path | None,
    _option(RESULTS, "--picture", metavar="FILE", help="Draw who sends how much to whom, and how."),
]
Overlap = Annotated[
    str,
    _option(
        WHERE,
        "--overlap",
        metavar="auto|on|off",
        help="Whether patches that need no message run before all messages have come; [bold]auto[/]: as the "
        "first passes show, some of which run so and some not.",
    ),
]
ModelOverlap = Annotated[
    str,
    _option(
        WHERE,
        "--overlap",
        metavar="auto|on|off",
        help="Whether patches that need no message run before messages have come; [bold]auto[/]: whichever "
        "is faster.",
    ),
]
Halo = Annotated[
    str,
    _option(
        WHERE,
        "--halo",
        metavar="read|uniform",
        help="What travels: [bold]read[/], only what is read; [bold]uniform[/], to compare, all fields that "
        "travel at all, as wide as the widest, with all edges and corners.",
    ),
]
RanksList = Annotated[
    str, _option(WHERE, "--ranks", metavar="R,R,...", help="Processes; one run for each, and for each T.")
]
ThreadsList = Annotated[
    str, _option(WHERE, "--threads", metavar="T,T,...", help="Threads of each rank; one run for each.")
]
Repeat = Annotated[
    int, _option(WHERE, "--repeat", metavar="K", help="Runs of each measurement; the median counts.")
]
MachineName = Annotated[
    str,
    _option(
        WHERE,
        "--machine",
        metavar="NAME|FILE",
        help="[bold]host[/] is this one; blue-waters-xe, dgx-h100, dgx-h200, lumi-g, puhti, stampede2-skx, "
        "summit, or a TOML file.",
    ),
]
Nodes = Annotated[str, _option(WHERE, "--nodes", metavar="K,K,...", help="Nodes; one prediction for each.")]
PerNode = Annotated[
    int | None,
    _option(
        WHERE,
        "--ranks-per-node",
        metavar="R",
        help="By default one for each device of a node; more of them share these.",
    ),
]
Measure = Annotated[
    int | None,
    _option(
        WHERE,
        "--measure",
        metavar="N",
        help="Run the case with N on every rank of this host by itself, and take the pace of its sweeps from "
        "that, not from their bytes and operations; with --machine host.",
    ),
]
Scaling = Annotated[
    str,
    _option(
        WHERE,
        "--scaling",
        metavar="strong|weak",
        help="[bold]strong[/]: the same grid on all. [bold]weak[/]: N belongs to the fewest nodes; the axes "
        "double in turn with them.",
    ),
]
Placement = Annotated[
    str,
    _option(
        WHERE,
        "--placement",
        metavar="aware|trivial|random",
        help="Which device of a node takes which part of the grid: [bold]aware[/] of the links between them, "
        "in order, or as drawn.",
    ),
]
TracedRanks = Annotated[
    str | None,
    _option(
        RESULTS,
        "--traced",
        metavar="R,R,...",
        help="The ranks that --trace and --timeline show, on the last number of nodes; the first four by "
        "default.",
    ),
]
Timeline = Annotated[
    Path | None,
    _option(RESULTS, "--timeline", metavar="FILE", help="Draw what these ranks and their messages would do."),
]
ScalingPicture = Annotated[
    Path | None,
    _option(
        RESULTS,
        "--picture",
        metavar="FILE",
        help="Draw seconds and efficiency over nodes (PNG, SVG or PDF).",
    ),
]
ModelTrace = Annotated[
    Path | None,
    _option(
        RESULTS,
        "--trace",
        metavar="FILE",
        help="Write what ranks and messages would do, for Perfetto or chrome://tracing, as runs do.",
    ),
]
Json = Annotated[
    str | None,
    _option(
        RESULTS, "--json", metavar="FILE", help="Write the results as JSON; - prints them, and them alone."
    ),
]
Trace = Annotated[
    Path | None,
    _option(
        RESULTS,
        "--trace",
        metavar="FILE",
        help="Write what each thread and message did, for Perfetto or chrome://tracing.",
    ),
]
Csv = Annotated[Path | None, _option(RESULTS, "--csv", metavar="FILE", help="Write one line per run.")]
Html = Annotated[
    Path | None,
    _option(
        RESULTS, "--html", metavar="FILE", help="Write a page with tables and plots, complete in itself."
    ),
]
PlotPictures = Annotated[
    Path | None, _option(RESULTS, "--pictures", metavar="FOLDER", help="Draw the plots in that folder.")
]
Pictures = Annotated[
    Path | None,
    _option(RESULTS, "--pictures", metavar="FOLDER", help="Draw solution.png and error.png in that folder."),
]


def whole_numbers(text: str, option: str, least: int = 1) -> list[int]:
    """The numbers of a list such as "256,512"; InputError names the option and what is wrong."""
    numbers = []
    for part in text.split(","):
        if not part.strip().lstrip("-").isdigit():
            raise InputError(f"{option} {text}: {part!r} is no whole number; expected a list such as 1,2,4")
        if int(part) < least:
            raise InputError(f"{option} {text}: {part.strip()} is too small; expected numbers from {least}")
        numbers.append(int(part))
    if len(set(numbers)) != len(numbers):
        raise InputError(f"{option} {text}: a number stands there twice")
    return numbers


def execution(
    *,
    device: str | None = None,
    threads: int | None,
    decomposition: str,
    patch: str | None = None,
    subdomains_per_rank: int,
    ranks_per_node: int | None,
    methods: str | None = None,
    overlap: str = "auto",
    mailboxes: int = 2,
    schedule: str = "guided",
    kernels: str = "auto",
    halo: str = "read",
) -> dict[str, Any]:
    """The options of a run, as `halocline.run.execution.Execution` takes them."""
    return {
        "device": device,
        "threads": threads,
        "decomposition": decomposition,
        "patch": patch_edges(patch),
        "subdomains_per_rank": subdomains_per_rank,
        "ranks_per_node": ranks_per_node,
        "methods": methods,
        "mailboxes": mailboxes,
        "schedule": schedule,
        "kernels": kernels,
        "overlap": overlap_of(overlap),
        "halo": halo,
    }


def overlap_of(text: str) -> bool | str:
    """The choice that --overlap names."""
    if text not in ("auto", "on", "off"):
        raise InputError(f"--overlap {text}: expected auto, on or off")
    return text if text == "auto" else text == "on"


def patch_edges(text: str | None) -> list[int] | int | str | None:
    """The patch that --patch asks for."""
    if text is None or text in (TUNE, BY_CACHES):
        return text
    edges = whole_numbers_of_patch(text)
    return edges[0] if len(edges) == 1 else edges


def whole_numbers_of_patch(text: str) -> list[int]:
    """The edges of a patch; they may be equal."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.lstrip("-").isdigit() for part in parts):
        expected = f"expected whole numbers of cells, such as 64 or 32,256; or {TUNE}, or {BY_CACHES}"
        raise InputError(f"--patch {text}: {expected}")
    return [int(part) for part in parts]
