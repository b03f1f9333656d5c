"""Preparation of a program: compilation, planning, tuning, and binding to the engine.

On request, several shapes of patches or strategies of device kernels are timed before the first run. Later
runs reuse the stored measurements.
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
from halocline.lang.grid import unknown_name_error
from halocline.lang.program import Program
from halocline.lang.trace import INTERNAL
from halocline.plan.candidates import candidates
from halocline.plan.rank import RankPlan
from halocline.plan.transfer import Transfers
from halocline.run.devices.checked import has_copies
from halocline.run.engine.prepared import PassTimer, PatchShape, Prepared, rank_plan
from halocline.run.host.machine import exceeds_cache
from halocline.run.memory.balance import active_cells, balance
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.communicator import Communicator
from halocline.run.tuning import kernels, patches
from halocline.run.tuning.patches import TUNE, Tuned, race, recall, remember


def compile_schedule(store: FieldStore, program: Program, strategy: Strategy | None) -> Schedule:
    """Compile a program for the grid of a store. All ranks call this function.

    Parameters
    ----------
    strategy : Strategy or None
        Mapping of cells to device threads; None on the CPU.
    """
    domain = store.domain
    schedule = compile_program(
        program, domain.grid, halo=domain.execution.halo, device=strategy, shared=domain.shared_bytes
    )
    return replace(schedule, blocks=store.blocks)


def check_scalars(
    names: Iterable[str], program: Program, grid_values: Iterable[str], defined_names: Iterable[str]
) -> None:
    """Raise InputError if the program reads a scalar that has no value.

    Parameters
    ----------
    names : iterable of str
        Scalars that the program reads.
    grid_values : iterable of str
        Scalars of the grid.
    defined_names : iterable of str
        Scalars that have a value during the run.
    """
    defined_names = list(defined_names)
    known = {*defined_names, *grid_values, *program.assigned_scalars()}
    for name in names:
        if name not in known and INTERNAL not in name:
            meaning = program.meanings.get(name)
            other_names = sorted(n for n in defined_names if INTERNAL not in n)
            if meaning is None:  # a scalar of the user, whose name may be misspelt
                raise unknown_name_error("parameter", name, other_names)
            raise InputError(f"parameter {name!r} is missing: {meaning}; given: {', '.join(other_names)}")


def plan_and_compile(
    store: FieldStore, schedule: Schedule, name: str, patch: PatchShape = None
) -> tuple[RankPlan, Path]:
    """Plan a schedule for this rank, and compile its kernels; collective.

    The schedule must be the same on all ranks.

    Parameters
    ----------
    name : str
        Name of the program.
    patch : int, sequence or mapping of int, optional
        Shape of the patches; by default the shape by cache size.
    """
    comm = store.domain.comm
    plan = rank_plan(store.domain, schedule, _transfers(store, schedule, name), patch)
    # All ranks use the same library, even if the working sets of nodes differ.
    streaming = any(comm.allgather(exceeds_cache(plan, comm.ranks_of_node)))
    return plan, compile_once(schedule.source, comm, streaming=streaming)


def _transfers(store: FieldStore, schedule: Schedule, name: str) -> Transfers:
    """Return the transfers between the subdomains of a domain, and decompose the grid if necessary.

    The grid is decomposed for the first program of a domain. This happens before compilation, so that invalid
    decompositions and patches raise errors early.
    """
    domain = store.domain
    comm = domain.comm
    comm.check_same(
        f"program {name!r} is",
        (schedule, domain.grid.shape, domain.execution, domain.transfers),
        "all ranks must build the same equations on the same grid",
    )
    store.check_room(schedule.fields)
    if domain.transfers is None:
        domain.decompose(schedule)
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
    """Return the path of the library of compiled kernels; collective.

    Rank 0 compiles the library first. Then other ranks take it from the cache, or compile it too if they do
    not share the cache.
    """
    path = None
    for compiles in (comm.rank == 0, comm.rank != 0):
        with comm.agreement("compile kernels"):
            if compiles:
                path = compile_library(source, streaming=streaming)
    return path


log = logging.getLogger("halocline")

T = TypeVar("T")
PASSES = f"{INTERNAL}limit"  # scalar that limits the passes of a timed loop


def prepare(store: FieldStore, program: Program, scalar_names: Iterable[str]) -> Prepared:
    """Compile, plan and bind a program. All ranks call this function with the same program.

    Parameters
    ----------
    store : FieldStore
        Store that receives the new fields of the program.
    program : Program
    scalar_names : iterable of str
        Scalars that have a value during a run.

    Raises
    ------
    InputError
        The program reads a scalar that has no value.
    """
    compile_with = partial(compile_schedule, store, program)
    schedule = compile_with(_strategy(store, program.name, compile_with))
    check_scalars(schedule.scalars, program, store.domain.grid.scalar_values(), scalar_names)
    return prepare_schedule(store, schedule, program.name)


def prepare_schedule(store: FieldStore, schedule: Schedule, name: str) -> Prepared:
    """Plan and bind a compiled program. All ranks call this function with the same schedule."""
    execution, patch = store.domain.execution, store.domain.execution.patch_shape
    plan, library = plan_and_compile(store, schedule, name, patch)
    tuned = None
    if schedule.has_loop and execution.patch in (None, TUNE) and not store.domain.devices:
        tuned = _tuned_patches(store, schedule, name, plan, library)
        if tuned is not None and tuned.choice is not None:
            patch = tuned.choice
            plan = rank_plan(store.domain, schedule, plan.transfers, patch)
    return Prepared(store, schedule, plan, library, name, patch, tuned)


def _strategy(store: FieldStore, name: str, compile_with: Callable[[Strategy], Schedule]) -> Strategy | None:
    """Return the strategy of device kernels, which the user or a measurement selects; None on the CPU."""
    domain = store.domain
    if not domain.devices:
        return None
    if domain.execution.kernels not in (kernels.AUTO, TUNE):
        return Strategy(domain.execution.kernels)
    default = compile_with(Strategy())
    if default.device is None or not default.has_loop:
        return Strategy()
    scratch, staged = store.scratch(), any(sweep.scratch for sweep in default.sweeps())

    def timer_of(strategy: Strategy | None) -> Callable[[int], float]:
        return _timer(scratch, default if strategy is None else compile_with(strategy), name, None)

    choices = kernels.strategies(domain.grid.ndim, staged)
    names = [f"{device.name}, {device.driver}, {has_copies(device)}" for device in domain.devices]
    key = kernels.key(default.device.source, names, domain.grid.shape, domain.comm.size, choices)
    place = patches.cache_file(key, "kernels")
    tuned = recall(Tuned[Strategy], place) if domain.comm.rank == 0 else None
    measure = partial(race, choices, timer_of) if domain.execution.kernels == TUNE else None
    tuned = _tuned(domain.comm, ("kernels", name), place, tuned, measure, kernels.text_of)
    return (tuned and tuned.choice) or Strategy()


def _tuned_patches(
    store: FieldStore, schedule: Schedule, name: str, plan: RankPlan, library: Path
) -> Tuned[patches.Patch] | None:
    """Return the measured speed of patch shapes, stored or new; None without a measurement."""
    comm, execution, threads, transfers = (
        store.domain.comm,
        store.domain.execution,
        store.domain.threads,
        plan.transfers,
    )
    key = patches.key(
        library.stem, transfers, threads, comm.ranks_of_node, execution.schedule, schedule.blocks
    )
    tuned = patches.recall_patches(key, schedule.ndim) if comm.rank == 0 else None
    shapes = candidates(patches.largest(transfers.layout.decomposition), threads)
    timer_of = partial(_timer, store.scratch(), schedule, name)
    measure = partial(race, shapes, timer_of) if execution.patch == TUNE else None
    return _tuned(comm, ("patches", name), patches.cache_file(key), tuned, measure, patches.text_of)


def _tuned(
    comm: Communicator,
    labels: tuple[str, str],
    place: Path,
    tuned: Tuned[T] | None,
    measure: Callable[[], Tuned[T]] | None,
    text_of: Callable[[Tuned[T]], str],
) -> Tuned[T] | None:
    """Return the stored measurement, or else a new measurement; collective.

    Parameters
    ----------
    labels : tuple of str
        Name of the tuned option, and name of the program, for messages.
    place : Path
        File for a new measurement.
    tuned : Tuned or None
        Stored measurement, on the first rank.
    measure : callable or None
        Function that measures; None unless the user requests a measurement.

    Returns
    -------
    measurement or None
        None if there is no measurement, or if the default choice cannot run.
    """
    tuned = comm.bcast(tuned)
    if tuned is not None or measure is None:
        return tuned
    start = time.monotonic()
    try:
        tuned = measure()
    except RunError as error:
        if comm.rank == 0:
            log.warning("%s of %s are not tuned: %s", *labels, error)
        return None
    if comm.rank == 0:
        log.info("%s of %s: %s (%.1f s)", *labels, text_of(tuned), time.monotonic() - start)
        try:
            remember(place, tuned, labels[1])
        except RunError as error:
            log.warning("%s", error)
    return tuned


def _timer(scratch: FieldStore, schedule: Schedule, name: str, patch: PatchShape) -> Callable[[int], float]:
    """Return a function that times passes over the sweeps in the first loop of a program.

    The timed loop contains no scalar statements and no conditions. Scalars of the program therefore keep the
    value 1, and the loop always runs the requested number of passes.
    """
    body, size = tuple(schedule.pass_sweeps()), len(schedule.scalars)
    loop = Loop(until=None, limit=size, count=size + 1, record=(), body=body)
    constant = {*scratch.domain.grid.scalar_values(), AROUND}
    values = {scalar: 1.0 for scalar in schedule.scalars if scalar not in constant}
    device = schedule.device
    if device is not None:
        test = loop_kernel("passes")
        device = replace(device, source=f"{device.source}\n{test}", loops=("passes",))
    scalars = (*schedule.scalars, PASSES, f"{INTERNAL}passes")
    loop_schedule = replace(schedule, operations=(loop,), scalars=scalars, device=device)
    prepared = Prepared(
        scratch, loop_schedule, *plan_and_compile(scratch, loop_schedule, name, patch), name, patch
    )
    return PassTimer(prepared, (PASSES,), values).seconds
