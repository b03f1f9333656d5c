"""The options that several commands take, each in one place; those of one command stand at the command."""

from __future__ import annotations

from functools import partial

from halocline import ranges
from halocline.cli.declare import (
    PLACE,
    PLACE_OR_DASH,
    POSITIVE,
    REQUIRED,
    TEXTS,
    TIME,
    FromLine,
    Group,
    Option,
    whole,
)
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.transfer import METHODS as TRANSFERS

# the panels of help texts; each makes an option that stands in it
problem = partial(Option, "The problem")
how = partial(Option, "How it is solved")
where = partial(Option, "Where it runs")
keeping = partial(Option, "Output and checkpoints")
results = partial(Option, "Results")

# -- the problem ---------------------------------------------------------------------------------------------

CASE = FromLine("name", "info_name")  # the word that stands where a command is expected

N = problem("--n N", "Interior points along each axis.", whole(ranges.POINTS), REQUIRED)
CELLS = N.but("Cells along each axis.")
CELLS_OF_CASE = problem(
    "--n N[,M[,K]]",
    "Cells along the first axis, the others in the case's own proportion; or along each axis.",
)
DIM = problem("--dim 1|2|3", "Axes of the problem.", whole(ranges.AXES), 2)
DIM_OF_CASE = DIM.but(
    "Axes, where a case can have several numbers of them; see `halocline cases NAME`.", default=None
)
SETTINGS = problem(
    "--set NAME=VALUE",
    "A parameter that is not as by default; may be given several times.",
    TEXTS,
    keyword="settings",
)
STEPS = problem(
    "--steps S",
    "Steps at most. Without --steps and --until the case decides where it ends.",
    whole(ranges.STEPS),
)
UNTIL = problem("--until T", "The time to reach; the last step is shortened to end there.", TIME)
WARM_UP = problem("--warm-up K", "The first K steps are not timed.", whole(ranges.STEPS), 0)
RADIUS = problem("--radius R", "Layers of halo.", whole(ranges.RADIUS), 3)
FIELDS = problem("--fields F", "Fields.", whole(ranges.FIELDS), 4)
DTYPE = problem("--dtype float32|float64", "Their precision.", default="float32")

# -- how it is solved ----------------------------------------------------------------------------------------

_METHODS = (
    "[bold]cg[/]: conjugate gradients as in UMBC HPCF-2018-10, 11 streams of memory an iteration. "
    "[bold]cg-fused[/]: the same in two sweeps and 8 streams"
)
METHOD = how("--method cg|cg-fused", f"{_METHODS}.", default="cg-fused")
METHOD_OR_RESUMED = METHOD.but(
    f"{_METHODS} (default: cg-fused, or with --resume that of the checkpoint).", default=None
)
METHOD_OF_CASE = METHOD.but(f"{_METHODS}. Of a linear problem.", default=None)
RTOL = how(
    "--rtol X", "Stop where the residual norm is at most X times that of the right-hand side.", POSITIVE, 1e-6
)
MAX_ITERATIONS = how(
    "--max-iterations K",
    "Stop after K iterations at the latest: a result too, not converged.",
    whole(ranges.STEPS),
)
SCHEME = how("--scheme euler|rk2|rk3|rk4|ssprk3", "How time is integrated.", default="rk3")
SCHEME_OF_CASE = SCHEME.but(
    "How time is integrated, rk3 by default. Some cases have a scheme of their own.", default=None
)
ORDER = how("--order 2|4|6|...", "Order of accuracy of differences in space.", whole(ranges.ORDER), 6)
ORDER_OF_CASE = ORDER.but(
    "Order of accuracy of differences in space, 6 by default. Cases with a scheme of their own take none.",
    default=None,
)
OF_CASE = (CELLS_OF_CASE, DIM_OF_CASE, SETTINGS, ORDER_OF_CASE, SCHEME_OF_CASE)

