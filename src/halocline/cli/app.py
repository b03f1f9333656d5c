"""The commands and their options; what they do is imported when they are called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from halocline.cli.options import (
    CaseNs,
    Cells,
    CellsOfCase,
    Code,
    Csv,
    Decomposition,
    Device,
    Dim,
    Dtype,
    Every,
    FieldCount,
    FieldPictures,
    Halo,
    Html,
    Json,
    Kernels,
    MachineName,
    MailboxesOfMessage,
    MaxIterations,
    Measure,
    Method,
    Methods,
    ModelOverlap,
    ModelTrace,
    N,
    Nodes,
    Ns,
    Only,
    Order,
    Orders,
    Overlap,
    Parts,
    Patch,
    PerNode,
    Pictures,
    Placement,
    PlannedKernels,
    PlannedRank,
    PlannedRanks,
    PlannedThreads,
    PlotPictures,
    Radius,
    Ranks,
    RanksList,
    RanksPerNode,
    Repeat,
    Rtol,
    Scaling,
    ScalingPicture,
    Schedule,
    Scheme,
    SeriesCsv,
    Settings,
    Steps,
    StepsOfStudy,
    SubdomainsPerRank,
    Threads,
    ThreadsList,
    Timeline,
    Trace,
    TracedRanks,
    Until,
    WarmUp,
    WarmUpOfStudy,
    WhoPicture,
    execution,
)
from halocline.errors import InputError


def _examples(*lines: str) -> str:
    """Examples for the end of a help text, one a line."""
    return "\n".join(["[bold]Examples[/]", *(f"  {line}" for line in lines)])


def _group(help: str, *examples: str, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    return typer.Typer(
        cls=cls,
        help=help,
        epilog=_examples(*examples),
        no_args_is_help=True,
        rich_markup_mode="rich",
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


class InOrder(TyperGroup):
    """Lists the commands in the order in which a newcomer meets them."""

    order = ("solve", "study", "explain", "model", "bench", "run", "cases", "doctor")

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=self.order.index)


class CaseByName(TyperGroup):
    """Takes a word that is none of its commands for the name of a case, and hands it to the command CASE."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        return name, self.commands["CASE"], args[1:]


app = _group(
    "Halocline: equations on structured grids, solved on one core or on many ranks with the same bits.",
    "halocline doctor",
    "halocline solve poisson --n 512",
    "halocline solve poisson --n 1024 --ranks 2 --threads 1 --json result.json",
    "halocline explain poisson --n 1024 --ranks 64",
    "halocline study convergence poisson --n 256,512,1024 --html study.html",
    "halocline run heat.py --ranks 4",
    "halocline run orszag-tang-resistive --n 128 --until 1",
    cls=InOrder,
)
solve = _group(
    "Solve a case and tell how it went: iterations, error, time, share of the bandwidth, checksum.",
    "halocline solve poisson --n 512",
)
study = _group(
    "Measure a case many times over, each time as a process of its own, and make tables, plots and a page.",
    "halocline study convergence poisson --n 256,512,1024",
    "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
)
convergence = _group(
    "Finer and finer meshes: error, iterations, time and memory, beside the published numbers.",
    "halocline study convergence poisson --n 256,512,1024",
)
strong = _group(
    "One problem on more and more ranks and threads: time, speed-up, efficiency, hybrid runs.",
    "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
    "halocline study strong mhd-benchmark --n 64,128 --ranks 1,2 --parts",
    cls=CaseByName,
)
weak = _group(
    "As much work for each of more and more ranks.",
    "halocline study weak mhd-benchmark --n 64 --ranks 1,2,4",
    cls=CaseByName,
)
ablation = _group(
    "Take one thing away at a time, and see what it was worth.",
    "halocline study ablation exchange --n 128 --ranks 2",
)
overlap = _group(
    "How much of the exchange of halos is hidden behind computing, from runs of each alone.",
    "halocline study overlap heat --n 128 --ranks 2",
)
explain = _group(
    "Tell what a case would do on many ranks, without starting any.",
    "halocline explain poisson --n 1024 --ranks 64",
    "halocline explain mhd-benchmark --n 128 --ranks 8",
    cls=CaseByName,
)
model = _group(
    "Predict how a case scales on a machine that need not be there: every rank's plan, executed by a model.",
    "halocline model poisson --n 8192 --machine summit --nodes 1,2,4,8,16",
    "halocline model heat --n 2048 --machine lumi-g --nodes 1,8,64",
)
bench = _group(
    "Time one part of a run alone.",
    "halocline bench exchange --n 256 --ranks 2",
)
app.add_typer(solve, name="solve")
app.add_typer(study, name="study")
study.add_typer(convergence, name="convergence")
study.add_typer(strong, name="strong")
study.add_typer(weak, name="weak")
study.add_typer(ablation, name="ablation")
study.add_typer(overlap, name="overlap")
app.add_typer(explain, name="explain")
app.add_typer(model, name="model")
app.add_typer(bench, name="bench")

