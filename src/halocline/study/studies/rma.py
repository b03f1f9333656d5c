"""Study of one-sided and two-sided messages of threaded ranks (Mendygral et al. 2017, Fig. 8, right)."""

from __future__ import annotations

from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting.comparison import comparison
from halocline.study.studies.weak import Weak
from halocline.study.study import Sweep


def label(measurement: Measurement) -> str:
    """Return "rma" for one-sided messages, else the transfer methods of the run."""
    methods = str(measurement["methods"])
    return next((name for name in ("rma", "gpu_aware", "mpi") if name in methods.split(",")), methods)


STUDY = Weak(
    "rma",
    title="One-sided messages",
    about="Messages through mailboxes by MPI's one-sided communication, and by two-sided MPI.",
    help="N cells a rank along the first axis, on ranks of one and of several threads, any of which makes "
    "messages progress. Mendygral et al. 2017 (Fig. 8, right) compare MPI libraries that let one thread, or "
    "all threads at once, into one-sided communication.",
    examples=("halocline study rma blast --n 32 --ranks 2 --threads 1,2",),
    contents=(
        c.SAME_BITS,
        comparison("messages", label, c.UPDATE, base="mpi"),
    ),
    sweeps=(
        Sweep(
            "methods",
            "--methods M,M;M,M",
            "Transfer methods of each run.",
            "self,peer,mpi;self,peer,rma,mpi",
        ),
    ),
    ranks="2",
    threads="1,2",
)
