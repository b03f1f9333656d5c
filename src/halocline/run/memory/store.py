"""The memory of fields: one rank's share of each, allocated, widened, read and written."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import add, sub
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.compile.schedule import FieldInfo
from halocline.errors import InputError, RunError
from halocline.lang.blocks import Blocks
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field
from halocline.native import native
from halocline.plan.box import three
from halocline.plan.rank import RankPlan
from halocline.run.devices.devices import check_dtypes, check_memory, device_errors, subdomain_bytes
from halocline.run.domain.domain import Domain
from halocline.run.ranks.communicator import Communicator


def _lack(comm: Communicator, needed: int, what: str) -> str:
    """Return the message for a node without `needed` bytes for all of its ranks; "" where it has them."""
    ranks = comm.ranks_of_node
    available = min(native().available_memory(), ranks * native().available_to_process())
    if needed <= available:
        return ""
    whose = f"of the {ranks} ranks on this node " if ranks > 1 else ""
    advice = "fewer mailboxes, a smaller grid" if "mailboxes" in what else "a smaller grid"
    return (
        f"the {what} {whose}need {_amount(needed)}, but only {_amount(available)} are available: "
        f"take {advice}, float32 or more nodes"
    )


def check_devices(domain: Domain, plan: RankPlan, known: Container[str]) -> None:
    """InputError or RunError where devices cannot hold the fields of a plan beside those that are `known`, or
    not compute them. All ranks end this before any of them takes memory: they may share devices."""
    needed = dict.fromkeys(domain.devices, 0)
    for n, own in enumerate(plan.subdomains):
        check_dtypes(domain.device_of(n), own.fields)
        needed[domain.device_of(n)] += subdomain_bytes(own, known)
    for device, size in needed.items():
        check_memory(device, size, domain.sharers[device])


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


Place = tuple[int, ...]


def assembled_pieces(pieces: Iterable[tuple[Place, NDArray[Any]]], shape: Place, dtype: str) -> NDArray[Any]:
    """Return an array with pieces, each with the index of its first element, and zeros elsewhere."""
    whole = np.zeros(shape, dtype)
    for origin, piece in pieces:
        whole[tuple(map(slice, origin, map(add, origin, piece.shape)))] = piece
    return whole


class FieldStore:
    """One rank's share of the fields of a grid, in memory of the host or of its devices.

    Parameters
    ----------
    domain : Domain

    Attributes
    ----------
    storages : dict of str to list of native Storage
        The memory of each field that has any, by subdomain of this rank.
    peer_storages : dict of str to mapping of int to native Storage
        Views of the same fields in other processes of the node, by subdomain.
    blocks : Blocks or None
        Which of the grid's blocks are active.
    infos : dict of str to FieldInfo
        Precision and location of the points of each of these fields.
    generation : int
        Of the storages: engines made before the last change are stale.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.storages: dict[str, list[Any]] = {}
        self.peer_storages: dict[str, Mapping[int, Any]] = {}
        self._halos: dict[str, tuple[tuple[int, int], ...]] = {}  # of fields
        self._widths: dict[str, tuple[tuple[int, int], ...]] = {}  # of storages
        self.infos: dict[str, FieldInfo] = {}  # by name of storages
        self.blocks = domain.grid.blocks
        self.generation = 0

    def scratch(self) -> FieldStore:
        """Memory of its own for the same subdomains, for what must not touch the fields."""
        other = FieldStore(self.domain.untraced())
        other.blocks = self.blocks
        return other

    # --- memory ---

    @property
    def memory_bytes(self) -> int:
        """Bytes of all storages on this rank."""
        return sum(storage.bytes for each in self.storages.values() for storage in each)

    @property
    def fields(self) -> list[Field]:
        """Fields of the grid that have memory, including those of the scheme."""
        return [f for f in self.domain.grid.fields.values() if f.name in self.storages]

    @property
    def cells(self) -> int:
        """Of the whole grid, those that are computed."""
        return self.domain.grid.size if self.blocks is None else self.blocks.cells

    def check_room(self, fields: Sequence[FieldInfo]) -> None:
        """Raise InputError where fields alone, without halos, are more than all nodes hold.

        All ranks call this. To plan a grid that no machine holds would itself take memory and time.
        """
        comm, new = self.domain.comm, [f for f in fields if f.name not in self.storages]
        needed, active = self.cells * sum(ITEMSIZE[info.dtype] for info in new), self.domain.active_ranks
        of_node = min(comm.ranks_of_node, active) * -(-needed // active)
        with comm.agreement("look for memory"):
            if not self.domain.devices and (lack := _lack(comm, of_node, "fields")):
                raise InputError(lack)

    def allocate(self, fields: tuple[FieldInfo, ...], plan: RankPlan, name: str) -> None:
        """Make storages for fields that have none, and wider ones where a halo has grown; all ranks call
        this.

        A field and its second buffer (the same name with "'") change places, so that they grow together.

        Parameters
        ----------
        name : str
            Of the program that they are for.
        """
        comm, made = self.domain.comm, []
        if self.domain.devices:
            with comm.agreement(f"look for memory for {name!r}"):
                check_devices(self.domain, plan, self.storages)
        new = sum(p.bytes for own in plan.subdomains for p in own.fields if p.name not in self.storages)
        mailboxes = self.domain.how.mailboxes * plan.mailbox_bytes
        needed = self.of_node(new + mailboxes)
        with comm.agreement(f"allocate fields of {name!r}"):
            self.check_node(needed, "fields and mailboxes" if mailboxes else "fields")
            made = self._allocated(fields, plan)
        self.share(made)

    def _allocated(self, fields: tuple[FieldInfo, ...], plan: RankPlan) -> list[str]:
        """The names of the storages that were made, the same on all ranks."""
        for info in fields:
            base = info.name.removesuffix("'")
            have = self._halos.get(base, info.halo)
            self._halos[base] = tuple(
                (max(a, c), max(b, d)) for (a, b), (c, d) in zip(have, info.halo, strict=True)
            )
        made = []
        for number, info in enumerate(fields):
            base = info.name.removesuffix("'")
            for name in dict.fromkeys((info.name, base, base + "'")):
                old = self.storages.get(name)
                if (name == info.name and old is None) or (
                    old is not None and self._widths[name] != self._halos[base]
                ):
                    self.infos[name] = info
                    shapes = [own.fields[number].owned.shape for own in plan.subdomains]
                    self._make(name, shapes)
                    made.append(name)
        return made

    def of_node(self, size: int) -> int:
        """Return the sum of the sizes that all ranks of this rank's machine give; all ranks call this."""
        comm, transfers = self.domain.comm, self.domain.transfers
        if transfers is None or transfers.layout.moved is None:
            return comm.ranks_of_node * size  # ranks have about the same
        sizes = comm.allgather_of_node(size)
        return comm.ranks_of_node * sum(sizes) // len(sizes)

    def check_node(self, needed: int, what: str = "fields") -> None:
        """Raise RunError where the ranks of a node ask together for more memory than it has.

        Each alone may get its share, since pages cost nothing before they are touched, and be killed later.
        """
        # each device says what it lacks
        if not self.domain.devices and (lack := _lack(self.domain.comm, needed, what)):
            raise RunError(lack)

    def activate(self, blocks: Blocks) -> None:
        """Change which blocks are active; all ranks call this, and prepare their programs anew. Cells of
        other blocks, and halos, are zero then."""
        before, self.blocks = self.blocks, blocks
        comm, ndim = self.domain.comm, self.domain.grid.ndim
        try:
            sizes = (sum(piece.nbytes for _, piece in self._pieces(each)) for each in self.storages.values())
            needed = 0 if self.domain.devices else self.of_node(max(sizes, default=0))
            with comm.agreement("change the active blocks"):
                self.check_node(needed)
        except BaseException:
            self.blocks = before
            raise
        for name, old in list(self.storages.items()):
            with comm.agreement(f"make field {name!r} anew"):
                self._make(name, [tuple(storage.shape)[3 - ndim :] for storage in old])
        self.share(list(self.storages))

    def new_storage(self, name: str, shape: Sequence[int], device: Any = None) -> Any:
        """Return memory for a subdomain of a field, with the field's present halo.

        Raises
        ------
        RunError
            There is not so much memory.
        """
        lower, upper = map(three, zip(*self._halos[name.removesuffix("'")], strict=True))
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
        """Storages with the field's present halo; they take over what the ones before them hold."""
        domain, halo = self.domain, self._halos[name.removesuffix("'")]
        made = [
            self.new_storage(name, shape, domain.device_of(n) if domain.devices else None)
            for n, shape in enumerate(shapes)
        ]
        if name in self.storages:
            kept = self._pieces(self.on_host(self.storages[name]))
            with self.written(made) as fresh:
                for (_, new), (_, old) in zip(self._pieces(fresh), kept, strict=True):
                    new[...] = old
            self.generation += 1
        self.storages[name], self._widths[name] = made, halo

    def share(self, names: Sequence[str]) -> None:
        """See the memory of these fields in other processes of the node; all ranks call this."""
        comm, peers = self.domain.comm, self.domain.peers
        if peers is None or not names:
            return
        handles: dict[str, list[Any]] = {}
        with comm.agreement("share fields with other processes of the node"):
            handles = {name: [storage.handle() for storage in self.storages[name]] for name in names}
        shared = dict(comm.allgather_of_node((comm.rank, handles)))
        views = dict(self.peer_storages)
        # nobody gives back what it has replaced before all have seen the new
        with comm.agreement("see the fields of other processes of the node"):
            for name in names:
                views[name] = {
                    number: native().Storage.attach(shared[rank][name][local])
                    for number, (rank, local) in peers.homes.items()
                }
        self.peer_storages = views

    def forget(self, name: str) -> None:
        """Give the memory of a field back."""
        for known in (self.storages, self._halos, self._widths, self.infos, self.peer_storages):
            known.pop(name, None)

    # --- what lies there ---

    def of(self, field: Field) -> list[Any]:
        """Return the storages of a field. InputError where it has none."""
        storages = self.storages.get(field.name)
        if storages is None:
            raise InputError(f"field {field.name!r} has no memory yet: no program that was run uses it")
        return storages

    def on_host(self, storages: list[Any]) -> list[Any]:
        """These storages; of those of devices, copies in memory of the host."""
        if not self.domain.devices:
            return storages
        with device_errors("fields cannot be read"):
            return [storage.fetch() for storage in storages]

    def views(self, field: Field) -> list[NDArray[Any]]:
        """The points of a field in each subdomain of this rank, as NumPy views without halo, valid until the
        next run; where blocks are inactive, as copies that cannot be written."""
        storages = self.on_host(self.of(field))
        if self.blocks is None:
            views = [self.whole(storage) for storage in storages]
            for view in views if self.domain.devices else ():
                view.flags.writeable = False
            return views
        # to read shared memory that was never written would take pages
        pieces = [(n, (lo, piece)) for (n, lo), piece in self._pieces(storages)]
        copies = [
            assembled_pieces((piece for m, piece in pieces if m == n), self.whole(s).shape, field.dtype)
            for n, s in enumerate(storages)
        ]
        for copied in copies:
            copied.flags.writeable = False
        return copies

    def pieces(self, field: Field) -> list[tuple[Place, NDArray[Any]]]:
        """The points of a field that are computed on this rank, as boxes: the index of the first in the whole
        field, and a NumPy view without halo, to be read; valid until the next run."""
        return self._placed(self.on_host(self.of(field)))

    def at(self, field: Field, indices: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Return the values of a field at single points of each subdomain of this rank; those on devices are
        read there, without the rest of the field. All ranks call this.

        Parameters
        ----------
        field : Field
        indices : sequence of array of int64 (points, axes)
            Indices in each subdomain, counted from its first point.
        """
        storages, domain = self.of(field), self.domain
        if not domain.devices:
            return [self.whole(s)[tuple(each.T)] for s, each in zip(storages, indices, strict=True)]
        finders, lead = domain.finders(), 3 - domain.grid.ndim
        with device_errors("fields cannot be read"):
            return [
                np.frombuffer(
                    storage.read(finders[domain.device_of(n)], np.pad(each, ((0, 0), (lead, 0)))), field.dtype
                )
                for n, (storage, each) in enumerate(zip(storages, indices, strict=True))
            ]

    @contextmanager
    def writing(self, field: Field) -> Iterator[list[tuple[Place, NDArray[Any]]]]:
        """The same to be written: what was written counts when the context ends."""
        with self.written(self.of(field)) as storages:
            yield self._placed(storages)

    @contextmanager
    def written(self, storages: list[Any]) -> Iterator[list[Any]]:
        """Storages in memory of the host, of which those of devices take over what is written."""
        there = self.on_host(storages)
        yield there
        if self.domain.devices:
            with device_errors("fields cannot be written"):
                for storage, changed in zip(storages, there, strict=True):
                    storage.store(changed)

    def fill(self, value: float) -> None:
        """Set all points of all fields, also of those that users do not see."""
        for each in self.storages.values():
            with self.written(each) as storages:
                for _, piece in self._pieces(storages):
                    piece[...] = value

    def active(self, n: int, storage: Any) -> Iterator[tuple[Place, Place]]:
        """The boxes of the points that are computed in the n-th subdomain of this rank, in its indices."""
        ndim = self.domain.grid.ndim
        points = tuple(storage.shape)[3 - ndim :]
        if self.blocks is None:
            yield (0,) * ndim, points
            return
        first = self.domain.offsets[n]
        for lo, hi in self.blocks.pieces(first, tuple(map(add, first, points))):
            yield tuple(map(sub, lo, first)), tuple(map(sub, hi, first))

    def whole(self, storage: Any) -> NDArray[Any]:
        """The points of a storage in memory of the host, without halo."""
        view: NDArray[Any] = storage.view()[(0,) * (3 - self.domain.grid.ndim)]
        return view

    def _placed(self, storages: Sequence[Any]) -> list[tuple[Place, NDArray[Any]]]:
        return [
            (tuple(map(add, self.domain.offsets[n], lo)), view) for (n, lo), view in self._pieces(storages)
        ]

    def _pieces(self, storages: Sequence[Any]) -> list[tuple[tuple[int, Place], NDArray[Any]]]:
        """The points of storages that are computed: the subdomain's local index and the index of the first
        in it, and a view."""
        return [
            ((n, lo), self.whole(storage)[tuple(map(slice, lo, hi))])
            for n, storage in enumerate(storages)
            for lo, hi in self.active(n, storage)
        ]
