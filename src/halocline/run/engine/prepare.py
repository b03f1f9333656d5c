"""Preparation of a program: its compilation, plan and binding, with the choices that are measured.

Where a user asks for it, the shape of patches and the strategy of kernels on devices are measured before the
first run, and remembered for later runs.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from halocline.compile.compiler import compile_program
from halocline.compile.driver import compile_library
from halocline.compile.schedule import AROUND, Loop, Schedule
from halocline.compile.strategy import Strategy
from halocline.compile.targets.source import loop_kernel
from halocline.errors import InputError, RunError
from halocline.lang.grid import unknown
from halocline.lang.program import Program
from halocline.lang.trace import OWN
from halocline.plan.candidates import candidates
from halocline.plan.rank import RankPlan
from halocline.plan.transfer import Transfers
from halocline.run.engine.prepared import PassTimer, PatchShape, Prepared, has_loop, rank_plan
from halocline.run.host.machine import exceeds_cache
from halocline.run.memory.balance import active_cells, balance
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning import kernels, patches
from halocline.run.tuning.patches import TUNE, Tuned, race, recall, remember


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
            meaning = program.meanings.get(name)
            others = sorted(n for n in given if OWN not in n)
            if meaning is None:  # one of the user's own; its name may be misspelt
                raise unknown("parameter", name, others)
            raise InputError(f"parameter {name!r} is missing: {meaning}; given: {', '.join(others)}")


def planned(
    store: FieldStore, schedule: Schedule, name: str, patch: PatchShape = None
) -> tuple[RankPlan, Path]:
    """Plan a schedule for this rank, and compile its kernels. All ranks call this with the same schedule.

    Parameters
    ----------
    name : str
        Name of the program.
    patch : int, sequence or mapping of int, optional
        Shape of the patches; by cache size by default.
    """
    comm = store.domain.comm
    plan = rank_plan(store.domain, schedule, _transfers(store, schedule, name), patch)
    # one library for all ranks, also where those of another node hold less
    streaming = any(comm.allgather(exceeds_cache(plan, comm.ranks_of_node)))
    return plan, compile_once(schedule.source, comm, streaming=streaming)


def _transfers(store: FieldStore, schedule: Schedule, name: str) -> Transfers:
    """Return the transfers between the subdomains of a domain, with the cut of its grid.

    The first program of a domain decides both before anything is compiled, so that wrong cuts and patches are
    errors early.
    """
    domain = store.domain
    comm = domain.comm
    comm.check_same(
        f"program {name!r} is",
        (schedule, domain.grid.shape, domain.how, domain.transfers),
        "all ranks must build the same equations on the same grid",
    )
    store.check_room(schedule.fields)
    if domain.transfers is None:
        domain.adopt(schedule)
        if domain.active_ranks < comm.size:
            balance(store, active_cells(store), domain.active_ranks)
        comm.check_same(
            f"the decomposition for program {name!r} is",
            domain.transfers,
            "all ranks must run the same version of Halocline on the same kind of machine",
        )
    assert domain.transfers is not None
    return domain.transfers


def compile_once(source: str, comm: Communicator, *, streaming: bool) -> Any:
    """The kernel library: rank 0 compiles, the others find it in the cache or, without a shared one, compile
    too."""
    path = None
    for compiles in (comm.rank == 0, comm.rank != 0):
        with comm.agreement("compile kernels"):
            if compiles:
                path = compile_library(source, streaming=streaming)
    return path


log = logging.getLogger("halocline")

T = TypeVar("T")
PASSES = f"{OWN}limit"  # scalar that limits the passes of a loop that is timed


def prepare(store: FieldStore, program: Program, given: Iterable[str]) -> Prepared:
    """Compile, plan and bind a program; all ranks call this with the same program.

    Parameters
    ----------
    store : FieldStore
        Takes the fields of the program that it does not have yet.
    program : Program
    given : names
        Scalars that have a value in a run.

    Raises
    ------
    InputError
        The program reads a scalar that has no value.
    """
    compiled_with = partial(compiled, store, program)
    schedule = compiled_with(_strategy(store, program.name, compiled_with))
    check_scalars(schedule.scalars, program, store.domain.grid.scalar_values(), given)
    return prepare_schedule(store, schedule, program.name)


def prepare_schedule(store: FieldStore, schedule: Schedule, name: str) -> Prepared:
    """Plan and bind a compiled program; all ranks call this with the same schedule."""
    how, patch = store.domain.how, store.domain.how.patch_shape
    plan, library = planned(store, schedule, name, patch)
    tuned = None
    if has_loop(schedule) and how.patch in (None, TUNE) and not store.domain.devices:
        tuned = _tuned_patches(store, schedule, name, plan, library)
        if tuned is not None and tuned.choice is not None:
            patch = tuned.choice
            plan = rank_plan(store.domain, schedule, plan.transfers, patch)
    return Prepared(store, schedule, plan, library, name, patch, tuned)


def _strategy(store: FieldStore, name: str, compiled_with: Callable[[Strategy], Schedule]) -> Strategy | None:
    """Return the strategy of kernels on devices: as the user asks, or as measured; None on the CPU."""
    domain = store.domain
    if not domain.devices:
        return None
    if domain.how.kernels not in (kernels.AUTO, TUNE):
        return Strategy(domain.how.kernels)
    default = compiled_with(Strategy())
    if default.device is None or not has_loop(default):
        return Strategy()
    scratch, staged = store.scratch(), any(sweep.scratch for sweep in default.sweeps())

    def timer_of(strategy: Strategy | None) -> Callable[[int], float]:
        return _timer(scratch, default if strategy is None else compiled_with(strategy), name, None)

    names = [device.name for device in domain.devices]
    key = kernels.key(default.device.source, names, domain.grid.shape, domain.comm.size)
    place, choices = patches.place_of(key, "kernels"), kernels.strategies(domain.grid.ndim, staged)
    tuned = recall(Tuned[Strategy], place) if domain.comm.rank == 0 else None
    measure = partial(race, choices, timer_of) if domain.how.kernels == TUNE else None
    tuned = _tuned(domain.comm, ("kernels", name), place, tuned, measure, kernels.text_of)
    return (tuned and tuned.choice) or Strategy()


def _tuned_patches(
    store: FieldStore, schedule: Schedule, name: str, plan: RankPlan, library: Path
) -> Tuned[patches.Patch] | None:
    """Return the speed of patches, as remembered or as measured; None where it is not known."""
    comm, how, threads, transfers = store.domain.comm, store.domain.how, store.domain.threads, plan.transfers
    key = patches.key(library.stem, transfers, threads, comm.ranks_of_node, how.schedule, schedule.blocks)
    tuned = patches.recalled(key, schedule.ndim) if comm.rank == 0 else None
    shapes = candidates(patches.largest(transfers.layout.decomposition), threads)
    timer_of = partial(_timer, store.scratch(), schedule, name)
    measure = partial(race, shapes, timer_of) if how.patch == TUNE else None
    return _tuned(comm, ("patches", name), patches.place_of(key), tuned, measure, patches.text_of)


def _tuned(
    comm: Communicator,
    what: tuple[str, str],
    place: Path,
    tuned: Tuned[T] | None,
    measure: Callable[[], Tuned[T]] | None,
    text_of: Callable[[Tuned[T]], str],
) -> Tuned[T] | None:
    """Return the measurement that the first rank remembers; else measure. All ranks call this.

    Parameters
    ----------
    what : tuple of str
        Names of the choices and of the program, for messages.
    place : Path
        File for a new measurement.
    measure : callable or None
        None where the user does not ask for a measurement.

    Returns
    -------
    measurement or None
        None where there is none, or where the default cannot run.
    """
    tuned = comm.bcast(tuned)
    if tuned is not None or measure is None:
        return tuned
    begun = time.monotonic()
    try:
        tuned = measure()
    except RunError as error:
        if comm.rank == 0:
            log.warning("%s of %s are not tuned: %s", *what, error)
        return None
    if comm.rank == 0:
        log.info("%s of %s: %s (%.1f s)", *what, text_of(tuned), time.monotonic() - begun)
        try:
            remember(place, tuned, what[1])
        except RunError as error:
            log.warning("%s", error)
    return tuned


def _timer(scratch: FieldStore, schedule: Schedule, name: str, patch: PatchShape) -> Callable[[int], float]:
    """Return a function that times passes of the sweeps of a program's loop.

    The statements about scalars and the conditions are left out: scalars keep the value 1, and nothing ends
    a run early.
    """
    body, size = tuple(schedule.pass_sweeps()), len(schedule.scalars)
    loop = Loop(until=None, limit=size, count=size + 1, record=(), body=body)
    constant = {*scratch.domain.grid.scalar_values(), AROUND}
    values = {scalar: 1.0 for scalar in schedule.scalars if scalar not in constant}
    device = schedule.device
    if device is not None:
        test = loop_kernel("passes")
        device = replace(device, source=f"{device.source}\n{test}", loops=("passes",))
    scalars = (*schedule.scalars, PASSES, f"{OWN}passes")
    passes_alone = replace(schedule, operations=(loop,), scalars=scalars, device=device)
    prepared = Prepared(scratch, passes_alone, *planned(scratch, passes_alone, name, patch), name, patch)
    return PassTimer(prepared, (PASSES,), values).seconds
