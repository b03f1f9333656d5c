"""Study of the placement of subdomains on devices (Pearson et al. 2020, Section IV.B and Fig. 11)."""

from __future__ import annotations

import itertools
from dataclasses import replace

from halocline.ranges import SUBDOMAINS
from halocline.study.measuring.exchange import SUBDOMAINS_HELP, check_exchange_alone, distribute_subdomains
from halocline.study.reporting.report import Contents
from halocline.study.reporting.transfers import placement_tables
from halocline.study.study import Run, Study, StudyRequest

SHAPE = (1440, 1452, 700)  # worst case of Pearson et al., with subdomains of 720 x 484 x 700 cells


class Placement(Study):
    """Study of the command `halocline bench exchange --placement`."""

    footer = (
        "Times are those of one exchange on the slowest rank. They are medians of runs with 30 exchanges "
        "each."
    )

    def runs(self, request: StudyRequest) -> list[Run]:
        """Return a run for each size, layout and placement."""
        check_exchange_alone(request.command.name)
        count, runs = request.number("subdomains", SUBDOMAINS), []

        def on_devices(run: Run) -> Run:
            _, subdomains_per_rank = distribute_subdomains(
                count, run.layout.ranks, request.command.device, run.layout.per_node
            )
            return replace(run, command=run.command.with_options(subdomains_per_rank=subdomains_per_rank))

        for n, layout in itertools.product(request.sizes or (180,), self.layouts(request)):
            shape = tuple(round(n * cells / SHAPE[0]) for cells in SHAPE)
            for placement in ("trivial", "aware"):
                command = request.command.with_options(placement=placement, decomposition="bisection")
                runs.append(Run(command, n, shape, layout, shape, on_devices=on_devices))
        return runs


STUDY = Placement(
    "placement",
    title="Placement",
    about="Time the halo exchange alone for several placements of subdomains on devices.",
    help="The study compares trivial placement (in order) with placement by the links between devices. The "
    "grid has the proportions of the worst case of Pearson et al. 2020, with N cells along the first axis. "
    "The problem must be `exchange`. `halocline study paper pearson-fig11` predicts the result for a node "
    "of Summit.",
    examples=("halocline study placement exchange --n 720 --device cuda --ranks 1",),
    contents=(Contents(placement_tables),),
    options=(("--subdomains S", f"{SUBDOMAINS_HELP}.", "6"),),
    subcommand="bench",
    compared_conditions=("placement", "subdomains_per_rank"),
    ranks="1",
    repeat=3,
)