POISSON = (
    "The elliptic problem -Δu = f with u = 0 on the boundary of the unit interval, square or cube, and "
    "the exact solution u = Π sin²(π x); see UMBC HPCF-2018-10."
)


@solve.command(
    "poisson",
    epilog=_examples(
        "halocline solve poisson --n 512",
        "halocline solve poisson --n 1024 --ranks 4 --decomposition 2x2 --threads 1",
        "halocline solve poisson --n 128 --dim 3 --rtol 1e-8 --pictures out",
        "halocline solve poisson --n 8192 --device cuda:0,1 --ranks 2",
        "mpiexec -n 64 halocline solve poisson --n 16384 --json result.json",
    ),
    help=f"{POISSON}\n\nThe result has the same bits for any number of ranks and threads, any decomposition "
    "and patch: compare the checksum.",
)
def solve_poisson(
    n: N,
    dim: Dim = 2,
    method: Method = "cg-fused",
    rtol: Rtol = 1e-6,
    max_iterations: MaxIterations = None,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    methods: Methods = None,
    mailboxes: MailboxesOfMessage = 2,
    schedule: Schedule = "guided",
    kernels: Kernels = "auto",
    overlap: Overlap = "auto",
    halo: Halo = "read",
    trace: Trace = None,
    json: Json = None,
    pictures: Pictures = None,
) -> None:
    from halocline.cli.solve import poisson

    poisson(
        n=n, dim=dim, method=method, rtol=rtol, max_iterations=max_iterations, ranks=ranks, json=json,
        pictures=pictures,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            mailboxes=mailboxes, schedule=schedule, kernels=kernels, overlap=overlap, halo=halo,
        ) | {"trace": trace},
    )  # fmt: skip


@convergence.command(
    "poisson",
    epilog=_examples(
        "halocline study convergence poisson --n 256,512,1024 --ranks 2",
        "halocline study convergence poisson --n 1024,2048,4096 --html study.html --csv study.csv",
    ),
    help=f"{POISSON}\n\nMeshes of more and more points, in the form of Table 3.1 there.",
)
def convergence_poisson(
    n: Ns = "256,512,1024",
    dim: Dim = 2,
    method: Method = "cg-fused",
    rtol: Rtol = 1e-6,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    repeat: Repeat = 1,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
    pictures: Pictures = None,
) -> None:
    from halocline.cli.studies import convergence
    from halocline.study.measure import Solve

    convergence(
        Solve("poisson", dim, method, rtol, None, decomposition, patch, device),
        n=n, ranks=ranks, threads=threads, repeat=repeat, json=json, csv=csv, html=html, pictures=pictures,
    )  # fmt: skip


@strong.command(
    "poisson",
    epilog=_examples(
        "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
        "OMP_PLACES=cores OMP_PROC_BIND=close halocline study strong poisson --n 4096 --ranks 1,2,4",
    ),
    help=f"{POISSON}\n\nEach N on each number of ranks and threads, in the form of Tables 4.1 and 7.1 there. "
    "OMP_PLACES and OMP_PROC_BIND go through to the runs and are kept with the results.",
)
def strong_poisson(
    n: Ns = "1024",
    dim: Dim = 2,
    method: Method = "cg-fused",
    rtol: Rtol = 1e-6,
    max_iterations: MaxIterations = None,
    ranks: RanksList = "1,2",
    threads: ThreadsList = "1",
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    repeat: Repeat = 1,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
) -> None:
    from halocline.cli.studies import strong
    from halocline.study.measure import Solve

    strong(
        Solve("poisson", dim, method, rtol, max_iterations, decomposition, patch, device),
        n=n, ranks=ranks, threads=threads, repeat=repeat, json=json, csv=csv, html=html,
    )  # fmt: skip


