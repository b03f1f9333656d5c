"""Cases run by their name and measured: what `halocline run CASE` tells."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from halocline.errors import HaloclineError, InputError, RunError
from halocline.lang import trace
from halocline.lang.expression import Expr, as_expr
from halocline.lang.grid import Field, unknown
from halocline.lang.reductions import value
from halocline.physics.case import Case, Setup
from halocline.physics.cases import case_named
from halocline.physics.heat import SCHEMES
from halocline.run.bandwidth import bandwidth
from halocline.run.devices import OnDevice
from halocline.run.machine import resident_bytes
from halocline.run.prepared import Outcome
from halocline.run.simulation import Simulation

MOST_REPEATED = 60.0  # seconds of a run that is repeated to see where it went wrong


@dataclass(frozen=True)
class Record:
    """What one run did, the same on all ranks; the keys of ``halocline run CASE --json``.

    Attributes
    ----------
    case : str
    shape : tuple of int
        Cells along each axis.
    cells, steps : int
    order : int
        Of the differences in space.
    scheme : str
        How time was integrated.
    time : float
        The simulated time reached.
    time_step : float or None
        The last one; None where no step was done.
    limiter : str or None
        What limited it; None where it is fixed.
    seconds : float
        Wall clock of the steps, from barrier to barrier.
    ns_per_cell_step : float or None
        Of the loop over the steps, all ranks together.
    flops_per_cell_step, bytes_per_cell_step : float
        Operations of the generated code (an fma is two), and bytes that must cross memory.
    share_of_bound : float or None
        The rate of these bytes, over that of a += s * b on the same threads in the same run; on devices, over
        that of copies within their memory.
    checksum : str
        A hash of those of all fields: the same for any ranks, threads, devices, decomposition, patch.
    checksums : dict of str to str
        A hash of each field's bits in global order.
    diagnostics : dict of str to float
        At the end; None for one that is not finite.
    series : list of dict
        "step", "time", "time_step", "limiter" and the diagnostics, at the start, as often as asked for, and
        at the end.
    parameters : dict of str to float
        Of the case, all of them.
    ranks, threads : int
        Threads are those of one rank.
    devices : tuple of OnDevice
        Where each subdomain lies; empty on the CPU.
    memory_bytes : int
        Resident memory after the run (VmRSS), summed over the ranks.
    """

    case: str
    shape: tuple[int, ...]
    cells: int
    steps: int
    order: int
    scheme: str
    time: float
    time_step: float | None
    limiter: str | None
    seconds: float
    ns_per_cell_step: float | None
    flops_per_cell_step: float
    bytes_per_cell_step: float
    share_of_bound: float | None
    checksum: str
    checksums: dict[str, str]
    diagnostics: dict[str, float | None]
    series: list[dict[str, Any]]
    parameters: dict[str, float]
    ranks: int
    threads: int
    devices: tuple[OnDevice, ...]
    memory_bytes: int


@dataclass(frozen=True)
class Result:
    """A record, and what it is a record of.

    Attributes
    ----------
    record : Record
    bandwidth : float
        Bytes a second of a += s * b on all ranks at once, or of copies within their devices.
    simulation : Simulation
    outcome : Outcome or None
        None where no step was done.
    fields : tuple of Field
    """

    record: Record
    bandwidth: float
    simulation: Simulation = field(repr=False)
    outcome: Outcome | None = field(repr=False)
    fields: tuple[Field, ...]


class CaseRun:
    """A case ready to run: its numbers are checked, and its fields are known.

    Parameters
    ----------
    name : str
    n : sequence of int, optional
        Cells along the first axis, the others in the case's own proportion; or along each axis.
    given : mapping of str to float, optional
        Parameters that are not those by default.
    order : int
        Of the differences in space.
    scheme : str
        How time is integrated.

    Raises
    ------
    InputError
        A case, parameter or scheme that is unknown; numbers that cannot be.

    Examples
    --------
    >>> from halocline.study.run_case import CaseRun
    >>> run = CaseRun("alfven-decay", [16], {"nu": 0.1, "eta": 0.1})
    >>> run.run(steps=4).record.cells
    16
    """

    def __init__(
        self,
        name: str,
        n: Sequence[int] | None = None,
        given: Mapping[str, float] | None = None,
        *,
        order: int = 6,
        scheme: str = "rk3",
    ) -> None:
        self.name, self.order, self.scheme = name, order, scheme
        self.case: Case = case_named(name)
        if scheme not in SCHEMES:
            raise unknown("scheme", scheme, list(SCHEMES))
        trace.check_order(order)
        self.values = self.case.values(given or {})
        self.shape = self.case.shape if n is None else self.case.shape_of(n)
        self.setup: Setup = self.case.make(self.shape, self.values)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Those that the case starts from."""
        return tuple(self.setup.start)

    def run(
        self,
        *,
        steps: int | None = None,
        until: float | None = None,
        every: int | None = None,
        communicator: Any = None,
        on_progress: Callable[[int], None] | None = None,
        **execution: Any,
    ) -> Result:
        """Run from the start; all ranks call this.

        Parameters
        ----------
        steps : int, optional
            As many at most; those of the case where `until` is not given either.
        until : float, optional
            The time to reach; the last step is shortened to end there.
        every : int, optional
            Steps between diagnostics.
        communicator, **execution
            See halocline.Simulation; the result's bits do not depend on them.
        on_progress : callable, optional
            Called with the steps done, a few times a second.

        Raises
        ------
        InputError
        RunError
            A value is not finite, with field, cell, step and terms; the time step is below its floor.
        """
        if steps is None and until is None:
            steps = self.case.steps
        if every is not None and every < 1:
            raise InputError(f"every is {every}; expected a whole number of steps from 1")
        if until is not None and not (math.isfinite(until) and until >= 0):
            raise InputError(f"until is {until!r}; expected a finite time from 0 on")
        setup = self.setup
        sim = Simulation(
            setup.grid,
            setup.equations,
            parameters=setup.parameters,
            scheme=SCHEMES[self.scheme],
            dt=setup.dt,
            order=self.order,
            communicator=communicator,
            **execution,
        )
        self._start(sim)
        with trace.order(self.order):
            numbers = dict(setup.diagnostics())
        series = [self._look(sim, numbers)]
        whole: Outcome | None = None
        while (steps is None or sim.steps < steps) and (until is None or sim.time < until):
            left = None if steps is None else steps - sim.steps
            chunk = every if left is None else left if every is None else min(every, left)
            done = sim.steps
            report = None if on_progress is None else _counting(on_progress, done)
            try:
                outcome = sim.run(until=until, steps=chunk, on_progress=report)
            except HaloclineError as error:
                raise self._explained(error, sim, 0.0 if whole is None else whole.loop_seconds) from None
            whole = outcome if whole is None else whole.followed_by(outcome)
            if outcome.reason != "completed":
                raise RunError(f"{outcome.reason}, after step {sim.steps} (time {sim.time:g})")
            series.append(self._look(sim, numbers))
        return self._result(sim, whole, series)

    def _start(self, sim: Simulation) -> None:
        for f, at_start in self.setup.start.items():
            sim[f] = at_start

    def _look(self, sim: Simulation, numbers: Mapping[str, Expr]) -> dict[str, Any]:
        """The diagnostics now, with when that is."""
        try:
            sim.check_inputs("at the start")
        except InputError as error:
            raise self._explained(error, sim, 0.0) from None
        found = sim.evaluate(*numbers.values()) if numbers else ()
        values = found if isinstance(found, tuple) else (found,)
        limit, stepped = self.setup.limit, sim.steps > 0
        when = {
            "step": sim.steps,
            "time": sim.time,
            "time_step": sim.values["dt"] if stepped else None,
            "limiter": limit(sim.values) if limit is not None and stepped else None,
        }
        return when | {
            name: each if math.isfinite(each) else None for name, each in zip(numbers, values, strict=True)
        }

    def _result(self, sim: Simulation, whole: Outcome | None, series: list[dict[str, Any]]) -> Result:
        domain, cells, steps = sim.domain, self.setup.grid.size, sim.steps
        memory = sum(domain.comm.allgather(resident_bytes()))
        reference = bandwidth(domain.comm, domain.devices, domain.threads, domain.memory_bytes)
        seconds = whole.loop_seconds if whole is not None and steps else 0.0
        checksums = {f.name: sim.checksum(f) for f in self.fields}
        last = series[-1]
        sweeps = list(sim.schedule.pass_sweeps())
        record = Record(
            case=self.name,
            shape=self.shape,
            cells=cells,
            steps=steps,
            order=self.order,
            scheme=self.scheme,
            time=sim.time,
            time_step=last["time_step"],
            limiter=last["limiter"],
            seconds=0.0 if whole is None else whole.seconds,
            ns_per_cell_step=1e9 * seconds / cells / steps if seconds else None,
            flops_per_cell_step=float(sum(sweep.flops for sweep in sweeps)),
            bytes_per_cell_step=sim.bytes_per_step / cells,
            share_of_bound=sim.bytes_per_step * steps / seconds / reference if seconds else None,
            checksum=hashlib.blake2b(repr(checksums).encode(), digest_size=16).hexdigest(),
            checksums=checksums,
            diagnostics={name: last[name] for name in list(last)[4:]},
            series=series,
            parameters=dict(self.values),
            ranks=domain.comm.size,
            threads=domain.threads,
            devices=sim.devices,
            memory_bytes=memory,
        )
        return Result(record, reference, sim, whole, self.fields)

    # --- what went wrong ---

    def _explained(self, error: HaloclineError, sim: Simulation, seconds: float) -> HaloclineError:
        """The same error with the terms of the equations that are not finite there, and with the first step
        after which that is so where the run is repeated in little time."""
        if error.place is None:
            return error
        name, cell = error.place
        found, kind = error, type(error)
        if sim.steps and seconds < MOST_REPEATED:
            found = self._first_failure(sim) or error
            assert found.place is not None
            name, cell = found.place
        text = str(found)
        terms = self._terms_at(sim, name, cell)
        if terms:
            text += f"\nterms that are not finite in that cell then: {', '.join(terms)}"
        explained = kind(text)
        explained.place = name, cell
        return explained

    def _first_failure(self, sim: Simulation) -> HaloclineError | None:
        """The error after the first step that leaves a value that is not finite; the run begins anew for it,
        and its bits are the same."""
        most = sim.steps
        for f in self.setup.grid.fields.values():  # those of the scheme too
            if f.name in sim.domain.storages:
                sim[f] = 0.0
        self._start(sim)
        sim.values |= {"t": 0.0, "step": 0.0}
        try:
            while sim.steps < most:
                sim.run(steps=1)
        except HaloclineError as error:
            return error if error.place is not None else None
        return None

    def _terms_at(self, sim: Simulation, name: str, cell: tuple[int, ...]) -> list[str]:
        """The terms of time derivatives that are not finite in a cell, "viscosity of u_x"."""
        with trace.order(self.order):
            terms = {
                f"{term} of {f.name}": as_expr(expression)
                for f, named in self.setup.terms().items()
                for term, expression in named.items()
            }
        varying = {term: value(e, cell) for term, e in terms.items() if e.varies}
        if not varying:
            return []
        found = sim.evaluate(*varying.values())
        values = found if isinstance(found, tuple) else (found,)
        return [term for term, each in zip(varying, values, strict=True) if not math.isfinite(each)]


def _counting(on_progress: Callable[[int], None], before: int) -> Callable[[int], None]:
    return lambda done: on_progress(before + done)
