"""A grid at work: its fields in native memory, cut over ranks, and programs prepared to run on them."""

from __future__ import annotations

import functools
import logging
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from halocline.compile.compiler import compile_program
from halocline.compile.driver import compile_library
from halocline.compile.schedule import AROUND, FieldInfo, Schedule
from halocline.errors import InputError, RunError
from halocline.lang.dtype import ITEMSIZE
from halocline.lang.grid import Field, Grid, unknown
from halocline.lang.program import Program
from halocline.lang.trace import OWN
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.fit import least_thickness
from halocline.plan.patches import Caches
from halocline.plan.rank import RankPlan, plan_rank
from halocline.plan.traffic import Traffic
from halocline.run.bind import SPINS, build_engine, three
from halocline.run.machine import data_caches, last_level_cache, share_of_cores
from halocline.run.mpi import Communicator, affinity, native, world
from halocline.run.watch import watching

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger("halocline")

CROWDED = 64  # threads of a node for each of its hardware threads that are hardly meant


@dataclass(frozen=True)
class Outcome:
    """What a run did.

    Attributes
    ----------
    reason : str
        "completed", the reason of the stop statement that ended it, or "interrupted": a signal came, also
        where it came too late to cut the run short.
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

    def followed_by(self, later: Outcome) -> Outcome:
        """Both runs as one."""
        import numpy as np

        return replace(
            later,
            history=np.concatenate((self.history, later.history)),
            **{name: getattr(self, name) + getattr(later, name) for name in _CLOCKS},
        )


_CLOCKS = ("seconds", "compute", "exchange", "reduction", "loop_seconds")


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
        together, there = self.threads * self.comm.ranks_of_node, os.cpu_count() or 1
        if self.comm.rank == 0 and together > CROWDED * there:
            log.warning("%d threads for %d hardware threads: each mostly waits for its turn", together, there)
        self.spins = spins(self.threads, self.comm)

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
            if name not in known and OWN not in name:
                raise unknown("parameter", name, sorted(n for n in given if OWN not in n))
        return Prepared(self, schedule, program.name)

    def adopt(self, schedule: Schedule) -> None:
        """Cut the grid for this schedule."""
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
        self._check_memory(sum(p.bytes for p in plan.fields if p.name not in self.storages))
        for info, planned in zip(fields, plan.fields, strict=True):
            base = info.name.removesuffix("'")
            for name in dict.fromkeys((info.name, base, base + "'")):
                old = self.storages.get(name)
                if (name == info.name and old is None) or (old and self.widths[name] != self.halos[base]):
                    self._make(name, planned.owned.shape, ITEMSIZE[info.dtype])

    def _check_memory(self, needed: int) -> None:
        """RunError where the ranks of a node ask together for more than it has; each alone may get its share,
        since pages cost nothing before they are touched, and be killed later."""
        ranks, available = self.comm.ranks_of_node, native().available_memory()
        if ranks * needed > available:
            whose = f"of the {ranks} ranks on this node " if ranks > 1 else ""
            raise RunError(
                f"the fields {whose}need {ranks * needed / 1e9:,.1f} GB, but only {available / 1e9:,.1f} GB "
                "are available: take a smaller grid, float32 or more nodes"
            )

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
            [0, 0, 0], list(whole), three(self.offset()), three(field.points, 1), self.threads
        )
        first, second = (sum(parts) % 2**64 for parts in zip(*self.comm.allgather(words), strict=True))
        return f"{first:016x}{second:016x}"

    def check_finite(self, fields: Sequence[Field], when: str) -> None:
        """Raise for the first of these fields that holds a value which is not finite; all ranks call this."""
        worst = min((m for m in self.comm.allgather(self._nonfinite(fields)) if m is not None), default=None)
        if worst is not None:
            number, cell, value = worst
            raise InputError(
                f"field {fields[number].name!r} is {value} at cell {cell} {when}; all values must be finite"
            )

    def _nonfinite(self, fields: Sequence[Field]) -> tuple[int, tuple[int, ...], float] | None:
        """This rank's first value that is not finite: number of the field, global cell, value."""
        for number, searched in enumerate(fields):
            storage = self.storages[searched.name]
            found = storage.first_nonfinite([0, 0, 0], list(storage.view().shape), self.threads)
            if found is not None:
                local = found[3 - self.grid.ndim :]
                cell = tuple(o + i for o, i in zip(self.offset(), local, strict=True))
                return number, cell, float(self.view(searched)[local])
        return None


