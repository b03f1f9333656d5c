"""Devices: which ones a user chose, which rank of a node drives which, and which takes which subdomain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halocline.errors import InputError

INTERFACES = ("cuda", "opencl")
EXPECTED = "expected cpu, cuda or opencl, with the numbers of devices if not all are meant, such as cuda:0,1"


@dataclass(frozen=True)
class DeviceChoice:
    """What a user chose to compute on.

    Attributes
    ----------
    interface : {"cpu", "cuda", "opencl"}
    indices : tuple of int
        Devices by the numbers that each process counts them with, in the order of their subdomains. Empty:
        all that it sees; of OpenCL all of the first one's platform.
    """

    interface: str = "cpu"
    indices: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> DeviceChoice:
        """The choice that a text such as "cpu", "cuda" or "opencl:0,1" makes.

        Raises
        ------
        InputError
            There is no such interface, or what follows the colon are no numbers of devices.
        """
        if not isinstance(text, str):
            raise InputError(f"device {text!r} is no text; {EXPECTED}")
        interface, colon, numbers = text.strip().partition(":")
        if interface == "cpu":
            if colon:
                raise InputError(
                    f"device {text!r}: cpu takes no numbers; threads= and OMP_PLACES choose cores"
                )
            return cls()
        if interface not in INTERFACES:
            raise InputError(f"device {text!r}: {interface!r} is no interface; {EXPECTED}")
        if not colon:
            return cls(interface)
        indices: list[int] = []
        for number in (part.strip() for part in numbers.split(",")):
            if not (number.isascii() and number.isdigit()):
                raise InputError(f"device {text!r}: {number!r} is no number of a device; {EXPECTED}")
            if int(number) in indices:
                raise InputError(
                    f"device {text!r} names {int(number)} twice; expected each device once (ranks share "
                    "one where there are more of them)"
                )
            indices.append(int(number))
        return cls(interface, tuple(indices))

    def __str__(self) -> str:
        return self.interface + (":" + ",".join(map(str, self.indices)) if self.indices else "")

    def among(self, platforms: Sequence[str], why: str = "") -> tuple[int, ...]:
        """The numbers of the chosen devices, where a process sees some of the interface.

        Parameters
        ----------
        platforms : sequence of str
            Of each of them. Devices of different ones reach none of each other's memory.
        why : str
            Why there are none.

        Raises
        ------
        InputError
            It sees none, or not all that are named, or these are of different platforms.
        """
        seen = len(platforms)
        if self.interface == "cpu":
            return ()
        if seen == 0:
            said = f" ({why})" if why else ""
            raise InputError(
                f"device {str(self)!r}: there is none{said}; see `halocline doctor`, or take cpu"
            )
        missing = [index for index in self.indices if index >= seen]
        if missing:
            indices = "only 0" if seen == 1 else f"those from 0 to {seen - 1}"
            raise InputError(
                f"device {str(self)!r}: there is no {self.interface}:{missing[0]}; expected {indices}, as "
                "`halocline doctor` lists them"
            )
        if not self.indices:
            return tuple(n for n in range(seen) if platforms[n] == platforms[0])
        first = self.indices[0]
        other = next((n for n in self.indices if platforms[n] != platforms[first]), None)
        if other is not None:
            raise InputError(
                f"device {str(self)!r}: {self.interface}:{first} is of the platform {platforms[first]}, but "
                f"{self.interface}:{other} of {platforms[other]}; expected devices of one, since others "
                "cannot exchange halos"
            )
        return self.indices


# -- which rank drives which ---------------------------------------------------------------------------------


def share_devices(devices_of_node: int, ranks_of_node: int) -> tuple[tuple[int, ...], ...]:
    """The devices that each rank of a node drives.

    Where there are as many devices as ranks, or more, each rank has a block of them, one subdomain on each.
    Where there are more ranks, neighbouring ranks share a device, with a subdomain each.

    Raises
    ------
    InputError
        No devices, or more of them than ranks, but no multiple: ranks have equally many subdomains.

    Examples
    --------
    >>> share_devices(4, 2)
    ((0, 1), (2, 3))
    >>> share_devices(2, 5)
    ((0,), (0,), (0,), (1,), (1,))
    """
    devices, ranks = devices_of_node, ranks_of_node
    for name, number in (("devices", devices), ("ranks", ranks)):
        if number < 1:
            raise InputError(f"{number} {name} on a node; expected 1 or more")
    if ranks > devices:
        return tuple((rank * devices // ranks,) for rank in range(ranks))
    each = devices // ranks
    if devices % ranks:
        fit = ", ".join(str(n) for n in range(1, devices) if devices % n == 0)
        raise InputError(
            f"{devices} devices of a node cannot be shared out evenly over its {ranks} ranks; choose {fit} "
            f"or {devices} ranks on a node, or name {each * ranks} of the devices"
        )
    return tuple(tuple(range(rank * each, rank * each + each)) for rank in range(ranks))


def deal_devices(chosen: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    """The devices that each rank of a node drives, where a launcher may have hidden some from it.

    Parameters
    ----------
    chosen : sequence of sequence of str
        For each rank of the node the identities of the devices that it sees and the user chose.

    Returns
    -------
    tuple of tuple of int
        For each rank places in its own sequence. Ranks that see the same devices share them out
        (`share_devices`); ranks that see each their own keep them.

    Raises
    ------
    InputError
        Devices cannot be shared out evenly, or some ranks see some of the same.

    Examples
    --------
    >>> deal_devices([["A", "B"], ["A", "B"]])
    ((0,), (1,))
    >>> deal_devices([["A"], ["B"]])
    ((0,), (0,))
    """
    if not chosen or len({tuple(sorted(own)) for own in chosen}) == 1:
        shared = share_devices(len(chosen[0]) if chosen else 0, len(chosen))
        # each rank may count them in an order of its own
        places = [dict(zip(_by_name(chosen[0]), _by_name(own), strict=True)) for own in chosen]
        return tuple(
            tuple(place[device] for device in own) for place, own in zip(places, shared, strict=True)
        )
    every = [identity for own in chosen for identity in set(own)]
    if len(every) > len(set(every)):
        raise InputError(
            "some ranks of a node see some of the same devices, but not all of them; let the launcher show "
            "each rank all devices of the node, or each its own (CUDA_VISIBLE_DEVICES)"
        )
    counts = sorted(len(own) for own in chosen)
    if counts[0] == 0 or counts[0] != counts[-1]:
        raise InputError(
            f"ranks of a node see from {counts[0]} to {counts[-1]} devices; expected as many on each: let "
            "the launcher show each rank all devices of the node, or each equally many of its own"
        )
    return tuple(tuple(range(counts[0])) for _ in chosen)


def _by_name(identities: Sequence[str]) -> list[int]:
    return sorted(range(len(identities)), key=identities.__getitem__)


# -- which takes which subdomain -----------------------------------------------------------------------------


def distance_between(
    bandwidth: Sequence[Sequence[float]], slots: Sequence[int] | None = None
) -> list[list[float]]:
    """Seconds per byte between the slots of a node, as `halocline.plan.lay_out` and `place` take them.

    Parameters
    ----------
    bandwidth : matrix
        Bytes a second from device a of a node to device b; what is on the diagonal does not matter.
    slots : sequence of int, optional
        The device of each slot: the devices of the node's ranks one after the other. Each device one slot
        where not given. Two slots on one device are at no distance.

    Raises
    ------
    InputError
        No square matrix, or a bandwidth that is not positive.
    """
    count = len(bandwidth)
    for a, row in enumerate(bandwidth):
        if len(row) != count:
            raise InputError(
                f"bandwidth has {count} rows, but {len(row)} numbers in row {a}; expected a square"
            )
        for b, rate in enumerate(row):
            if a != b and not rate > 0:
                raise InputError(
                    f"bandwidth from device {a} to {b} is {rate!r}; expected bytes a second above 0"
                )
    places = range(count) if slots is None else slots
    return [[0.0 if a == b else 1.0 / bandwidth[a][b] for b in places] for a in places]
