"""Memory of the fields of one rank: allocation, extension of halos, reading and writing."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import add, sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.compile.schedule import FieldInfo, Schedule
from halocline.errors import InputError, RunError
from halocline.lang.blocks import Blocks
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field
from halocline.native import native
from halocline.plan.box import three
from halocline.plan.rank import RankPlan
from halocline.run.devices.arrays import DeviceArray
from halocline.run.devices.devices import (
    check_dtypes,
    check_memory,
    copier,
    device_errors,
    device_text,
    label,
    subdomain_bytes,
)
from halocline.run.domain.domain import Domain
from halocline.run.ranks.communicator import Communicator


def _memory_shortage(comm: Communicator, required: int, label: str) -> str:
    """Return an error text if a node has less than `required` bytes for all its ranks, else ""."""
    ranks = comm.ranks_of_node
    available = min(native().available_memory(), ranks * native().available_to_process())
    if required <= available:
        return ""
    owner = f"of the {ranks} ranks on this node " if ranks > 1 else ""
    advice = "fewer mailboxes, a smaller grid" if "mailboxes" in label else "a smaller grid"
    return (
        f"the {label} {owner}need {_amount(required)}, but only {_amount(available)} are available. Use "
        f"{advice}, float32 or more nodes."
    )


def check_devices(domain: Domain, plan: RankPlan, known: Container[str]) -> None:
    """Check that the devices can hold the fields of a plan. Fields in `known` already have memory.

    All ranks must complete this check before any rank allocates memory, because ranks may share devices.

    Raises
    ------
    InputError
        A device does not support the precision of a field.
    RunError
        A device has too little memory.
    """
    required_bytes = dict.fromkeys(domain.devices, 0)
    for n, subdomain in enumerate(plan.subdomains):
        check_dtypes(domain.device_of(n), subdomain.fields)
        required_bytes[domain.device_of(n)] += subdomain_bytes(subdomain, known)
    for device, size in required_bytes.items():
        check_memory(device, size, domain.sharers[device])


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


Place = tuple[int, ...]


def assembled_pieces(pieces: Iterable[tuple[Place, NDArray[Any]]], shape: Place, dtype: str) -> NDArray[Any]:
    """Return an array that contains each piece at the index of its first point, and zeros elsewhere."""
    result = np.zeros(shape, dtype)
    for origin, piece in pieces:
        result[tuple(map(slice, origin, map(add, origin, piece.shape)))] = piece
    return result


class FieldStore:
    """Fields of a grid on one rank, in host memory or in the memory of its devices.

    Parameters
    ----------
    domain : Domain
        Part of the grid on this rank.

    Attributes
    ----------
    storages : dict of str to list of native Storage
        Memory of each allocated field, with one storage per subdomain of this rank.
    peer_storages : dict of str to mapping of int to native Storage
        Storages of these fields in other processes of the node, by subdomain.
    blocks : Blocks or None
        Active blocks of the grid.
    infos : dict of str to FieldInfo
        Precision and location of each allocated field.
    generation : int
        Version number of the storages. Engines of an earlier version are invalid.
    is_exported : bool
        True if other libraries have received device memory of fields, and may still use it.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.storages: dict[str, list[Any]] = {}
        self.peer_storages: dict[str, Mapping[int, Any]] = {}
        self._halos: dict[str, tuple[tuple[int, int], ...]] = {}  # required halo widths, by name
        self._widths: dict[str, tuple[tuple[int, int], ...]] = {}  # halo widths of the storages, by name
        # for each field or second buffer, the names of those with which programs swap it, and its own
        self._swapped: dict[str, frozenset[str]] = {}
        self.infos: dict[str, FieldInfo] = {}  # by the name of the storages
        self.blocks = domain.grid.blocks
        self.generation = 0
        self.is_exported = False

    def scratch(self) -> FieldStore:
        """Return an empty store for the same subdomains, for computations that must not change fields."""
        scratch_store = FieldStore(self.domain.without_trace())
        scratch_store.blocks = self.blocks
        return scratch_store

    # --- memory ---

    @property
    def memory_bytes(self) -> int:
        """Total bytes of all storages on this rank."""
        return sum(storage.bytes for storages in self.storages.values() for storage in storages)

    @property
    def fields(self) -> list[Field]:
        """Fields of the grid that have memory, including fields of the scheme."""
        return [f for f in self.domain.grid.fields.values() if f.name in self.storages]

    @property
    def cells(self) -> int:
        """Number of active cells of the whole grid."""
        return self.domain.grid.size if self.blocks is None else self.blocks.cells

    def check_room(self, fields: Sequence[FieldInfo]) -> None:
        """Raise InputError if a node has too little memory for its share of the fields; collective.

        Halos are not included. This check comes before planning, because a plan for a grid that is too large
        takes much memory and time.
        """
        comm, new = self.domain.comm, [f for f in fields if f.name not in self.storages]
        total, active = self.cells * sum(ITEMSIZE[info.dtype] for info in new), self.domain.active_ranks
        of_node = min(comm.ranks_of_node, active) * -(-total // active)
        with comm.agreement("check the memory"):
            if not self.domain.devices and (lack := _memory_shortage(comm, of_node, "fields")):
                raise InputError(lack)

    def allocate(self, schedule: Schedule, plan: RankPlan, name: str) -> None:
        """Allocate storages for new fields, and larger storages for fields with wider halos; collective.

        Storages that are swapped during a run have the same halo widths. These are a field and its second
        buffer (same name with "'"), and fields of which one takes over the buffer of another.

        Parameters
        ----------
        schedule : Schedule
            Schedule of the program.
        plan : RankPlan
            Plan of this rank.
        name : str
            Name of the program.
        """
        comm, names = self.domain.comm, []
        if self.domain.devices:
            with comm.agreement(f"check the memory for {name!r}"):
                check_devices(self.domain, plan, self.storages)
        new_bytes = sum(
            p.bytes for subdomain in plan.subdomains for p in subdomain.fields if p.name not in self.storages
        )
        mailboxes = self.domain.execution.mailboxes * plan.mailbox_bytes
        required = self.of_node(new_bytes + mailboxes)
        with comm.agreement(f"allocate fields of {name!r}"):
            self.check_node(required, "fields and mailboxes" if mailboxes else "fields")
            names = self._allocated(schedule, plan)
        self.share(names)

    def _allocated(self, schedule: Schedule, plan: RankPlan) -> list[str]:
        """Allocate storages, and return the names of the new storages. The names are equal on all ranks."""
        fields = schedule.fields
        for info in fields:
            self._swapped.setdefault(info.name, frozenset({info.name}))
        for a, b in (pair for sweep in schedule.sweeps() for pair in sweep.swaps):
            joint = self._swapped[fields[a].name] | self._swapped[fields[b].name]
            self._swapped.update(dict.fromkeys(joint, joint))
        for info in fields:
            swapped = self._swapped[info.name]
            halos = [info.halo, *(self._halos[name] for name in swapped if name in self._halos)]
            per_axis = [zip(*widths, strict=True) for widths in zip(*halos, strict=True)]
            widest = tuple((max(lower), max(upper)) for lower, upper in per_axis)
            self._halos.update(dict.fromkeys(swapped, widest))
        new_names = []
        for number, info in enumerate(fields):
            for name in sorted(self._swapped[info.name]):
                old = self.storages.get(name)
                if (name == info.name and old is None) or (
                    old is not None and self._widths[name] != self._halos[name]
                ):
                    self.infos.setdefault(name, info)
                    shapes = [subdomain.fields[number].owned.shape for subdomain in plan.subdomains]
                    self._make(name, shapes)
                    new_names.append(name)
        return new_names

    def of_node(self, size: int) -> int:
        """Return the sum of `size` over all ranks on the machine of this rank; collective."""
        comm, transfers = self.domain.comm, self.domain.transfers
        if transfers is None or transfers.layout.moved_subdomains is None:
            return comm.ranks_of_node * size  # before subdomains move, all ranks have nearly the same size
        sizes = comm.allgather_of_node(size)
        return comm.ranks_of_node * sum(sizes) // len(sizes)

    def check_node(self, required: int, label: str = "fields") -> None:
        """Raise RunError if the ranks of a node together require more memory than is available.

        Without this check, an allocation could succeed although memory is insufficient, because pages use
        memory only after the first access. The system could then kill the process later.
        """
        # Devices report a lack of memory themselves.
        if not self.domain.devices and (shortage := _memory_shortage(self.domain.comm, required, label)):
            raise RunError(shortage)

    def activate(self, blocks: Blocks) -> None:
        """Change the active blocks; collective.

        Afterwards, programs must be prepared again. Halos and cells of inactive blocks are zero.
        """
        before, self.blocks = self.blocks, blocks
        comm, ndim = self.domain.comm, self.domain.grid.ndim
        try:
            sizes = (
                sum(piece.nbytes for _, piece in self._pieces(storages))
                for storages in self.storages.values()
            )
            required = 0 if self.domain.devices else self.of_node(max(sizes, default=0))
            with comm.agreement("change the active blocks"):
                self.check_node(required)
        except BaseException:
            self.blocks = before
            raise
        for name, old in list(self.storages.items()):
            with comm.agreement(f"allocate field {name!r} again"):
                self._make(name, [tuple(storage.shape)[3 - ndim :] for storage in old])
        self.share(list(self.storages))

    def new_storage(self, name: str, shape: Sequence[int], device: Any = None) -> Any:
        """Return a new storage for a subdomain of a field, with the current halo widths of the field.

        Raises
        ------
        RunError
            There is too little memory.
        """
        lower, upper = map(three, zip(*self._halos[name], strict=True))
        size = three(shape, 1), lower, upper, ITEMSIZE[self.infos[name].dtype]
        try:
            if device is not None:
                with device_errors(f"field {name!r}"):
                    return native().DeviceStorage(device, *size)
            shared, sparse = self.domain.peers is not None, self.blocks is not None
            place = [*self.storages].index(name) if name in self.storages else len(self.storages)
            return native().Storage(*size, place, shared, sparse)
        except MemoryError as error:
            raise RunError(f"field {name!r}: {error}") from None

    def _make(self, name: str, shapes: Sequence[Sequence[int]]) -> None:
        """Replace the storages of a field by storages with its current halo widths, and copy the values."""
        domain, halo = self.domain, self._halos[name]
        storages = [
            self.new_storage(name, shape, domain.device_of(n) if domain.devices else None)
            for n, shape in enumerate(shapes)
        ]
        if name in self.storages:
            old_pieces = self._pieces(self.on_host(self.storages[name]))
            with self.host_access(storages) as host_storages:
                for (_, new), (_, old) in zip(self._pieces(host_storages), old_pieces, strict=True):
                    new[...] = old
            self.generation += 1
        self.storages[name], self._widths[name] = storages, halo

    def share(self, names: Sequence[str]) -> None:
        """Map the memory of fields in other processes of the node; collective."""
        comm, peers = self.domain.comm, self.domain.peers
        if peers is None or not names:
            return
        handles: dict[str, list[Any]] = {}
        with comm.agreement("share fields with other processes of the node"):
            handles = {name: [storage.handle() for storage in self.storages[name]] for name in names}
        shared = dict(comm.allgather_of_node((comm.rank, handles)))
        views = dict(self.peer_storages)
        # No rank frees its old storages before all ranks have mapped the new ones.
        with comm.agreement("map the fields of other processes of the node"):
            for name in names:
                views[name] = {
                    number: native().Storage.attach(shared[rank][name][local])
                    for number, (rank, local) in peers.homes.items()
                }
        self.peer_storages = views

    def forget(self, name: str) -> None:
        """Free the memory of a field."""
        for partner in self._swapped.pop(name, frozenset()) - {name}:
            self._swapped[partner] -= {name}
        for entries in (self.storages, self._halos, self._widths, self.infos, self.peer_storages):
            entries.pop(name, None)

    # --- contents ---

    def of(self, field: Field) -> list[Any]:
        """Return the storages of a field.

        Raises
        ------
        InputError
            The field has no memory.
        """
        storages = self.storages.get(field.name)
        if storages is None:
            raise InputError(f"field {field.name!r} has no memory, because no program that ran uses it")
        return storages

    def on_host(self, storages: list[Any]) -> list[Any]:
        """Return the storages, or copies in host memory if the storages are on devices."""
        if not self.domain.devices:
            return storages
        self.await_other_libraries()
        with device_errors("fields cannot be read"):
            return [storage.fetch() for storage in storages]

    def views(self, field: Field) -> list[NDArray[Any]]:
        """Return the points of a field in each subdomain of this rank, without halos.

        The NumPy views are valid until the next run. If the field is on devices, or if there are inactive
        blocks, the arrays are read-only copies.
        """
        storages = self.on_host(self.of(field))
        if self.blocks is None:
            views = [self.interior(storage) for storage in storages]
            for view in views if self.domain.devices else ():
                view.flags.writeable = False
            return views
        # The copies omit inactive blocks, because a read of shared memory allocates pages that were never
        # written.
        pieces = [(n, (lo, piece)) for (n, lo), piece in self._pieces(storages)]
        copies = [
            assembled_pieces((piece for m, piece in pieces if m == n), self.interior(s).shape, field.dtype)
            for n, s in enumerate(storages)
        ]
        for copied in copies:
            copied.flags.writeable = False
        return copies

    def pieces(self, field: Field) -> list[tuple[Place, NDArray[Any]]]:
        """Return the points of a field in active blocks on this rank, as boxes.

        Each item contains the global index of the first point, and a NumPy view without halo. The views are
        valid until the next run and must not be written.
        """
        return self._placed(self.on_host(self.of(field)))

    def at(self, field: Field, indices: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the values of a field at single points of each subdomain of this rank; collective.

        On devices, only the values of these points are copied to the host.

        Parameters
        ----------
        field : Field
            Field to read.
        indices : sequence of array of int64 (points, axes)
            Indices of the points in each subdomain, relative to the first point of the subdomain.
        """
        storages, domain = self.of(field), self.domain
        if not domain.devices:
            return [self.interior(s)[tuple(points.T)] for s, points in zip(storages, indices, strict=True)]
        self.await_other_libraries()
        finders, lead = domain.finders(), 3 - domain.grid.ndim
        with device_errors("fields cannot be read"):
            return [
                np.frombuffer(
                    storage.read(finders[domain.device_of(n)], np.pad(points, ((0, 0), (lead, 0)))),
                    field.dtype,
                )
                for n, (storage, points) in enumerate(zip(storages, indices, strict=True))
            ]

    def await_other_libraries(self) -> None:
        """Wait for the work of other libraries on devices, if they have received memory of fields."""
        if self.is_exported:
            with device_errors("other libraries use fields"):
                for device in dict.fromkeys(self.domain.devices):
                    device.synchronize()

    def check_device_array(self, field: Field, array: DeviceArray) -> None:
        """Raise InputError if a field cannot take the values of an array in CUDA memory."""
        if array.dtype != field.dtype:
            raise InputError(
                f"field {field.name!r} is {field.dtype}, but the array given for it is {array.dtype}. "
                f"Convert the array to {field.dtype} first."
            )
        if not self.domain.devices:
            raise InputError(
                f"field {field.name!r} is in host memory, but the array given for it is in CUDA memory. Copy "
                "the array to the host first, as in x.cpu() in PyTorch or x.get() in CuPy."
            )
        for device in dict.fromkeys(self.domain.devices):
            index = device.owner_of(array.address) if array.device is None else array.device
            if device.interface != "cuda" or index != device.index:
                source = "other memory" if index < 0 else f"memory of device cuda:{index}"
                raise InputError(
                    f"field {field.name!r} is on {device_text(device)}, but the array given for it is in "
                    f"{source}. Copy the array to device {label(device)}, or to the host."
                )

    def copy_device_array(self, field: Field, array: DeviceArray) -> None:
        """Set the points of a field on this rank from an array of the whole field on the same device.

        Parameters
        ----------
        field : Field
        array : DeviceArray
            Array that `check_device_array` accepts, with the shape of the field.
        """
        domain, strides = self.domain, three(array.strides)
        with device_errors(f"field {field.name!r} cannot be set"):
            for device in dict.fromkeys(domain.devices):
                device.synchronize()  # the library may still compute the array
            for n, storage in enumerate(self.of(field)):
                for lo, hi in self.active(n, storage):
                    first = map(add, domain.offsets[n], lo)
                    distance = sum(i * step for i, step in zip(first, array.strides, strict=True))
                    native().assign_from_device(
                        storage, copier(domain.device_of(n)), three(lo), three(hi, 1),
                        array.address + distance * array.itemsize, strides,
                    )  # fmt: skip

    @contextmanager
    def writable(self, field: Field) -> Iterator[list[tuple[Place, NDArray[Any]]]]:
        """Yield the pieces of a field, but writable. Changes take effect at the end of the with block."""
        with self.host_access(self.of(field)) as storages:
            yield self._placed(storages)

    @contextmanager
    def host_access(self, storages: list[Any]) -> Iterator[list[Any]]:
        """Yield storages, or copies in host memory. At the end of the block, devices receive the changes."""
        host_storages = self.on_host(storages)
        yield host_storages
        if self.domain.devices:
            with device_errors("fields cannot be written"):
                for storage, host_storage in zip(storages, host_storages, strict=True):
                    storage.store(host_storage)

    def fill(self, value: float) -> None:
        """Set all points of all fields to a value, including internal fields."""
        for field_storages in self.storages.values():
            with self.host_access(field_storages) as storages:
                for _, piece in self._pieces(storages):
                    piece[...] = value

    def active(self, n: int, storage: Any) -> Iterator[tuple[Place, Place]]:
        """Yield boxes, in local indices, of those points of the n-th subdomain that lie in active blocks."""
        ndim = self.domain.grid.ndim
        points = tuple(storage.shape)[3 - ndim :]
        if self.blocks is None:
            yield (0,) * ndim, points
            return
        first = self.domain.offsets[n]
        for lo, hi in self.blocks.pieces(first, tuple(map(add, first, points))):
            yield tuple(map(sub, lo, first)), tuple(map(sub, hi, first))

    def interior(self, storage: Any) -> NDArray[Any]:
        """Return a view of the points of a storage in host memory, without halo."""
        view: NDArray[Any] = storage.view()[(0,) * (3 - self.domain.grid.ndim)]
        return view

    def _placed(self, storages: Sequence[Any]) -> list[tuple[Place, NDArray[Any]]]:
        return [
            (tuple(map(add, self.domain.offsets[n], lo)), view) for (n, lo), view in self._pieces(storages)
        ]

    def _pieces(self, storages: Sequence[Any]) -> list[tuple[tuple[int, Place], NDArray[Any]]]:
        """Return boxes of points in active blocks, each with local subdomain index, first index and view."""
        return [
            ((n, lo), self.interior(storage)[tuple(map(slice, lo, hi))])
            for n, storage in enumerate(storages)
            for lo, hi in self.active(n, storage)
        ]