STEPS_OF_CASE = (
    "Steps of a case of `halocline cases`, each run a process of its own: `halocline run CASE`. Beside the "
    "times stands the closed formula of Pekkilä et al. 2022, max(work, exchange), with constants that were "
    "measured too."
)


@strong.command(
    "CASE",
    epilog=_examples(
        "halocline study strong mhd-benchmark --n 64,128 --ranks 1,2 --threads 1,2 --html mhd.html",
        "halocline study strong mhd-benchmark --n 128 --ranks 1,2,4 --parts --orders 2,4,6,8 --pictures out",
    ),
    help=f"{STEPS_OF_CASE}\n\nEach N on each number of ranks and threads, as in Figs. 10 to 12, 14 and 15 "
    "there.",
)
def strong_case(
    context: typer.Context,
    n: CaseNs = "64",
    steps: StepsOfStudy = None,
    warm_up: WarmUpOfStudy = None,
    settings: Settings = None,
    order: Order = 6,
    scheme: Scheme = "rk3",
    orders: Orders = None,
    parts: Parts = False,
    ranks: RanksList = "1,2",
    threads: ThreadsList = "1",
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    repeat: Repeat = 1,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
    pictures: PlotPictures = None,
) -> None:
    from halocline.cli.case_studies import strong
    from halocline.study.measure import Steps

    strong(
        Steps(
            str(context.info_name), order, scheme, steps, settings=tuple(settings or ()),
            decomposition=decomposition, patch=patch, device=device,
        ),
        n=n, ranks=ranks, threads=threads, orders=orders, parts=parts, warm_up=warm_up, repeat=repeat,
        json=json, csv=csv, html=html, pictures=pictures,
    )  # fmt: skip


@weak.command(
    "CASE",
    epilog=_examples("halocline study weak mhd-benchmark --n 64 --ranks 1,2,4 --pictures out"),
    help=f"{STEPS_OF_CASE}\n\nN cells a rank along the first axis, the others in the case's own proportion: "
    "the axes of the grid are doubled in turn, as in Fig. 13 there.",
)
def weak_case(
    context: typer.Context,
    n: CaseNs = "64",
    steps: StepsOfStudy = None,
    warm_up: WarmUpOfStudy = None,
    settings: Settings = None,
    order: Order = 6,
    scheme: Scheme = "rk3",
    ranks: RanksList = "1,2",
    threads: ThreadsList = "1",
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    repeat: Repeat = 1,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
    pictures: PlotPictures = None,
) -> None:
    from halocline.cli.case_studies import weak
    from halocline.study.measure import Steps

    weak(
        Steps(
            str(context.info_name), order, scheme, steps, settings=tuple(settings or ()),
            decomposition=decomposition, patch=patch, device=device,
        ),
        n=n, ranks=ranks, threads=threads, warm_up=warm_up, repeat=repeat, json=json, csv=csv, html=html,
        pictures=pictures,
    )  # fmt: skip


HIDDEN = (
    "Times whole steps, steps whose patches wait for all messages, steps without messages, and steps without "
    "kernels, all in turn, by each transfer method between ranks. What is hidden is "
    "1 - (step - compute alone) / exchange alone."
)


@overlap.command(
    "heat",
    help=f"Explicit steps of heat in a periodic box, order 2 R in space.\n\n{HIDDEN}",
    epilog=_examples(
        "halocline study overlap heat --n 128 --ranks 2",
        "halocline study overlap heat --n 96 --ranks 2 --threads 4 --radius 3 --fields 4 --dtype float32",
    ),
)
def overlap_heat(
    n: Annotated[
        int,
        typer.Option(
            "--n", metavar="N", help="Cells along an axis for each rank.", rich_help_panel="The problem"
        ),
    ] = 128,
    dim: Dim = 3,
    radius: Radius = 1,
    fields: FieldCount = 1,
    dtype: Dtype = "float64",
    repeat: Repeat = 15,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    mailboxes: MailboxesOfMessage = 2,
    schedule: Schedule = "guided",
    kernels: Kernels = "auto",
    json: Json = None,
) -> None:
    from halocline.cli.overlap import heat

    heat(
        n=n, dim=dim, radius=radius, fields=fields, dtype=dtype, repeat=repeat, ranks=ranks, json=json,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, mailboxes=mailboxes,
            schedule=schedule, kernels=kernels,
        ),
    )  # fmt: skip


