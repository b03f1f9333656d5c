"""Result of the runs of the last problem of a file."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np

from halocline.archive.arrays import WritingCost
from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.axes import is_sequence, per_axis, whole_number
from halocline.lang.callables import argument_count
from halocline.lang.expression import Expr
from halocline.lang.grid import Field
from halocline.problems.error import error_of
from halocline.problems.files import PLACES
from halocline.problems.names import Names, checked_mapping
from halocline.problems.record import Record, Timing
from halocline.run.domain.execution import Execution
from halocline.run.fields.fields import Fields
from halocline.run.host.machine import resident_bytes
from halocline.run.measurements.bandwidth import bandwidth, duration_beside
from halocline.run.measurements.energy import EnergyMeter
from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.memory.balance import Balance
from halocline.run.output.every import Every
from halocline.run.ranks.communicator import Communicator, hosts
from halocline.run.ranks.mpi import communicator_of
from halocline.run.simulation import events as counters
from halocline.run.simulation.checks import Check
from halocline.run.simulation.observers import RunArguments
from halocline.run.simulation.simulation import Simulation
from halocline.run.tuning.patches import Patch, Tuned
from halocline.solvers.linear import Solution
from halocline.solvers.schemes import SCHEMES
from halocline.words import short_repr

log = logging.getLogger("halocline")

CHECK = "check"  # name of a check with assertions
NOTHING = RunArguments(steps=0)  # run without steps, output and callbacks
UNKNOWN = (  # facts that are unknown if only a part of each step ran
    *("time", "time_step", "limiter", "checksum", "checksums", "diagnostics", "series", "error", "events"),
)


@dataclass
class Runs:
    """Runs of the last problem of a file.

    Attributes
    ----------
    series : list of dict
        Rows of diagnostics.
    numbers : dict of str to Expr, optional
        Diagnostics; None before the first row.
    steps : int
        Number of steps or iterations. For a file with settings, this number includes the steps before a
        restart.
    warm_up : int
        Number of steps that were not timed.
    timed_runs : list of (int, Outcome or Solution)
        Number of timed steps or iterations of each run, and the result of the run.
    meter : EnergyMeter
        Meter of the timed steps.
    arguments : RunArguments
        Arguments of the last run in the file.
    part : Timing, optional
        Timing of a part of each step.
    """

    series: list[dict[str, Any]] = field(default_factory=list)
    numbers: dict[str, Expr] | None = None
    steps: int = 0
    warm_up: int = 0
    timed_runs: list[tuple[int, Any]] = field(default_factory=list)
    meter: EnergyMeter | None = None
    arguments: RunArguments = NOTHING
    part: Timing | None = None

    @property
    def outcome(self) -> Any:
        """Combined Outcome or Solution of all timed runs; None without a timed run."""
        outcomes = [outcome for _, outcome in self.timed_runs]
        return reduce(lambda a, b: a.followed_by(b), outcomes) if outcomes else None

    @property
    def timing(self) -> Timing:
        """Combined timing of all timed runs."""
        if self.part is not None:
            return self.part
        return Timing(
            seconds=sum(outcome.seconds for _, outcome in self.timed_runs),
            loop_seconds=sum(outcome.loop_seconds for _, outcome in self.timed_runs),
            steps=sum(n for n, _ in self.timed_runs),
            energy=None if self.meter is None else self.meter.total,
        )


@dataclass(frozen=True)
class Result:
    """Result of a run of a problem file. All ranks call its methods.

    Attributes
    ----------
    record : Record or None
        Record of the last problem that the file has run; None for a file without a run.
    bandwidth : float or None
        Bytes per second of a += s * b on all ranks at once, or of copies in device memory.
    peak : float or None
        Operations per second of multiply-adds on the same number of cores, in the precision of the kernels;
        see `halocline.compile.schedule.Schedule.dtype_of`.
    observer : Following
        Observer of the run.
    names : Names
        Module-level names of the file after it has run.
    fault : InputError, optional
        Exception raised by the function `exact` or `error` of the file. If there is one, the record contains
        no numerical error.
    """

    record: Record | None
    bandwidth: float | None
    peak: float | None
    observer: Any = field(repr=False)
    names: Names = field(repr=False)
    fault: InputError | None = None

    @property
    def problem(self) -> Any:
        """Last simulation or linear problem of the file; None without a problem."""
        return self.observer.problem

    @property
    def simulation(self) -> Fields | None:
        """Fields of the last problem; None without a problem."""
        return None if self.problem is None else fields_of(self.problem)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Fields that the file has created."""
        return () if self.simulation is None else tuple(results(self.simulation))

    @cached_property
    def outcome(self) -> Any:
        """Outcome of the timed steps, or Solution; None for a file without a run."""
        return self.observer.runs.outcome

    @property
    def tuned(self) -> Tuned[Patch] | None:
        """Measured speeds by which the patch of a linear problem was selected, or None."""
        is_linear = self.problem is not None and not isinstance(self.problem, Simulation)
        return self.problem.prepared.tuned if is_linear else None

    def check(self) -> list[Check]:
        """Return the checks of the run, equal on all ranks.

        If the function of the file uses assertions, the result is a single `Check`. Its value is 0 for
        success. For a failure, it contains the reason.

        Raises
        ------
        InputError
            The file has no check, its check does not return a list of `halocline.Check`, or only a part of
            each step ran.
        """
        function, subject = self.names.check, self.observer.subject
        if function is None and CHECK in subject.script.defined:
            ended = f"--check: {subject.spelling} ended before it defined check(problem)"
            raise InputError(subject.complaints.get(CHECK, ended))
        if function is None:
            subject_name = subject.spelling if subject.is_file else f"case {subject.name}"
            raise InputError(f"{subject_name} has no check: it defines no function check(problem)")
        self._check_whole()
        count = argument_count(function, CHECK, (1, 2), "")
        comm = communicator_of(None) if self.simulation is None else self.simulation.domain.comm
        checks, reason = None, ""
        try:
            checks = self._call_with_order(function, *(self.problem, self.record)[:count])
        except AssertionError as error:
            reason = str(error) or "an assertion failed"
        except SystemExit as end:
            reason = "" if end.code in (None, 0) else f"the check exited with status {end.code}"
        with comm.agreement(f"check of {subject.spelling}"):
            is_list = is_sequence(checks) and all(isinstance(item, Check) for item in checks or ())
            if checks is not None and (not is_list or (comm.rank == 0 and not checks)):
                raise InputError(
                    f"{subject.spelling}: check returns {short_repr(checks)}; expected assertions, or a "
                    "list of hc.Check"
                )
        if any(comm.allgather(checks is not None)):
            all_checks: list[Check] = comm.bcast(list(checks or ()))
            return all_checks
        reason = next(filter(None, comm.allgather(reason)), "")
        return [Check(CHECK, float(bool(reason)), maximum=0.0, about=reason)]

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run by name. On all ranks but the first, each figure is None.

        Raises
        ------
        InputError
            Only a part of each step ran.
        """
        from halocline.io.figure import Figure

        self._check_whole()
        figures = {}
        for name, figure in self.names.figures.items():
            with fields_of(self.problem).domain.comm.agreement(
                f"figure {name} of {self.observer.subject.name}"
            ):
                figures[name] = drawn = self._call_with_order(figure, self.problem)
                if not (drawn is None or isinstance(drawn, Figure)):
                    raise InputError(
                        f"{self.observer.subject.spelling}: figure {name!r} is {short_repr(drawn)}; "
                        "expected a halocline.io.figure.Figure"
                    )
        return figures

    def pictures(self) -> dict[str, Any]:
        """Return the quantities for pictures, by name."""
        self._check_whole()
        if self.names.pictures is not None:
            call = f"{self.observer.subject.spelling}: pictures()"
            return checked_mapping(self._call_with_order(self.names.pictures), call, "{'speed': abs(u)}")
        return {f.name: f for f in self.fields}

    def findings(self) -> dict[str, Any]:
        """Return the main numbers of the run, for the top of its JSON."""
        solution, record, function = self.outcome, self.record, self.names.findings
        if function is not None and record is not None and record.diagnostics is not None:
            call = f"{self.observer.subject.spelling}: findings(diagnostics, steps)"
            return checked_mapping(function(record.diagnostics, record.steps), call, "{'ratio': 0.5}")
        if record is None or not isinstance(solution, Solution):
            return {}
        n, arguments = record.shape[0], self.observer.runs.arguments
        names = "iterations", "converged", "reason", "residual_relative", "true_residual_relative"
        more = "seconds_per_iteration", "bytes_per_iteration"
        return {
            **{"n": n, "dof": record.cells, "dim": len(record.shape)},
            **{"method": record.scheme, "rtol": arguments.rtol, "max_iterations": arguments.steps},
            **{name: getattr(solution, name) for name in (*names, *more)},
            "error_max": record.error,
            "bandwidth_share": record.share_of_bound,
            "overlap": solution.overlap.on,
            "overlap_why": solution.overlap.reason,
            "sweep_seconds_overlap": solution.overlap.seconds_on,
            "sweep_seconds_no_overlap": solution.overlap.seconds_off,
        }

    def write_state(self, path: Path) -> None:
        """Write the fields of the last problem as arrays by name, with their staggered axes."""
        fields = fields_of(self.problem)
        arrays: dict[str, Any] = {f.name: fields.gather(f) for f in self.fields}
        arrays |= {f.name + PLACES: np.array(f.staggered) for f in self.fields}
        if fields.domain.comm.rank == 0:
            with path.open("wb") as file:
                np.savez(file, **arrays)

    def _check_whole(self) -> None:
        """Raise InputError if only a part of each step ran."""
        if self.record is not None and self.record.only is not None:
            raise InputError(
                f"a run of {self.record.only} alone leaves invalid fields, so there is nothing to check or "
                "draw"
            )

    def _call_with_order(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the file with the order of the problem as default, and return the result."""
        with trace.order(getattr(self.problem, "order", 2)):
            return function(*arguments)


