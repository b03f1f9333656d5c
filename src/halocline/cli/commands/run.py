"""`halocline run` and `halocline cases`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from halocline.cli.commands import examples, group
from halocline.cli.options import (
    RESULTS,
    CellsOfCase,
    Check,
    CheckpointEvery,
    CheckpointKeep,
    CheckpointPath,
    CommunicationName,
    Decomposition,
    Device,
    DimOfCase,
    Every,
    FieldPictures,
    GpuDirect,
    Halo,
    IoRanks,
    IoThreads,
    Json,
    Kernels,
    MailboxesOfMessage,
    Methods,
    Only,
    OrderOfCase,
    OutputEvery,
    OutputPath,
    Overlap,
    Overwrite,
    Packing,
    Patch,
    Ranks,
    RanksPerNode,
    Resume,
    Schedule,
    SchemeOfCase,
    SeriesCsv,
    Settings,
    Steps,
    SubdomainsPerRank,
    Threads,
    TimeLimit,
    Trace,
    Until,
    WarmUp,
    execution,
)
from halocline.cli.problem import names_file
from halocline.errors import InputError

runs = group("What runs as it is: a case, or a file.")


class FileOrCase(TyperCommand):
    """Leaves all options but a few to a file that is run; those of a case are its own."""

    of_files = ("target", "ranks", "io_ranks", "threads", "device", "json", "state")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        every = self.params
        target = self._target(args)
        ctx.ignore_unknown_options = ctx.allow_extra_args = target is not None and names_file(target)
        if target is not None and ctx.ignore_unknown_options:
            own = (*self.of_files, *_taken(Path(target)))
            self.params = [each for each in every if each.name in own]
        try:
            return super().parse_args(ctx, args)
        finally:
            self.params = every

    def _target(self, args: list[str]) -> str | None:
        """The first word that is no option, nor the value of one."""
        valued = [each for each in self.params if not getattr(each, "is_flag", False)]
        options = {name for each in valued for name in each.opts if name.startswith("-")}
        words = iter(args)
        for word in words:
            if not word.startswith("-"):
                return word
            if word in options:
                next(words, None)
        return None


def _taken(file: Path) -> list[str]:
    """The options that mean something of this file: others of these names are its own."""
    from halocline.run.simulation.script import Script

    try:
        script = Script(file)
    except (InputError, SyntaxError, ValueError):  # whoever runs it says so
        return []
    taken = {"n": "n" in script.names, "settings": bool(script.names), "check": "check" in script.functions}
    return [option for option, means in taken.items() if means]


@runs.command(
    "run",
    cls=FileOrCase,
    help="Run a case by its name (see `halocline cases`), or a Python file, such as your own simulation, on "
    "one or several ranks.\n\nA case has the same bits for any ranks, threads, devices, decomposition and "
    "patch, as its checksum shows. A file takes --ranks, --threads, --device and --json; where it sets "
    "numbers or texts at its top, --set, which gives them other values, and --n for the name n; and --check "
    "where it has a function check(problem). Other options are its own. One that exists "
    "is taken before a case of the same name.",
    epilog=examples(
        "halocline run heat.py",
        "halocline run heat.py --ranks 4 --threads 2",
        "halocline run heat.py --device cuda",
        "halocline run heat.py --n 256 --set kappa=0.1   (for n = 128 and kappa = 0.2 at its top)",
        "halocline run heat.py --ranks 4 --steps 100   (options other than those above are for heat.py)",
        "halocline run heat.py --json run.json -- --json results.json   (what follows -- is all for heat.py)",
        "halocline run helical-turbulence --n 32 --until 50 --every 100 --csv dynamo.csv",
        "halocline run convection --n 128,64 --set rayleigh=1e5 --pictures out",
        "halocline run mhd-benchmark --n 64 --checkpoint out/mhd --checkpoint-every '30 min'",
        "halocline run mhd-benchmark --resume out/mhd --checkpoint out/mhd --steps 20000 --ranks 4",
    ),
)
def run_file(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="FILE.py|CASE", help="What `python FILE.py` would run; or a case.")
    ],
    n: CellsOfCase = None,
    dim: DimOfCase = None,
    steps: Steps = None,
    until: Until = None,
    warm_up: WarmUp = 0,
    settings: Settings = None,
    order: OrderOfCase = None,
    scheme: SchemeOfCase = None,
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
    csv: SeriesCsv = None,
    pictures: FieldPictures = None,
    check: Check = False,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state",
            metavar="FILE.npz",
            help="Of a file: write the fields of the last problem that it ran, as NumPy arrays.",
            rich_help_panel=RESULTS,
        ),
    ] = None,
) -> None:
    if names_file(target):
        from halocline.cli.script import script

        script(
            Path(target), n=n, settings=settings or [], ranks=ranks, io_ranks=io_ranks, threads=threads,
            device=device, json=json, check=check, state=state, arguments=context.args,
        )  # fmt: skip
        return
    if state is not None:
        raise InputError(f"--state {state}: {target} is a case, whose fields --output STORE.zarr writes")
    from halocline.cli.keeping import kept
    from halocline.cli.run_case import case

    case(
        target, n=n, dim=dim, steps=steps, until=until, order=order, scheme=scheme, only=only,
        warm_up=warm_up, every=every, settings=settings or [], ranks=ranks, json=json, csv=csv,
        pictures=pictures, check=check,
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


@runs.command(
    "cases",
    help="List the cases that `halocline run` knows by name, or show one: its parameters with units, "
    "defaults and meaning, and where it comes from.",
    epilog=examples("halocline cases", "halocline cases helical-turbulence"),
)
def list_cases(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Of a case to show.")] = None,
    json: Json = None,
) -> None:
    from halocline.cli.cases import cases

    cases(name, json)
