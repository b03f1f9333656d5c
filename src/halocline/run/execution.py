"""How a problem runs: what a user may choose, and no bit of a result depends on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from halocline.compile.halo import HALOS
from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.lang.grid import Grid
from halocline.plan.devices import DeviceChoice
from halocline.plan.fit import least_thickness
from halocline.plan.layout import Layout, lay_out
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import chosen_methods
from halocline.run.kernels import check_kernels
from halocline.run.tuning import BY_CACHES, TUNE

SCHEDULES = ("guided", "static", "dynamic")


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The options of a run.

    Parameters
    ----------
    device : str, optional
        What computes: "cpu", or devices with memory of their own, "cuda" or "opencl": all that the process
        sees, or those with the numbers that follow a colon, as in "cuda:0,1". Each has a subdomain; the
        ranks of a node share them out among themselves. HALOCLINE_DEVICE where not given, else "cpu".
    threads : int, optional
        Per rank; OMP_NUM_THREADS, else the cores of the node shared among its ranks. A rank with devices has
        one, which looks after these.
    decomposition : str or sequence of int
        How the grid is cut into subdomains; see `halocline.plan.decompose`.
    patch : int or sequence of int, or {"tune", "caches"}, optional
        Shape of the patches. "tune": where nothing is remembered for this program on such a machine, several
        are measured before the first run, and the fastest is remembered for later ones; "caches": chosen by
        cache size. Where not given, what is remembered, else by cache size.
    subdomains_per_rank : int
        How many subdomains each rank has; with devices, how many each of them has.
    ranks_per_node : int, optional
        Take as many consecutive ranks for a node, whatever machine they run on, to try on one machine what
        is decided for several. Nodes are what MPI says where not given.
    methods : str or sequence of str, optional
        The transfer methods that may be taken, of `halocline.plan.METHODS`; all but "rma" where not given.
        One process without MPI copies, whatever is named.
    schedule : {"guided", "static", "dynamic"}
        Which thread of a rank runs which patch: "static", the one that the patch was given to, as many cells
        to each; "dynamic", whichever comes first; "guided", the one that it was given to, or one that has run
        all of its own.
    kernels : {"auto", "tune", "direct", "queue", "planes"}
        How threads of a device read the cells around theirs; see `halocline.compile.device.Strategy`. "tune":
        where nothing is remembered for this program on such devices, several ways are measured before the
        first run, and the fastest is remembered for later ones; "auto": what is remembered, else "queue".
    overlap : {"auto", True, False}
        Whether patches that need no message run before all messages of a sweep have come, to any subdomain of
        the rank. "auto": as the first passes of the loop show, some of which run with overlap and some
        without; see `halocline.run.overlap`.
    halo : {"read", "uniform"}
        What travels between subdomains: only what is read, or, to see what that is worth, all fields that
        travel at all, each as wide as the widest, with all edges and corners.
    trace : str or path, optional
        A file that is to hold what each thread and message did in runs of loops, in the format that Perfetto
        and chrome://tracing open: the first 20,000 things of each thread.
    mailboxes : int
        For each message by method "rma": with more of them a rank need not wait until a message is taken.

    Raises
    ------
    InputError
        A number or name that cannot be.
    """

    device: str | None = None
    threads: int | None = None
    decomposition: str | Sequence[int] = "optimal"
    patch: int | str | Sequence[int] | None = None
    subdomains_per_rank: int = 1
    ranks_per_node: int | None = None
    methods: str | Iterable[str] | None = None
    mailboxes: int = 2
    schedule: str = "guided"
    kernels: str = "auto"
    overlap: bool | str = "auto"
    halo: str = "read"
    trace: str | Path | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("threads", None),
            ("subdomains_per_rank", 1),
            ("ranks_per_node", None),
            ("mailboxes", 1),
        ):
            number = getattr(self, name)
            if number is None and least is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise InputError(f"{name} {number!r}: expected a whole number from 1")
        object.__setattr__(self, "device", str(chosen_devices(self.device)))
        if self.methods is not None:
            object.__setattr__(self, "methods", chosen_methods(self.methods))
        if isinstance(self.patch, str) and self.patch not in (TUNE, BY_CACHES):
            raise InputError(f"patch {self.patch!r}: expected cells, {TUNE!r} or {BY_CACHES!r}")
        if self.schedule not in SCHEDULES:
            raise InputError(f"schedule {self.schedule!r} is unknown; known are {', '.join(SCHEDULES)}")
        check_kernels(self.kernels)
        if self.halo not in HALOS:
            raise InputError(f"halo {self.halo!r} is unknown; known are {', '.join(HALOS)}")
        if not isinstance(self.overlap, bool) and self.overlap != "auto":
            raise InputError(f'overlap {self.overlap!r}: expected "auto", True or False')

    @property
    def devices(self) -> DeviceChoice:
        """What computes."""
        return chosen_devices(self.device)

    @property
    def patch_shape(self) -> int | Sequence[int] | None:
        """The patches that the user named in cells."""
        return None if isinstance(self.patch, str) else self.patch

    def layout(
        self,
        schedule: Schedule,
        grid: Grid,
        ranks: int,
        ranks_per_node: int | None = None,
        nodes_of_ranks: tuple[int, ...] = (),
        devices: int = 1,
        distance: Sequence[Sequence[float]] | None = None,
    ) -> Layout:
        """Which of so many ranks, with so many devices each, has which subdomains of a grid; `distance` as
        for `halocline.plan.lay_out`."""
        return lay_out(
            grid.shape,
            ranks,
            ranks_per_node=ranks_per_node,
            subdomains_per_rank=self.subdomains_per_rank * devices,
            strategy=self.decomposition,
            traffic=Traffic.of_schedule(schedule),
            thickness=least_thickness(schedule),
            periodic=grid.periodic,
            distance=distance,
            nodes_of_ranks=nodes_of_ranks,
        )


def chosen_devices(device: str | None) -> DeviceChoice:
    """What a user chose to compute on: what `device` says, else HALOCLINE_DEVICE, else the CPU.

    Raises
    ------
    InputError
        It names no devices.
    """
    if device is not None:
        return DeviceChoice.parse(device)
    try:
        return DeviceChoice.parse(os.environ.get("HALOCLINE_DEVICE") or "cpu")
    except InputError as error:
        raise InputError(f"HALOCLINE_DEVICE: {error}") from None
