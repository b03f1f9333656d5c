"""`halocline study`."""

from __future__ import annotations

from typing import Annotated

import typer

from halocline.cli.commands import POISSON, CaseByName, examples, group
from halocline.cli.options import (
    PROBLEM,
    CaseNs,
    CaseNsByFamily,
    Csv,
    Decomposition,
    Device,
    Dim,
    DimOfCase,
    Dtype,
    FieldCount,
    Html,
    Json,
    Kernels,
    MailboxesOfMessage,
    MaxIterations,
    Method,
    N,
    Ns,
    OrderOfCase,
    Orders,
    Parts,
    Patch,
    Pictures,
    PlotPictures,
    Radius,
    Ranks,
    RanksList,
    RanksPerNode,
    Repeat,
    Rtol,
    Schedule,
    SchemeOfCase,
    Settings,
    StepsOfStudy,
    SubdomainsPerRank,
    Threads,
    ThreadsList,
    WarmUpOfStudy,
    execution,
    whole,
)
from halocline.ranges import POINTS

study = group(
    "Measure a case many times over, each time as a process of its own, and make tables, plots and a page.",
    "halocline study convergence poisson --n 256,512,1024",
    "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
)
convergence = group(
    "Finer and finer grids: how fast the error falls, or what the numbers of a steady state converge to.",
    "halocline study convergence poisson --n 256,512,1024",
    "halocline study convergence linear-wave --n 64,128,256 --dim 1",
    "halocline study convergence cavity-2d --n 31,63,127",
    cls=CaseByName,
)
strong = group(
    "One problem on more and more ranks and threads: time, speed-up, efficiency, hybrid runs.",
    "halocline study strong poisson --n 1024 --ranks 1,2 --threads 1,2",
    "halocline study strong mhd-benchmark --n 64,128 --ranks 1,2 --parts",
    cls=CaseByName,
)
weak = group(
    "As much work for each of more and more ranks.",
    "halocline study weak mhd-benchmark --n 64 --ranks 1,2,4",
    cls=CaseByName,
)
ablation = group(
    "Take one thing away at a time, and see what it was worth.",
    "halocline study ablation exchange --n 128 --ranks 2",
)
overlap = group(
    "How much of the exchange of halos is hidden behind computing, from runs of each alone.",
    "halocline study overlap heat --n 128 --ranks 2",
)
study.add_typer(convergence, name="convergence")
study.add_typer(strong, name="strong")
study.add_typer(weak, name="weak")
study.add_typer(ablation, name="ablation")
study.add_typer(overlap, name="overlap")


