"""`halocline bench`."""

from __future__ import annotations

from halocline.cli import options
from halocline.cli.declare import Command, Commands

BENCH = Commands(
    name="bench",
    help="Time one part of a run alone.",
    examples=["halocline bench exchange --n 256 --ranks 2"],
    commands=[
        Command(
            name="exchange",
            does="halocline.cli.bench:exchange",
            help="Time the exchange of halos alone, without a stencil: some fields with halos of one radius "
            "on a periodic grid, 30 exchanges a run, as in the study of node-aware communication of Pearson "
            "et al.",
            examples=[
                "halocline bench exchange --n 256 --ranks 2",
                "halocline bench exchange --n 512 --scaling strong --ranks 4 --decomposition 1d-z "
                "--no-corners",
            ],
            takes=(
                options.N.but("Cells along each axis of a rank's share.", default=256),
                options.DIM.but(default=3),
                options.problem(
                    "--scaling weak|strong",
                    "[bold]weak[/]: the grid has round(N ranks^(1/3))³ cells. [bold]strong[/]: N³ in all.",
                    default="weak",
                ),
                (options.RADIUS, options.FIELDS, options.DTYPE),
                options.problem(
                    "--corners/--no-corners", "Whether edges and corners are exchanged too.", default=True
                ),
                (options.REPEAT.but(default=7), options.RANKS),
                options.EXECUTION.without(options.PATCH, *options.TO_COMPARE),
                options.JSON,
            ),
        )
    ],
)
