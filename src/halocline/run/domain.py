"""One rank's share of a grid: what it is cut into, and its fields in native memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import product
from operator import add, sub
from typing import TYPE_CHECKING, Any

from halocline.compile.schedule import FieldInfo, Schedule
from halocline.errors import InputError, RunError
from halocline.lang.blocks import Blocks
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field, Grid
from halocline.native import native
from halocline.plan.decompose import Decomposition
from halocline.plan.rank import RankPlan
from halocline.plan.transfer import Transfers, methods_without_ranks, needs_ranks
from halocline.run.bind import Near, three
from halocline.run.devices import (
    OnDevice,
    check_dtypes,
    check_memory,
    device_errors,
    devices_of_rank,
    finder,
    note_host,
    places_of,
    shared_bytes,
    sharers,
    subdomain_bytes,
)
from halocline.run.execution import Execution
from halocline.run.gpu_aware import why_not_aware
from halocline.run.limits import check_stacks
from halocline.run.links import why_no_links
from halocline.run.mpi import Communicator, world
from halocline.run.notices import say_once
from halocline.run.threads import default_threads, spins
from halocline.run.topology import DeviceLinks, device_links
from halocline.run.trace import Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

log = logging.getLogger("halocline")

CROWDED = 64  # threads of a node for each of its hardware threads; with more, a run makes almost no progress


class Domain:
    """One rank's share of a grid: its subdomains, and their fields in native memory.

    Parameters
    ----------
    grid : Grid
    comm : Communicator, optional
    how : Execution, optional

    Attributes
    ----------
    threads : int
        Of this rank.
    transfers : Transfers or None
        Which rank has which subdomains, and how these exchange; None until the first program is prepared.
    storages : dict of str to list of native Storage
        The memory of each field that has any, by subdomain of this rank.
    blocks : Blocks or None
        Which of the grid's blocks are active.
    devices : tuple of native Device
        That this rank drives; none where it computes itself.
    places : tuple of OnDevice
        The device of each subdomain of every rank, once the first program is prepared; none on the CPU.
    device_links : DeviceLinks
        Between the devices of a node.
    shared_bytes : int
        That threads of a group can share on the devices of every rank.
    generation : int
        Of the storages: engines made before the last change are stale.
    """

    def __init__(self, grid: Grid, comm: Communicator | None = None, how: Execution | None = None) -> None:
        self.grid, self.how = grid, how or Execution()
        machines = world() if comm is None else comm
        self.comm = machines.grouped(self.how.ranks_per_node)
        self.comm.check_same(
            "the device is", self.how.device, "all ranks need the same device= or HALOCLINE_DEVICE"
        )
        self.devices = devices_of_rank(self.how.devices, self.comm)
        self.device_links: DeviceLinks = device_links(self.devices, self.how.subdomains_per_rank, self.comm)
        self.shared_bytes = shared_bytes(self.devices)
        self.places: tuple[OnDevice, ...] = ()
        self._finders: dict[Any, Any] = {}  # of each device, the code that looks for what is not finite
        self.threads = self.how.threads or default_threads(self.comm)
        self._notice(*self.how.ignored)
        if self.devices:
            self._sharers = sharers(self.devices, machines)
            # all ranks have the same kernels
            self.shared_bytes = min(self.comm.allgather(shared_bytes(self.devices)))
            self.threads = 1  # it looks after the devices
            if self.comm.rank == 0 and self.how.trace is not None:
                log.warning(
                    "trace %s: holds what hosts wait for, not what devices do; no timeline is drawn of it",
                    self.how.trace,
                )
        with self.comm.agreement("check the stacks of threads"):
            check_stacks(self.threads)
        together, there = self.threads * self.comm.ranks_of_node, os.cpu_count() or 1
        with self.comm.agreement("count threads"):
            if together > CROWDED * there:
                raise InputError(
                    f"{together} threads on a node of {there} hardware threads would mostly wait for their "
                    f"turn; take {CROWDED * there} at most, of all ranks there together"
                )
        level = self.comm.thread_level
        if self.comm.rank == 0 and self.comm.size > 1 and self.threads > 1 and level != "multiple":
            who = "one thread at a time" if level == "serialized" else "the first thread alone"
            log.warning("MPI gives MPI_THREAD_%s: %s looks after messages", level.upper(), who)
        self.spins = spins(self.threads, self.comm)
        self.transfers: Transfers | None = None
        self.storages: dict[str, list[Any]] = {}
        self.halos: dict[str, tuple[tuple[int, int], ...]] = {}  # of fields
        self.widths: dict[str, tuple[tuple[int, int], ...]] = {}  # of storages
        self.generation = 0
        self.near: Near | None = None
        self.blocks = grid.blocks
        self.timeline = None if self.how.trace is None else Timeline(self.how.trace, self.threads)

    def scratch(self) -> Domain:
        """The same subdomains with memory of their own, for what must not touch the fields."""
        other = copy(self)
        other.storages, other.halos, other.widths, other.timeline = {}, {}, {}, None
        other.how = replace(self.how, overlap=self.how.overlap is not False)  # nothing else is tried there
        other.near = None if self.near is None else replace(self.near, storages={})
        return other

    # --- who has what ---

    def adopt(self, schedule: Schedule) -> None:
        """Cut the grid for this schedule; all ranks call this."""
        comm = self.comm
        layout = self.how.layout(
            schedule,
            self.grid,
            comm.size,
            comm.ranks_per_node,
            nodes_of_ranks=comm.nodes_of_ranks,
            devices=max(1, len(self.devices)),
            distance=self.device_links.distance,
        )
        if comm.mpi is None:
            self._notice(needs_ranks(self.how.allowed_methods, layout.decomposition))
        if self.devices:
            self.transfers = Transfers(layout, self._device_methods(), self.how.packing)
            own = [self.device_of(n) for n in range(len(self.subdomains))]
            self.places = places_of(comm, self.subdomains, own)
            return
        note_host()
        methods = self.how.allowed_methods
        if comm.mpi is None:
            methods = methods_without_ranks(methods)
        if "colocated" in methods and not self._can_share():
            methods = tuple(method for method in methods if method != "colocated")
            if self.how.methods is not None and comm.rank == 0:
                log.warning("transfer method colocated is not taken: processes cannot share memory here")
        if "rma" in methods and comm.size > 1 and not native().has_mailboxes(comm.handle):
            methods = tuple(method for method in methods if method != "rma")
            if comm.rank == 0:
                log.warning(
                    "transfer method rma is not taken: MPI's one-sided communication has separate copies of "
                    "memory here (not MPI_WIN_UNIFIED)"
                )
        self.transfers = Transfers(layout, methods, self.how.packing)
        self.near = self._meet(self.transfers)

    def _notice(self, *texts: str) -> None:
        """Tell the user, once, what is not as it was asked for."""
        for text in filter(None, texts if self.comm.rank == 0 else ()):
            say_once(text)

    def _device_methods(self) -> tuple[str, ...]:
        """The transfer methods that may be taken between devices; all ranks call this."""
        methods = self.how.allowed_methods
        if self.comm.mpi is None:
            return methods_without_ranks(methods)
        if "colocated" in methods and (why := why_no_links(native(), self.comm, self.devices)):
            news = all(device.shares for device in self.devices) and self.comm.ranks_of_node > 1
            methods = self._without("colocated", methods, why, news)
        if "gpu_aware" in methods:
            why, news = why_not_aware(native(), self.comm, self.devices)
            if why:
                methods = self._without("gpu_aware", methods, why, news)
        return methods

    def _without(self, method: str, methods: tuple[str, ...], why: str, news: bool) -> tuple[str, ...]:
        """All but this transfer method; says so where that is news, or where the user asked for it."""
        if self.comm.rank == 0 and self.comm.size > 1:
            tell = log.warning if news or self.how.methods is not None else log.info
            tell("transfer method %s is not taken between devices: %s", method, why)
        return tuple(name for name in methods if name != method)

    def device_of(self, n: int) -> Any:
        """The device of the n-th subdomain of this rank."""
        return self.devices[n // self.how.subdomains_per_rank]

    def _can_share(self) -> bool:
        """Whether the processes of all nodes can read each other's memory, without loss to kernels: these are
        slower where shared memory has no huge pages (docs/performance.md). A user who asks for it gets it."""
        mine = True
        try:
            counters = native().Counters(1)
            if self.how.methods is None:
                mine = native().shared_pages_are_huge()
        except (RuntimeError, MemoryError):
            mine, counters = False, None
        handles = self.comm.allgather_of_node(None if counters is None else counters.handle())
        try:
            for handle in handles:
                if handle is not None:
                    native().Counters.attach(handle)
        except (RuntimeError, MemoryError) as error:
            log.info("no memory is shared with other processes of the node: %s", error)
            mine = False
        return all(self.comm.allgather(mine))  # also keeps the counters alive for the others

    def _meet(self, transfers: Transfers) -> Near | None:
        """Find the subdomains of other processes whose memory this rank reads; None where no two processes
        of a node share any."""
        layout, cut = transfers.layout, transfers.layout.decomposition
        wide = layout.ranks_per_node > 1 or bool(layout.nodes_of_ranks)
        if "colocated" not in transfers.methods or self.comm.size == 1 or not wide:
            return None
        counters: Any = None
        with self.comm.agreement("share memory with other processes of the node"):
            counters = native().Counters(layout.subdomains_per_rank)
        signals = dict(self.comm.allgather_of_node((self.comm.rank, counters.handle())))
        found = {
            peer
            for own in layout.owned(self.comm.rank)
            for direction in product((-1, 0, 1), repeat=self.grid.ndim)
            if (peer := cut.neighbour(own, direction)) is not None
            and transfers.method(own, peer) == "colocated"
        }
        homes = {number: layout.home(number) for number in sorted(found)}
        attached = {}
        with self.comm.agreement("see the memory of other processes of the node"):
            attached = {
                rank: native().Counters.attach(signals[rank]) for rank in {rank for rank, _ in homes.values()}
            }
        return Near(counters, tuple(homes), homes, {}, attached)

    @property
    def decomposition(self) -> Decomposition | None:
        """How the grid is cut; None until the first program is prepared."""
        return None if self.transfers is None else self.transfers.layout.decomposition

    @property
    def subdomains(self) -> tuple[int, ...]:
        """Those of this rank."""
        assert self.transfers is not None
        return self.transfers.layout.owned(self.comm.rank)

    def offsets(self) -> list[tuple[int, ...]]:
        """The global index of the first cell of each subdomain of this rank."""
        assert self.decomposition is not None
        return [self.decomposition.box(number).lo for number in self.subdomains]

    # --- memory ---

    @property
    def memory_bytes(self) -> int:
        """Bytes of all storages on this rank."""
        return sum(storage.bytes for each in self.storages.values() for storage in each)

    def allocate(self, fields: tuple[FieldInfo, ...], plan: RankPlan) -> list[str]:
        """Make storages for fields that have none, and wider ones where a halo has grown; return the names of
        those that were made, the same on all ranks.

        A field and its second buffer (the same name with "'") change places, so that they grow together.
        """
        for info in fields:
            base = info.name.removesuffix("'")
            have = self.halos.get(base, info.halo)
            self.halos[base] = tuple(
                (max(a, c), max(b, d)) for (a, b), (c, d) in zip(have, info.halo, strict=True)
            )
        new = sum(p.bytes for own in plan.subdomains for p in own.fields if p.name not in self.storages)
        mailboxes = self.how.mailboxes * plan.mailbox_bytes
        self._check_memory(new + mailboxes, "fields and mailboxes" if mailboxes else "fields")
        made = []
        for number, info in enumerate(fields):
            base = info.name.removesuffix("'")
            for name in dict.fromkeys((info.name, base, base + "'")):
                old = self.storages.get(name)
                if (name == info.name and old is None) or (old and self.widths[name] != self.halos[base]):
                    shapes = [own.fields[number].owned.shape for own in plan.subdomains]
                    self._make(name, shapes, ITEMSIZE[info.dtype])
                    made.append(name)
        return made

    def activate(self, blocks: Blocks) -> None:
        """Change which blocks are active; all ranks call this, and prepare their programs anew. Cells of
        other blocks, and halos, are zero then."""
        before, self.blocks = self.blocks, blocks
        try:
            with self.comm.agreement("change the active blocks"):
                sizes = (
                    sum(piece.nbytes for _, piece in self._pieces(each))
                    for each in self.storages.values()
                    if not self.devices  # each device says what it lacks
                )
                self._check_memory(max(sizes, default=0))
        except BaseException:
            self.blocks = before
            raise
        for name, old in list(self.storages.items()):
            with self.comm.agreement(f"make field {name!r} anew"):
                shapes = [tuple(storage.shape)[3 - self.grid.ndim :] for storage in old]
                self._make(name, shapes, old[0].itemsize)
        self.share(list(self.storages))

    def share(self, names: Sequence[str]) -> None:
        """See the memory of these fields in other processes of the node; all ranks call this."""
        if self.near is None or not names:
            return
        handles: dict[str, list[Any]] = {}
        with self.comm.agreement("share fields with other processes of the node"):
            handles = {name: [storage.handle() for storage in self.storages[name]] for name in names}
        told = dict(self.comm.allgather_of_node((self.comm.rank, handles)))
        views = dict(self.near.storages)
        # nobody gives back what it has replaced before all have seen the new
        with self.comm.agreement("see the fields of other processes of the node"):
            for name in names:
                views[name] = {
                    number: native().Storage.attach(told[rank][name][local])
                    for number, (rank, local) in self.near.homes.items()
                }
        self.near = replace(self.near, storages=views)

    def check_room(self, fields: Sequence[FieldInfo]) -> None:
        """InputError where the fields alone, without halos, are more than all nodes hold; all ranks call
        this. To plan a grid that no machine holds would itself take memory and time."""
        cells = self.grid.size if self.blocks is None else self.blocks.cells
        needed = cells * sum(ITEMSIZE[info.dtype] for info in fields if info.name not in self.storages)
        with self.comm.agreement("look for memory"):
            if lack := self._lack_of_memory(-(-needed // self.comm.size)):
                raise InputError(lack)

    def _check_memory(self, needed: int, what: str = "fields") -> None:
        """RunError where the ranks of a node ask together for more than it has; each alone may get its share,
        since pages cost nothing before they are touched, and be killed later."""
        if lack := self._lack_of_memory(needed, what):
            raise RunError(lack)

    def _lack_of_memory(self, needed: int, what: str = "fields") -> str:
        """What to say where this node has no `needed` bytes for each of its ranks; "" where it has."""
        if self.devices:
            return ""  # see check_devices
        ranks = self.comm.ranks_of_node
        available = min(native().available_memory(), ranks * native().available_to_process())
        if ranks * needed <= available:
            return ""
        whose = f"of the {ranks} ranks on this node " if ranks > 1 else ""
        advice = "fewer mailboxes, a smaller grid" if "mailboxes" in what else "a smaller grid"
        return (
            f"the {what} {whose}need {_amount(ranks * needed)}, but only {_amount(available)} are available: "
            f"take {advice}, float32 or more nodes"
        )

    def check_devices(self, plan: RankPlan) -> None:
        """InputError or RunError where devices cannot hold the fields of a plan, or not compute them. All
        ranks end this before any of them takes memory: they may share devices."""
        needed = dict.fromkeys(self.devices, 0)
        for n, own in enumerate(plan.subdomains):
            check_dtypes(self.device_of(n), own.fields)
            needed[self.device_of(n)] += subdomain_bytes(own, self.storages)
        for device, size in needed.items():
            check_memory(device, size, self._sharers[device])

    def _make(self, name: str, shapes: Sequence[Sequence[int]], itemsize: int) -> None:
        """Storages with the field's present halo; they take over what the ones before them hold."""
        halo = self.halos[name.removesuffix("'")]
        lower, upper = zip(*halo, strict=True)
        index, shared, sparse = len(self.storages), self.near is not None, self.blocks is not None
        try:
            if self.devices:
                with device_errors(f"field {name!r}"):
                    made = [
                        native().DeviceStorage(
                            self.device_of(n), three(shape, 1), three(lower), three(upper), itemsize
                        )
                        for n, shape in enumerate(shapes)
                    ]
            else:
                made = [
                    native().Storage(
                        three(shape, 1), three(lower), three(upper), itemsize, index, shared, sparse
                    )
                    for shape in shapes
                ]
        except MemoryError as error:
            raise RunError(f"field {name!r}: {error}") from None
        if name in self.storages:
            kept = self._pieces(self._on_host(self.storages[name]))
            with self._written(made) as fresh:
                for (_, new), (_, old) in zip(self._pieces(fresh), kept, strict=True):
                    new[...] = old
            self.generation += 1
        self.storages[name], self.widths[name] = made, halo

    def forget(self, name: str) -> None:
        """Give the memory of a field back."""
        views = self.near.storages if self.near else {}
        for known in (self.storages, self.halos, self.widths, views):
            known.pop(name, None)

    # --- values ---

    def _storages(self, field: Field) -> list[Any]:
        storages = self.storages.get(field.name)
        if storages is None:
            raise InputError(f"field {field.name!r} has no memory yet: no program that was run uses it")
        return storages

    def _stored(self, field: Field) -> list[Any]:
        """The storages of a field; of devices, copies of them in memory of the host."""
        return self._on_host(self._storages(field))

    def _on_host(self, storages: list[Any]) -> list[Any]:
        if not self.devices:
            return storages
        with device_errors("fields cannot be read"):
            return [storage.fetch() for storage in storages]

    @contextmanager
    def _written(self, storages: list[Any]) -> Iterator[list[Any]]:
        """Storages in memory of the host, of which those of devices take over what is written."""
        there = self._on_host(storages)
        yield there
        if self.devices:
            with device_errors("fields cannot be written"):
                for storage, changed in zip(storages, there, strict=True):
                    storage.store(changed)

    def _view(self, storage: Any) -> NDArray[Any]:
        whole: NDArray[Any] = storage.view()[(0,) * (3 - self.grid.ndim)]
        return whole

    def views(self, field: Field) -> list[NDArray[Any]]:
        """The points of a field in each subdomain of this rank, as NumPy views without halo, valid until the
        next run; where blocks are inactive, as copies that cannot be written."""
        import numpy as np

        storages = self._stored(field)
        if self.devices and self.blocks is None:
            return [_unwritable(self._view(storage)) for storage in storages]
        if self.blocks is None:
            return [self._view(storage) for storage in storages]
        # to read shared memory that was never written would take pages
        copies = [np.zeros(self._view(storage).shape, field.dtype) for storage in storages]
        for (n, lo), piece in self._pieces(storages):
            copies[n][tuple(map(slice, lo, map(add, lo, piece.shape)))] = piece
        for copied in copies:
            copied.flags.writeable = False
        return copies

    def pieces(self, field: Field) -> list[tuple[tuple[int, ...], NDArray[Any]]]:
        """The points of a field that are computed on this rank, as boxes: the index of the first in the whole
        field, and a NumPy view without halo, to be read; valid until the next run."""
        return self._placed(self._stored(field))

    @contextmanager
    def writing(self, field: Field) -> Iterator[list[tuple[tuple[int, ...], NDArray[Any]]]]:
        """The same to be written: what was written counts when the context ends."""
        with self._written(self._storages(field)) as storages:
            yield self._placed(storages)

    def fill(self, value: float) -> None:
        """Set all points of all fields, also of those that users do not see."""
        for each in self.storages.values():
            with self._written(each) as storages:
                for storage in storages:
                    storage.view()[...] = value

    def _placed(self, storages: Sequence[Any]) -> list[tuple[tuple[int, ...], NDArray[Any]]]:
        return [(tuple(map(add, self._first(n), lo)), view) for (n, lo), view in self._pieces(storages)]

    def _first(self, n: int) -> tuple[int, ...]:
        """The global index of the first cell of the n-th subdomain of this rank."""
        assert self.decomposition is not None
        return self.decomposition.box(self.subdomains[n]).lo

    def _pieces(self, storages: Sequence[Any]) -> list[tuple[tuple[int, tuple[int, ...]], NDArray[Any]]]:
        """The points of storages that are computed: the subdomain's place on this rank and the index of the
        first in it, and a view."""
        return [
            ((n, lo), self._view(storage)[tuple(map(slice, lo, hi))])
            for n, storage in enumerate(storages)
            for lo, hi in self._active(n, storage)
        ]

    def _active(self, n: int, storage: Any) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The boxes of the points that are computed in the n-th subdomain of this rank, in its indices."""
        points = tuple(storage.shape)[3 - self.grid.ndim :]
        if self.blocks is None:
            yield (0,) * self.grid.ndim, points
            return
        first = self._first(n)
        for lo, hi in self.blocks.pieces(first, tuple(map(add, first, points))):
            yield tuple(map(sub, lo, first)), tuple(map(sub, hi, first))

    def view(self, field: Field) -> NDArray[Any]:
        """This rank's points of a field: a view, or, of several subdomains, a copy that cannot be written.

        Raises
        ------
        InputError
            The subdomains do not make up a box.
        """
        import numpy as np

        views = self.views(field)
        if len(views) == 1:
            return views[0]
        offsets = self.offsets()
        low = tuple(map(min, zip(*offsets, strict=True)))
        whole = _assembled([(tuple(map(sub, o, low)), v) for o, v in zip(offsets, views, strict=True)])
        if whole.size != sum(view.size for view in views):
            raise InputError(
                f"the {len(views)} subdomains of rank {self.comm.rank} do not make up a box: use "
                f"views({field.name!r}), or gather({field.name!r})"
            )
        assert isinstance(whole, np.ndarray)
        whole.flags.writeable = False
        return whole

    def gather(self, field: Field) -> NDArray[Any] | None:
        """The whole field as a new array on rank 0, None elsewhere; all ranks call this."""
        import numpy as np

        mine = [(origin, np.ascontiguousarray(view)) for origin, view in self.pieces(field)]
        pieces = self.comm.gather(mine)
        if pieces is None:
            return None
        whole = np.zeros(field.points, dtype=field.dtype)
        for origin, piece in (piece for each in pieces for piece in each):
            whole[tuple(map(slice, origin, map(add, origin, piece.shape)))] = piece
        return whole

    def checksum(self, field: Field) -> str:
        """A hash of a field's bits in global order, the same for every decomposition: 32 hexadecimal
        digits."""
        mine = [
            storage.checksum(
                three(lo), three(hi, 1), three(self._first(n)), three(field.points, 1), self.threads
            )
            for n, storage in enumerate(self._stored(field))
            for lo, hi in self._active(n, storage)
        ]
        words = [words for each in self.comm.allgather(mine) for words in each]
        sums = [sum(column) % 2**64 for column in zip((0, 0), *words, strict=True)]
        return "".join(f"{word:016x}" for word in sums)

    def check_finite(self, fields: Sequence[Field], when: str) -> None:
        """Raise for the first of these fields that holds a value which is not finite; all ranks call this."""
        worst = min((m for m in self.comm.allgather(self._nonfinite(fields)) if m is not None), default=None)
        if worst is not None:
            number, cell, value = worst
            error = InputError(
                f"field {fields[number].name!r} is {value} at cell {cell} {when}; all values must be finite"
            )
            error.place = fields[number].name, cell
            raise error

    def _nonfinite(self, fields: Sequence[Field]) -> tuple[int, tuple[int, ...], float] | None:
        """This rank's first value that is not finite: number of the field, global cell, value."""
        for number in self._suspects(fields):
            found = []
            for n, storage in enumerate(self._stored(fields[number])):
                for lo, hi in self._active(n, storage):
                    place = storage.first_nonfinite(three(lo), three(hi, 1), self.threads)
                    if place is not None:
                        local = place[3 - self.grid.ndim :]
                        cell = tuple(map(add, self._first(n), local))
                        found.append((number, cell, float(self._view(storage)[local])))
            if found:
                return min(found)
        return None

    def _suspects(self, fields: Sequence[Field]) -> Sequence[int]:
        """The numbers of the fields to look through in memory of the host: of what lies on devices those that
        these have found to hold such a value, so that no other is fetched."""
        if not self.devices:
            return range(len(fields))
        if not self._finders:
            with self.comm.agreement("compile the search for values that are not finite"):
                self._finders.update((device, finder(device)) for device in dict.fromkeys(self.devices))
        with device_errors("fields cannot be looked through"):
            searches = []
            for n in range(len(self.subdomains)):
                storages = [self._storages(field)[n] for field in fields]
                boxes = [
                    [(three(lo), three(hi, 1)) for lo, hi in self._active(n, storage)] for storage in storages
                ]
                searches.append(native().Search(self._finders[self.device_of(n)], storages, boxes))
            found = [search.found() for search in searches]
        return [number for number in range(len(fields)) if any(each[number] for each in found)]


def _amount(size: int) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.0f} MB"


def _unwritable(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _assembled(pieces: Sequence[tuple[tuple[int, ...], NDArray[Any]]]) -> NDArray[Any]:
    """One array of pieces, each with the index of its first element."""
    import numpy as np

    ends = [tuple(map(add, origin, piece.shape)) for origin, piece in pieces]
    whole = np.empty(tuple(map(max, zip(*ends, strict=True))), dtype=pieces[0][1].dtype)
    for (origin, piece), end in zip(pieces, ends, strict=True):
        whole[tuple(map(slice, origin, end))] = piece
    return whole
