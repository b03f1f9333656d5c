"""Differences of fields between layouts, in units in the last place (Pekkilä et al. 2022, Eqs. 15 and 16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from halocline.errors import RunError
from halocline.io.table import Table
from halocline.run.measurements.ulps import ulps_of_states
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.reference import with_notes
from halocline.study.reporting.report import Column, Contents, Group, ordered_rows, row_table
from halocline.study.studies.devices import device_variants
from halocline.study.study import Run, Study, StudyRequest, VariedOption

NOTE = "Differences are relative to the first run on the same grid, value by value."
DECOMPOSITION = Column("decomposition", lambda m, g: m.get("decomposition") or "")
ULPS = Column("maximum\ndifference, ulps", lambda m, g: q.text(m.get("ulps")))


class Layouts(Study):
    """Study that compares the final fields of its runs."""

    def runs(self, request: StudyRequest) -> list[Run]:
        """Return the runs. Each run writes its fields to a file."""
        runs = enumerate(super().runs(request))
        return [replace(run, extra={"--state": str(request.scratch / f"{k}.npz")}) for k, run in runs]

    def add_derived_results(self, runs: Sequence[Run], measurements: list[Measurement]) -> list[Measurement]:
        """Return the measurements with the maximum difference from the first run on the same grid."""
        references: dict[tuple[int, ...], str] = {}
        for run, measurement in zip(runs, measurements, strict=True):
            state = run.extra["--state"]
            ulps = ulps_of_states(references.setdefault(run.shape, state), state)
            if math.isinf(ulps):
                raise RunError(
                    f"{run.description}: a value is finite in this run or in the first run on the same "
                    "grid, but not in both runs. Please report this as a bug."
                )
            measurement["ulps"] = ulps
        return measurements


def _tables(group: Group) -> Iterator[Table]:
    for size in group.split(q.grid):
        rows = ordered_rows(size, lambda m: (m.get("device") or "", m["ranks"], m.get("decomposition") or ""))
        options = {"note": with_notes("layouts", size, NOTE), "heading": q.heading(size.first)}
        yield row_table("Differences", (c.LAYOUT, DECOMPOSITION, ULPS), rows, left=2, **options)


STUDY = Layouts(
    "layouts",
    title="Differences between layouts",
    about="Compare fields between decompositions, numbers of ranks, and devices.",
    help="The report contains the maximum difference between the fields at the end of the runs (Eqs. 15 and "
    "16 of Pekkilä et al. 2022). The difference is in units in the last place.",
    examples=("halocline study layouts mhd-benchmark --n 32 --steps 1 --ranks 1,2,4",),
    contents=(c.SAME_BITS, Contents(_tables)),
    variants=device_variants,
    varied_options=(
        VariedOption(
            "decomposition", "--decomposition D,D,...", "Decompositions, one run for each.", "optimal,1d"
        ),
    ),
    ranks="1,2,4",
)