def result_of(observer: Any) -> Result:
    """Return the result of a run after the file has ended; all ranks call this."""
    problem, runs, subject = observer.problem, observer.runs, observer.subject
    names = subject.names
    if runs.part is None and not runs.timed_runs and not runs.series:
        return Result(None, None, None, observer, names)
    if fields_of(problem).domain.comm.rank == 0:
        for name, complaint in subject.complaints.items():
            if name != CHECK:  # the call of the check raises this error
                log.warning("%s", complaint)
    is_simulation = isinstance(problem, Simulation)
    if is_simulation:
        order, scheme = method_of(problem, names.scheme_name)
        writing, bytes_per_pass = problem.writing, problem.bytes_per_step
    else:
        order, scheme = None, problem.method
        writing = WritingCost() if runs.outcome is None else runs.outcome.writing
        bytes_per_pass = problem.prepared.bytes_per_pass * problem.unknown.grid.active_cells
    facts: dict[str, Any]
    if runs.part is not None:
        facts, writing = dict.fromkeys(UNKNOWN), WritingCost()
    elif is_simulation:
        facts = _facts_of_simulation(problem, runs, names)
    else:
        facts = _facts_of_solve(problem, runs, names, has_settings=subject.has_settings)
    fault = None
    if runs.part is None:
        try:
            facts["error"] = error_of(problem, runs.arguments, names)
        except InputError as raised:
            facts["error"], fault = None, InputError(f"{subject.spelling}: {raised}")
    fields, only = fields_of(problem), observer.options.only
    domain = fields.domain
    memory_bytes = sum(domain.comm.allgather(resident_bytes()))  # before the measurements allocate memory
    speed, reference, peak = _speed_facts(fields, runs.timing, problem.schedule, bytes_per_pass, only)
    record = Record(
        case=subject.name,
        shape=fields.grid.shape,
        cells=fields.grid.size,
        steps=runs.steps,
        order=order,
        scheme=scheme,
        dtype=subject.dtype,
        **execution_options(domain.execution, fields.grid.ndim),
        only=only,
        warm_up=runs.warm_up,
        **speed,
        parameters=subject.values,
        ranks=domain.comm.size,
        threads=domain.threads,
        nodes=domain.nodes,
        ranks_of_node=domain.comm.most_of_node,
        hosts=hosts(domain.comm),
        parts=domain.parts,
        methods_used=problem.prepared.methods_used(),
        cores_or_devices=domain.cores_or_devices,
        devices=fields.devices,
        memory_bytes=memory_bytes,
        **_writing_cost(domain.comm, writing),
        balances=_balance_cost(getattr(problem, "balances", ())),
        **facts,
    )
    return Result(record, reference, peak, observer, names, fault)


