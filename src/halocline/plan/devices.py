"""Selection of devices, and their assignment to the ranks of a node and to subdomains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from halocline.errors import InputError

INTERFACES = ("cuda", "opencl")
EXPECTED = "expected cpu, cuda or opencl, with device numbers to select some devices, such as cuda:0,1"


@dataclass(frozen=True)
class DeviceChoice:
    """Devices that a user selects for a run.

    Attributes
    ----------
    interface : {"cpu", "cuda", "opencl"}
    indices : tuple of int
        Indices of the devices, in the order of the subdomains. Each process numbers its visible devices from
        0. If the tuple is empty, all visible devices are selected. With OpenCL, only the devices on the
        platform of the first visible device are selected.
    """

    interface: str = "cpu"
    indices: tuple[int, ...] = ()

    @classmethod
    def parse(cls, text: str) -> DeviceChoice:
        """Return the selection in a text such as "cpu", "cuda" or "opencl:0,1".

        Raises
        ------
        InputError
            The interface is unknown, or the part after the colon is not a list of device numbers.
        """
        if not isinstance(text, str):
            raise InputError(f"device {text!r} is not text; {EXPECTED}")
        interface, colon, numbers = text.strip().partition(":")
        if interface == "cpu":
            if colon:
                raise InputError(
                    f"device {text!r}: cpu has no device numbers. Use threads= and OMP_PLACES to select cores"
                )
            return cls()
        if interface not in INTERFACES:
            raise InputError(f"device {text!r}: {interface!r} is not an interface; {EXPECTED}")
        if not colon:
            return cls(interface)
        indices: list[int] = []
        for number in (part.strip() for part in numbers.split(",")):
            if not (number.isascii() and number.isdigit()):
                raise InputError(f"device {text!r}: {number!r} is not a device number; {EXPECTED}")
            if int(number) in indices:
                raise InputError(
                    f"device {text!r} names {int(number)} twice; expected each device once (several ranks "
                    "can share a device)"
                )
            indices.append(int(number))
        return cls(interface, tuple(indices))

    def __str__(self) -> str:
        return self.interface + (":" + ",".join(map(str, self.indices)) if self.indices else "")

    def select_visible(self, platforms: Sequence[str], reason_for_none: str = "") -> tuple[int, ...]:
        """Return the indices of the selected devices among the visible devices of the interface.

        Parameters
        ----------
        platforms : sequence of str
            Platform of each visible device. Devices of different platforms cannot access each other's memory.
        reason_for_none : str
            Reason for an empty `platforms`.

        Raises
        ------
        InputError
            No device is visible, a selected device is not visible, or the selected devices have different
            platforms.
        """
        device_count = len(platforms)
        if self.interface == "cpu":
            return ()
        if device_count == 0:
            reason = f" ({reason_for_none})" if reason_for_none else ""
            raise InputError(
                f"device {str(self)!r}: no such device is installed{reason}. Run `halocline doctor` for "
                "details, or use cpu."
            )
        missing = [index for index in self.indices if index >= device_count]
        if missing:
            indices = "only 0" if device_count == 1 else f"0 to {device_count - 1}"
            raise InputError(
                f"device {str(self)!r}: there is no {self.interface}:{missing[0]}; expected {indices} "
                "(see `halocline doctor`)"
            )
        if not self.indices:
            return tuple(n for n in range(device_count) if platforms[n] == platforms[0])
        first = self.indices[0]
        other = next((n for n in self.indices if platforms[n] != platforms[first]), None)
        if other is not None:
            raise InputError(
                f"device {str(self)!r}: {self.interface}:{first} belongs to the platform "
                f"{platforms[first]}, but {self.interface}:{other} to {platforms[other]}. Select "
                "devices of one platform, because devices of different platforms cannot exchange halos."
            )
        return self.indices


# -- assignment of devices to ranks --------------------------------------------------------------------------


def share_devices(devices_of_node: int, ranks_of_node: int) -> tuple[tuple[int, ...], ...]:
    """Return the devices of each rank of a node.

    With at least as many devices as ranks, each rank has a block of devices with one subdomain per device.
    With more ranks than devices, neighbouring ranks share a device, and each rank has one subdomain.

    Raises
    ------
    InputError
        There are no devices or no ranks. Or there are more devices than ranks, and the number of devices is
        not a multiple of the number of ranks. All ranks must have the same number of subdomains.

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
    devices_per_rank = devices // ranks
    if devices % ranks:
        fit = ", ".join(str(n) for n in range(1, devices) if devices % n == 0)
        raise InputError(
            f"{devices} devices of a node cannot be distributed evenly over its {ranks} ranks. Use {fit} or "
            f"{devices} ranks on a node, or select {devices_per_rank * ranks} of the devices"
        )
    return tuple(
        tuple(range(rank * devices_per_rank, rank * devices_per_rank + devices_per_rank))
        for rank in range(ranks)
    )


