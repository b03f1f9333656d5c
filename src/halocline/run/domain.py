"""A grid at work: its fields in native memory, cut over ranks, and programs prepared to run on them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from halocline.compile.compiler import compile_program
from halocline.compile.driver import compile_library
from halocline.compile.schedule import AROUND, FieldInfo, Loop, Schedule, Sweep
from halocline.errors import InputError, RunError
from halocline.lang.grid import Field, Grid, unknown
from halocline.lang.program import Program
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.fit import least_thickness
from halocline.plan.patches import Caches
from halocline.plan.rank import RankPlan, plan_rank
from halocline.plan.traffic import Traffic
from halocline.run.bind import build_engine, three
from halocline.run.machine import data_caches
from halocline.run.mpi import Communicator, native, world
from halocline.run.watch import watching

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("halocline")


@dataclass(frozen=True)
class Outcome:
    """What a run did.

    Attributes
    ----------
    reason : str
        "completed", the reason of the stop statement that ended it, or "interrupted".
    loops : tuple of str
        How each loop ended: "condition" or "limit".
    history : array (passes, recorded scalars)
    scalars : dict of str to float
        Every scalar by name, as the run left it.
    seconds, compute, exchange, reduction : float
        Wall clock between barriers, the longest of all ranks; and what of it the first thread spent in
        kernels, packing and waiting for messages, and in reductions.
    loop_seconds : float
        What of the wall clock the outermost loops took, on the slowest rank.
    """

    reason: str
    loops: tuple[str, ...]
    history: NDArray[np.float64]
    scalars: dict[str, float]
    seconds: float
    compute: float
    exchange: float
    reduction: float
    loop_seconds: float


@dataclass
class Domain:
    """One rank's share of a grid.

    Parameters
    ----------
    grid : Grid
    comm : Communicator
    threads : int, optional
        Per rank; OMP_NUM_THREADS, else the cores of the node shared among its ranks.
    strategy : str or tuple of int
        How the grid is cut over ranks; see halocline.plan.decompose.
    patch : int or sequence of int, optional
        Shape of the patches; chosen by cache size where not given.
    """

    grid: Grid
    comm: Communicator = field(default_factory=world)
    threads: int | None = None
    strategy: str | Sequence[int] = "optimal"
    patch: int | Sequence[int] | None = None
    decomposition: Decomposition | None = None
    storages: dict[str, Any] = field(default_factory=dict)
    halos: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)  # of fields
    widths: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)  # of storages
    generation: int = 0  # of the storages: engines made before the last change are stale

    def __post_init__(self) -> None:
        if self.threads is None:
            self.threads = default_threads(self.comm)
        if isinstance(self.threads, bool) or not isinstance(self.threads, int) or self.threads < 1:
            raise InputError(f"threads {self.threads!r}: expected a whole number from 1")

    def prepare(self, program: Program, given: Iterable[str]) -> Prepared:
        """Compile and plan a program; all ranks call this with the same program.

        Parameters
        ----------
        program : Program
        given : names
            The scalars that have a value when it runs. InputError for one that is used and has none.
        """
        schedule = compile_program(program, self.grid)
        known = {*given, *self.grid.scalar_values(), *program.scalars_set()}
        for name in schedule.scalars:
            if name not in known and not name.startswith("_"):
                raise unknown("parameter", name, sorted(given))
        return Prepared(self, schedule, program.name)

    def adopt(self, schedule: Schedule) -> None:
        """Cut the grid for this schedule, unless it has been cut already."""
        if self.decomposition is None:
            self.decomposition = decompose(
                self.grid.shape,
                self.comm.size,
                strategy=self.strategy,
                traffic=Traffic.of_schedule(schedule),
                thickness=least_thickness(schedule),
                periodic=self.grid.periodic,
            )

    @property
    def memory_bytes(self) -> int:
        """Bytes of all storages on this rank."""
        return sum(s.bytes for s in self.storages.values())

    def allocate(self, fields: tuple[FieldInfo, ...], plan: RankPlan) -> None:
        """Make storages for fields that have none, and wider ones where a halo has grown.

        A field and its second buffer (the same name with "'") change places, so that they grow together.
        """
        for info in fields:
            base = info.name.removesuffix("'")
            have = self.halos.get(base, info.halo)
            self.halos[base] = tuple(
                (max(a, c), max(b, d)) for (a, b), (c, d) in zip(have, info.halo, strict=True)
            )
        for info, planned in zip(fields, plan.fields, strict=True):
            base = info.name.removesuffix("'")
            for name in dict.fromkeys((info.name, base, base + "'")):
                old = self.storages.get(name)
                if (name == info.name and old is None) or (old and self.widths[name] != self.halos[base]):
                    self._make(name, planned.owned.shape, 8 if info.dtype == "float64" else 4)

    def _make(self, name: str, shape: Sequence[int], itemsize: int) -> None:
        """A storage with the field's present halo; it takes over what the one before it holds."""
        halo = self.halos[name.removesuffix("'")]
        lower, upper = zip(*halo, strict=True)
        try:
            made = native().Storage(three(shape, 1), three(lower), three(upper), itemsize, len(self.storages))
        except MemoryError as error:
            raise RunError(f"field {name!r}: {error}") from None
        if name in self.storages:
            made.view()[...] = self.storages[name].view()
            self.generation += 1
        self.storages[name], self.widths[name] = made, halo

    def view(self, field: Field) -> NDArray[Any]:
        """This rank's points of a field, as a NumPy view without halo; valid until the next run."""
        storage = self.storages.get(field.name)
        if storage is None:
            raise InputError(f"field {field.name!r} has no memory yet: no program that was run uses it")
        view: NDArray[Any] = storage.view()[(0,) * (3 - self.grid.ndim)]
        return view

    def offset(self) -> tuple[int, ...]:
        """The global index of this rank's first cell."""
        assert self.decomposition is not None
        return self.decomposition.box(self.comm.rank).lo

    def gather(self, field: Field) -> NDArray[Any] | None:
        """The whole field as a new array on rank 0, None elsewhere; all ranks call this."""
        import numpy as np

        pieces = self.comm.gather((self.offset(), np.ascontiguousarray(self.view(field))))
        if pieces is None:
            return None
        shape = tuple(max(o[a] + p.shape[a] for o, p in pieces) for a in range(self.grid.ndim))
        whole = np.empty(shape, dtype=pieces[0][1].dtype)
        for origin, piece in pieces:
            whole[tuple(slice(o, o + n) for o, n in zip(origin, piece.shape, strict=True))] = piece
        return whole

    def checksum(self, field: Field) -> str:
        """A hash of a field's bits in global order, the same for every decomposition: 32 hexadecimal
        digits."""
        storage = self.storages[field.name]
        whole = storage.view().shape
        words = storage.checksum(
            [0, 0, 0], list(whole), three(self.offset()), three(self.global_points(field), 1)
        )
        totals = [sum(rank[n] for rank in self.comm.allgather(tuple(words))) % 2**64 for n in (0, 1)]
        return f"{totals[0]:016x}{totals[1]:016x}"

    def global_points(self, field: Field) -> tuple[int, ...]:
        """How many points of a field there are along each axis of the whole grid."""
        g = self.grid
        return tuple(
            n + int(s and not p) for n, s, p in zip(g.shape, field.staggered, g.periodic, strict=True)
        )

    def check_finite(self, field: Field, when: str) -> None:
        """Raise where a field holds a value that is not finite; all ranks call this."""
        storage = self.storages[field.name]
        found = storage.first_nonfinite([0, 0, 0], list(storage.view().shape))
        mine = None
        if found is not None:
            local = list(found)[3 - self.grid.ndim :]
            value = float(self.view(field)[tuple(local)])
            mine = (tuple(o + i for o, i in zip(self.offset(), local, strict=True)), value)
        worst = min((m for m in self.comm.allgather(mine) if m is not None), default=None)
        if worst is not None:
            raise InputError(
                f"field {field.name!r} is {worst[1]} at cell {worst[0]} {when}; all values must be finite"
            )