def _speed_facts(
    fields: Fields, timing: Timing, schedule: Schedule, bytes_per_pass: float, only: str | None
) -> tuple[dict[str, Any], float | None, float | None]:
    """Return the speed of a run as entries of a record, with the reference bandwidth and peak.

    The references are the bandwidth of memory and the peak rate of operations on the same numbers of ranks
    and threads. They are None if they cannot be measured. All ranks call this.
    """
    domain, cells = fields.domain, fields.grid.size
    duration = duration_beside(max(domain.comm.allgather(timing.seconds)))
    reference = bandwidth(domain.comm, domain.devices, domain.threads, fields.store.memory_bytes, duration)
    dtype = schedule.dtype_of(*schedule.pass_sweeps())
    peak = None if domain.devices else multiply_add_peak(domain.comm, domain.threads, duration, dtype=dtype)
    flops = float(sum(sweep.flops * sweep.share for sweep in schedule.pass_sweeps()))
    seconds, energy, updates = timing.loop_seconds, timing.energy, cells * timing.steps
    rate = updates / seconds if seconds and only in (None, "compute") else None
    speed = {
        "seconds": timing.seconds,
        "ns_per_cell_step": 1e9 * seconds / updates if seconds and updates else None,
        "ssspnt": 1e-7 * rate / domain.cores_or_devices if rate else None,
        "flops_per_cell_step": flops,
        "bytes_per_cell_step": bytes_per_pass / cells,
        "share_of_bound": bytes_per_pass / cells * rate / reference if rate and reference else None,
        "share_of_peak": flops * rate / peak if rate and peak else None,
        "joules_per_cell_step": energy.joules / updates if energy and updates else None,
        "joules_of": energy.of if energy and updates else (),
    }
    return speed, reference, peak