def default_threads(comm: Communicator) -> int:
    """Threads of one rank where the user names no number."""
    given = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if given.isdigit() and int(given) > 0:
        return int(given)
    return share_of_cores(affinity(), _masks(comm))


def spins(threads: int, comm: Communicator) -> int:
    """How often a thread that waits may look again at once: as OMP_WAIT_POLICY says, else rarely where a node
    has more threads than cores, since it must leave its core to the one it waits for."""
    policy = os.environ.get("OMP_WAIT_POLICY", "").lower()
    if policy in ("passive", "active"):
        return SPINS[policy]
    masks = _masks(comm)
    together = functools.reduce(operator.or_, masks)
    crowded = threads > affinity().bit_count() or threads * len(masks) > together.bit_count()
    return SPINS["passive" if crowded else "usual"]


def _masks(comm: Communicator) -> tuple[int, ...]:
    """The affinity of each rank of this node; taken to be this one's where they are not known."""
    return comm.masks or (affinity(),) * comm.ranks_of_node


def caches() -> Caches:
    """The data caches of this machine, as the planner takes them; its own defaults where they are unknown."""
    return Caches(**{f"l{c.level}": c.bytes for c in data_caches() if c.level <= 2})


def exceeds_cache(plan: RankPlan, ranks_of_node: int) -> bool:
    """Whether the fields of a node are too many for its last-level cache, so that results had better go past
    it."""
    return plan.memory * ranks_of_node > last_level_cache()


class Prepared:
    """A program compiled, planned and bound to the engine, ready to run any number of times."""

    def __init__(self, domain: Domain, schedule: Schedule, name: str) -> None:
        import numpy as np

        self.domain, self.schedule, self.name = domain, schedule, name
        comm = domain.comm
        check_agreement(
            comm,
            f"program {name!r} is",
            (schedule, domain.grid.shape, domain.strategy, domain.decomposition),
            "all ranks must build the same equations on the same grid",
        )
        if domain.decomposition is None:
            domain.adopt(schedule)  # before anything is compiled: wrong cuts and patches are found here
            check_agreement(
                comm,
                f"the decomposition for program {name!r} is",
                domain.decomposition,
                "all ranks must run the same version of Halocline on the same kind of machine",
            )
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
        # one library for all ranks, also where those of another node hold less
        streaming = any(comm.allgather(exceeds_cache(self.plan, comm.ranks_of_node)))
        self.library = compile_once(schedule.source, comm, streaming=streaming)
        self._errors = {stop.reason for stop in schedule.stops() if stop.error}
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
                self.domain.spins,
            )
            self._generation = self.domain.generation
        return self._engine

    @property
    def bytes_per_pass(self) -> float:
        """Bytes per cell that must cross memory in one pass of the outermost loop, or in one run without a
        loop; loops within count once."""
        return sum(sweep.bytes for sweep in self.schedule.pass_sweeps())

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

        Returns
        -------
        Outcome
            Its reason is "interrupted" where a signal asked to stop, also after the last pass: the caller
            knows how far the loops went, and ends.

        Raises
        ------
        RunError
            A loop cannot end, since its condition compares NaN.
        KeyboardInterrupt
            The same for a program without a loop, which has been run as a whole.
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
        # where ranks must agree, a signal that came after the run's last word is the next run's
        late = self.domain.comm.size == 1 and native().forget_stop()
        if report["reason"] in self._errors:
            raise RunError(report["reason"])
        interrupted = report["stopped"] or late
        if interrupted and not report["loops"]:
            raise KeyboardInterrupt
        return Outcome(
            reason="interrupted" if interrupted and report["reason"] == "completed" else report["reason"],
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


def compile_once(source: str, comm: Communicator, *, streaming: bool) -> Any:
    """The kernel library: rank 0 compiles, the others find it in the cache or, without a shared one, compile
    too."""
    path = None
    with comm.agreement("compile kernels"):
        if comm.rank == 0:
            path = compile_library(source, streaming=streaming)
    with comm.agreement("compile kernels"):
        if comm.rank != 0:
            path = compile_library(source, streaming=streaming)
    return path
