"""How a problem runs: what a user may choose, and no bit of a result depends on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from halocline.archive.files import as_path
from halocline.compile.halo import HALOS
from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.lang.grid import Grid, chosen
from halocline.lang.values import plain
from halocline.plan.communication import COMMUNICATIONS
from halocline.plan.devices import DeviceChoice
from halocline.plan.fit import least_thickness
from halocline.plan.layout import Layout, lay_out
from halocline.plan.placement import STRATEGIES as PLACEMENTS
from halocline.plan.traffic import Traffic
from halocline.plan.transfer import (
    BY_MPI,
    ON_DEVICES,
    PACKING,
    UNFIT_ON_DEVICES,
    UNFIT_ON_HOST,
    chosen_methods,
)
from halocline.ranges import MAILBOXES, RANKS, RANKS_PER_NODE, SUBDOMAINS, THREADS
from halocline.run.tuning.kernels import AUTO, WORDS
from halocline.run.tuning.patches import BY_CACHES, TUNE

SCHEDULES = ("guided", "static", "dynamic")
MOST_TRIED = 64  # other numbers of subdomains, where the grid cannot be cut as asked for


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
    decomposition : str, or sequence or mapping of int
        How the grid is cut into subdomains; see `halocline.plan.decompose`.
    patch : int, sequence or mapping of int, or {"tune", "caches"}, optional
        Shape of the patches, for all axes or by axis. "tune": where nothing is remembered for this program on
        such a machine, several are measured before the first run, and the fastest is remembered for later
        ones; "caches": chosen by cache size. Where not given, what is remembered, else by cache size.
    subdomains_per_rank : int
        How many subdomains each rank has; with devices, how many each of them has.
    ranks_per_node : int, optional
        Take as many consecutive ranks for a node, whatever machine they run on, to try on one machine what
        is decided for several. Nodes are what MPI says where not given.
    placement : {"aware", "trivial", "random"}
        Placement of the subdomains of a node on its devices: "aware", by the links between devices, so that
        messages take the least time on them; "trivial", in order; "random", drawn at random. Without devices,
        where ranks take the subdomains, or where all links are equal, "aware" is in order too.
    methods : str or sequence of str, optional
        The transfer methods that may be taken, of `halocline.plan.METHODS`; all but "rma" where not given.
        One process without MPI copies: by "self" where that is named, else by "peer".
    schedule : {"guided", "static", "dynamic"}
        Which thread of a rank runs which patch: "static", the one that the patch was given to, as many cells
        to each; "dynamic", whichever comes first; "guided", the one that it was given to, or one that has run
        all of its own.
    kernels : {"auto", "tune", "direct", "queue", "planes"}
        How threads of a device read the cells around theirs; see `halocline.compile.strategy.Strategy`.
        "tune": where nothing is remembered for this program on such devices, several ways are measured before
        the first run, and the fastest is remembered for later ones; "auto": what is remembered, else "queue".
    overlap : {"auto", True, False}
        Whether patches that need no message run before all messages of a sweep have come, to any subdomain of
        the rank. "auto": as the first passes of the loop show, some of which run with overlap and some
        without; see `halocline.run.tuning.overlap`.
    halo : {"read", "faces", "edges", "uniform"}
        What subdomains exchange: only what is read ("read"), or, as a baseline, all fields that are exchanged
        at all, each as wide as the widest, with all edges and corners ("uniform"), without corners of three
        axes that no field reads ("edges"), or without edges and corners that no field reads ("faces").
    packing : {"all", "last", "none"}
        Which messages by MPI are packed: all; those along the last axis, whose cells lie apart one by one;
        or, as a baseline, none. What is not packed MPI takes out of the fields by derived datatypes, and
        devices copy row by row.
    communication : str, optional
        One of `halocline.plan.communication.COMMUNICATIONS`, which chooses `halo`, `packing` and `overlap`;
        all messages then go by MPI.
    gpudirect : bool
        With `communication` on devices: MPI takes messages out of the memory of devices, and not by way of
        the host.
    balance : hc.steps, float or str, optional
        How often subdomains move between ranks, so that all ranks take equally long; as `every` of
        `Simulation.run`. See `Simulation.balance`.
    ranks_active : int, optional
        Number of ranks that hold subdomains, the first ones, node by node; the others wait for them. All
        where not given.
    trace : str or path, optional
        A file that is to hold what each thread, message and queue of a device did in runs of loops, in the
        format that Perfetto and chrome://tracing open: the first 20,000 events of each.
    mailboxes : int
        For each message by method "rma": with more of them a rank need not wait until a message is taken.

    Raises
    ------
    InputError
        A number or name that cannot be.
    """

    device: str | None = None
    threads: int | None = None
    decomposition: str | Sequence[int] | Mapping[str, int] = "optimal"
    patch: int | str | Sequence[int] | Mapping[str, int] | None = None
    subdomains_per_rank: int = 1
    ranks_per_node: int | None = None
    placement: str = "aware"
    methods: str | Iterable[str] | None = None
    mailboxes: int = 2
    schedule: str = "guided"
    kernels: str = "auto"
    overlap: bool | str = "auto"
    halo: str = "read"
    packing: str = "all"
    communication: str | None = None
    gpudirect: bool = False
    balance: Any = None
    ranks_active: int | None = None
    trace: str | Path | None = None

    def __post_init__(self) -> None:
        for option in fields(self):
            object.__setattr__(self, option.name, plain(getattr(self, option.name)))
        if self.trace is not None:
            as_path(self.trace, "trace")
        if self.threads is not None:
            THREADS.check("threads", self.threads)
        SUBDOMAINS.check("subdomains_per_rank", self.subdomains_per_rank)
        if self.ranks_per_node is not None:
            RANKS_PER_NODE.check("ranks_per_node", self.ranks_per_node)
        MAILBOXES.check("mailboxes", self.mailboxes)
        if self.ranks_active is not None:
            RANKS.check("ranks_active", self.ranks_active)
        object.__setattr__(self, "device", str(chosen_devices(self.device)))
        self._communicate()
        if self.methods is not None:
            object.__setattr__(self, "methods", chosen_methods(self.methods))
        if isinstance(self.patch, str) and self.patch not in (TUNE, BY_CACHES):
            raise InputError(f"patch {self.patch!r}: expected cells, {TUNE!r} or {BY_CACHES!r}")
        chosen("placement", self.placement, PLACEMENTS)
        chosen("kernels", self.kernels, WORDS)
        chosen("schedule", self.schedule, SCHEDULES)
        chosen("halo", self.halo, HALOS)
        chosen("packing", self.packing, tuple(PACKING))
        if not isinstance(self.overlap, bool) and self.overlap != "auto":
            raise InputError(f'overlap {self.overlap!r}: expected "auto", True or False')

    def _communicate(self) -> None:
        """Choose what the named way of communicating consists of."""
        if not isinstance(self.gpudirect, bool):
            raise InputError(f"gpudirect {self.gpudirect!r}: expected True or False")
        if self.communication is None:
            if self.gpudirect:
                raise InputError(
                    "gpudirect needs communication; without that, name gpu_aware among the methods"
                )
            return
        named = asdict(COMMUNICATIONS[chosen("communication", self.communication, [*COMMUNICATIONS])])
        del named["about"]
        named["methods"] = ("gpu_aware", "mpi") if self.gpudirect else ("mpi",)
        defaults = {each.name: each.default for each in fields(self)}
        for name, value in named.items():
            given, usual = getattr(self, name), defaults[name]
            if name == "methods" and given is not None:
                given = chosen_methods(given)
            if given not in (usual, value):
                raise InputError(
                    f"{name} is {given!r}, but communication {self.communication} chooses it: leave {name} "
                    "out"
                )
            object.__setattr__(self, name, value)

    @property
    def devices(self) -> DeviceChoice:
        """What computes."""
        return chosen_devices(self.device)

    @property
    def allowed_methods(self) -> tuple[str, ...]:
        """The transfer methods that may be taken, of those that fields where they are can take."""
        if self.devices.interface == "cpu":
            return tuple(name for name in chosen_methods(self.methods) if name not in UNFIT_ON_HOST)
        wanted = ON_DEVICES if self.methods is None else chosen_methods(self.methods)
        return tuple(name for name in ON_DEVICES if name in wanted)

    @property
    def ignored(self) -> tuple[str, ...]:
        """What was chosen and means nothing to what computes: a notice for each."""
        on_host = self.devices.interface == "cpu"
        unfit, between = (UNFIT_ON_HOST, "") if on_host else (UNFIT_ON_DEVICES, " between devices")
        said = [
            f"transfer method {name} is not taken{between}: {why}"
            for name, why in unfit.items()
            if name in (self.methods or ())
        ]
        others = [name for name in self.allowed_methods if name not in BY_MPI]
        if self.packing != "all" and others:  # messages are to be sent as they lie, but do not go by MPI
            first = "comes" if len(others) == 1 else "come"
            said.append(
                f"packing {self.packing} is for messages by MPI, and {', '.join(others)} {first} first: take "
                "methods mpi to see what it does"
            )
        if on_host and self.kernels != AUTO:
            said.append(f"kernels {self.kernels}: ignored, since the device is cpu")
        if not on_host and (self.threads or 1) > 1:
            said.append(
                f"threads {self.threads}: ignored, since one thread of each rank looks after its devices"
            )
        if not on_host and self.schedule != SCHEDULES[0]:
            said.append(f"schedule {self.schedule}: ignored, since no threads share out the work of devices")
        return tuple(said)

    @property
    def patch_shape(self) -> int | Sequence[int] | Mapping[str, int] | None:
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
        """Which of `ranks` ranks, with `devices` devices each, has which subdomains of a grid; `distance` as
        for `halocline.plan.lay_out`."""
        cut = partial(
            lay_out,
            grid.shape,
            ranks,
            ranks_per_node=ranks_per_node,
            strategy=self.decomposition,
            traffic=Traffic.of_schedule(schedule),
            thickness=least_thickness(schedule),
            periodic=grid.periodic,
            nodes_of_ranks=nodes_of_ranks,
            placement=self.placement,
        )
        try:
            return cut(subdomains_per_rank=self.subdomains_per_rank * devices, distance=distance)
        except InputError as error:
            raise InputError(f"{error}{self._that_fits(cut, ranks, devices)}") from None

    def _that_fits(self, cut: Callable[..., Layout], ranks: int, devices: int) -> str:
        """What to say where the grid cannot be cut: other numbers with which it can, each tried."""
        each, said = self.subdomains_per_rank, []
        nearest = sorted(range(1, 2 * each + MOST_TRIED), key=lambda k: (abs(k - each), k))[:MOST_TRIED]
        subdomains = next((k for k in nearest if k != each and _fits(cut, k * devices)), None)
        if subdomains is not None:
            whose = "rank" if self.devices.interface == "cpu" else "device"
            many = f"{subdomains} subdomain{'' if subdomains == 1 else 's'}"
            said.append(f"take {many} a {whose} (--subdomains-per-rank {subdomains})")
        fewer = next((d for d in range(devices - 1, 0, -1) if _fits(cut, each * d)), None)
        if fewer is not None:
            interface, indices = self.devices.interface, self.devices.indices or range(fewer)
            such = f"{interface}:{','.join(map(str, indices[:fewer]))}"
            alone = f"name fewer devices than {devices}, such as {such}"
            said.append(alone if ranks == 1 else f"give each rank {fewer} of its {devices} devices")
        return "; " * bool(said) + ", or ".join(said)


def _fits(cut: Callable[..., Layout], subdomains: int) -> bool:
    """Return True where the grid can be cut into `subdomains` for each rank."""
    try:
        cut(subdomains_per_rank=subdomains)
    except InputError:
        return False
    return True


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