def _checksums(fields: Fields, of: Sequence[Field]) -> dict[str, Any]:
    """Return the checksum of each field, and of all fields together, as entries of a record."""
    checksums = {f.name: fields.checksum(f) for f in of}
    checksum = hashlib.blake2b(repr(checksums).encode(), digest_size=16).hexdigest()
    return {"checksum": checksum, "checksums": checksums}


def execution_options(execution: Execution, axes: int) -> dict[str, Any]:
    """Return the execution options of a run in the form of the command, for a number of axes."""

    def as_text(value: Any, separator: str) -> str | None:
        if isinstance(value, Mapping):  # 1 along axes that the mapping omits
            value = per_axis(value, axes, "cells or parts", whole_number, "whole numbers", default=1)
        if value is None or isinstance(value, str):
            return value
        return separator.join(map(str, (value,) if isinstance(value, int) else value))

    overlap = execution.overlap
    same = (
        *(
            "subdomains_per_rank",
            "ranks_active",
            "ranks_per_node",
            "placement",
            "mailboxes",
            "schedule",
            "kernels",
        ),
        *("halo", "packing", "communication"),
    )
    return {
        "decomposition": as_text(execution.decomposition, "x"),
        "patch": as_text(execution.patch, ","),
        "methods": as_text(execution.methods, ","),
        "balance": None if execution.balance is None else Every.parse("balance", execution.balance).text,
        "overlap": overlap if isinstance(overlap, str) else "on" if overlap else "off",
        "gpudirect": "on" if execution.gpudirect else "off",
        **{name: getattr(execution, name) for name in same},
    }


