"""Compilation of a program, and its plan for one rank with a library of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from halocline.run.host.caches import caches, exceeds_cache
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning.patches import Tuned


@dataclass(frozen=True)
class Planned:
    """Plan of one rank and its compiled kernels.

    Attributes
    ----------
    plan : RankPlan
    library : path
        Library of the kernels.
    tuned : Tuned or None
        Measured speed of patches, where the measurement chose the shape of the patches.
    """

    plan: RankPlan
    library: Path
    tuned: Tuned | None = None


def compiled(store: FieldStore, program: Program, strategy: Strategy | None) -> Schedule:
    """Compile a program for the grid of a store; all ranks call this.

    Parameters
    ----------
    strategy : Strategy or None
        Mapping of cells to threads of devices; None on the CPU.
    """
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


Patch = int | Sequence[int] | Mapping[str, int] | None  # shape of patches; None: by cache size


def planned(store: FieldStore, schedule: Schedule, name: str, patch: Patch = None) -> Planned:
    """Plan a schedule for this rank, and compile its kernels. All ranks call this with the same schedule.

    Parameters
    ----------
    name : str
        Name of the program.
    patch : int, sequence or mapping of int, optional
        Shape of the patches; by cache size by default.
    """
    comm = store.domain.comm
    plan = rank_plan(store, schedule, _transfers(store, schedule, name), patch)
    # one library for all ranks, also where those of another node hold less
    streaming = any(comm.allgather(exceeds_cache(plan, comm.ranks_of_node)))
    return Planned(plan, compile_once(schedule.source, comm, streaming=streaming))


def rank_plan(store: FieldStore, schedule: Schedule, transfers: Transfers, patch: Patch = None) -> RankPlan:
    """Plan a schedule for this rank, with patches of a shape or by cache size."""
    domain = store.domain
    return plan_rank(
        schedule, transfers, domain.comm.rank, threads=domain.threads, caches=caches(), patch=patch
    )


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
