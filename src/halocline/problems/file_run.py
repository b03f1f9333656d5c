"""A user's file run and measured: what ``halocline run FILE --json`` says of the last problem that it ran."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive.arrays import Writing
from halocline.errors import InputError
from halocline.lang.callables import arguments_taken
from halocline.lang.values import real_array
from halocline.problems.file import method_of
from halocline.problems.files import PLACES
from halocline.problems.record import Record, Timing, checksums, recorded
from halocline.problems.step_bench import StepBench
from halocline.run.engine.prepared import KINDS, Outcome
from halocline.run.fields.fields import Fields
from halocline.run.measurements.energy import EnergyMeter
from halocline.run.simulation.observers import Observer
from halocline.run.simulation.script import Value
from halocline.run.simulation.simulation import Simulation

if TYPE_CHECKING:
    from halocline.lang.grid import Field

UNKNOWN = (  # of a part of the steps
    *("time", "time_step", "limiter", "checksum", "checksums", "diagnostics", "series", "error", "events"),
)
EXACT, CHECK = "exact", "check"  # functions at the top of a file that studies and --check call


def record_of(
    observer: Observer,
    name: str,
    values: Mapping[str, Value],
    top: Mapping[str, Any],
    only: str | None = None,
) -> Record | None:
    """What the last problem that was made has done; None where none has run. All ranks call this.

    Parameters
    ----------
    name : str
        Of the file.
    values : mapping
        Of the names at its top that are numbers or texts.
    top : mapping
        All names at its top.
    only : {"compute", "exchange"}, optional
        Time as many of its steps or iterations once more, without messages or without kernels: its fields
        hold nonsense afterwards.
    """
    problem = observer.problem
    if not observer.runs:
        return None
    if only is not None:
        return _part(observer, name, values, only)
    order, scheme = method_of(problem)
    steps = sum(each for each, _ in observer.runs)
    if isinstance(problem, Simulation):
        whole: Outcome = reduce(Outcome.followed_by, [outcome for _, outcome in observer.runs])
        loop_seconds, bytes_per_step, writing = whole.loop_seconds, problem.bytes_per_step, problem.writing
        seconds, when = whole.seconds, _when(problem, top)
    else:
        solutions = [solution for _, solution in observer.runs]
        seconds = sum(each.seconds for each in solutions)
        loop_seconds = sum((each.seconds_per_iteration or 0.0) * n for n, each in observer.runs)
        bytes_per_step, writing = solutions[-1].bytes_per_iteration, solutions[-1].writing
        when = {"time": None, "time_step": None, "error": _error(problem.fields, 0.0, top)}
    fields = fields_of(problem)
    facts = {
        "steps": steps,
        "warm_up": 0,
        "only": None,
        "limiter": None,
        "diagnostics": {},
        "series": [],
        "events": {},
        **when,
        **checksums(fields, results(fields)),
    }
    return recorded(
        fields, Timing(seconds, loop_seconds, steps, None), facts,
        case=name, order=order, scheme=scheme, parameters=values, schedule=problem.schedule,
        bytes_per_step=bytes_per_step, writing=writing,
    )[0]  # fmt: skip


def _part(observer: Observer, name: str, values: Mapping[str, Value], only: str) -> Record:
    """The record of a part of the steps of a problem that has run."""
    problem = observer.problem
    steps = sum(each for each, _ in observer.runs)
    if not steps:
        raise InputError(f"--only {only}: {name} has made no step that could be timed in part")
    fields, (order, scheme) = fields_of(problem), method_of(problem)
    if isinstance(problem, Simulation):
        bytes_per_step = problem.bytes_per_step
    else:
        bytes_per_step = observer.runs[-1][1].bytes_per_iteration
    bench = StepBench(fields, problem.program)
    bench.run(**KINDS[only])  # what the first step takes more
    bench.passes = steps
    meter = EnergyMeter(fields.domain.comm, fields.domain.devices)
    with meter.on():
        seconds = bench.run(**KINDS[only]) * steps
    facts = {"steps": steps, "warm_up": 0, "only": only, **dict.fromkeys(UNKNOWN)}
    return recorded(
        fields, Timing(seconds, seconds, steps, meter.total), facts,
        case=name, order=order, scheme=scheme, parameters=values, schedule=problem.schedule,
        bytes_per_step=bytes_per_step, writing=Writing(),
    )[0]  # fmt: skip


def fields_of(problem: Any) -> Fields:
    """Those of a simulation or a linear problem."""
    return problem if isinstance(problem, Fields) else problem.fields


def results(fields: Fields) -> list[Field]:
    """The fields that the user made and that hold something."""
    every = fields.grid.fields.values()
    return [f for f in every if not fields.grid.is_own(f) and f.name in fields.store.storages]


def _when(sim: Simulation, top: Mapping[str, Any]) -> dict[str, Any]:
    dt = sim.values.get("dt")
    return {
        "time": sim.time,
        "time_step": None if dt is None or not sim.steps else float(dt),
        "error": _error(sim, sim.time, top),
    }


def _error(fields: Fields, time: float, top: Mapping[str, Any]) -> float | None:
    """The greatest difference from the exact solution, where the file knows it: ``exact(t)`` gives some
    fields functions of the coordinates, or arrays."""
    exact = top.get(EXACT)
    if not callable(exact):
        return None
    import numpy as np

    worst = 0.0
    arguments_taken(exact, EXACT, (1,), "the time")
    for field, solution in dict(exact(time)).items():
        target = fields.stored(field)
        found = fields.gather(target)
        if found is None:
            continue
        lines = np.meshgrid(*target.positions, indexing="ij")
        what = f"{EXACT}({time:g}) of field {target.name!r}"
        if callable(solution):
            arguments_taken(solution, what, (len(lines),), f"{len(lines)} coordinates")
            solution = solution(*lines)
        values = real_array(solution, f"{what} is").astype(np.float64)
        if values.shape not in ((), found.shape):
            raise InputError(
                f"{EXACT}({time:g}) gives field {target.name!r} shape {values.shape}; expected {found.shape}"
            )
        worst = max(worst, float(np.abs(found - values).max()))
    return float(fields.domain.comm.bcast(worst))


def write_state(observer: Observer, path: Path) -> None:
    """Write the fields of the last problem as arrays of their names, with where their points lie; all ranks
    call this."""
    import numpy as np

    if observer.problem is None:
        return
    fields = fields_of(observer.problem)
    found = {f.name: (fields.gather(f), np.array(f.staggered)) for f in results(fields)}
    if fields.domain.comm.rank == 0:
        arrays = {name: values for name, (values, _) in found.items()}
        places = {name + PLACES: place for name, (_, place) in found.items()}
        with path.open("wb") as file:
            np.savez(file, **arrays, **places)  # type: ignore[arg-type]
