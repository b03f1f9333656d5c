"""The user's view of a run: equations on a grid, parameters, a scheme, and fields as arrays."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Protocol

from halocline.errors import HaloclineError, InputError, RunError
from halocline.lang import trace
from halocline.lang.blocks import Blocks
from halocline.lang.boundary import with_wall_values
from halocline.lang.expression import Expr, as_expr, walk
from halocline.lang.functions import where
from halocline.lang.grid import Field, Grid, Vector, check_options
from halocline.lang.program import Assign, Program, ProgramFunction, Scalar, bind, loop, own_name, stop
from halocline.plan.fit import check_fit
from halocline.ranges import STEPS
from halocline.run.domain import Domain
from halocline.run.execution import Execution
from halocline.run.fields import Fields
from halocline.run.look_back import LookBack
from halocline.run.mpi import Communicator, from_user, world
from halocline.run.prepared import Outcome, Prepared, prepare

log = logging.getLogger("halocline")

OWN_SCALARS = ("dt", "t", "step")
TIME_STEPS = ("exact", "delayed")
NEXT_STEP = own_name("dt_next")  # where it is delayed
BAD_STEP = "the time step is not a positive number"
# all fields are looked through after so many steps; then after twice as many, and so on, but at most after so
# many seconds, or so many that looking takes no greater share of the time
FIRST_CHECK = 64
CHECK_SECONDS = 10.0
CHECK_SHARE = 0.01


class Scheme(Protocol):
    """What a time integration scheme must offer; see halocline.solvers.schemes."""

    def step(
        self, rhs: Callable[[float], Mapping[Field, Expr]], dt: Expr, make: Callable[[Field, str], Field]
    ) -> None:
        """Record one step."""


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
        tells the first step that left one, and which terms led to it. For this a copy of all fields is kept,
        as they were when last looked through, and at the start of a run where they were set or read since: in
        memory up to 64 MiB a rank, else in a temporary file.
    communicator : mpi4py communicator, optional
        All ranks that the launcher started, by default. It must not be freed before the simulation.
    **execution
        How it runs, on which no bit of a result depends; see `halocline.Execution`.

    Raises
    ------
    InputError
        For equations, parameters or options that cannot work, before anything is computed.
    """

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
            raise InputError(f"grid is {grid!r}; expected a halocline.Grid")
        check_options(execution, Simulation.__init__, Execution.__init__)
        comm = (
            communicator
            if isinstance(communicator, Communicator)
            else (world() if communicator is None else from_user(communicator))
        )
        super().__init__(Domain(grid, comm, Execution(**execution)), parameters or {})
        self.values |= {"t": 0.0, "step": 0.0}
        self._last_run = 0.0, 0.0  # steps and seconds
        self._ran_with: dict[str, float] = {}  # the parameters of the last run
        if terms is not None:
            bind(terms, grid, dict.fromkeys((*OWN_SCALARS, *self.parameters), 0.0))
        self.look_back = None if terms is None else LookBack(terms, order)
        self._looked_from: Any = None  # where a run goes to and with what, since fields were looked through
        self._far = FIRST_CHECK  # steps until they are again
        self._since, self._took, self._looked = 0, 0.0, 0.0  # steps since; seconds of these, and of looking
        if time_step not in TIME_STEPS:
            raise InputError(f"time_step {time_step!r} is unknown; known are {', '.join(TIME_STEPS)}")
        if time_step == "delayed" and not callable(dt):
            raise InputError(
                f"time_step is 'delayed', but dt is {dt!r}; expected a function of fields, which is reduced"
            )
        self._first_step: Program | None = None  # what a delayed time step begins with
        self._first_prepared: Prepared | None = None
        self.program = self._trace(function, scheme, dt, time_step, order, after_step)
        self._prepare()

    def _prepare(self) -> None:
        self._prepared = prepare(self.domain, self.program, (*self.values, "until", "steps"))
        if self.domain.comm.rank == 0:
            for name in self.parameters:
                if name not in self.schedule.scalars:
                    log.warning("parameter %s is given, but these equations do not read it", name)
            for notice in self.program.notices:
                log.warning("%s", notice)

    # --- tracing ---

    def _trace(
        self,
        function: Callable[..., Any] | ProgramFunction,
        scheme: Scheme | None,
        dt: Any,
        time_step: str,
        order: int,
        after_step: Callable[..., Any] | None,
    ) -> Program:
        plain = function.function if isinstance(function, ProgramFunction) else function
        if not callable(plain):
            raise InputError(f"equations are {function!r}; expected a function of fields and parameters")
        program = Program(plain.__name__)
        program.scheme = scheme
        until, steps = program.parameter("until"), program.parameter("steps")
        if isinstance(function, ProgramFunction):
            timed = dt is not None
        else:
            timed = True
            if scheme is None:
                raise InputError(
                    f"function {plain.__name__!r} gives time derivatives, so a scheme is needed: "
                    "scheme=hc.RK3() or another; "
                    "or decorate it with @hc.program if it is the step itself"
                )
            if dt is None:
                raise InputError(
                    f"function {plain.__name__!r} gives time derivatives, so a time step is needed: dt=0.01 "
                    "or a function"
                )
        if timed and not callable(dt):
            self.values[own_name("dt_wanted")] = _time_step(dt)
        own = OWN_SCALARS if timed else OWN_SCALARS[1:]
        names = {n: program.parameter(n) for n in own} | {n: Scalar(n) for n in self.parameters}
        t, number = names["t"], names["step"]

        def bound(function: Callable[..., Any]) -> dict[str, Any]:
            arguments = bind(function, self.grid, names)
            program.parameters |= {n: a for n, a in arguments.items() if isinstance(a, Scalar)}
            return arguments

        registers: dict[tuple[Field, str], Field] = {}

        def register(field: Field, suffix: str) -> Field:
            key = (field, suffix)
            if key not in registers:
                registers[key] = field.like(f"{field.name}_{suffix}", homogeneous=True)
            return registers[key]

        with trace.tracing(program), trace.order(order), loop(until=t >= until, limit=steps):
            later: Callable[[], None] | None = None
            if timed:
                step = names["dt"]
                if time_step == "delayed":
                    following = program.own("dt_next")
                    step.set(following)
                elif callable(dt):
                    step.set(_number(trace.call(dt, **bound(dt))))
                else:
                    step.set(trace.scalar(own_name("dt_wanted")))
                # the last step ends at `until`, and no sliver of a step is left by rounding
                step.set(where(until - t < step * (1.0 + 1e-9), until - t, step))
                stop(~((step > 0.0) & (step < math.inf)), BAD_STEP)
                if time_step == "delayed":
                    later = partial(following.set, self._delayed(program, dt, bound(dt)))
            arguments = bound(plain)
            if isinstance(function, ProgramFunction):
                trace.call(plain, **arguments)
            else:
                assert scheme is not None
                starts: list[Scalar] = []  # the time at the start of the step, where it is needed later

                def rhs(passed: float) -> dict[Field, Expr]:
                    if passed and not starts:
                        starts.append(program.hidden("start"))
                        starts[0].set(t)
                    if passed:
                        t.set(starts[0] + passed * step)
                    with program.evaluation():
                        slopes = _derivatives(plain, trace.call(plain, **arguments))
                        # all reductions before any field changes
                        return dict(zip(slopes, program.reduced(*slopes.values()), strict=True))

                scheme.step(rhs, step.expr, register)
                for start in starts:
                    t.set(start)
            if later is not None:
                later()
            if timed:
                t.set(where(t + step >= until, until, t + step))
            number.set(number + 1.0)
            if after_step is not None:
                trace.call(after_step, **bound(after_step))
        self._set_by_program = program.scalars_set()
        _check_walls(program, self._set_by_program)
        self._timed = timed or "t" in self._set_by_program
        return program

    def _delayed(self, program: Program, dt: Callable[..., Any], arguments: dict[str, Any]) -> Expr:
        """The time step of the fields as they are now, to be used when the program is at its end."""
        kept = dict(arguments)
        for name, argument in arguments.items():
            if isinstance(argument, Scalar) and name in OWN_SCALARS:
                kept[name] = program.hidden(name)
                kept[name].set(argument)
        self._first_step = Program("first_time_step")
        self._first_step.scheme = program.scheme
        with trace.tracing(self._first_step):
            self._first_step.own("dt_next").set(_number(trace.call(dt, **arguments)))
        (value,) = program.reduced(_number(trace.call(dt, **kept)))
        return value

    # --- running ---

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
        if self.domain.blocks is None:
            raise InputError(
                "this grid has no blocks: make it with active=, an array of True for each block that is "
                "computed at first"
            )
        self._settle()
        blocks = Blocks.of(active, self.grid.shape)
        self.domain.comm.check_same("the active blocks are", blocks, "all ranks must give the same")
        schedule = replace(self._prepared.schedule, blocks=blocks)
        assert self.domain.decomposition is not None
        check_fit(schedule, self.domain.decomposition)  # before anything is lost
        self.domain.activate(blocks)
        self.values.pop(NEXT_STEP, None)
        self._with_walls.clear()
        self._evaluations.clear()
        self._first_prepared = self._looked_from = None
        self._prepared = Prepared(self.domain, schedule, self.program.name)

    @property
    def bytes_per_step(self) -> float:
        """Bytes that must cross memory in one step, all ranks together."""
        blocks = self.domain.blocks
        return self._prepared.bytes_per_pass * (self.grid.size if blocks is None else blocks.cells)

    def share_of_bound(self) -> float | None:
        """What the last run reached of the speed of memory, measured now; all ranks call this. None where no
        step was done."""
        steps, seconds = self._last_run
        return self.bandwidth_share(self.bytes_per_step * steps, seconds) if steps else None

    @property
    def time(self) -> float:
        """The simulated time reached."""
        return self.values["t"]

    @property
    def steps(self) -> int:
        """Steps done so far."""
        return int(self.values["step"])

    @property
    def schedule(self) -> Any:
        """The compiled program, as data; see halocline.compile.schedule."""
        return self._prepared.schedule

    @property
    def plan(self) -> Any:
        """This rank's plan, as data; see halocline.plan.rank."""
        return self._prepared.plan

    def run(
        self,
        *,
        until: float | None = None,
        steps: int | None = None,
        every: float | None = None,
        callback: Callable[[Simulation], Any] | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Advance in time.

        Parameters
        ----------
        until : float, optional
            The time to reach; the last step is shortened to end there.
        steps : int, optional
            The greatest number of steps. Without `until` and `steps` a program runs once.
        every : float, optional
            Simulated time between calls of `callback`; steps are shortened to end there.
        callback : callable, optional
            Called with the simulation, on every rank.
        on_progress : callable, optional
            Called with the steps done, a few times a second, from another thread.

        Returns
        -------
        Outcome
            Its `reason` is "completed", or that of the ``hc.stop`` that ended the run.

        Raises
        ------
        InputError
            A time, a number of steps or a field that cannot be; `until` for a program that has no time.
        RunError
            A field is not finite, the time step is not positive, or a loop cannot end. Fields are looked
            through after 64 steps, after twice as many, and so on, but at most after 10 seconds, or so many
            that looking takes 1 % of the time; before each call of `callback`, and at the end. With `terms`
            the first step that left such a value is found, and told with the terms that led to it; the
            simulation holds what was before that step then.
        KeyboardInterrupt
            SIGINT or SIGTERM came, and all ranks have ended after the same step, or the same pass of a loop
            within one.
        """
        if until is not None and not math.isfinite(until):
            raise InputError(f"until is {until!r}; expected a finite time")
        if steps is not None:
            STEPS.check("steps", steps)
        if every is not None and not every > 0:
            raise InputError(f"every is {every!r}; expected a positive time")
        if not self._timed and (until is not None or every is not None):
            raise InputError(
                f"{'every' if until is None else 'until'} is given, but this program has no time: give dt=, "
                "let it set t, or run a number of steps"
            )
        if until is None and steps is None:
            if every is not None:
                raise InputError("every is given without an end: give until or steps too")
            steps = 1
        if not self._checked.issuperset(self.held):  # the user set some
            self._looked_from, self._far = None, FIRST_CHECK
        self.check_inputs("before the run")
        first = self.values["step"]
        last = math.inf if steps is None else first + steps
        whole: Outcome | None = None
        for target in self._targets(until, every):
            outcome = self._advance(target, first, last, on_progress)
            whole = outcome if whole is None else whole.followed_by(outcome)
            self._last_run = self.values["step"] - first, whole.loop_seconds
            if outcome.reason != "completed":
                break
            if callback is not None:
                callback(self)
            if self.values["step"] >= last:
                break
        assert whole is not None
        return whole

    def _advance(
        self, target: float, first: float, last: float, on_progress: Callable[[int], None] | None
    ) -> Outcome:
        """Run until time `target` or step `last`, and look for values that are not finite now and then;
        `first` is the step that the whole run started at."""
        checked = self.values["step"]
        whole: Outcome | None = None
        self._begin_delayed()
        while True:
            self._keep(target)
            report = None if on_progress is None else partial(_report, on_progress, int(checked - first))
            outcome = self.go_on(target, min(last - checked, self._far - self._since), report)
            whole = outcome if whole is None else whole.followed_by(outcome)
            began = perf_counter()
            try:
                self.check_after(checked)
            except RunError as error:
                raise self.explained(error) from None
            if outcome.reason == BAD_STEP:
                wrong = f"{BAD_STEP} but {self.values['dt']:g} after step {self.steps} (time {self.time:g})"
                raise self.explained(RunError(wrong))
            self._looked = perf_counter() - began
            self._since += int(self.values["step"] - checked)
            self._took += outcome.loop_seconds
            checked = self.values["step"]
            if outcome.reason != "completed" or checked >= last or outcome.loops[0] == "condition":
                return whole

    def go_on(self, target: float, steps: float, on_progress: Callable[[int], None] | None = None) -> Outcome:
        """Do so many steps at most, and do not look at what comes out; all ranks call this."""
        outcome = self._prepared.run({**self.values, "until": target, "steps": steps}, on_progress)
        for name in (*OWN_SCALARS, NEXT_STEP, *self._set_by_program):
            if name in outcome.scalars:
                self.values[name] = outcome.scalars[name]
        if outcome.reason == "interrupted":
            raise KeyboardInterrupt
        return outcome

    @property
    def held(self) -> list[Field]:
        """The fields of the program, those of the scheme too."""
        names = {info.name for info in self.schedule.fields}
        return [f for f in self.grid.fields.values() if f.name in names]

    def _keep(self, target: float) -> None:
        """Where enough was done since, or something else is to come, let what goes wrong later be looked for
        from here on."""
        basis, due = (target, dict(self.parameters)), self._since >= self._far
        if not due and basis == self._looked_from:
            return
        began = perf_counter()
        if self.look_back is not None:
            self.look_back.keep(self, target)
        if due:
            looking = max(self.domain.comm.allgather(self._looked + perf_counter() - began))
            seconds = max(CHECK_SECONDS, looking / CHECK_SHARE)
            most = int(seconds * self._since / max(self._took, 1e-9))
            self._far = max(FIRST_CHECK, min(2 * self._far, most))
        self._looked_from, self._since, self._took = basis, 0, 0.0

    def present_scalars(self) -> dict[str, float]:
        """Scalars as they are while a run goes on, which another thread may look at: some may be of a step
        later than others."""
        prepared = self._prepared
        return dict(zip(prepared.schedule.scalars, prepared.values.tolist(), strict=True))

    def explained(self, error: HaloclineError) -> HaloclineError:
        """The same error with the terms that led to it, where `terms` are known; all ranks call this."""
        return error if self.look_back is None else self.look_back.explained(self, error)

    def check_inputs(self, when: str) -> None:
        """See Fields.check_inputs."""
        try:
            super().check_inputs(when)
        except InputError as error:
            if self.look_back is None:
                raise
            raise self.look_back.at(self, error) from None

    def __setitem__(self, field: Field | str, value: Any) -> None:
        self.values.pop(NEXT_STEP, None)
        super().__setitem__(field, value)

    def _begin_delayed(self) -> None:
        """Know a delayed time step before the first step, or where fields or parameters were set since."""
        now = dict(self.parameters)
        if self._first_step is None or (NEXT_STEP in self.values and now == self._ran_with):
            return
        if self._first_prepared is None:
            self._first_prepared = prepare(self.domain, self._first_step, ("dt", *self.values))
        scalars = self._first_prepared.run({"dt": 0.0, **self.values}).scalars
        self.values[NEXT_STEP], self._ran_with = scalars[NEXT_STEP], now

    def _targets(self, until: float | None, every: float | None) -> Iterator[float]:
        end = math.inf if until is None else until
        if every is None:
            yield end
            return
        count = math.floor(self.values["t"] / every + 1e-9)
        while True:
            count += 1
            target = min(end, count * every)
            yield target
            if target >= end:
                return

    def check_after(self, before: float) -> None:
        """Raise where fields hold values that are not finite, and were finite after step `before`; all ranks
        call this."""
        self._checked.clear()
        when = f"after step {self.steps} (time {self.time:g}), but was finite after step {int(before)}"
        try:
            super().check_inputs(when)
        except InputError as error:
            failure = RunError(f"{error}; a smaller time step may help")
            failure.place = error.place
            raise failure from None


class _Traced(Simulation):
    """One whose program is known, but not compiled, and whose fields are not allocated."""

    def _prepare(self) -> None:
        pass


def program_of(grid: Grid, function: Callable[..., Any] | ProgramFunction, **options: Any) -> Program:
    """The program that a simulation would run, without any memory; takes what `Simulation` does, but how it
    runs."""
    return _Traced(grid, function, **options, communicator=Communicator(), device="cpu").program


def _check_walls(program: Program, changing: Collection[str]) -> None:
    """Raise InputError where points on a wall would follow a number that the program itself changes: they are
    given their values by statements, which may come before the change or after it."""
    assigned = dict.fromkeys(f for s in program.flat() if isinstance(s, Assign) for f in s.values)
    for field in assigned:
        leaves = walk((with_wall_values(field, as_expr(0.0)),))
        names = sorted({leaf.attribute[0] for leaf in leaves if leaf.op == "scalar"} & {*changing})
        if names:
            raise InputError(
                f"points of field {field.name!r} lie on a wall, whose value reads {names[0]}, which changes "
                "while the program runs; expected a value of numbers, parameters and coordinates there, or a "
                "field whose points lie beside the wall"
            )


def _report(on_progress: Callable[[int], None], before: int, done: int) -> None:
    on_progress(before + done)


def _number(value: Any) -> Expr:
    """A time step as a scalar expression."""
    number = as_expr(value, "dt")
    if number.varies:
        raise InputError("dt varies from cell to cell; reduce it with hc.min")
    return number


def _time_step(dt: Any) -> float:
    try:
        number = float(dt)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InputError(f"dt is {dt!r}; expected a positive number, or a function of fields")
    return number


def _derivatives(function: Callable[..., Any], result: Any) -> dict[Field, Expr]:
    if not isinstance(result, Mapping) or not result:
        raise InputError(
            f"function {function.__name__!r} returned {result!r}; expected a mapping of fields to time "
            "derivatives, such as "
            "{T: kappa * hc.laplacian(T)}"
        )
    slopes: dict[Field, Expr] = {}
    for target, value in result.items():
        if isinstance(target, Vector):
            if not isinstance(value, (tuple, list)) or len(value) != len(target):
                raise InputError(
                    f"function {function.__name__!r}: the derivative of vector {target.name!r} needs "
                    f"{len(target)} components"
                )
            slopes.update((f, as_expr(v)) for f, v in zip(target, value, strict=True))
        elif isinstance(target, Field):
            slopes[target] = as_expr(value)
        else:
            raise InputError(
                f"function {function.__name__!r} returned a derivative of {target!r}; keys must be fields"
            )
    return slopes