def _writing_cost(comm: Communicator, writing: WritingCost) -> dict[str, Any]:
    """Return the cost of output and checkpoints as entries of a record; all ranks call this."""
    of_ranks = comm.allgather(writing)
    return {
        "written_bytes": sum(rank.bytes for rank in of_ranks),
        "writing_seconds": max(rank.seconds for rank in of_ranks),
        "waiting_seconds": max(rank.waited for rank in of_ranks),
        "io_ranks": 0 if comm.io_ranks is None else len(comm.io_ranks.ranks),
    }


def _balance_cost(balances: Sequence[Balance]) -> dict[str, float] | None:
    """Return the cost of balances, and the imbalance before the last one; None without balances."""
    if not balances:
        return None
    return {
        "count": len(balances),
        "moved": sum(balance.moved_count for balance in balances),
        "bytes": sum(balance.bytes for balance in balances),
        "seconds": sum(balance.seconds for balance in balances),
        "before": balances[-1].before,
    }


def _facts_of_solve(problem: Any, runs: Runs, names: Names, *, has_settings: bool) -> dict[str, Any]:
    """Return the facts of a record that depend on the fields and solution of a linear problem."""
    fields, solution = problem.fields, runs.outcome
    residuals = ("residual_relative", "true_residual_relative")
    return {
        **dict.fromkeys(("time", "time_step", "limiter")),
        "diagnostics": {name: getattr(solution, name) for name in residuals} if has_settings else {},
        "series": [],
        "events": {},
        **_checksums(fields, results(fields)),
        "checksum": fields.checksum(problem.unknown),
    }


def _facts_of_simulation(sim: Simulation, runs: Runs, names: Names) -> dict[str, Any]:
    """Return the facts of a record that depend on the fields and series of a simulation."""
    series = runs.series
    events = getattr(sim, "events", None) or {}
    if names.events:
        events = events or counters.counted(sim, names.events)
        if sim.domain.comm.rank == 0:
            counters.warn(names.events, events)
    row = series[-1] if series else time_facts(sim, names)
    return {
        **{name: row[name] for name in ("time_step", "limiter")},
        "time": sim.time,
        **_checksums(sim, results(sim)),
        "diagnostics": {name: row[name] for name in list(row)[4:]},
        "series": series,
        "events": events,
    }


def time_facts(sim: Simulation, names: Names) -> dict[str, Any]:
    """Return step, time and time step of a simulation, and the limit of the time step."""
    stepped = sim.steps > 0
    return {
        "step": sim.steps,
        "time": sim.time,
        "time_step": sim.values.get("dt") if stepped else None,
        "limiter": names.limit(sim.values) if names.limit is not None and stepped else None,
    }


def fields_of(problem: Any) -> Fields:
    """Return the fields of a simulation or a linear problem."""
    return problem if isinstance(problem, Fields) else problem.fields


def results(fields: Fields) -> list[Field]:
    """Return the fields that the file has created and that hold values."""
    every = fields.grid.fields.values()
    return [f for f in every if not fields.grid.is_work_field(f) and f.name in fields.store.storages]


def method_of(sim: Simulation, name: str | None) -> tuple[int | None, str | None]:
    """Return the order and scheme name of a simulation; for a program, the order is None."""
    if sim.scheme is None:
        return None, name
    known = (name for name, scheme in SCHEMES.items() if scheme == sim.scheme)
    return sim.order, next(known, type(sim.scheme).__name__)
