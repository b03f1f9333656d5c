"""Time-dependent simulations: equations, parameters, a scheme, and fields as arrays."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import proxy

from halocline.archive.arrays import WritingCost
from halocline.deprecation import warn_of_rename
from halocline.errors import HaloclineError, InputError
from halocline.lang.blocks import Blocks
from halocline.lang.callables import check_callback
from halocline.lang.clock import CONSTANT_STEP
from halocline.lang.expression import as_expr
from halocline.lang.grid import Field, Grid, Vector, check_options, checked_choice
from halocline.lang.program import TIME_SCALARS, Program, ProgramFunction, bind, program_in
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
from halocline.words import short_repr

if TYPE_CHECKING:
    from halocline.lang.latex import Equations

log = logging.getLogger("halocline")


class Simulation(Fields):
    """Time-dependent simulation of equations on a grid.

    Parameters
    ----------
    grid : Grid
    function : callable or program
        Equations: a plain function that returns the time derivatives by field, such as
        ``{T: kappa * hc.laplacian(T)}``, or a function decorated with ``@hc.program`` that defines a complete
        step. The arguments of a plain function are bound by name to fields, vectors, parameters, t and dt.
    parameters : mapping of str to float
        Run-time parameters by name. ``sim.parameters["kappa"] = 0.2`` changes a parameter for the next run,
        without recompilation.
    scheme : time integration scheme, optional
        Scheme, such as ``hc.RK3()`` or ``hc.Euler()``; required for a plain function.
    dt : float, or callable, optional
        Time step; required for a plain function. A callable is traced like the equations and may reduce
        fields, as in ``lambda u: 0.4 * hc.min(dx / abs(u))``.
    time_step : {"exact", "delayed"}
        Evaluation of a time step that is computed by a reduction of fields. "exact": each step reduces the
        fields at its start, and all ranks wait for the result. "delayed": each step uses the reduction of the
        fields at the start of the previous step. This reduction overlaps with computation (Mendygral et al.
        2017, Section 4.1.1). A delayed time step needs a safety margin, because the fields change during one
        step. The first step after fields or parameters were set is exact.
    order : int
        Order of accuracy of differences.
    after_step : callable, optional
        Function with the statements at the end of each step, traced like a program, such as
        ``lambda p: p.set(p - hc.value(p, c))``. ``hc.stop(condition, reason)`` in these statements ends the
        run.
    terms : callable, optional
        Function that returns the terms of the time derivatives by field and name, such as
        ``{T: {"conduction": kappa * hc.laplacian(T)}}``. The arguments are bound by name, like the arguments
        of the equations. If `terms` is given, a run that produces a non-finite value reports the first step
        with such a value, and the terms that caused it. For this report, all fields are copied at each check.
        A run also begins with a copy if fields were set or read since the last check. The copy is stored in
        memory up to 64 MiB per rank, otherwise in a temporary file.
    communicator : mpi4py communicator, optional
        Communicator of the simulation. By default, it contains all ranks that the launcher started. The
        communicator must outlive the simulation.
    **execution
        Options of execution, which do not change any bit of the results; see `halocline.Execution`.

    Attributes
    ----------
    declared_parameters : dict of str to float
        Initial values of the parameters, and "dt" if the time step is a number.
    resumed : Saved or None
        Checkpoint from which the run was resumed.
    order : int
        Order of accuracy of differences.
    scheme : time integration scheme or None
    title : str
        Name of the simulation in output; by default the name of the function.
    notes : callable or None
        Function that returns further facts for checkpoints, as JSON data. ``resumed.facts`` contains these
        facts.

    The attributes `title` and `notes` can be set, and `dt` if it is a number. Setting another attribute
    raises InputError.

    Raises
    ------
    InputError
        Equations, parameters or options are invalid. The error is raised before any computation.
    """

    settable: ClassVar[Mapping[str, str]] = {
        "title": "name in output",
        "notes": "further facts for checkpoints",
    }
    advice: ClassVar[Mapping[str, str]] = {
        **Fields.advice,
        **dict.fromkeys(
            ("time", "steps", "step", "t"), "sim.start_new_run(time=0) sets the time, and counts steps from 0"
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
            raise InputError(f"grid is {short_repr(grid)}; expected a halocline.Grid")
        check_options(execution, Simulation.__init__, Execution.__init__)
        named_options = {"communicator": communicator, "scheme": scheme, "order": order}
        execution = observers.options(program_in(function) or function, {**named_options, **execution})
        comm, scheme, order = (execution.pop(name) for name in named_options)
        comm = communicator_of(comm)
        super().__init__(
            FieldStore(Domain(grid, comm, Execution(**execution))), {} if parameters is None else parameters
        )
        self.values |= {"t": 0.0, "step": 0.0}
        self.declared_parameters = dict(self.parameters)
        self.notes: Callable[[], Mapping[str, Any]] | None = None
        self._ledger = Ledger(comm)
        self.balances: list[Balance] = []
        if terms is not None:
            bind(terms, grid, dict.fromkeys((*TIME_SCALARS, *self.parameters), 0.0))
        self._trace_stepping = partial(
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
        self._stepping = self._trace_stepping()
        balance_interval = self.domain.execution.balance
        self._balance_every = None if balance_interval is None else Every.parse("balance", balance_interval)
        if self._balance_every and self._balance_every.time is not None and not self._stepping.has_time_step:
            raise InputError(
                f"balance is {balance_interval!r}, a time, but these equations have no time. Use a number "
                'of steps, as in "50 steps", or a wall-clock time, as in "30 min".'
            )
        self.title = self.program.name if self.program.name.isidentifier() else "simulation"
        self.order, self.scheme = order, scheme
        observers.notify_created(self)
        if self._stepping.constant_dt is not None:
            self.values[CONSTANT_STEP] = self.declared_parameters[restart.DT] = self._stepping.constant_dt
        # A weak reference: the memory of the simulation is freed when user code drops its last reference.
        self._session = Session(proxy(self), self._stepping)
        _ = self._session.identity  # computed once here instead of during a run with checkpoints
        self.replay = None if terms is None else FailureReplay(self._session, terms, order)
        self._session.replay = self.replay
        if comm.rank == 0:
            for name in self.parameters:
                if name not in self.schedule.scalars:
                    log.warning("parameter %s is given, but these equations do not read it", name)
            for notice in self.program.notices:
                log.warning("%s", notice)

    def activate(self, active: Any) -> None:
        """Change the set of active blocks of the grid between two runs. All ranks call this method.

        The memory of blocks that become inactive is freed. Blocks that become active begin with zeros. The
        next step computes a delayed time step exactly.

        Parameters
        ----------
        active : array of bool
            Mask of active blocks, as for `Grid`. The block shape may differ from the previous one.

        Raises
        ------
        InputError
            The grid was created without ``active``, or the mask does not fit the grid.
        """
        if self.store.blocks is None:
            raise InputError(
                "this grid has no blocks. Create it with active=, an array with True for each initially "
                "active block."
            )
        blocks = Blocks.of(active, self.grid.shape)
        self.domain.comm.check_same("the active blocks are", blocks, "all ranks must give the same")
        self._activate(blocks)

    def _activate(self, blocks: Blocks) -> None:
        self.settle()
        schedule = replace(self.schedule, blocks=blocks)
        assert self.domain.decomposition is not None
        check_fit(schedule, self.domain.decomposition)  # before data are discarded
        self.store.activate(blocks)
        self._fields_with_walls.clear()
        self._forget_programs()
        self._session.replace(prepare_schedule(self.store, schedule, self.program.name))

    def balance(self, *, work: Any = None, ranks_active: int | None = None) -> Balance:
        """Move subdomains between ranks to equalize the run time of the ranks. All ranks call this method.

        Subdomains are ordered along a Z-order curve, and each rank holds a consecutive range of this order.
        This method can be called between any two steps, because no bit of a result depends on the
        distribution. Existing views of fields are no longer valid after the call.

        Parameters
        ----------
        work : field, expression or number, optional
            Non-negative work per cell. By default, the work is the time that threads spent in each subdomain
            since the last balance. On devices, the default is the number of active cells.
        ranks_active : int, optional
            Number of ranks that hold subdomains after the call. These are the first ranks, node by node. By
            default, the number does not change.

        Returns
        -------
        Balance
            Ratio of maximum to mean work before and after the balance, number of moved subdomains, and
            duration.

        Raises
        ------
        InputError
            `ranks_active` exceeds the number of ranks or differs between ranks; each rank has only one
            subdomain; or `work` is negative or not finite.
        RunError
            A node has insufficient memory for its new subdomains. In this case, no subdomain has moved.
        """
        domain = self.domain
        active = domain.active_ranks if ranks_active is None else RANKS.check("ranks_active", ranks_active)
        domain.comm.check_same("ranks_active is", active, "all ranks must give the same")
        domain.check_active(active)
        assert domain.decomposition is not None
        if domain.comm.size > 1 and domain.decomposition.count <= active == domain.active_ranks:
            raise InputError(
                "no rank has several subdomains, so a balance cannot move subdomains. Use several "
                "subdomains per rank, such as subdomains_per_rank=8."
            )
        self.settle()
        weights = measured_work(self.store) if work is None else self._work(work)
        result = balance(self.store, weights, active, self._release_engines)
        self.balances.append(result)
        self._session.forget_copy()
        if domain.comm.rank == 0:
            log.info("balance at step %d: %s", self.steps, result)
        return result

    def _balance(self) -> None:
        self.balance()

    def _work(self, work: Any) -> dict[int, float]:
        """Return the sum of a field or expression over the points of each subdomain of this rank."""
        if not isinstance(work, (Field, str)) and not (constant := as_expr(work, "work")).varies:
            if constant.op == "const" and not 0.0 < constant.attribute < math.inf:
                raise InputError(f"work is {constant.attribute:g}; expected a positive number")
            return active_cells(self.store)  # uniform work
        with self.values_as_field(work) as field:
            views = dict(zip(self.domain.subdomains, self.store.views(field), strict=True))
            smallest = min((float(view.min()) for view in views.values()), default=0.0)
            sums = {number: float(view.sum(dtype="float64")) for number, view in views.items()}
        bad = [smallest, *sums.values()] if math.isnan(smallest) or smallest < 0 else list(sums.values())
        wrong = next((value for value in bad if not 0.0 <= value < math.inf), None)
        values = [value for value in self.domain.comm.allgather(wrong) if value is not None]
        if values:
            raise InputError(f"work is {values[0]:g} somewhere; expected finite values, at least 0")
        return sums

    def _release_engines(self) -> None:
        """Free all engines, which would otherwise retain the memory of moved subdomains."""
        self._session.release()
        for prepared in self._programs.values():
            if isinstance(prepared, Prepared):
                prepared.release()

    # --- properties ---

    @property
    def program(self) -> Program:
        """Statements of a step, as data."""
        return self._stepping.program

    @property
    def prepared(self) -> Prepared:
        """Program bound to the engine."""
        return self._session.prepared

    @property
    def schedule(self) -> Any:
        """Compiled program, as data; see halocline.compile.schedule."""
        return self.prepared.schedule

    @property
    def plan(self) -> Any:
        """Plan of this rank, as data; see halocline.plan.rank."""
        return self.prepared.plan

    @property
    def program_fields(self) -> list[Field]:
        """Fields of the program, including those of the scheme."""
        return self._session.program_fields

    @property
    def dt(self) -> float | None:
        """Time step: a constant, or the last value of a varying time step (None before the first step).

        ``sim.dt = 1e-4`` changes the time step for the following steps. All ranks must set the same value.

        Raises
        ------
        InputError
            The value is not a positive number, the time step is a function, or the program has no time step.
        """
        return self.values.get(CONSTANT_STEP, self.values.get("dt"))

    @dt.setter
    def dt(self, value: float) -> None:
        if self._stepping.constant_dt is None:
            problem = "is a function" if callable(self._trace_stepping.keywords["dt"]) else "was not given"
            raise InputError(
                f"dt is set to {short_repr(value)}, but the time step of this simulation {problem}. Pass a "
                "number as dt= when the simulation is created, or let the function read a parameter."
            )
        self.values[CONSTANT_STEP] = time_step_of(value)
        self._session.forget_time_steps()

    @property
    def time(self) -> float:
        """Simulated time; `start_new_run` sets it."""
        return self._session.time

    @property
    def steps(self) -> int:
        """Number of completed steps."""
        return self._session.step

    @property
    def resumed(self) -> Saved | None:
        """Checkpoint from which the run was resumed, or None."""
        return self._ledger.resumed

    @property
    def writing(self) -> WritingCost:
        """Cost of output and checkpoints of all runs: bytes, seconds, and seconds waited."""
        return self._ledger.writing

    def present_scalars(self) -> dict[str, float]:
        """Return the current scalars during a run, for use in another thread.

        The result is not a consistent snapshot: some scalars may belong to a later step than others.
        """
        return self._session.scalars()

    @property
    def bytes_per_step(self) -> float:
        """Minimum memory traffic of one step, in bytes, summed over all ranks."""
        return self.prepared.bytes_per_pass * self.store.cells

    def share_of_bound(self) -> float | None:
        """Return the fraction of the memory bandwidth that the last run reached; None if no step was run.

        All ranks call this method, which measures the bandwidth.
        """
        steps, seconds = self._session.last_run
        if not steps:
            return None
        rate = self.bytes_per_step * steps / seconds
        share = bandwidth_share(self.domain, self.store.memory_bytes, rate)
        self._session.last_share = share
        return share

    # --- display ---

    @property
    def last_run(self) -> tuple[int, float]:
        """Number of steps of the last run, and their duration in seconds; (0, 0.0) before the first run."""
        return self._session.last_run

    @property
    def last_share(self) -> float | None:
        """Result of the last call of `share_of_bound` since the last run, without a measurement; or None."""
        return self._session.last_share

    @property
    def equations(self) -> Equations:
        """Equations as formulas, which notebooks show; ``str(sim.equations)`` returns the LaTeX source.

        A function of time derivatives is traced again. The formulas of a program are its statements.
        """
        from halocline.run.simulation.display import equations_of

        grid, function = self._trace_stepping.args
        return equations_of(grid, function, self.parameters, self.order, self.program)

    def plot(self, expression: Any, **options: Any) -> Any:
        """Return a figure of a field, which notebooks show. All ranks call this method; see `halocline.plot`.

        Parameters
        ----------
        expression : Field, Vector, str or expression
        **options
            Options of `halocline.plot`, such as ``title``, ``label``, ``limits`` or ``renderer``.

        Returns
        -------
        figure or None
            Figure on the first rank; None on all other ranks.

        Raises
        ------
        InputError
        """
        import halocline

        return halocline.plot(self, expression, **options)

    def _repr_html_(self) -> str:
        from halocline.run.simulation.display import simulation_table

        return simulation_table(self)

    # --- running ---

    def start_new_run(self, *, time: float = 0.0) -> None:
        """Begin a new run with the current fields and parameters. All ranks call this method.

        The number of steps is reset to 0, `resumed` to None, and a delayed time step is exact in the next
        step. Scalars of the program keep their values. For the new run, output and checkpoints of the earlier
        run are files of another run. The new run overwrites these files only with ``overwrite=True``.

        Parameters
        ----------
        time : float
            New simulated time.

        Raises
        ------
        InputError
            The time is not finite, the ranks give different times, or a run is in progress.
        """
        if self._session.is_under_way:
            raise InputError("start_new_run is called while the simulation runs. Call it between two runs.")
        number = finite_time("time", time)
        comm = self.domain.comm
        comm.check_same("the time of the new run is", number, "all ranks must give the same")
        self.values |= {"t": number, "step": 0.0}
        self._session.forget_earlier_steps()
        self._ledger.start_new_run()
        if self.replay is not None:
            self.replay.begin = None

    def restart(self, *, time: float = 0.0) -> None:
        """Begin a new run. Deprecated name of `start_new_run`."""
        warn_of_rename("Simulation", "restart", "start_new_run")
        self.start_new_run(time=time)

    def resume(self, path: str | Path, *, change: Collection[str] = ()) -> None:
        """Load a checkpoint of the same program, written on any number of ranks. All ranks call this method.

        The following steps are bit-for-bit identical to those of a run without interruption.

        Parameters
        ----------
        path : str or path
            Folder of checkpoints, from which the newest is loaded, or a single checkpoint.
        change : collection of str
            Names of the parameters, possibly "dt", whose values may differ from the checkpoint. For these
            parameters, the following steps use the values given at the construction of the simulation.

        Raises
        ------
        InputError
            The checkpoint does not exist, is damaged, or belongs to another program. Only a damaged
            checkpoint may leave the simulation changed.
        """
        comm = self.domain.comm
        change = [as_name(name, "parameter name") for name in change]
        for name in change:
            checked_choice("parameter", name, sorted(self.declared_parameters))
        saved, changes = self._ledger.read(path, self._session, self.declared_parameters, change)
        blocks = restart.blocks_of(saved, self.grid)
        if blocks is not None and blocks != self.store.blocks:
            self._activate(blocks)
        restart.load_state(self._session, saved, changes)
        self._session.forget_checks()
        self._ledger.resume(saved)
        if comm.rank == 0:
            log.info("resumed from %s: step %d, time %g", saved.folder, self.steps, self.time)
            for name, (old, new) in changes.items():
                log.warning("parameter %s is changed from %g to %g", name, old, new)

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
        """Advance the simulation to a time or by a number of steps. All ranks call this method.

        Parameters
        ----------
        until : float, optional
            Final time; the last step is shortened to end at this time.
        steps : int, optional
            Maximum number of steps. Without `until` and `steps`, the program runs once.
        every : float, hc.steps or str, optional
            Interval between two calls of `callback`: a float is simulated time, ``hc.steps(5)`` or "5 steps"
            a number of steps, and a text such as "30 s" wall-clock time. If no step ends at a due time, the
            call follows the first step past this time.
        exact : bool
            True to shorten steps so that they end at the due times. The interval then changes the result.
        callback : callable, optional
            Function of the simulation. Every rank calls it at the interval `every`, and at the end unless an
            ``hc.stop`` has ended the run.
        output : Output, or sequence of them, optional
            Output during the run.
        checkpoint : Checkpoint, optional
            Folder and interval of checkpoints; see `resume`.
        on_progress : callable, optional
            Function of the number of completed steps, called from another thread a few times per second.

        Returns
        -------
        Outcome
            Outcome of the run, with the `reason` "completed", "no step", or the reason of the ``hc.stop``
            that ended the run. A run has no step if `steps` is 0. A run also has no step if it starts at or
            after the final time; in this case, it logs a warning.

        Raises
        ------
        InputError
            A time, a number of steps or a field is invalid, or `until` is given for a program without time.
        RunError
            A field is not finite, the time step is not positive, a loop cannot end, or a checkpoint cannot be
            written. Fields are checked after 64 steps, after 128 more, and so on, before each call of
            `callback`, and at the end. The interval between checks is at most the larger of 10 seconds and
            100 times the duration of a check. With `terms`, the error names the first step that produced a
            non-finite value, and the terms that caused it. The simulation then contains the state before that
            step.
        KeyboardInterrupt
            The process received SIGINT or SIGTERM. All ranks have ended after the same step, or after the
            same pass of a loop within a step.
        Stopped
            With `checkpoint`, the run ended early on request, and has written a checkpoint.
        """
        if positional:
            number = ", ".join(map(short_repr, positional))
            raise InputError(
                f"run({number}): write run(until={number}) for a time, or run(steps=...) for steps"
            )
        arguments = RunArguments(until, steps, every, exact, callback, output, checkpoint, on_progress)
        outcome: Outcome = observers.wrap_run(self, self._run)(arguments)
        return outcome

    def step(self, count: int = 1) -> Outcome:
        """Do a number of steps in a loop of another program; the same as ``run(steps=count)``.

        Fields are checked for non-finite values after each call. A single call with several steps is faster
        than several calls.
        """
        return self.run(steps=count)

    def _run(self, arguments: RunArguments) -> Outcome:
        """Advance the simulation; see `run`."""
        callback, on_progress = arguments.callback, arguments.on_progress
        until_time, most_steps, interval = run_bounds(arguments, timed=self._stepping.has_time_step)
        if callback is not None:
            check_callback(callback, "callback", "the simulation")
        if on_progress is not None:
            check_callback(on_progress, "on_progress", "the number of steps")
        if arguments.every is not None and self.domain.comm.rank == 0:
            warn_of_number(arguments.every)
        if not self._checked.issuperset(self.program_fields):  # the user has set fields
            self._session.forget_checks()
        self.check_inputs("before the run")
        first, start = self.steps, self.time
        report = None if on_progress is None else (lambda step: on_progress(step - first))
        files = self._ledger.files(
            self._session, self.title, self.declared_parameters,
            output=arguments.output, checkpoint=arguments.checkpoint, extra_facts=self._facts,
        )  # fmt: skip
        statistics = files.statistics  # steps accumulate the statistics of outputs
        number_outputs = files.recorded
        if number_outputs and self.program.has_records:  # a program can record only one history
            number_outputs = []
        extended: AbstractContextManager[None] = nullcontext()
        if statistics or number_outputs:
            numbers = [recorded_numbers for _, recorded_numbers in number_outputs]
            traced = self._trace_stepping(counting=statistics, recorded=numbers)
            keep_rows = partial(add_rows, number_outputs) if number_outputs else None
            extended = self._session.use_program(traced, keep_rows)
        with extended, files.ready(first):
            course = Course(self._session, files, [store for store, _ in number_outputs])
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
        self._session.last_share = None
        return outcome

    def _facts(self) -> dict[str, Any]:
        """Return the facts for checkpoints: the notes of the user, and the facts of observers."""
        return {**(self.notes() if self.notes is not None else {}), **observers.facts(self)}

    def _without_a_step(self, outcome: Outcome, start: float, until: float | None) -> Outcome:
        """Return the outcome of a run without a step. Warn if the time had reached `until` before."""
        if until is not None and self._session.clock.has_reached(until) and self.domain.comm.rank == 0:
            reason = f"but the time is already {start:g}; sim.start_new_run(time=0) resets the time"
            if until > start:
                reason = f"less than 1e-6 of a step after the time {start:g}; give a later time"
            log.warning("the run did no step: until is %g, %s", until, reason)
        return replace(outcome, reason=NO_STEP)

    def explained(self, error: HaloclineError) -> HaloclineError:
        """Return the error with the terms that caused it, if `terms` was given; collective."""
        return self._session.explained(error)

    def check_inputs(self, when: str) -> None:
        """Check all fields that were set; see `Fields.check_inputs`."""
        try:
            super().check_inputs(when)
        except InputError as error:
            if self.replay is None:
                raise
            raise self.replay.explained_at(error) from None

    def __setitem__(self, field: Field | Vector | str, value: Any) -> None:
        self._session.forget_step()
        super().__setitem__(field, value)