# -- where it runs -------------------------------------------------------------------------------------------

RANKS = where(
    "--ranks R",
    "Processes; more than one are started with mpiexec. Under mpiexec it may be left out.",
    whole(ranges.RANKS),
)
REPEAT = where("--repeat K", "Runs of each measurement; the median counts.", whole(ranges.REPEATS), 1)
THREADS = where(
    "--threads T",
    "Threads of each rank; by default OMP_NUM_THREADS, else the cores shared out among the ranks. With "
    "devices one, which looks after these.",
    whole(ranges.THREADS),
)
DEVICE = where(
    "--device cpu|cuda[:i,j]|opencl[:i,j]",
    "What computes: the processor, or devices with memory of their own, all that there are or those whose "
    "numbers follow, as in cuda:0,1; a subdomain on each, shared out among the ranks of a node. By default "
    "HALOCLINE_DEVICE, else cpu.",
)
DECOMPOSITION = where(
    "--decomposition HOW",
    "How the grid is cut over the ranks: optimal, bisection, morton, row, 1d, 1d-x, 1d-y, 1d-z, 2d, 3d, or "
    "the parts along each axis, such as 4x2.",
    default="optimal",
)
PATCH = where(
    "--patch B[,B[,B]]|tune|caches",
    "Edges in cells of the patches that threads work on. [bold]tune[/]: measure some before the first run, "
    "and remember the fastest for later ones; [bold]caches[/]: to suit the caches. By default what is "
    "remembered, else to suit the caches.",
)
SUBDOMAINS_PER_RANK = where(
    "--subdomains-per-rank K",
    "Subdomains of each rank; with devices, of each of them.",
    whole(ranges.SUBDOMAINS),
    1,
)
RANKS_PER_NODE = where(
    "--ranks-per-node R",
    "Take every R ranks for a node, whatever they run on; by default nodes are what MPI says.",
    whole(ranges.RANKS_PER_NODE),
)
METHODS = where(
    "--methods M,M,...",
    "The transfer methods that may be taken between subdomains, the first that applies: "
    f"{', '.join(TRANSFERS)}; all but rma by default. One process alone copies: self and peer.",
)
MAILBOXES = where("--mailboxes M", "Mailboxes for each message of method rma.", whole(ranges.MAILBOXES), 2)
SCHEDULE = where(
    "--schedule guided|static|dynamic",
    "Which thread of a rank runs which patch: [bold]static[/], the one that it was given to; "
    "[bold]dynamic[/], whichever comes first; [bold]guided[/], the one that it was given to, or one that has "
    "run all of its own.",
    default="guided",
)
KERNELS = where(
    "--kernels auto|tune|direct|queue|planes",
    "How threads of a device read the cells around theirs: [bold]direct[/], from memory; [bold]queue[/], "
    "those along the slowest axis from registers; [bold]planes[/], those beside them from memory that a "
    "group shares; [bold]tune[/]: measured before the first run, and remembered; [bold]auto[/]: what is "
    "remembered, else queue.",
    default="auto",
)
OVERLAP = where(
    "--overlap auto|on|off",
    "Whether patches that need no message run before all messages have come; [bold]auto[/]: as the first "
    "passes show, some of which run so and some not.",
    default="auto",
)
HALO = where(
    "--halo read|uniform",
    "Which halos are exchanged: [bold]read[/], only what is read; [bold]uniform[/], to compare, those of all "
    "fields that are exchanged at all, as wide as the widest, with all edges and corners.",
    default="read",
)
PACKING = where(
    "--packing all|last|none",
    "Which messages by MPI are packed: all; [bold]last[/], those along the last axis; [bold]none[/], to "
    "compare. Others MPI takes out of the fields, and devices copy row by row.",
    default="all",
)
COMMUNICATION = where(
    "--communication " + "|".join(COMMUNICATIONS),
    "A way of communicating, to compare; all messages go by MPI: "
    + "; ".join(f"[bold]{name}[/], {each.about}" for name, each in COMMUNICATIONS.items())
    + ".",
)
GPUDIRECT = where(
    "--gpudirect", "With --communication on devices: MPI takes messages out of their memory, not the host's."
)
TO_COMPARE = (HALO, PACKING, COMMUNICATION, GPUDIRECT)
EXECUTION = Group(
    "execution",
    (
        *(THREADS, DEVICE, DECOMPOSITION, PATCH, SUBDOMAINS_PER_RANK, RANKS_PER_NODE, METHODS, MAILBOXES),
        *(SCHEDULE, KERNELS, OVERLAP, *TO_COMPARE),
    ),
    means="halocline.cli.texts:execution",
)
MACHINE = where(
    "--machine NAME|FILE",
    "[bold]host[/] is this one; blue-waters-xe, dgx-h100, dgx-h200, lumi-g, puhti, stampede2-skx, summit, or "
    "a TOML file.",
    default=REQUIRED,
)

