"""`halocline bench`."""

from __future__ import annotations

from typing import Annotated

import typer

from halocline.cli.commands import examples, group
from halocline.cli.options import (
    PROBLEM,
    Decomposition,
    Device,
    Dim,
    Dtype,
    FieldCount,
    Json,
    Kernels,
    MailboxesOfMessage,
    Methods,
    Overlap,
    Radius,
    Ranks,
    RanksPerNode,
    Repeat,
    Schedule,
    SubdomainsPerRank,
    Threads,
    execution,
    whole,
)
from halocline.ranges import POINTS

bench = group(
    "Time one part of a run alone.",
    "halocline bench exchange --n 256 --ranks 2",
)


@bench.command(
    "exchange",
    epilog=examples(
        "halocline bench exchange --n 256 --ranks 2",
        "halocline bench exchange --n 512 --scaling strong --ranks 4 --decomposition 1d-z --no-corners",
    ),
    help="Time the exchange of halos alone, without a stencil: some fields with halos of one radius on a "
    "periodic grid, 30 exchanges a run, as in the study of node-aware communication of Pearson et al.",
)
def bench_exchange(
    n: Annotated[
        int,
        whole(PROBLEM, "--n", numbers=POINTS, metavar="N", help="Cells along each axis of a rank's share."),
    ] = 256,
    dim: Dim = 3,
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
