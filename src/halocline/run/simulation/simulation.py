"""The user's view of a run: equations on a grid, parameters, a scheme, and fields as arrays."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from weakref import proxy

from halocline.archive.arrays import Writing
from halocline.errors import HaloclineError, InputError
from halocline.lang.blocks import Blocks
from halocline.lang.callables import check_callback
from halocline.lang.clock import WANTED_STEP
from halocline.lang.expression import as_expr
from halocline.lang.grid import Field, Grid, Vector, check_options, chosen
from halocline.lang.program import OWN_SCALARS, Program, ProgramFunction, bind, program_in
from halocline.lang.stepping import Scheme, stepping, time_step_of
from halocline.lang.values import as_name
from halocline.plan.fit import check_fit
from halocline.ranges import RANKS
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepare import prepare_schedule
from halocline.run.engine.prepared import NO_STEP, Outcome, Prepared
from halocline.run.fields.fields import Fields
from halocline.run.fields.session import Session
from halocline.run.measurements.bandwidth import bandwidth_share
from halocline.run.memory.balance import Balance, active_cells, balance, measured_work
from halocline.run.memory.store import FieldStore
from halocline.run.output import restart
from halocline.run.output.checkpoint import Checkpoint
from halocline.run.output.every import Every, warn_of_number
from halocline.run.output.ledger import Ledger, add_rows
from halocline.run.output.output import Output
from halocline.run.output.restart import Saved
from halocline.run.ranks.mpi import communicator_of
from halocline.run.simulation import observers
from halocline.run.simulation.course import NEVER, Course, finite_time, run_bounds
from halocline.run.simulation.observers import RunArguments
from halocline.run.simulation.replay import FailureReplay
from halocline.words import shown

log = logging.getLogger("halocline")


class Simulation(Fields):
    """Equations on a grid, run by the engine.

    Parameters
    ----------
    grid : Grid
    function : callable or program
        A plain function returns the time derivatives, ``{T: kappa * hc.laplacian(T)}``; its argument names
        bind to fields, vectors, parameters, t and dt. A function decorated with ``@hc.program`` is the step
        itself.
    parameters : mapping of str to float
        Run-time numbers by name. ``sim.parameters["kappa"] = 0.2`` changes one for the next run, without
        recompilation.
    scheme : time integration scheme, optional
        Needed for a plain function: ``hc.RK3()``, ``hc.Euler()``, ...
    dt : float, or callable, optional
        The time step; a callable is traced like the equations and may reduce fields,
        ``lambda u: 0.4 * hc.min(dx / abs(u))``. Needed for a plain function.
    time_step : {"exact", "delayed"}
        For a time step that reduces fields. "exact": of the fields that the step starts from; all ranks wait
        for it. "delayed": of the fields that the step before started from, so that the reduction goes on
        while fields are computed (Mendygral et al. 2017, Section 4.1.1); leave room in it for what can change
        in a step. The first step after fields or parameters were set is exact.
    order : int
        Order of accuracy of differences.
    after_step : callable, optional
        Statements at the end of each step, traced like a program: ``lambda p: p.set(p - hc.value(p, c))``.
        ``hc.stop(condition, reason)`` there ends the run.
    terms : callable, optional
        The terms of the time derivatives by field and name, ``{T: {"conduction": kappa * hc.laplacian(T)}}``,
        with arguments as the equations have. Where it is given, a run that meets a value that is not finite
        reports the first step that left one, and which terms led to it. For this a copy of all fields is
        kept, as they were when last checked, and at the start of a run where they were set or read since: in
        memory up to 64 MiB a rank, else in a temporary file.
    communicator : mpi4py communicator, optional
        All ranks that the launcher started, by default. It must not be freed before the simulation.
    **execution
        How it runs, on which no bit of a result depends; see `halocline.Execution`.

    Attributes
    ----------
    given : dict of str to float
        The parameters as they were given at first, and "dt" where it is a number.
    resumed : Saved or None
        The checkpoint that it goes on from.
    order : int
        Of accuracy of differences.
    scheme : time integration scheme or None
    title : str
        What output says that it is of; by default the name of the function.
    notes : callable or None
        Returns what else its checkpoints are to hold, for JSON: ``resumed.facts`` has it.

    The attributes `title` and `notes` can be set, and `dt` where it is a number. Setting another attribute
    raises InputError.

    Raises
    ------
    InputError
        For equations, parameters or options that cannot work, before anything is computed.
    """

    settable: ClassVar[Mapping[str, str]] = {
        "title": "name in output",
        "notes": "further facts for checkpoints",
    }
    advice: ClassVar[Mapping[str, str]] = {
        **Fields.advice,
        **dict.fromkeys(
            ("time", "steps", "step", "t"), "sim.restart(time=0) sets the time, and counts steps anew"
        ),
        "until": "give it to run()",
    }

    def __init__(
        self,
        grid: Grid,
        function: Callable[..., Any] | ProgramFunction,
        *,
        parameters: Mapping[str, float] | None = None,
        scheme: Scheme | None = None,
        dt: float | Callable[..., Any] | None = None,
        time_step: str = "exact",
        order: int = 2,
        after_step: Callable[..., Any] | None = None,
        terms: Callable[..., Mapping[Field, Mapping[str, Any]]] | None = None,
        communicator: Any = None,
        **execution: Any,
    ) -> None:
        if not isinstance(grid, Grid):
            raise InputError(f"grid is {shown(grid)}; expected a halocline.Grid")
        check_options(execution, Simulation.__init__, Execution.__init__)
        own = {"communicator": communicator, "scheme": scheme, "order": order}
        execution = observers.options(program_in(function) or function, {**own, **execution})
        comm, scheme, order = (execution.pop(name) for name in own)
        comm = communicator_of(comm)
        super().__init__(
            FieldStore(Domain(grid, comm, Execution(**execution))), {} if parameters is None else parameters
        )
        self.values |= {"t": 0.0, "step": 0.0}
        self.given = dict(self.parameters)
        self.notes: Callable[[], Mapping[str, Any]] | None = None
        self._ledger = Ledger(comm)
        self.balances: list[Balance] = []
        if terms is not None:
            bind(terms, grid, dict.fromkeys((*OWN_SCALARS, *self.parameters), 0.0))
        self._traced = partial(
            stepping,
            grid,
            function,
            parameters=tuple(self.parameters),
            scheme=scheme,
            dt=dt,
            time_step=time_step,
            order=order,
            after_step=after_step,
        )
        self._stepping = self._traced()
        often = self.domain.how.balance
        self._balance_every = None if often is None else Every.parse("balance", often)
        if self._balance_every and self._balance_every.time is not None and not self._stepping.timed:
            raise InputError(
                f"balance is {often!r}, a time, but these equations have none: give a number of steps, as in "
                '"50 steps", or a wall-clock time, as in "30 min"'
            )
        self.title = self.program.name if self.program.name.isidentifier() else "simulation"
        self.order, self.scheme = order, scheme
        observers.made(self)
        if self._stepping.wanted is not None:
            self.values[WANTED_STEP] = self.given[restart.DT] = self._stepping.wanted
        # weak: the memory of a simulation is free as soon as nobody has it
        self._session = Session(proxy(self), self._stepping)
        _ = self._session.identity  # computed here once, and not in a run with checkpoints
        self.replay = None if terms is None else FailureReplay(self._session, terms, order)
        self._session.replay = self.replay
        if comm.rank == 0:
            for name in self.parameters:
                if name not in self.schedule.scalars:
                    log.warning("parameter %s is given, but these equations do not read it", name)
            for notice in self.program.notices:
                log.warning("%s", notice)

    def activate(self, active: Any) -> None:
        """Change which blocks of the grid are active, between two runs; all ranks call this.

        Blocks that become inactive give their memory back, and those that become active begin with zeros. A
        delayed time step is exact once more.

        Parameters
        ----------
        active : array of bool
            As for `Grid`; the blocks may be others than before.

        Raises
        ------
        InputError
            The grid was made without ``active``; a mask that does not fit it.
        """
        if self.store.blocks is None:
            raise InputError(
                "this grid has no blocks: make it with active=, an array of True for each block that is "
                "computed at first"
            )
        blocks = Blocks.of(active, self.grid.shape)
        self.domain.comm.check_same("the active blocks are", blocks, "all ranks must give the same")
        self._activate(blocks)

    def _activate(self, blocks: Blocks) -> None:
        self.settle()
        schedule = replace(self.schedule, blocks=blocks)
        assert self.domain.decomposition is not None
        check_fit(schedule, self.domain.decomposition)  # before anything is lost
        self.store.activate(blocks)
        self._with_walls.clear()
        self._forget_programs()
        self._session.replace(prepare_schedule(self.store, schedule, self.program.name))

    def balance(self, *, work: Any = None, ranks_active: int | None = None) -> Balance:
        """Move subdomains between ranks so that all take equally long; all ranks call this.

        Subdomains are a chain along a Z-order curve, of which each rank gets consecutive ones. Between two
        steps this may be called as often as you like: no bit of a result depends on it. Views of fields that
        were taken before are not valid any more.

        Parameters
        ----------
        work : field, expression or number, optional
            Work in each cell, at least 0. Where not given, the time that threads have spent in each subdomain
            since the last balance; on devices, the number of active cells.
        ranks_active : int, optional
            Number of ranks that hold subdomains from now on, the first ones, node by node; as many as before
            where not given.

        Returns
        -------
        Balance
            Shares of work before and after, subdomains that moved, and the time that it took.

        Raises
        ------
        InputError
            `ranks_active` exceeds the number of ranks or differs between ranks; no rank has several
            subdomains, so that nothing can be balanced; or `work` is negative or not finite.
        RunError
            A node has too little memory for its new share; nothing has moved then.
        """
        domain = self.domain
        active = domain.active_ranks if ranks_active is None else RANKS.check("ranks_active", ranks_active)
        domain.comm.check_same("ranks_active is", active, "all ranks must give the same")
        domain.check_active(active)
        assert domain.decomposition is not None
        if domain.comm.size > 1 and domain.decomposition.count <= active == domain.active_ranks:
            raise InputError(
                "no rank has several subdomains, so that nothing can be balanced: take several, as in "
                "subdomains_per_rank=8"
            )
        self.settle()
        weights = measured_work(self.store) if work is None else self._work(work)
        found = balance(self.store, weights, active, self._release_engines)
        self.balances.append(found)
        self._session.forget_copy()
        if domain.comm.rank == 0:
            log.info("balance at step %d: %s", self.steps, found)
        return found

    def _balance(self) -> None:
        self.balance()

    def _work(self, work: Any) -> dict[int, float]:
        """Return the sum of a field or expression over the points of each subdomain of this rank."""
        if not isinstance(work, (Field, str)) and not (constant := as_expr(work, "work")).varies:
            if constant.op == "const" and not 0.0 < constant.attribute < math.inf:
                raise InputError(f"work is {constant.attribute:g}; expected a positive number")
            return active_cells(self.store)  # all cells count alike
        with self.holding(work) as field:
            views = dict(zip(self.domain.subdomains, self.store.views(field), strict=True))
            least = min((float(view.min()) for view in views.values()), default=0.0)
            sums = {number: float(view.sum(dtype="float64")) for number, view in views.items()}
        bad = [least, *sums.values()] if math.isnan(least) or least < 0 else list(sums.values())
        wrong = next((value for value in bad if not 0.0 <= value < math.inf), None)
        values = [value for value in self.domain.comm.allgather(wrong) if value is not None]
        if values:
            raise InputError(f"work is {values[0]:g} somewhere; expected finite values, at least 0")
        return sums

    def _release_engines(self) -> None:
        """Free all engines, whose memory of subdomains that move would else be held until the next run."""
        self._session.release()
        for prepared in self._programs.values():
            if isinstance(prepared, Prepared):
                prepared.release()

    # --- what it is ---

    @property
    def program(self) -> Program:
        """The statements of a step, as data."""
        return self._stepping.program

    @property
    def prepared(self) -> Prepared:
        """The program bound to the engine."""
        return self._session.prepared

    @property
    def schedule(self) -> Any:
        """The compiled program, as data; see halocline.compile.schedule."""
        return self.prepared.schedule

    @property
    def plan(self) -> Any:
        """This rank's plan, as data; see halocline.plan.rank."""
        return self.prepared.plan

    @property
    def held(self) -> list[Field]:
        """The fields of the program, those of the scheme too."""
        return self._session.held

    @property
    def dt(self) -> float | None:
        """Time step: its number, or for a varying time step that of the last step (None before the first).

        ``sim.dt = 1e-4`` changes the number for the following steps. All ranks must set the same value.

        Raises
        ------
        InputError
            The value set is not a positive number; the time step is a function, or the program has none.
        """
        return self.values.get(WANTED_STEP, self.values.get("dt"))

    @dt.setter
    def dt(self, value: float) -> None:
        if self._stepping.wanted is None:
            why = "is a function" if callable(self._traced.keywords["dt"]) else "was not given"
            raise InputError(
                f"dt is set to {shown(value)}, but the time step of this simulation {why}; give a number as "
                "dt= when it is made, or let the function read a parameter"
            )
        self.values[WANTED_STEP] = time_step_of(value)
        self._session.forget_time_steps()

    @property
    def time(self) -> float:
        """Simulated time reached; `restart` sets it."""
        return self._session.time

    @property
    def steps(self) -> int:
        """Steps done so far."""
        return self._session.step

    @property
    def resumed(self) -> Saved | None:
        """The checkpoint that the run goes on from, where it does."""
        return self._ledger.resumed

    @property
    def writing(self) -> Writing:
        """Cost of output and checkpoints of all runs: bytes, seconds, and seconds waited."""
        return self._ledger.writing

    def present_scalars(self) -> dict[str, float]:
        """Scalars as they are while a run goes on, which another thread may read: some may be of a step
        later than others."""
        return self._session.scalars()

    @property
    def bytes_per_step(self) -> float:
        """Bytes that must cross memory in one step, all ranks together."""
        return self.prepared.bytes_per_pass * self.store.cells

    def share_of_bound(self) -> float | None:
        """What the last run reached of the speed of memory, measured now; all ranks call this. None where no
        step was done."""
        steps, seconds = self._session.last_run
        if not steps:
            return None
        return bandwidth_share(self.domain, self.store.memory_bytes, self.bytes_per_step * steps / seconds)

    # --- running ---

    def restart(self, *, time: float = 0.0) -> None:
        """Begin a new run with the present fields and parameters; all ranks call this.

        The number of steps is 0 again. A delayed time step is exact once more, and `resumed` is None. Scalars
        of the program keep their values. Output and checkpoints of the earlier run belong to another run, so
        that the new run overwrites them only with ``overwrite=True``.

        Parameters
        ----------
        time : float
            The simulated time.

        Raises
        ------
        InputError
            The time is not finite, ranks give different times, or a run is under way.
        """
        if self._session.is_under_way:
            raise InputError("restart is called while the simulation runs; call it between two runs")
        number = finite_time("time", time)
        comm = self.domain.comm
        comm.check_same("the time to restart from is", number, "all ranks must give the same")
        self.values |= {"t": number, "step": 0.0}
        self._session.restart()
        self._ledger.begin_anew()
        if self.replay is not None:
            self.replay.begin = None

    def resume(self, path: str | Path, *, change: Collection[str] = ()) -> None:
        """Take over a checkpoint that a run of the same program left, on any number of ranks: what follows
        has the bits of a run that never stopped. All ranks call this.

        Parameters
        ----------
        path : str or path
            A folder of checkpoints, of which the newest counts, or one of them.
        change : collection of str
            The parameters that may differ from those of that run, "dt" among them: they are changed from
            here on.

        Raises
        ------
        InputError
            There is no checkpoint, it is damaged, or another program left it; nothing was changed then,
            unless it is damaged.
        """
        comm = self.domain.comm
        change = [as_name(name, "parameter name") for name in change]
        for name in change:
            chosen("parameter", name, sorted(self.given))
        saved, changes = self._ledger.read(path, self._session, self.given, change)
        blocks = restart.blocks_of(saved, self.grid)
        if blocks is not None and blocks != self.store.blocks:
            self._activate(blocks)
        restart.take_over(self._session, saved, changes)
        self._session.forget_checks()
        self._ledger.resume(saved)
        if comm.rank == 0:
            log.info("resumed from %s: step %d, time %g", saved.folder, self.steps, self.time)
            for name, (then, now) in changes.items():
                log.warning("parameter %s is changed from %g to %g", name, then, now)

    def run(
        self,
        *positional: Any,
        until: float | None = None,
        steps: int | None = None,
        every: Every | float | str | None = None,
        exact: bool = False,
        callback: Callable[[Simulation], Any] | None = None,
        output: Output | Sequence[Output] | None = (),
        checkpoint: Checkpoint | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Advance in time.

        Parameters
        ----------
        until : float, optional
            The time to reach; the last step is shortened to end there.
        steps : int, optional
            The greatest number of steps. Without `until` and `steps` a program runs once.
        every : float, hc.steps or str, optional
            Interval between two calls of `callback`: a float is simulated time, ``hc.steps(5)`` or "5 steps"
            a number of steps, and a text such as "30 s" wall-clock time. At a time that no step meets, the
            call follows the first step past it.
        exact : bool
            Shorten steps to meet these times instead, so that the interval changes the result.
        callback : callable, optional
            Called with the simulation, on every rank, as often as `every` says, and at the end, unless an
            ``hc.stop`` has ended the run.
        output : Output, or sequence of them, optional
            What is written as the run goes on.
        checkpoint : Checkpoint, optional
            Where to leave checkpoints, and how often; see `resume`.
        on_progress : callable, optional
            Called with the steps done, a few times a second, from another thread.

        Returns
        -------
        Outcome
            Its `reason` is "completed", that of the ``hc.stop`` that ended the run, or "no step". A run does
            no step where `steps` is 0, or where the time was reached before, which causes a warning.

        Raises
        ------
        InputError
            A time, a number of steps or a field that cannot be; `until` for a program that has no time.
        RunError
            A field is not finite, the time step is not positive, or a loop cannot end. Fields are checked
            after 64 steps, after 128 more, and so on, but at least every 10 seconds, or every 100 times what
            a check takes, if that is longer; before each call of `callback`, and at the end. With `terms` the
            first step that left such a value is found, and reported with the terms that led to it; the
            simulation holds what was before that step then. Or a checkpoint cannot be written.
        KeyboardInterrupt
            SIGINT or SIGTERM came, and all ranks have ended after the same step, or the same pass of a loop
            within one.
        Stopped
            With `checkpoint`: the run was asked to end, and has left a checkpoint.
        """
        if positional:
            number = ", ".join(map(shown, positional))
            raise InputError(
                f"run({number}): write run(until={number}) for a time, or run(steps=...) for steps"
            )
        own = RunArguments(until, steps, every, exact, callback, output, checkpoint, on_progress)
        outcome: Outcome = observers.observed(self, self._run)(own)
        return outcome

    def _run(self, arguments: RunArguments) -> Outcome:
        """Advance in time; see `run`."""
        callback, on_progress = arguments.callback, arguments.on_progress
        until_time, most_steps, interval = run_bounds(arguments, timed=self._stepping.timed)
        if callback is not None:
            check_callback(callback, "callback", "the simulation")
        if on_progress is not None:
            check_callback(on_progress, "on_progress", "the number of steps")
        if arguments.every is not None and self.domain.comm.rank == 0:
            warn_of_number(arguments.every)
        if not self._checked.issuperset(self.held):  # the user set some
            self._session.forget_checks()
        self.check_inputs("before the run")
        first, start = self.steps, self.time
        report = None if on_progress is None else (lambda step: on_progress(step - first))
        files = self._ledger.files(
            self._session, self.title, self.given,
            output=arguments.output, checkpoint=arguments.checkpoint, also=self._facts,
        )  # fmt: skip
        counted = files.statistics  # steps add up what the statistics of outputs are of
        recorded = files.recorded
        if recorded and self.program.records:  # a program has one history
            recorded = []
        extended: AbstractContextManager[None] = nullcontext()
        if counted or recorded:
            numbers = [recorded_numbers for _, recorded_numbers in recorded]
            traced = self._traced(counting=counted, recorded=numbers)
            extended = self._session.using(traced, partial(add_rows, recorded) if recorded else None)
        with extended, files.ready(first):
            course = Course(self._session, files, [store for store, _ in recorded])
            if callback is not None:
                act = partial(course.call, partial(callback, self))
                course.add(interval or NEVER, act, exact=arguments.exact, at_end=True)
            if self._balance_every is not None and self.domain.can_balance:
                course.add(self._balance_every, self._balance)
            self._session.is_under_way = True
            try:
                outcome = course.run(until_time, first + most_steps, report)
            finally:
                self._session.is_under_way = False
        if self.steps == first and outcome.reason == "completed":
            outcome = self._without_a_step(outcome, start, arguments.until)
        self._session.last_run = self.steps - first, outcome.loop_seconds
        return outcome

    def _facts(self) -> dict[str, Any]:
        """Return the facts for checkpoints: the notes of the user, and the facts of observers."""
        return {**(self.notes() if self.notes is not None else {}), **observers.facts(self)}

    def _without_a_step(self, outcome: Outcome, start: float, until: float | None) -> Outcome:
        """Return the outcome of a run without a step; warn where `until` was reached before."""
        if until is not None and self._session.clock.has_reached(until) and self.domain.comm.rank == 0:
            reason = f"and the time is {start:g} already; sim.restart(time=0) sets the time back"
            if until > start:
                reason = f"less than 1e-6 of a step after the time {start:g}; give a later time"
            log.warning("the run has done no step: until is %g, %s", until, reason)
        return replace(outcome, reason=NO_STEP)

    def explained(self, error: HaloclineError) -> HaloclineError:
        """The same error with the terms that led to it, where `terms` are known; all ranks call this."""
        return self._session.explained(error)

    def check_inputs(self, when: str) -> None:
        """See Fields.check_inputs."""
        try:
            super().check_inputs(when)
        except InputError as error:
            if self.replay is None:
                raise
            raise self.replay.at(error) from None

    def __setitem__(self, field: Field | Vector | str, value: Any) -> None:
        self._session.forget_step()
        super().__setitem__(field, value)
