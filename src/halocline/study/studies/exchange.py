"""The exchange of halos alone, by each set of transfer methods (Pearson et al. 2020, Fig. 12)."""

from __future__ import annotations

import itertools

from halocline.errors import InputError
from halocline.plan.transfer import SETS
from halocline.study.measuring.exchange import into_a_rank, weak_shape
from halocline.study.reporting.comparison import comparison
from halocline.study.reporting.report import Column
from halocline.study.study import Asked, Run, Study
from halocline.words import duration

NAMES = {methods: name for name, methods in SETS.items()}


class Exchange(Study):
    """Study on `halocline bench exchange`."""

    footer = "Time is that of one exchange on the slowest rank: the median of runs of 30."

    def runs(self, asked: Asked) -> list[Run]:
        """Return a run for each set of transfer methods."""
        if asked.command.name != "exchange":
            raise InputError(f"{asked.command.name}: this study is of the exchange alone; say exchange")
        scaling = asked.given.get("scaling") or "weak"
        runs = []
        for n, layout in itertools.product(asked.sizes or (64,), self.layouts(asked)):
            shape = weak_shape(n, layout.ranks if scaling == "weak" else 1)
            for methods in SETS.values():
                command = asked.command.but(scaling=scaling, methods=methods)
                if layout.ranks > 1 or "peer" in methods:
                    runs.append(Run(command, n, shape, layout, n))
        return runs


STUDY = Exchange(
    "exchange",
    title="The exchange of halos",
    about="The exchange alone, by each set of transfer methods.",
    help="Four fields of single precision with halos of three layers, as Pearson et al. 2020; say exchange "
    "for the problem. `halocline study ablation exchange` times more variants, in turn.",
    examples=("halocline study exchange exchange --n 64 --ranks 2",),
    contents=(
        comparison(
            "methods",
            lambda m: NAMES.get(m["methods_asked"], f"{m['methods_asked']}"),
            Column("an exchange", lambda m, g: duration(m["seconds"])),
            Column("into a rank", lambda m, g: into_a_rank(m)),
        ),
    ),
    options=(("--scaling weak|strong", "Whether N belongs to a rank, or is that of the grid.", "weak"),),
    verb="bench",
    compares=("methods", "methods_asked"),
    ranks="2",
    repeat=3,
)
