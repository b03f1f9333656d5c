"""Study of the exchange alone, with transfer methods added one by one (Pearson et al. 2020, Figs. 12, 13)."""

from __future__ import annotations

import itertools
from dataclasses import replace

from halocline.plan.transfer import AWARE_SETS, SETS
from halocline.ranges import SUBDOMAINS
from halocline.run.domain.execution import chosen_devices
from halocline.study.measuring import exchange
from halocline.study.reporting import transfers
from halocline.study.reporting.report import Contents
from halocline.study.study import Run, Study, StudyRequest


class Exchange(Study):
    """Study of the command `halocline bench exchange`."""

    footer = "Each time is that of one exchange on the slowest rank: a mean over 30, then a median over runs."

    def runs(self, request: StudyRequest) -> list[Run]:
        """Return a run for each size, layout and set of transfer methods."""
        exchange.check_exchange_alone(request.command.name)
        device, subdomains = request.command.device, request.number("subdomains", SUBDOMAINS)
        scaling, runs = request.study_options.get("scaling") or "weak", []
        is_cuda = chosen_devices(device).interface == "cuda"
        sets = [*SETS.values(), *(AWARE_SETS.values() if is_cuda else ())]

        def on_devices(run: Run) -> Run:
            ranks, _, per_node = run.layout
            count, per_rank = exchange.distribute_subdomains(subdomains, ranks, device, per_node)
            shape = exchange.weak_shape(run.n, count if scaling == "weak" else 1)
            command = run.command.with_options(subdomains_per_rank=per_rank)
            return replace(run, command=command, shape=shape, size_option=shape)

        for n, layout, methods in itertools.product(request.sizes or (64,), self.layouts(request), sets):
            command = request.command.with_options(decomposition="bisection", methods=methods)
            shape = exchange.weak_shape(n, 1)
            runs.append(Run(command, n, shape, layout, shape, {"scaling": scaling}, on_devices=on_devices))
        return runs


STUDY = Exchange(
    "exchange",
    title="Exchange of halos",
    about="Time the halo exchange alone, with transfer methods added one by one.",
    help="Four fields in single precision with halos of three cells are exchanged, as in Pearson et al. "
    "2020. The problem must be `exchange`. `halocline study ablation exchange` times more variants.",
    examples=("halocline study exchange exchange --n 64 --ranks 1,2 --subdomains 2",),
    contents=(Contents(transfers.tables, transfers.sentences),),
    options=(
        ("--scaling weak|strong", "N is the size of each subdomain (weak) or of the grid (strong).", "weak"),
        ("--subdomains S", f"{exchange.SUBDOMAINS_HELP}. Default: one for each rank or device.", None),
    ),
    subcommand="bench",
    compared_conditions=("methods", "methods_asked", "subdomains_per_rank"),
    ranks="2",
    repeat=3,
)
