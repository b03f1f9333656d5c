"""Ablation study: each run changes one option of the baseline."""

from __future__ import annotations

from typing import Any

from halocline.study.measurement import Measurement
from halocline.study.reporting.comparison import comparison
from halocline.study.study import Study

BASE = "baseline"
CHANGES: dict[str, dict[str, Any]] = {
    BASE: {},
    "uniform halo width, with corners": {"halo": "uniform"},
    "no overlap": {"overlap": "off"},
    "no packing of messages": {"packing": "none", "methods": "self,peer,mpi"},
    "MPI only (+remote)": {"methods": "mpi"},
    "MPI and shared memory (+colo)": {"methods": "colocated,mpi"},
    "mailboxes": {"methods": "self,peer,rma,mpi"},
    "slabs": {"decomposition": "1d"},
    "patches by cache size": {"patch": "caches"},
    "static schedule": {"schedule": "static"},
}


def change(measurement: Measurement) -> str:
    """Return the name of the change of a run, or its options if the change has no name."""
    varied = measurement.get("varied", {})
    options = ", ".join(f"{option} {value}" for option, value in varied.items())
    return next((name for name, options_of_change in CHANGES.items() if options_of_change == varied), options)


def _sort_key(measurement: Measurement) -> tuple[int, str]:
    """Return the sort key of a run, by the order of `CHANGES`. Other changes are last."""
    name = change(measurement)
    return (list(CHANGES).index(name) if name in CHANGES else len(CHANGES)), name


STUDY = Study(
    "ablation",
    title="Ablation",
    about="Measure the effect of options on the time, with one changed option at a time.",
    help="Each run changes one option of the baseline: halo widths (uniform), overlap (off), packing, "
    "transfer methods, decomposition, patch or schedule. `halocline study ablation exchange` times the "
    "exchange alone.",
    examples=("halocline study ablation mhd-benchmark --n 32 --ranks 2",),
    contents=(comparison("", change, order=_sort_key, base=BASE),),
    variants=tuple(CHANGES.values()),
    ranks="2",
    repeat=3,
)
