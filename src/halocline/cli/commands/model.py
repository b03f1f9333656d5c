"""`halocline model`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from halocline.cli.commands import POISSON, CaseByName, examples, group
from halocline.cli.options import (
    RESULTS,
    Cells,
    CellsOfCase,
    Decomposition,
    Dim,
    DimOfCase,
    Json,
    MachineName,
    Measure,
    Method,
    Methods,
    ModelOverlap,
    ModelTrace,
    N,
    Nodes,
    Order,
    OrderOfCase,
    PerNode,
    Placement,
    Scaling,
    ScalingPicture,
    Scheme,
    SchemeOfCase,
    Settings,
    Timeline,
    TracedRanks,
    place,
)

model = group(
    "Predict how a case, or your own file, scales on a machine that you do not have: every rank's plan, "
    "executed by a model.",
    "halocline model poisson --n 8192 --machine summit --nodes 1,2,4,8,16",
    "halocline model heat --n 2048 --machine lumi-g --nodes 1,8,64",
    "halocline model acoustic.py --machine summit --nodes 1,4,16",
    cls=CaseByName,
)


PREDICTED = (
    "executed by a model of links and memory, beside the closed formula max(work, traffic). No rank is "
    "started."
)
HEAT = "Heat in a periodic interval, square or cube, dT/dt = kappa ΔT."
WAVE = "Sound in a closed room: pressure in the cells, velocity on the faces between them, leapfrog in time."


@model.command(
    "poisson",
    epilog=examples(
        "halocline model poisson --n 8192 --machine summit --nodes 1,2,4,8,16",
        "halocline model poisson --n 4096 --machine stampede2-skx --ranks-per-node 48 --nodes 1,2,4,8",
        "halocline model poisson --n 16384 --machine mine.toml --nodes 1,64 --scaling weak --json weak.json",
    ),
    help=f"{POISSON}\n\nThe seconds of an iteration, {PREDICTED}",
)
def model_poisson(
    n: N,
    machine: MachineName,
    nodes: Nodes = "1",
    dim: Dim = 2,
    method: Method = "cg-fused",
    ranks_per_node: PerNode = None,
    scaling: Scaling = "strong",
    decomposition: Decomposition = "optimal",
    placement: Placement = "aware",
    methods: Methods = None,
    overlap: ModelOverlap = "on",
    json: Json = None,
    picture: ScalingPicture = None,
    trace: ModelTrace = None,
    traced: TracedRanks = None,
    timeline: Timeline = None,
    measure: Measure = None,
) -> None:
    from halocline.cli.model import poisson

    poisson(
        n=n, dim=dim, method=method,
        machine=machine, nodes=nodes, ranks_per_node=ranks_per_node, scaling=scaling,
        decomposition=decomposition, placement=placement, methods=methods, overlap=overlap, json=json,
        picture=picture, trace=trace, traced=traced, timeline=timeline, measure=measure,
    )  # fmt: skip


@model.command(
    "heat",
    epilog=examples(
        "halocline model heat --n 2048 --machine lumi-g --nodes 1,8,64",
        "halocline model heat --n 256 --machine host --ranks-per-node 2 --trace heat.json",
    ),
    help=f"{HEAT}\n\nThe seconds of a step, {PREDICTED}",
)
def model_heat(
    n: Cells,
    machine: MachineName,
    nodes: Nodes = "1",
    dim: Dim = 3,
    scheme: Scheme = "rk3",
    order: Order = 6,
    ranks_per_node: PerNode = None,
    scaling: Scaling = "strong",
    decomposition: Decomposition = "optimal",
    placement: Placement = "aware",
    methods: Methods = None,
    overlap: ModelOverlap = "on",
    json: Json = None,
    picture: ScalingPicture = None,
    trace: ModelTrace = None,
    traced: TracedRanks = None,
    timeline: Timeline = None,
    measure: Measure = None,
) -> None:
    from halocline.cli.model import heat

    heat(
        n=n, dim=dim, scheme=scheme, order=order,
        machine=machine, nodes=nodes, ranks_per_node=ranks_per_node, scaling=scaling,
        decomposition=decomposition, placement=placement, methods=methods, overlap=overlap, json=json,
        picture=picture, trace=trace, traced=traced, timeline=timeline, measure=measure,
    )  # fmt: skip


@model.command(
    "wave",
    epilog=examples(
        "halocline model wave --n 32768 --machine puhti --nodes 1,4,16",
        "halocline model wave --n 1024 --machine host --ranks-per-node 2 --timeline wave.png",
    ),
    help=f"{WAVE}\n\nThe seconds of a step, {PREDICTED}",
)
def model_wave(
    n: Cells,
    machine: MachineName,
    nodes: Nodes = "1",
    dim: Dim = 2,
    ranks_per_node: PerNode = None,
    scaling: Scaling = "strong",
    decomposition: Decomposition = "optimal",
    placement: Placement = "aware",
    methods: Methods = None,
    overlap: ModelOverlap = "on",
    json: Json = None,
    picture: ScalingPicture = None,
    trace: ModelTrace = None,
    traced: TracedRanks = None,
    timeline: Timeline = None,
    measure: Measure = None,
) -> None:
    from halocline.cli.model import wave

    wave(
        n=n, dim=dim,
        machine=machine, nodes=nodes, ranks_per_node=ranks_per_node, scaling=scaling,
        decomposition=decomposition, placement=placement, methods=methods, overlap=overlap, json=json,
        picture=picture, trace=trace, traced=traced, timeline=timeline, measure=measure,
    )  # fmt: skip


@model.command(
    "CASE",
    epilog=examples(
        "halocline model mhd-benchmark --n 512 --machine puhti --nodes 1,4,16",
        "halocline model acoustic.py --n 8192 --machine summit --nodes 1,4,16",
    ),
    help="Steps of a case of `halocline cases`, or of the first problem that a Python file makes.\n\nThe "
    f"seconds of a step or iteration, {PREDICTED}",
)
def model_case(
    context: typer.Context,
    machine: MachineName,
    n: CellsOfCase = None,
    dim: DimOfCase = None,
    settings: Settings = None,
    order: OrderOfCase = None,
    scheme: SchemeOfCase = None,
    nodes: Nodes = "1",
    ranks_per_node: PerNode = None,
    scaling: Scaling = "strong",
    decomposition: Decomposition = "optimal",
    placement: Placement = "aware",
    methods: Methods = None,
    overlap: ModelOverlap = "on",
    json: Json = None,
    picture: ScalingPicture = None,
    trace: ModelTrace = None,
    traced: TracedRanks = None,
    timeline: Timeline = None,
) -> None:
    from halocline.cli.model import case

    case(
        str(context.info_name), n=n, dim=dim, settings=settings or [], order=order, scheme=scheme,
        machine=machine, nodes=nodes, ranks_per_node=ranks_per_node, scaling=scaling,
        decomposition=decomposition, placement=placement, methods=methods, overlap=overlap, json=json,
        picture=picture, trace=trace, traced=traced, timeline=timeline,
    )  # fmt: skip


@model.command(
    "calibrate",
    epilog=examples(
        "halocline model calibrate",
        "halocline model calibrate --file node.toml",
        "halocline model heat --n 256 --machine host --ranks-per-node 2 --measure 160",
    ),
    help="Measure this host for --machine host, some 15 seconds: the pace of sweeps by bytes, operations and "
    "sums, in cache and beyond it, with one rank and with one for each core; packing, and what messages, "
    "copies between ranks and reductions take. Leave it alone meanwhile.",
)
def model_calibrate(
    file: Annotated[
        Path | None,
        place(
            RESULTS,
            "--file",
            metavar="FILE",
            help="Where the machine file goes; by default into the cache folder, for --machine host.",
        ),
    ] = None,
) -> None:
    from halocline.cli.model import calibrate

    calibrate(file)


@model.command(
    "figures",
    epilog=examples("halocline model figures --folder figures"),
    help="Draw the figures of the papers that the model reproduces: halo sizes of cuts along one, two and "
    "three axes and theoretical strong scaling (Astaroth), and the ranks of a node (the cavity code's "
    "question, asked of Stampede2).",
)
def model_figures(
    folder: Annotated[
        Path,
        place(RESULTS, "--folder", metavar="FOLDER", help="Where the pictures go."),
    ] = Path("figures"),
    json: Json = None,
) -> None:
    from halocline.cli.model import figures

    figures(folder, json)