@overlap.command(
    "poisson",
    help=f"Iterations of conjugate gradients. {POISSON}\n\n{HIDDEN}",
    epilog=_examples("halocline study overlap poisson --n 1024 --ranks 2"),
)
def overlap_poisson(
    n: N,
    dim: Dim = 2,
    method: Method = "cg-fused",
    repeat: Repeat = 15,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    mailboxes: MailboxesOfMessage = 2,
    schedule: Schedule = "guided",
    kernels: Kernels = "auto",
    json: Json = None,
) -> None:
    from halocline.cli.overlap import poisson

    poisson(
        n=n, dim=dim, method=method, repeat=repeat, ranks=ranks, json=json,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, mailboxes=mailboxes,
            schedule=schedule, kernels=kernels,
        ),
    )  # fmt: skip


@explain.command(
    "poisson",
    epilog=_examples(
        "halocline explain poisson --n 1024 --ranks 64",
        "halocline explain poisson --n 512 --dim 3 --ranks 100000 --rank 0",
        "halocline explain poisson --n 1024 --code > kernels.cpp",
    ),
    help=f"{POISSON}\n\nFields and halos, what travels and why, messages, bytes, flops, memory, patches, and "
    "the least time that the memory of this machine allows. No rank is started.",
)
def explain_poisson(
    n: N,
    dim: Dim = 2,
    method: Method = "cg-fused",
    ranks: PlannedRanks = 1,
    rank: PlannedRank = None,
    threads: PlannedThreads = 1,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    methods: Methods = None,
    kernels: PlannedKernels = "auto",
    overlap: Overlap = "auto",
    halo: Halo = "read",
    code: Code = False,
    picture: WhoPicture = None,
    json: Json = None,
) -> None:
    from halocline.cli.explain import poisson

    poisson(
        n=n, dim=dim, method=method, ranks=ranks, rank=rank, code=code, picture=picture, json=json,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            kernels=kernels, overlap=overlap, halo=halo,
        ),
    )  # fmt: skip


@explain.command(
    "CASE",
    epilog=_examples(
        "halocline explain mhd-benchmark --n 128 --ranks 8",
        "halocline explain convection --set rayleigh=1e5 --order 4 --ranks 64 --rank 0",
    ),
    help="Steps of a case of `halocline cases`: fields and halos, what travels and why, messages, bytes, "
    "flops, memory, patches, and the least time that the memory of this machine allows. No rank is started.",
)
def explain_case(
    context: typer.Context,
    n: CellsOfCase = None,
    settings: Settings = None,
    order: Order = 6,
    scheme: Scheme = "rk3",
    ranks: PlannedRanks = 1,
    rank: PlannedRank = None,
    threads: PlannedThreads = 1,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    methods: Methods = None,
    kernels: PlannedKernels = "auto",
    overlap: Overlap = "auto",
    halo: Halo = "read",
    code: Code = False,
    picture: WhoPicture = None,
    json: Json = None,
) -> None:
    from halocline.cli.explain import case

    case(
        str(context.info_name), n=n, settings=settings or [], order=order, scheme=scheme, ranks=ranks,
        rank=rank, code=code, picture=picture, json=json,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            kernels=kernels, overlap=overlap, halo=halo,
        ),
    )  # fmt: skip


PREDICTED = (
    "executed by a model of links and memory, beside the closed formula max(work, traffic). No rank is "
    "started."
)
HEAT = "Heat in a periodic interval, square or cube, dT/dt = kappa ΔT."
WAVE = "Sound in a closed room: pressure in the cells, velocity on the faces between them, leapfrog in time."