# -- output and checkpoints ----------------------------------------------------------------------------------

OVERWRITE = keeping("--overwrite", "Remove what another run left under the same name.")
IO_RANKS = keeping(
    "--io-ranks K",
    "I/O ranks: they run beside those that compute, and write output and checkpoints.",
    whole(ranges.IO_RANKS),
    0,
)
KEPT = Group(
    "kept",
    (
        keeping(
            "--output STORE.zarr",
            "Write all fields into that store as the run goes on; xarray.open_zarr opens it.",
            PLACE,
        ),
        keeping(
            "--output-every 'K steps'|T|'30 min'",
            "How often, as for --checkpoint-every; by default at the start and at the end.",
        ),
        keeping(
            "--checkpoint FOLDER",
            "Leave checkpoints there: as often as --checkpoint-every says, at the end, and where the run is "
            "asked to stop: by SIGTERM, SIGUSR1 or Ctrl-C, by a file named stop in FOLDER, or shortly before "
            "its time is up.",
            PLACE,
        ),
        keeping(
            "--checkpoint-every 'K steps'|T|'30 min'",
            "How often: a number of steps or iterations ('50 steps'), simulated time (0.5), or wall-clock "
            "time ('30 min'; s, min, h, d).",
        ),
        keeping("--keep K", "How many remain, the newest ones; 2 by default.", whole(ranges.CHECKPOINTS)),
        keeping(
            "--resume FOLDER",
            "Go on from the newest checkpoint there, or from the one with that name, on any number of ranks, "
            "with the bits of a run that never stopped. Its end counts from the very start.",
            PLACE,
        ),
        OVERWRITE,
        keeping(
            "--time-limit '11 h 50 min'",
            "How long the run may take; shortly before it leaves a checkpoint and ends with status 75. By "
            "default the end of the job, where Slurm has one.",
        ),
        keeping(
            "--io-threads K",
            "Threads of each rank that compress and write output and checkpoints while it computes; 1 by "
            "default.",
            whole(ranges.IO_THREADS),
        ),
        IO_RANKS,
    ),
    means="halocline.cli.keeping:kept",
)

# -- results -------------------------------------------------------------------------------------------------

JSON = results("--json FILE", "Write the results as JSON; - prints them, and them alone.", PLACE_OR_DASH)
TRACE = results(
    "--trace FILE", "Write what each thread and message did, for Perfetto or chrome://tracing.", PLACE
)
CSV = results("--csv FILE", "Write one line per run.", PLACE)
HTML = results("--html FILE", "Write a page with tables and plots, complete in itself.", PLACE)
SOLUTION = results(
    "--pictures FOLDER",
    "Draw solution.png and error.png in that folder, and timeline.png with --trace.",
    PLACE,
)
CHECK = results(
    "--check", "Compare the result with what the case must satisfy, and exit with status 1 where it does not."
)
REPORT = (JSON, CSV, HTML)
