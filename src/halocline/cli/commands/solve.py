"""`halocline solve`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halocline.cli import options
from halocline.cli.commands import POISSON
from halocline.cli.declare import Command, Commands
from halocline.errors import InputError

if TYPE_CHECKING:
    from halocline.cli.keeping import Kept


def poisson(
    *, n: int | None, method: str | None, rtol: float, max_iterations: int | None, kept: Kept, **rest: Any
) -> None:
    """Run the case poisson: the short form of ``halocline run poisson``."""
    if n is None and kept.resume is None:
        raise InputError("Missing option '--n': give the interior points along each axis, such as --n 512")
    from halocline.cli.run import run
    from halocline.solvers.cg import method_named

    given: dict[str, float | str] = {"rtol": rtol}
    if method is not None:
        method_named(method)  # whose message is of --method, and not of --set
        given["method"] = method
    run("poisson", n=None if n is None else [n], given=given, steps=max_iterations, kept=kept, **rest)


SOLVE = Commands(
    name="solve",
    help="Solve a case and report how it went: iterations, error, time, share of the bandwidth, checksum.",
    examples=["halocline solve poisson --n 512"],
    commands=[
        Command(
            name="poisson",
            does=poisson,
            help=f"{POISSON}\n\nThe short form of `halocline run poisson`. The result has the same bits for "
            "any number of ranks and threads, any decomposition and patch: compare the checksum.",
            examples=[
                "halocline solve poisson --n 512",
                "halocline solve poisson --n 1024 --ranks 4 --decomposition 2x2 --threads 1",
                "halocline solve poisson --n 128 --dim 3 --rtol 1e-8 --pictures out",
                "halocline solve poisson --n 8192 --device cuda:0,1 --ranks 2",
                "mpiexec -n 64 halocline solve poisson --n 16384 --json result.json",
            ],
            takes=(
                options.N.but(
                    "Interior points along each axis; with --resume those of the checkpoint.", default=None
                ),
                options.DIM.but(
                    "Axes of the problem (default: 2, or with --resume those of the checkpoint).",
                    default=None,
                ),
                (options.METHOD_OR_RESUMED, options.RTOL, options.MAX_ITERATIONS),
                (options.RANKS, options.EXECUTION.also(options.TRACE), options.KEPT),
                (options.JSON, options.SOLUTION),
            ),
        )
    ],
)
