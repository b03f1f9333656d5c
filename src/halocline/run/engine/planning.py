"""From a program to the plan of this rank: compiled, cut, planned, its kernels in a library."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halocline.compile.compiler import compile_program
from halocline.compile.driver import compile_library
from halocline.compile.schedule import Loop, Schedule
from halocline.compile.strategy import Strategy
from halocline.errors import InputError
from halocline.lang.grid import unknown
from halocline.lang.program import Program
from halocline.lang.trace import OWN
from halocline.plan.rank import RankPlan, plan_rank
from halocline.plan.transfer import Transfers
from halocline.run.domain.domain import Domain
from halocline.run.engine import measured
from halocline.run.host.caches import caches, exceeds_cache
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning.patches import TUNE, Tuned


@dataclass(frozen=True)
class Planned:
    """What this rank runs, and in which patches.

    Attributes
    ----------
    plan : RankPlan
    library : path
        Of the kernels.
    tuned : Tuned or None
        What is known of the speed of patches, where that decided.
    """

    plan: RankPlan
    library: Path
    tuned: Tuned | None


def compiled(store: FieldStore, program: Program, make: measured.Make) -> Schedule:
    """The schedule of a program on the grid of a store; all ranks call this."""
    of = functools.partial(_compiled, store, program)
    return of(measured.strategy(store, program.name, of, make))


def _compiled(store: FieldStore, program: Program, strategy: Strategy | None) -> Schedule:
    domain = store.domain
    schedule = compile_program(
        program, domain.grid, halo=domain.how.halo, device=strategy, shared=domain.shared_bytes
    )
    return replace(schedule, blocks=store.blocks)


def check_scalars(
    names: Iterable[str], program: Program, grid_values: Iterable[str], given: Iterable[str]
) -> None:
    """Raise InputError for a scalar of the program that nothing gives a value.

    Parameters
    ----------
    names : names
        Of the scalars that the program reads.
    grid_values : names
        Of the scalars of the grid.
    given : names
        Of those that have a value when it runs.
    """
    given = list(given)
    known = {*given, *grid_values, *program.scalars_set()}
    for name in names:
        if name not in known and OWN not in name:
            raise _missing(name, program.meanings.get(name), sorted(n for n in given if OWN not in n))


def _missing(name: str, meaning: str | None, given: Sequence[str]) -> InputError:
    """The error for a parameter that is read and has no value."""
    if meaning is None:  # one of the user's own; its name may be misspelt
        return unknown("parameter", name, given)
    return InputError(f"parameter {name!r} is missing: {meaning}; given: {', '.join(given)}")


def planned(
    store: FieldStore,
    schedule: Schedule,
    name: str,
    make: measured.Make,
    patch: Sequence[int] | str | None = None,
) -> Planned:
    """Plan a schedule for this rank, and compile its kernels. All ranks call this with the same schedule.

    Parameters
    ----------
    name : str
        Of the program.
    make : callable
        Makes of a schedule what can run, where patches are to be measured.
    patch : sequence of int, or {"caches"}, optional
        Instead of what `Execution.patch` says.
    """
    domain = store.domain
    comm, transfers = domain.comm, _transfers(store, schedule, name)
    how = domain.how if patch is None else replace(domain.how, patch=patch)
    plan_with = functools.partial(
        plan_rank, schedule, transfers, comm.rank, threads=domain.threads, caches=caches()
    )
    plan = plan_with(patch=how.patch_shape)
    # one library for all ranks, also where those of another node hold less
    streaming = any(comm.allgather(exceeds_cache(plan, comm.ranks_of_node)))
    library = compile_once(schedule.source, comm, streaming=streaming)
    tuned = None
    if has_loop(schedule) and how.patch in (None, TUNE) and not domain.devices:
        tuned = measured.tuned_patches(store, schedule, name, library.stem, plan.transfers, make)
    if tuned is not None and tuned.patch is not None:
        plan = plan_with(patch=tuned.patch)
    return Planned(plan, library, tuned)


def _transfers(store: FieldStore, schedule: Schedule, name: str) -> Transfers:
    """How the grid is cut, and how messages go: found with the first program of a domain, before anything is
    compiled, so that wrong cuts and patches are known early."""
    domain: Domain = store.domain
    comm = domain.comm
    comm.check_same(
        f"program {name!r} is",
        (schedule, domain.grid.shape, domain.how, domain.transfers),
        "all ranks must build the same equations on the same grid",
    )
    store.check_room(schedule.fields)
    if domain.transfers is None:
        domain.adopt(schedule)
        comm.check_same(
            f"the decomposition for program {name!r} is",
            domain.transfers,
            "all ranks must run the same version of Halocline on the same kind of machine",
        )
    assert domain.transfers is not None
    return domain.transfers


def has_loop(schedule: Schedule) -> bool:
    """Whether the program has a loop, whose passes can be timed."""
    return any(isinstance(operation, Loop) for operation in schedule.operations)


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