@model.command(
    "poisson",
    epilog=_examples(
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
    epilog=_examples(
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
    epilog=_examples(
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
    "calibrate",
    epilog=_examples(
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
        typer.Option(
            "--file",
            metavar="FILE",
            help="Where the machine file goes; by default into the cache folder, for --machine host.",
            rich_help_panel="Results",
        ),
    ] = None,
) -> None:
    from halocline.cli.model import calibrate

    calibrate(file)


@model.command(
    "figures",
    epilog=_examples("halocline model figures --folder figures"),
    help="Draw the figures of the papers that the model reproduces: halo sizes of cuts along one, two and "
    "three axes and theoretical strong scaling (Astaroth), and the ranks of a node (the cavity code's "
    "question, asked of Stampede2).",
)
def model_figures(
    folder: Annotated[
        Path,
        typer.Option("--folder", metavar="FOLDER", help="Where the pictures go.", rich_help_panel="Results"),
    ] = Path("figures"),
    json: Json = None,
) -> None:
    from halocline.cli.model import figures

    figures(folder, json)


@bench.command(
    "exchange",
    epilog=_examples(
        "halocline bench exchange --n 256 --ranks 2",
        "halocline bench exchange --n 512 --scaling strong --ranks 4 --decomposition 1d-z --no-corners",
    ),
    help="Time the exchange of halos alone, without a stencil: some fields with halos of one radius on a "
    "periodic grid, 30 exchanges a run, as in the study of node-aware communication of Pearson et al.",
)
def bench_exchange(
    n: Annotated[
        int,
        typer.Option(
            "--n", metavar="N", help="Cells along each axis of a rank's share.", rich_help_panel="The problem"
        ),
    ] = 256,
    dim: Annotated[
        int, typer.Option("--dim", metavar="1|2|3", help="Axes of the grid.", rich_help_panel="The problem")
    ] = 3,
    scaling: Annotated[
        str,
        typer.Option(
            "--scaling",
            metavar="weak|strong",
            help="[bold]weak[/]: the grid has round(N ranks^(1/3))³ cells. [bold]strong[/]: N³ in all.",
            rich_help_panel="The problem",
        ),
    ] = "weak",
    radius: Radius = 3,
    fields: FieldCount = 4,
    dtype: Dtype = "float32",
    corners: Annotated[
        bool,
        typer.Option(
            "--corners/--no-corners",
            help="Whether edges and corners travel too.",
            rich_help_panel="The problem",
        ),
    ] = True,
    repeat: Repeat = 7,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    methods: Methods = None,
    mailboxes: MailboxesOfMessage = 2,
    schedule: Schedule = "guided",
    kernels: Kernels = "auto",
    overlap: Overlap = "auto",
    json: Json = None,
) -> None:
    from halocline.cli.bench import exchange

    exchange(
        n=n, dim=dim, scaling=scaling, radius=radius, fields=fields, dtype=dtype, corners=corners,
        repeat=repeat, ranks=ranks, json=json,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            mailboxes=mailboxes, schedule=schedule, kernels=kernels, overlap=overlap,
        ),
    )  # fmt: skip


@ablation.command(
    "exchange",
    help="Time the exchange of some fields on a periodic grid with one thing changed at a time: the transfer "
    "methods (+remote, +colo, +peer, +self of Pearson et al. 2020, and mailboxes), edges and corners, halos "
    "of one width or of each field's own, decompositions; and predict what the placement of subdomains is "
    "worth on a node of another machine.",
    epilog=_examples(
        "halocline study ablation exchange --n 128 --ranks 2 --subdomains-per-rank 2",
        "halocline study ablation exchange --n 96 --ranks 4 --ranks-per-node 2 --html ablation.html",
    ),
)
def ablation_exchange(
    n: Annotated[
        int,
        typer.Option(
            "--n", metavar="N", help="Cells along an axis for each rank.", rich_help_panel="The problem"
        ),
    ] = 128,
    dim: Dim = 3,
    radius: Radius = 3,
    fields: FieldCount = 4,
    dtype: Dtype = "float32",
    machine: Annotated[
        str,
        typer.Option(
            "--machine",
            metavar="NAME|FILE",
            help="The machine on whose node placements are compared.",
            rich_help_panel="Where it runs",
        ),
    ] = "summit",
    repeat: Repeat = 7,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    mailboxes: MailboxesOfMessage = 2,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
) -> None:
    from halocline.cli.studies import ablation as measure

    measure(
        n=n, dim=dim, radius=radius, fields=fields, dtype=dtype, machine=machine, repeat=repeat, ranks=ranks,
        json=json, csv=csv, html=html,
        execution={
            "device": device, "threads": threads, "subdomains_per_rank": subdomains_per_rank,
            "ranks_per_node": ranks_per_node, "mailboxes": mailboxes,
        },
    )  # fmt: skip


class FileOrCase(TyperCommand):
    """Leaves all options but a few to a file that is run; those of a case are its own."""

    of_files = ("target", "ranks", "threads", "device", "json")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        every = self.params
        ctx.ignore_unknown_options = ctx.allow_extra_args = names_file(self._target(args))
        if ctx.ignore_unknown_options:
            self.params = [each for each in every if each.name in self.of_files]
        try:
            return super().parse_args(ctx, args)
        finally:
            self.params = every

    def _target(self, args: list[str]) -> str | None:
        """The first word that is no option, nor the value of one."""
        options = {name for each in self.params for name in each.opts if name.startswith("-")}
        words = iter(args)
        for word in words:
            if not word.startswith("-"):
                return word
            if word in options:
                next(words, None)
        return None


def names_file(target: str | None) -> bool:
    """Whether `halocline run` takes a word for a file: one that exists, or was to."""
    return target is not None and (Path(target).is_file() or target.endswith(".py"))


@app.command(
    "run",
    cls=FileOrCase,
    help="Run a case by its name (see `halocline cases`), or a Python file, such as your own simulation, on "
    "one or several ranks.\n\nA case has the same bits for any ranks, threads, devices, decomposition and "
    "patch, as its checksum tells. A file takes --ranks, --threads, --device and --json; other options are "
    "its own. One that exists is taken before a case of the same name.",
    epilog=_examples(
        "halocline run heat.py",
        "halocline run heat.py --ranks 4 --threads 2",
        "halocline run heat.py --device cuda",
        "halocline run heat.py --ranks 4 --steps 100   (options other than those above are for heat.py)",
        "halocline run heat.py --json run.json -- --json results.json   (what follows -- is all for heat.py)",
        "halocline run helical-turbulence --n 32 --until 50 --every 100 --csv dynamo.csv",
        "halocline run convection --n 128,64 --set rayleigh=1e5 --pictures out",
    ),
)
def run_file(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="FILE.py|CASE", help="What `python FILE.py` would run; or a case.")
    ],
    n: CellsOfCase = None,
    steps: Steps = None,
    until: Until = None,
    warm_up: WarmUp = 0,
    settings: Settings = None,
    order: Order = 6,
    scheme: Scheme = "rk3",
    only: Only = None,
    every: Every = None,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    subdomains_per_rank: SubdomainsPerRank = 1,
    ranks_per_node: RanksPerNode = None,
    methods: Methods = None,
    mailboxes: MailboxesOfMessage = 2,
    schedule: Schedule = "guided",
    kernels: Kernels = "auto",
    overlap: Overlap = "auto",
    halo: Halo = "read",
    trace: Trace = None,
    json: Json = None,
    csv: SeriesCsv = None,
    pictures: FieldPictures = None,
) -> None:
    if names_file(target):
        from halocline.cli.script import script

        script(Path(target), ranks=ranks, threads=threads, device=device, json=json, arguments=context.args)
        return
    from halocline.cli.run_case import case

    case(
        target, n=n, steps=steps, until=until, order=order, scheme=scheme, only=only, warm_up=warm_up,
        every=every, settings=settings or [], ranks=ranks, json=json, csv=csv, pictures=pictures,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            mailboxes=mailboxes, schedule=schedule, kernels=kernels, overlap=overlap, halo=halo,
        ) | {"trace": trace},
    )  # fmt: skip


