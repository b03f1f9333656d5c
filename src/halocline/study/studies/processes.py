"""Study that compares one process per node with one per subdomain (Pekkilä et al. 2022, Section 6)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from halocline.errors import InputError
from halocline.study.layout import Layout
from halocline.study.measurement import Measurement
from halocline.study.reporting import columns as c
from halocline.study.reporting import quantities as q
from halocline.study.reporting.comparison import comparison
from halocline.study.reporting.reference import with_notes
from halocline.study.study import Run, Study, StudyRequest

COPIES = {"methods": "self,peer", "decomposition": "1d"}
MESSAGES = {"methods": "mpi"}


def process_mode(measurement: Measurement) -> str:
    """Return "one process, copies" or "processes, MPI"."""
    return "one process, copies" if "peer" in str(measurement["methods"]) else "processes, MPI"


def _in_one_process(run: Run) -> Run:
    """Return a run as one process with all subdomains, if it has the transfer methods of COPIES.

    Any other run is returned unchanged.
    """
    if run.command.methods != COPIES["methods"]:
        return run
    from halocline.run.domain.execution import chosen_devices

    on_devices, (ranks, threads, _) = chosen_devices(run.command.device).interface != "cpu", run.layout
    if run.layout.nodes > 1:
        raise InputError(
            f"--nodes {run.layout.nodes}: the study compares processes of one node. Use --nodes 1."
        )
    node_options = {"subdomains_per_rank": 1 if on_devices else ranks}
    facts = {**run.facts, "varied": {**run.facts["varied"], **node_options}}
    layout = Layout(1, 1 if on_devices else ranks * threads)
    return replace(run, command=run.command.with_options(**node_options), layout=layout, facts=facts)


class Processes(Study):
    """Study that distributes the same subdomains over one process and over several processes."""

    def runs(self, request: StudyRequest) -> list[Run]:
        """Return the runs with several processes, and the runs with all subdomains in one process."""
        return [_in_one_process(run) for run in super().runs(request)]


STUDY = Processes(
    "processes",
    title="Processes per node",
    about="Compare one process with many subdomains to one process per subdomain.",
    help="A single process copies halo cells between its subdomains, and several processes send MPI "
    "messages, as in Section 6 of Pekkilä et al. 2022. On CPUs, the single process divides the grid along "
    "one axis, with one subdomain for each rank of the run with several processes. With devices, it uses all "
    "devices.",
    examples=("halocline study processes mhd-benchmark --n 64 --ranks 2",),
    contents=(
        c.SAME_BITS,
        comparison("", process_mode, layout=q.units, note=partial(with_notes, "processes")),
    ),
    variants=(MESSAGES, COPIES),
    ranks="2",
    repeat=3,
)
