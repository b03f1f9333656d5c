"""Binding of threads: OMP_PROC_BIND, OMP_PLACES and KMP_AFFINITY (UMBC HPCF-2018-10, Tables 4.1 to 4.3)."""

from __future__ import annotations

from halocline.study.measurement import Measurement
from halocline.study.reporting.comparison import comparison
from halocline.study.study import Study

UNBOUND: dict[str, str | None] = dict.fromkeys(("OMP_PROC_BIND", "OMP_PLACES", "KMP_AFFINITY"))


def binding(measurement: Measurement) -> str:
    """Return the binding of threads: "close", "KMP scatter" or "not set"."""
    environment = measurement["environment"]
    if environment.get("KMP_AFFINITY"):
        return f"KMP {environment['KMP_AFFINITY']}"
    return str(environment.get("OMP_PROC_BIND") or "not set")


STUDY = Study(
    "affinity",
    title="Affinity",
    about="Threads bound close together, spread, scattered by KMP_AFFINITY, or not at all.",
    help="OMP_PROC_BIND close and spread with OMP_PLACES=cores, and KMP_AFFINITY=scatter, as Tables 4.1 to "
    "4.3 of UMBC HPCF-2018-10, where they made no difference to a code without threads. The OpenMP libraries "
    "of Intel and LLVM read KMP_AFFINITY, and libgomp does not.",
    examples=("halocline study affinity poisson --n 1024 --ranks 1 --threads 2",),
    contents=(comparison("binding", binding),),
    variants=(
        {"environment": UNBOUND},
        {"environment": {**UNBOUND, "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}},
        {"environment": {**UNBOUND, "OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}},
        {"environment": {**UNBOUND, "KMP_AFFINITY": "scatter"}},
    ),
    ranks="1",
    threads="2",
    repeat=3,
)
