"""`halocline explain`."""

from __future__ import annotations

import typer

from halocline.cli.commands import POISSON, CaseByName, examples, group
from halocline.cli.options import (
    CellsOfCase,
    Code,
    CommunicationName,
    Decomposition,
    Device,
    Dim,
    DimOfCase,
    GpuDirect,
    Halo,
    Json,
    Method,
    Methods,
    N,
    OrderOfCase,
    Overlap,
    Packing,
    Passes,
    Patch,
    PlannedKernels,
    PlannedRank,
    PlannedRanks,
    PlannedThreads,
    RanksPerNode,
    SchemeOfCase,
    Settings,
    SubdomainsPerRank,
    WhoPicture,
    execution,
)

explain = group(
    "Show what a case, or your own file, would do on many ranks, without starting any.",
    "halocline explain poisson --n 1024 --ranks 64",
    "halocline explain mhd-benchmark --n 128 --ranks 8",
    "halocline explain acoustic.py --ranks 64",
    cls=CaseByName,
)


@explain.command(
    "poisson",
    epilog=examples(
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
    packing: Packing = "all",
    communication: CommunicationName = None,
    gpudirect: GpuDirect = False,
    code: Code = False,
    passes: Passes = False,
    picture: WhoPicture = None,
    json: Json = None,
) -> None:
    from halocline.cli.explain import poisson

    poisson(
        n=n, dim=dim, method=method, ranks=ranks, rank=rank, code=code, passes=passes, picture=picture,
        json=json,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            kernels=kernels, overlap=overlap, halo=halo,
            packing=packing, communication=communication, gpudirect=gpudirect,
        ),
    )  # fmt: skip


@explain.command(
    "CASE",
    epilog=examples(
        "halocline explain mhd-benchmark --n 128 --ranks 8",
        "halocline explain convection --set rayleigh=1e5 --order 4 --ranks 64 --rank 0",
        "halocline explain acoustic.py --n 1024 --ranks 64",
    ),
    help="Steps of a case of `halocline cases`, or of the first problem that a Python file makes: fields and "
    "halos, what travels and why, messages, bytes, "
    "flops, memory, patches, and the least time that the memory of this machine allows. No rank is started.",
)
def explain_case(
    context: typer.Context,
    n: CellsOfCase = None,
    dim: DimOfCase = None,
    settings: Settings = None,
    order: OrderOfCase = None,
    scheme: SchemeOfCase = None,
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
    packing: Packing = "all",
    communication: CommunicationName = None,
    gpudirect: GpuDirect = False,
    code: Code = False,
    passes: Passes = False,
    picture: WhoPicture = None,
    json: Json = None,
) -> None:
    from halocline.cli.explain import case

    case(
        str(context.info_name), n=n, dim=dim, settings=settings or [], order=order, scheme=scheme,
        ranks=ranks, rank=rank, code=code, passes=passes, picture=picture, json=json,
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            kernels=kernels, overlap=overlap, halo=halo,
            packing=packing, communication=communication, gpudirect=gpudirect,
        ),
    )  # fmt: skip