@convergence.command(
    "poisson",
    epilog=examples(
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
    from halocline.study.measuring.command import Solve

    convergence(
        Solve("poisson", dim, method, rtol, None, decomposition, patch, device),
        n=n, ranks=ranks, threads=threads, repeat=repeat, json=json, csv=csv, html=html, pictures=pictures,
    )  # fmt: skip


@convergence.command(
    "CASE",
    epilog=examples(
        "halocline study convergence linear-wave --html waves.html",
        "halocline study convergence linear-wave --n 64,128,256,512,1024 --dim 1 --set wave=fast",
        "halocline study convergence cp-alfven --pictures out",
        "halocline study convergence cavity-2d --n 31,63,127 --set Ra=1e4 --html cavity.html",
    ),
    help="A case on finer and finer grids; each run is a process of its own, `halocline run CASE`, and goes "
    "to the end of the case.\n\nCases that have an exact solution are [bold]linear-wave[/], which draws "
    "Fig. 13 of Mendygral et al. 2017, and [bold]cp-alfven[/], the left panel of Fig. 23 there. Each panel "
    "has a line for each problem of one kind; --dim and --set leave only the lines that match.\n\n"
    "[bold]cavity[/] and [bold]cavity-2d[/] have none, but are steady in the end: three grids or more, of "
    "any spacings, give the order of each of their numbers, what it leads to at spacing 0, and the "
    "grid-convergence index (Roache 1994; Celik et al. 2008).",
)
def convergence_case(
    context: typer.Context,
    n: CaseNsByFamily = None,
    dim: DimOfCase = None,
    settings: Settings = None,
    ranks: Ranks = None,
    threads: Threads = None,
    device: Device = None,
    decomposition: Decomposition = "optimal",
    patch: Patch = None,
    json: Json = None,
    csv: Csv = None,
    html: Html = None,
    pictures: PlotPictures = None,
) -> None:
    from halocline.cli.case_studies import convergence, measured_as

    convergence(
        measured_as(
            str(context.info_name), settings, device, order=None, scheme=None, decomposition=decomposition,
            patch=patch, dim=dim,
        ),
        n=n, ranks=ranks, threads=threads, json=json, csv=csv, html=html, pictures=pictures,
    )  # fmt: skip


@strong.command(
    "poisson",
    epilog=examples(
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
    from halocline.study.measuring.command import Solve

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
    epilog=examples(
        "halocline study strong mhd-benchmark --n 64,128 --ranks 1,2 --threads 1,2 --html mhd.html",
        "halocline study strong mhd-benchmark --n 128 --ranks 1,2,4 --parts --orders 2,4,6,8 --pictures out",
    ),
    help=f"{STEPS_OF_CASE}\n\nEach N on each number of ranks and threads, as in Figs. 10 to 12, 14 and 15 "
    "there.",
)
def strong_case(
    context: typer.Context,
    n: CaseNs = None,
    dim: DimOfCase = None,
    steps: StepsOfStudy = None,
    warm_up: WarmUpOfStudy = None,
    settings: Settings = None,
    order: OrderOfCase = None,
    scheme: SchemeOfCase = None,
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
    from halocline.cli.case_studies import measured_as, strong

    strong(
        measured_as(
            str(context.info_name), settings, device, order=order, scheme=scheme, steps=steps,
            decomposition=decomposition, patch=patch, dim=dim,
        ),
        n=n, ranks=ranks, threads=threads, orders=orders, parts=parts, warm_up=warm_up, repeat=repeat,
        json=json, csv=csv, html=html, pictures=pictures,
    )  # fmt: skip


@weak.command(
    "CASE",
    epilog=examples("halocline study weak mhd-benchmark --n 64 --ranks 1,2,4 --pictures out"),
    help=f"{STEPS_OF_CASE}\n\nN cells a rank along the first axis, the others in the case's own proportion: "
    "the axes of the grid are doubled in turn, as in Fig. 13 there.",
)
def weak_case(
    context: typer.Context,
    n: CaseNs = None,
    dim: DimOfCase = None,
    steps: StepsOfStudy = None,
    warm_up: WarmUpOfStudy = None,
    settings: Settings = None,
    order: OrderOfCase = None,
    scheme: SchemeOfCase = None,
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
    from halocline.cli.case_studies import measured_as, weak

    weak(
        measured_as(
            str(context.info_name), settings, device, order=order, scheme=scheme, steps=steps,
            decomposition=decomposition, patch=patch, dim=dim,
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
    epilog=examples(
        "halocline study overlap heat --n 128 --ranks 2",
        "halocline study overlap heat --n 96 --ranks 2 --threads 4 --radius 3 --fields 4 --dtype float32",
    ),
)
def overlap_heat(
    n: Annotated[
        int,
        whole(PROBLEM, "--n", numbers=POINTS, metavar="N", help="Cells along an axis for each rank."),
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
    epilog=examples("halocline study overlap poisson --n 1024 --ranks 2"),
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


@ablation.command(
    "exchange",
    help="Time the exchange of some fields on a periodic grid with one thing changed at a time: the transfer "
    "methods (+remote, +colo, +peer, +self of Pearson et al. 2020, and mailboxes), edges and corners, halos "
    "of one width or of each field's own, decompositions; and predict what the placement of subdomains is "
    "worth on a node of another machine.",
    epilog=examples(
        "halocline study ablation exchange --n 128 --ranks 2 --subdomains-per-rank 2",
        "halocline study ablation exchange --n 96 --ranks 4 --ranks-per-node 2 --html ablation.html",
    ),
)
def ablation_exchange(
    n: Annotated[
        int,
        whole(PROBLEM, "--n", numbers=POINTS, metavar="N", help="Cells along an axis for each rank."),
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