def deal_devices(selected_identities: Sequence[Sequence[str]]) -> tuple[tuple[int, ...], ...]:
    """Return the devices of each rank of a node, even if the launcher hides devices from ranks.

    Parameters
    ----------
    selected_identities : sequence of sequence of str
        For each rank of the node, the identities of the visible devices that the user selects.

    Returns
    -------
    tuple of tuple of int
        For each rank, indices into the sequence of this rank. Ranks with the same visible devices share them
        (`share_devices`). Ranks with disjoint visible devices keep their own devices.

    Raises
    ------
    InputError
        Devices cannot be shared evenly, or the visible devices of two ranks overlap only in part.

    Examples
    --------
    >>> deal_devices([["A", "B"], ["A", "B"]])
    ((0,), (1,))
    >>> deal_devices([["A"], ["B"]])
    ((0,), (0,))
    """
    if not selected_identities or len({tuple(sorted(identities)) for identities in selected_identities}) == 1:
        device_shares = share_devices(
            len(selected_identities[0]) if selected_identities else 0, len(selected_identities)
        )
        # ranks may number the same devices in different orders
        places = [
            dict(zip(_by_name(selected_identities[0]), _by_name(identities), strict=True))
            for identities in selected_identities
        ]
        return tuple(
            tuple(place[device] for device in identities)
            for place, identities in zip(places, device_shares, strict=True)
        )
    all_identities = [identity for identities in selected_identities for identity in set(identities)]
    if len(all_identities) > len(set(all_identities)):
        raise InputError(
            "some ranks of a node see overlapping sets of devices. Configure the launcher so that each "
            "rank sees all devices of the node, or only its own devices (CUDA_VISIBLE_DEVICES)."
        )
    counts = sorted(len(identities) for identities in selected_identities)
    if counts[0] == 0 or counts[0] != counts[-1]:
        raise InputError(
            f"ranks of a node see from {counts[0]} to {counts[-1]} devices; expected equal numbers. "
            "Configure the launcher so that each rank sees all devices of the node, or the same number of "
            "devices of its own."
        )
    return tuple(tuple(range(counts[0])) for _ in selected_identities)


def _by_name(identities: Sequence[str]) -> list[int]:
    return sorted(range(len(identities)), key=identities.__getitem__)


# -- assignment of subdomains to devices ---------------------------------------------------------------------


def distance_between(
    bandwidth: Sequence[Sequence[float]], slots: Sequence[int] | None = None
) -> list[list[float]]:
    """Return the distance in seconds per byte between the slots of a node.

    The functions `halocline.plan.lay_out` and `place` accept the result.

    Parameters
    ----------
    bandwidth : matrix
        Bytes per second from device a of a node to device b. The diagonal is ignored.
    slots : sequence of int, optional
        Device of each slot, rank by rank. By default, each device has one slot. The distance between two
        slots of one device is 0.

    Raises
    ------
    InputError
        The matrix is not square, or a bandwidth is not positive.
    """
    count = len(bandwidth)
    for a, row in enumerate(bandwidth):
        if len(row) != count:
            raise InputError(
                f"bandwidth has {count} rows, but {len(row)} numbers in row {a}; expected a square matrix"
            )
        for b, rate in enumerate(row):
            if a != b and not rate > 0:
                raise InputError(
                    f"bandwidth from device {a} to {b} is {rate!r}; expected positive bytes per second"
                )
    places = range(count) if slots is None else slots
    return [[0.0 if a == b else 1.0 / bandwidth[a][b] for b in places] for a in places]
