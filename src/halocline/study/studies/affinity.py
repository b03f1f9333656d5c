"""Binding of threads: OMP_PROC_BIND and OMP_PLACES (UMBC HPCF-2018-10, Tables 4.1 to 4.3)."""

from __future__ import annotations

from halocline.study.measurement import Measurement
from halocline.study.reporting.comparison import comparison
from halocline.study.study import Study


def binding(measurement: Measurement) -> str:
    """Return the binding of threads."""
    return str(measurement["environment"].get("OMP_PROC_BIND") or "not set")


STUDY = Study(
    "affinity",
    title="Affinity",
    about="Threads bound close together, spread, or not at all.",
    help="OMP_PROC_BIND close, spread and false with OMP_PLACES=cores, as Tables 4.1 to 4.3 of UMBC "
    "HPCF-2018-10, where they made no difference to a code without threads.",
    examples=("halocline study affinity poisson --n 1024 --ranks 1 --threads 2",),
    contents=(comparison("OMP_PROC_BIND", binding),),
    variants=tuple(
        {"environment": {"OMP_PROC_BIND": each, "OMP_PLACES": "cores"}}
        for each in ("close", "spread", "false")
    ),
    ranks="1",
    threads="2",
    repeat=3,
)
