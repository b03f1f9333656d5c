"""Study of one-sided and two-sided messages of threaded ranks (Mendygral et al. 2017, Fig. 8, right)."""

from __future__ import annotations

from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting.comparison import comparison
from halocline.study.studies.weak import Weak
from halocline.study.study import VariedOption


def label(measurement: Measurement) -> str:
    """Return the method of messages between ranks, such as "rma" for one-sided messages."""
    methods = str(measurement["methods"])
    return next((name for name in ("rma", "gpu_aware", "mpi") if name in methods.split(",")), methods)


STUDY = Weak(
    "rma",
    title="One-sided messages",
    about="Compare one-sided MPI communication through mailboxes with two-sided MPI.",
    help="Each rank has N cells along the first axis, and one or several threads. Any thread can make "
    "progress on messages. Mendygral et al. 2017 (Fig. 8, right) compare two MPI libraries: one in which one "
    "thread at a time uses one-sided communication, and one in which all threads use it at once.",
    examples=("halocline study rma blast --n 32 --ranks 2 --threads 1,2",),
    contents=(
        c.SAME_BITS,
        comparison("messages", label, c.UPDATE, base="mpi"),
    ),
    varied_options=(
        VariedOption(
            "methods",
            "--methods M,M;M,M",
            "Transfer methods, one run for each list.",
            "self,peer,mpi;self,peer,rma,mpi",
        ),
    ),
    ranks="2",
    threads="1,2",
)
