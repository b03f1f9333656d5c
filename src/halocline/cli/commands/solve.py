"""`halocline solve`."""

from __future__ import annotations

from halocline.cli.commands import POISSON, examples, group
from halocline.cli.options import (
    CheckpointEvery,
    CheckpointKeep,
    CheckpointPath,
    CommunicationName,
    Decomposition,
    Device,
    DimOfSolve,
    GpuDirect,
    Halo,
    IoRanks,
    IoThreads,
    Json,
    Kernels,
    MailboxesOfMessage,
    MaxIterations,
    MethodOfSolve,
    Methods,
    OutputEvery,
    OutputPath,
    Overlap,
    Overwrite,
    Packing,
    Patch,
    Pictures,
    PointsOrResumed,
    Ranks,
    RanksPerNode,
    Resume,
    Rtol,
    Schedule,
    SubdomainsPerRank,
    Threads,
    TimeLimit,
    Trace,
    execution,
)

solve = group(
    "Solve a case and report how it went: iterations, error, time, share of the bandwidth, checksum.",
    "halocline solve poisson --n 512",
)


@solve.command(
    "poisson",
    epilog=examples(
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
    n: PointsOrResumed = None,
    dim: DimOfSolve = None,
    method: MethodOfSolve = None,
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
    packing: Packing = "all",
    communication: CommunicationName = None,
    gpudirect: GpuDirect = False,
    trace: Trace = None,
    output: OutputPath = None,
    output_every: OutputEvery = None,
    checkpoint: CheckpointPath = None,
    checkpoint_every: CheckpointEvery = None,
    keep: CheckpointKeep = None,
    resume: Resume = None,
    overwrite: Overwrite = False,
    time_limit: TimeLimit = None,
    io_threads: IoThreads = None,
    io_ranks: IoRanks = 0,
    json: Json = None,
    pictures: Pictures = None,
) -> None:
    from halocline.cli.keeping import kept
    from halocline.cli.solve import poisson

    poisson(
        n=n, dim=dim, method=method, rtol=rtol, max_iterations=max_iterations, ranks=ranks, json=json,
        pictures=pictures,
        kept=kept(
            output=output, output_every=output_every, checkpoint=checkpoint,
            checkpoint_every=checkpoint_every, keep=keep, resume=resume, overwrite=overwrite,
            time_limit=time_limit, io_threads=io_threads, io_ranks=io_ranks,
        ),
        execution=execution(
            device=device, threads=threads, decomposition=decomposition, patch=patch,
            subdomains_per_rank=subdomains_per_rank, ranks_per_node=ranks_per_node, methods=methods,
            mailboxes=mailboxes, schedule=schedule, kernels=kernels, overlap=overlap, halo=halo,
            packing=packing, communication=communication, gpudirect=gpudirect,
        ) | {"trace": trace},
    )  # fmt: skip