def default_threads(comm: Communicator) -> int:
    """Threads of one rank where the user names no number."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if given.isdigit() and int(given) > 0:
        return int(given)
    return max(1, len(os.sched_getaffinity(0)) // comm.ranks_of_node)


def caches() -> Caches:
    """The data caches of this machine, as the planner takes them; its own defaults where they are unknown."""
    found = {f"l{c.level}": c.bytes for c in data_caches() if c.level <= 3}
    if found and "l3" not in found:
        found["l3"] = max(found.values())
    return Caches(**found)


class Prepared:
    """A program compiled, planned and bound to the engine, ready to run any number of times."""

    def __init__(self, domain: Domain, schedule: Schedule, name: str) -> None:
        import numpy as np

        self.domain, self.schedule, self.name = domain, schedule, name
        comm = domain.comm
        check_agreement(
            comm,
            f"program {name!r} is",
            (schedule.fields, schedule.source, domain.grid.shape, domain.strategy, domain.decomposition),
            "all ranks must build the same equations on the same grid",
        )
        domain.adopt(schedule)  # before anything is compiled: wrong cuts and patches are found here
        assert domain.decomposition is not None
        assert domain.threads is not None
        self.plan = plan_rank(
            schedule,
            domain.decomposition,
            comm.rank,
            patch=domain.patch,
            threads=domain.threads,
            caches=caches(),
        )
        self.library = compile_once(schedule.source, comm)
        self.values: NDArray[np.float64] = np.zeros(len(schedule.scalars))
        if AROUND in schedule.scalars and domain.decomposition.parts[-1] == 1:
            self.values[schedule.scalars.index(AROUND)] = domain.grid.shape[-1]
        self._engine: Any = None
        self._generation = -1
        with comm.agreement(f"allocate fields of {name!r}"):
            domain.allocate(schedule.fields, self.plan)

    @property
    def engine(self) -> Any:
        """The native engine, made anew where storages have changed."""
        if self._engine is None or self._generation != self.domain.generation:
            self._engine = build_engine(
                native(),
                self.library,
                self.schedule,
                self.plan,
                self.domain.storages,
                self.values,
                self.domain.comm,
                streaming=self.streams,
            )
            self._generation = self.domain.generation
        return self._engine

    @property
    def streams(self) -> bool:
        """Whether the fields of the node exceed its last-level cache, so that results had better go past
        it."""
        return self.plan.memory * self.domain.comm.ranks_of_node > caches().l3

    @property
    def bytes_per_pass(self) -> float:
        """Bytes per cell that must cross memory in one pass of the outermost loop, or in one run without a
        loop."""
        loops = [o for o in self.schedule.operations if isinstance(o, Loop)]
        sweeps = [o for o in (loops[0].body if loops else self.schedule.operations) if isinstance(o, Sweep)]
        return sum(s.bytes for s in sweeps)

    def run(
        self, values: Mapping[str, float] | None = None, on_progress: Callable[[int], None] | None = None
    ) -> Outcome:
        """Run the program.

        Parameters
        ----------
        values : mapping of str to float
            Scalars to set before: parameters, and the initial values of others.
        on_progress : callable, optional
            Called a few times a second with the passes of the outermost loop so far, from another thread.
        """
        import numpy as np

        given = {**self.domain.grid.scalar_values(), **(values or {})}
        check_agreement(
            self.domain.comm,
            f"the parameters of program {self.name!r} are",
            sorted(given.items()),
            "all ranks must give the same values",
        )
        for number, name in enumerate(self.schedule.scalars):
            if name in given:
                self.values[number] = given[name]
        engine = self.engine
        with watching(engine, on_progress):
            report = engine.run()
        return Outcome(
            reason=report["reason"],
            loops=tuple(ended or "" for ended in report["loops"]),
            history=np.asarray(report["history"]),
            scalars=dict(zip(self.schedule.scalars, self.values.tolist(), strict=True)),
            seconds=report["seconds"],
            compute=report["compute"],
            exchange=report["exchange"],
            reduction=report["reduction"],
            loop_seconds=report["loop_seconds"],
        )


def check_agreement(comm: Communicator, what: str, mine: Any, advice: str) -> None:
    """Raise InputError where ranks do not have the same; all ranks call this."""
    same = comm.allgather(blake2b(repr(mine).encode()).digest())
    other = next((rank for rank, digest in enumerate(same) if digest != same[0]), None)
    if other is not None:
        raise InputError(f"{what} not the same on ranks 0 and {other}: {advice}")


def compile_once(source: str, comm: Communicator) -> Any:
    """The kernel library: rank 0 compiles, the others find it in the cache or, without a shared one, compile
    too."""
    path = None
    with comm.agreement("compile kernels"):
        if comm.rank == 0:
            path = compile_library(source)
    with comm.agreement("compile kernels"):
        if comm.rank != 0:
            path = compile_library(source)
    return path
