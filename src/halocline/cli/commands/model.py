"""Predict how a case, or your own file, scales on a machine that you do not have: every rank's plan, executed
by a model.

Examples
--------
halocline model poisson --n 8192 --machine summit --nodes 1,2,4,8,16
halocline model heat --n 2048 --machine lumi-g --nodes 1,8,64
halocline model acoustic.py --machine summit --nodes 1,4,16
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from halocline import ranges
from halocline.cli import options
from halocline.cli.commands import CaseByName, command, group
from halocline.cli.options import place, results, where, whole

app = group(__doc__, CaseByName)


@dataclass
class OfPrediction:
    """Options of a prediction.

    Attributes
    ----------
    nodes
        Nodes; one prediction for each.
    ranks_per_node
        By default one for each device of a node; more of them share these.
    scaling
        [bold]strong[/]: the same grid on all. [bold]weak[/]: N belongs to the fewest nodes; the axes
        double in turn with them.
    placement
        Which device of a node takes which part of the grid: [bold]aware[/] of the links between them, in
        order, or as drawn.
    overlap
        Whether patches that need no message run before messages have come; [bold]auto[/]: whichever is
        faster.
    picture
        Draw seconds and efficiency over nodes (PNG, SVG or PDF).
    trace
        Write what ranks and messages would do, for Perfetto or chrome://tracing, as runs do.
    traced
        The ranks that --trace and --timeline show, on the last number of nodes; the first four by
        default.
    timeline
        Draw what these ranks and their messages would do.
    measure
        Run the case with N on every rank of this host by itself, and take the pace of its sweeps from
        that, not from their bytes and operations; with --machine host.
    """

    nodes: Annotated[str, where("--nodes K,K,...")] = "1"
    ranks_per_node: Annotated[int | None, where("--ranks-per-node R", whole(ranges.RANKS_PER_NODE))] = None
    scaling: Annotated[str, where("--scaling strong|weak")] = "strong"
    decomposition: Annotated[str, options.DECOMPOSITION] = "optimal"
    placement: Annotated[str, where("--placement aware|trivial|random")] = "aware"
    methods: Annotated[str | None, options.METHODS] = None
    overlap: Annotated[str, where("--overlap auto|on|off")] = "on"
    json: Annotated[str | None, options.JSON] = None
    picture: Annotated[Path | None, results("--picture FILE", place("file"))] = None
    trace: Annotated[Path | None, results("--trace FILE", place("file"))] = None
    traced: Annotated[str | None, results("--traced R,R,...")] = None
    timeline: Annotated[Path | None, results("--timeline FILE", place("file"))] = None
    measure: Annotated[int | None, where("--measure N", whole(ranges.POINTS))] = None


@command(app, "CASE", options.OfCase, OfPrediction)
def case(
    context: typer.Context,
    machine: Annotated[str, where("--machine NAME|FILE", help=options.MACHINES)],
    **values: Any,
) -> None:
    """Steps or iterations of a case of `halocline cases`, or of the first problem that a Python file makes.

    The seconds of a step or iteration, executed by a model of links and memory, beside the closed formula
    max(work, traffic). No rank is started.

    Examples
    --------
    halocline model poisson --n 4096 --machine stampede2-skx --ranks-per-node 48 --nodes 1,2,4
    halocline model poisson --n 16384 --machine mine.toml --nodes 1,64 --scaling weak
    halocline model heat --n 256 --machine host --ranks-per-node 2 --trace heat.json
    halocline model wave --n 1024 --machine host --ranks-per-node 2 --timeline wave.png
    halocline model mhd-benchmark --n 512 --machine puhti --nodes 1,4,16
    halocline model acoustic.py --n 8192 --machine summit --nodes 1,4,16
    """
    from halocline.cli import model

    model.case(str(context.info_name), machine=machine, **values)


@command(app, "calibrate")
def calibrate(file: Annotated[Path | None, results("--file FILE", place("file"))] = None) -> None:
    """Measure this host for --machine host, some 15 seconds: the pace of sweeps by bytes, operations and
    sums, in cache and beyond it, with one rank and with one for each core; packing, and what messages, copies
    between ranks and reductions take. Leave it alone meanwhile.

    Parameters
    ----------
    file
        Where the machine file goes; by default into the cache folder, for --machine host.

    Examples
    --------
    halocline model calibrate
    halocline model calibrate --file node.toml
    halocline model heat --n 256 --machine host --ranks-per-node 2 --measure 160
    """
    from halocline.cli import model

    model.calibrate(file)