@app.command(
    "cases",
    help="List the cases that `halocline run` knows by name, or show one: its parameters with units, "
    "defaults and meaning, and where it comes from.",
    epilog=_examples("halocline cases", "halocline cases helical-turbulence"),
)
def list_cases(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Of a case to show.")] = None,
    json: Json = None,
) -> None:
    from halocline.cli.cases import cases

    cases(name, json)


@app.command(
    "doctor",
    help="Look whether everything is there: compiler, MPI, cores, memory bandwidth, cache folder, GPUs. Says "
    "what to do about what is missing; exit status 0 where a solve can run.",
    epilog=_examples("halocline doctor", "halocline doctor --json machine.json"),
)
def doctor(json: Json = None) -> None:
    from halocline.cli.doctor import examine

    examine(json)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    if show:
        from halocline import __version__

        print(f"halocline {__version__}")
        raise typer.Exit


def run(words: list[str]) -> int:
    """Run a command line; wrong words become an InputError, what a command raises is left as it is."""
    command = typer.main.get_command(app)
    try:
        with command.make_context("halocline", words) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except Exception as error:
        tell = getattr(error, "format_message", None)  # what the parser raises has it
        if tell is None:
            raise
        if not tell():
            return 2  # no command was named: the help text has been printed
        path = getattr(getattr(error, "ctx", None), "command_path", "halocline")
        raise InputError(f"{tell()}\nTry `{path} --help`.") from None
    return 0
