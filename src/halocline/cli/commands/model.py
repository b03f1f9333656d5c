"""`halocline model`."""

from __future__ import annotations

from halocline.cli import options
from halocline.cli.commands import CaseByName
from halocline.cli.declare import PLACE, Command, Commands, whole
from halocline.ranges import POINTS

NODES = options.where("--nodes K,K,...", "Nodes; one prediction for each.", default="1")
MEASURE = options.where(
    "--measure N",
    "Run the case with N on every rank of this host by itself, and take the pace of its sweeps from that, "
    "not from their bytes and operations; with --machine host.",
    whole(POINTS),
)
PREDICTION = (
    options.RANKS_PER_NODE.but("By default one for each device of a node; more of them share these."),
    options.where(
        "--scaling strong|weak",
        "[bold]strong[/]: the same grid on all. [bold]weak[/]: N belongs to the fewest nodes; the axes "
        "double in turn with them.",
        default="strong",
    ),
    options.DECOMPOSITION,
    options.where(
        "--placement aware|trivial|random",
        "Which device of a node takes which part of the grid: [bold]aware[/] of the links between them, in "
        "order, or as drawn.",
        default="aware",
    ),
    options.METHODS,
    options.OVERLAP.but(
        "Whether patches that need no message run before messages have come; [bold]auto[/]: whichever is "
        "faster.",
        default="on",
    ),
    options.JSON,
    options.results("--picture FILE", "Draw seconds and efficiency over nodes (PNG, SVG or PDF).", PLACE),
    options.TRACE.but(
        "Write what ranks and messages would do, for Perfetto or chrome://tracing, as runs do."
    ),
    options.results(
        "--traced R,R,...",
        "The ranks that --trace and --timeline show, on the last number of nodes; the first four by default.",
    ),
    options.results("--timeline FILE", "Draw what these ranks and their messages would do.", PLACE),
)
PREDICTED = (
    "executed by a model of links and memory, beside the closed formula max(work, traffic). No rank is "
    "started."
)

MODEL = Commands(
    name="model",
    help="Predict how a case, or your own file, scales on a machine that you do not have: every rank's plan, "
    "executed by a model.",
    examples=[
        "halocline model poisson --n 8192 --machine summit --nodes 1,2,4,8,16",
        "halocline model heat --n 2048 --machine lumi-g --nodes 1,8,64",
        "halocline model acoustic.py --machine summit --nodes 1,4,16",
    ],
    cls=CaseByName,
    commands=[
        Command(
            name="CASE",
            does="halocline.cli.model:case",
            help="Steps or iterations of a case of `halocline cases`, or of the first problem that a Python "
            "file makes."
            f"\n\nThe seconds of a step or iteration, {PREDICTED}",
            examples=[
                "halocline model poisson --n 4096 --machine stampede2-skx --ranks-per-node 48 --nodes 1,2,4",
                "halocline model poisson --n 16384 --machine mine.toml --nodes 1,64 --scaling weak",
                "halocline model heat --n 256 --machine host --ranks-per-node 2 --trace heat.json",
                "halocline model wave --n 1024 --machine host --ranks-per-node 2 --timeline wave.png",
                "halocline model mhd-benchmark --n 512 --machine puhti --nodes 1,4,16",
                "halocline model acoustic.py --n 8192 --machine summit --nodes 1,4,16",
            ],
            takes=(
                options.CASE,
                options.MACHINE,
                options.OF_CASE,
                options.METHOD_OF_CASE,
                NODES,
                PREDICTION,
                MEASURE,
            ),
        ),
        Command(
            name="calibrate",
            does="halocline.cli.model:calibrate",
            help="Measure this host for --machine host, some 15 seconds: the pace of sweeps by bytes, "
            "operations and sums, in cache and beyond it, with one rank and with one for each core; packing, "
            "and what messages, copies between ranks and reductions take. Leave it alone meanwhile.",
            examples=[
                "halocline model calibrate",
                "halocline model calibrate --file node.toml",
                "halocline model heat --n 256 --machine host --ranks-per-node 2 --measure 160",
            ],
            takes=(
                options.results(
                    "--file FILE",
                    "Where the machine file goes; by default into the cache folder, for --machine host.",
                    PLACE,
                ),
            ),
        ),
    ],
)
