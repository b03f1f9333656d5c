"""Execution options of a problem. They do not change any bit of the results."""

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
from halocline.lang.grid import Grid, checked_choice
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
MOST_TRIED = 64  # maximum number of subdomain counts to test for advice if a decomposition is impossible


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Options of a run.

    Parameters
    ----------
    device : str, optional
        Hardware that computes: "cpu", "cuda" or "opencl". "cuda" and "opencl" select all visible devices, or
        only the devices whose indices follow a colon, as in "cuda:0,1". The devices of a node are divided
        among its ranks, and each device has a subdomain. Default: HALOCLINE_DEVICE, else "cpu".
    threads : int, optional
        Number of threads per rank. Default: OMP_NUM_THREADS, else an equal share of the cores of the node. A
        rank with devices has one thread, which controls the devices.
    decomposition : str, or sequence or mapping of int
        Decomposition of the grid into subdomains; see `halocline.plan.decompose`.
    patch : int, sequence or mapping of int, or {"tune", "caches"}, optional
        Edge length of the patches in cells, for all axes or by axis. "caches" selects the shape by cache
        size. "tune" uses the stored measurement of this program on the same kind of machine. If no
        measurement is stored, several shapes are measured before the first run, and the fastest is stored.
        Default: the stored measurement, else the shape by cache size.
    subdomains_per_rank : int
        Number of subdomains per rank, or per device if the run uses devices.
    ranks_per_node : int, optional
        Number of consecutive ranks that count as one node. With this option, one machine can test a layout
        for several nodes. Default: the nodes that MPI reports.
    placement : {"aware", "trivial", "random"}
        Placement of the subdomains of a node on its devices. "aware" minimises the time of messages on the
        links between devices. "trivial" assigns subdomains to devices in order, and "random" in a random
        order. Without devices or with equal links, "aware" is the same as "trivial".
    methods : str or sequence of str, optional
        Allowed transfer methods from `halocline.plan.METHODS`. Default: all except "rma". A process without
        MPI uses "self" if this method is allowed, else "peer".
    schedule : {"guided", "static", "dynamic"}
        Schedule of threads. "static" gives each thread the same number of cells in fixed patches. "dynamic"
        gives a patch to the first idle thread. "guided" starts as "static", and a thread without remaining
        patches takes patches of other threads.
    kernels : {"auto", "tune", "direct", "queue", "planes"}
        Method by which threads of a device read neighbouring cells; see
        `halocline.compile.strategy.Strategy`. "tune" uses the stored measurement of this program on the same
        kind of device. If no measurement is stored, several methods are measured before the first run, and
        the fastest is stored. "auto" uses the stored measurement, else "queue".
    overlap : {"auto", True, False}
        If True, while the messages of a sweep are in transit, a rank computes the patches that need no
        messages. If False, it first waits for the messages of all its subdomains. "auto" measures both cases
        in the first passes of a loop; see `halocline.run.tuning.overlap`.
    halo : {"read", "faces", "edges", "uniform"}
        Extent of the exchanged halos. "read" exchanges only the cells that are read. The other values are
        baselines, which use the maximum halo width for all exchanged fields. "uniform" exchanges all faces,
        edges and corners. "edges" exchanges corners in 3D only if a kernel reads them. "faces" exchanges
        edges and corners only if a kernel reads them.
    packing : {"all", "last", "none"}
        MPI messages that are packed: all messages, only messages along the last axis (because their cells are
        not contiguous), or none (a baseline). MPI reads unpacked messages directly from the fields, by
        derived datatypes. Devices copy unpacked messages row by row.
    communication : str, optional
        Key of `halocline.plan.communication.COMMUNICATIONS`, which determines the values of `halo`, `packing`
        and `overlap`. All messages then use MPI.
    gpudirect : bool
        True if MPI reads messages from device memory instead of host memory. Requires `communication` and
        devices.
    balance : hc.steps, float or str, optional
        Interval between balances. A balance moves subdomains between ranks, so that all ranks take the same
        time (see `Simulation.balance`). The accepted values are the same as for `every` of `Simulation.run`.
    ranks_active : int, optional
        Number of ranks that hold subdomains. These are the first ranks, node by node; the other ranks wait.
        Default: all ranks.
    trace : str or path, optional
        File for a trace of each thread, message and device queue in runs of loops. The format is that of
        Perfetto and chrome://tracing. At most the first 20,000 events of each thread or queue are written.
    mailboxes : int
        Number of mailboxes per message of the method "rma". With more mailboxes, a rank need not wait until
        the receiver has read the previous message.

    Raises
    ------
    InputError
        A number or name is invalid.
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
            raise InputError(
                f"patch {self.patch!r}: expected edge lengths in cells, {TUNE!r} or {BY_CACHES!r}"
            )
        checked_choice("placement", self.placement, PLACEMENTS)
        checked_choice("kernels", self.kernels, WORDS)
        checked_choice("schedule", self.schedule, SCHEDULES)
        checked_choice("halo", self.halo, HALOS)
        checked_choice("packing", self.packing, tuple(PACKING))
        if not isinstance(self.overlap, bool) and self.overlap != "auto":
            raise InputError(f'overlap {self.overlap!r}: expected "auto", True or False')

    def _communicate(self) -> None:
        """Set the options that `communication` determines."""
        if not isinstance(self.gpudirect, bool):
            raise InputError(f"gpudirect {self.gpudirect!r}: expected True or False")
        if self.communication is None:
            if self.gpudirect:
                raise InputError(
                    "gpudirect needs the option communication. Without this option, add gpu_aware to methods."
                )
            return
        settings = asdict(
            COMMUNICATIONS[checked_choice("communication", self.communication, [*COMMUNICATIONS])]
        )
        del settings["about"]
        settings["methods"] = ("gpu_aware", "mpi") if self.gpudirect else ("mpi",)
        defaults = {option.name: option.default for option in fields(self)}
        for name, value in settings.items():
            setting, default = getattr(self, name), defaults[name]
            if name == "methods" and setting is not None:
                setting = chosen_methods(setting)
            if setting not in (default, value):
                raise InputError(
                    f"{name} is {setting!r}, but communication {self.communication} sets it. Leave {name} "
                    "out."
                )
            object.__setattr__(self, name, value)

    @property
    def devices(self) -> DeviceChoice:
        """Devices that compute, or the CPU."""
        return chosen_devices(self.device)

    @property
    def allowed_methods(self) -> tuple[str, ...]:
        """Transfer methods that the user and the kind of hardware allow."""
        if self.devices.interface == "cpu":
            return tuple(name for name in chosen_methods(self.methods) if name not in UNFIT_ON_HOST)
        requested = ON_DEVICES if self.methods is None else chosen_methods(self.methods)
        return tuple(name for name in ON_DEVICES if name in requested)

    @property
    def ignored_options(self) -> tuple[str, ...]:
        """Texts that report options without effect on the selected hardware."""
        on_host = self.devices.interface == "cpu"
        unfit, between = (UNFIT_ON_HOST, "") if on_host else (UNFIT_ON_DEVICES, " between devices")
        notices = [
            f"transfer method {name} is not used{between}: {reason}"
            for name, reason in unfit.items()
            if name in (self.methods or ())
        ]
        methods = [name for name in self.allowed_methods if name not in BY_MPI]
        if self.packing != "all" and methods:  # packing concerns MPI messages only
            verb = "has" if len(methods) == 1 else "have"
            notices.append(
                f"packing {self.packing} applies only to MPI messages, but {', '.join(methods)} {verb} "
                "priority over MPI. Use methods mpi to measure the effect of packing."
            )
        if on_host and self.kernels != AUTO:
            notices.append(f"kernels {self.kernels}: ignored, since the device is cpu")
        if not on_host and (self.threads or 1) > 1:
            notices.append(
                f"threads {self.threads}: ignored, since one thread of each rank controls its devices"
            )
        if not on_host and self.schedule != SCHEDULES[0]:
            notices.append(
                f"schedule {self.schedule}: ignored, since the work of devices is not distributed over "
                "threads"
            )
        return tuple(notices)

    @property
    def patch_shape(self) -> int | Sequence[int] | Mapping[str, int] | None:
        """Shape of the patches in cells, if the user specified it; otherwise None."""
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
        """Return the layout of subdomains on ranks.

        Parameters
        ----------
        schedule : Schedule
            Compiled program. It determines the traffic between subdomains and their minimum thickness.
        grid : Grid
            Grid to decompose.
        ranks : int
            Number of ranks.
        ranks_per_node : int, optional
            Number of ranks per node; see `Communicator`.
        nodes_of_ranks : tuple of int
            Node of each rank, or empty; see `Communicator`.
        devices : int
            Number of devices per rank.
        distance : matrix of float, optional
            Seconds per byte between the subdomain slots of a node; see `halocline.plan.lay_out`.

        Raises
        ------
        InputError
            The grid cannot be decomposed.
        """
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
            advice = self._fitting_advice(cut, ranks, devices)
            raise InputError(f"{str(error).rstrip('.')}. {advice}" if advice else str(error)) from None

    def _fitting_advice(self, cut: Callable[..., Layout], ranks: int, devices: int) -> str:
        """Return advice for a grid that cannot be decomposed: numbers of subdomains or devices that work."""
        count, advice = self.subdomains_per_rank, []
        nearest = sorted(range(1, 2 * count + MOST_TRIED), key=lambda k: (abs(k - count), k))[:MOST_TRIED]
        subdomains = next((k for k in nearest if k != count and _fits(cut, k * devices)), None)
        if subdomains is not None:
            owner = "rank" if self.devices.interface == "cpu" else "device"
            subdomain_text = f"{subdomains} subdomain{'' if subdomains == 1 else 's'}"
            advice.append(f"use {subdomain_text} per {owner} (--subdomains-per-rank {subdomains})")
        fewer = next((d for d in range(devices - 1, 0, -1) if _fits(cut, count * d)), None)
        if fewer is not None:
            interface, indices = self.devices.interface, self.devices.indices or range(fewer)
            device_text = f"{interface}:{','.join(map(str, indices[:fewer]))}"
            device_advice = f"select fewer devices than {devices}, such as {device_text}"
            advice.append(device_advice if ranks == 1 else f"give each rank {fewer} of its {devices} devices")
        text = ", or ".join(advice)
        return text[:1].upper() + text[1:]


def _fits(cut: Callable[..., Layout], subdomains: int) -> bool:
    """Return True if the grid can be decomposed into the given number of subdomains per rank."""
    try:
        cut(subdomains_per_rank=subdomains)
    except InputError:
        return False
    return True


def chosen_devices(device: str | None) -> DeviceChoice:
    """Return the devices that `device` selects; by default those of HALOCLINE_DEVICE, else the CPU.

    Raises
    ------
    InputError
        The text does not name devices.
    """
    if device is not None:
        return DeviceChoice.parse(device)
    try:
        return DeviceChoice.parse(os.environ.get("HALOCLINE_DEVICE") or "cpu")
    except InputError as error:
        raise InputError(f"HALOCLINE_DEVICE: {error}") from None
