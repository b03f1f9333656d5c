"""What carries a study out: which runs it takes, their measurements, and the report."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import prod
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.plan.growth import grown, grown_as_cut
from halocline.study.measurement import ONLY_OF_SOLVES, OUTCOMES_OF_SOLVES, Measurement, is_solve
from halocline.study.measuring import command as commands
from halocline.study.measuring.command import Command
from halocline.study.reporting import quantities as q
from halocline.study.reporting import solves
from halocline.study.reporting.report import Group, Report, report
from halocline.study.reporting.theory import Exchanged, Theory, exchanged_by
from halocline.study.study import Asked, Run, Study
from halocline.words import counted, duration, joined

if TYPE_CHECKING:
    from halocline.problems.problem import Problem

ITERATIONS = 100  # of a linear problem, where parts of them are timed
RESOLUTION = "n"  # the name that a file gives its cells along the first axis


# -- runs ----------------------------------------------------------------------------------------------------


def plan(asked: Asked) -> list[Run]:
    """Return the runs of a study, all of them with the same algorithm."""
    runs = _product(asked) if asked.study.plan is None else asked.study.plan(asked)
    has_parameters = asked.command.verb == "run" and not asked.is_file and not asked.is_linear
    return same_algorithm(runs) if has_parameters else runs


def same_algorithm(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of a case with the automatic parameters that the case chooses for the largest grid.

    Runs with different settings or numbers of axes are different problems. Each problem has its own values.
    """

    def problem(run: Run) -> Any:
        return run.command.settings, len(run.shape)

    largest: dict[Any, Run] = {}
    for run in runs:
        other = largest.setdefault(problem(run), run)
        if prod(run.shape) > prod(other.shape):
            largest[problem(run)] = run
    chosen = {key: _automatic(run) for key, run in largest.items()}
    return [
        run if not chosen[problem(run)] else _with_automatic(run, chosen[problem(run)], largest[problem(run)])
        for run in runs
    ]


def _automatic(run: Run) -> Mapping[str, float]:
    """Return the automatic parameters that the case of a run chooses by its grid."""
    from halocline.problems.problem import problem_of

    command = run.command
    ready = problem_of(command.name, run.shape, command.settings, order=command.order, scheme=command.scheme)
    return ready.known.automatic


def _with_automatic(run: Run, values: Mapping[str, float], largest: Run) -> Run:
    settings = tuple(f"{name}={value:g}" for name, value in values.items())
    facts = {"automatic": dict(values), "automatic_for": largest.shape}
    return replace(
        run,
        command=replace(run.command, settings=(*run.command.settings, *settings)),
        facts={**run.facts, **facts},
    )


def _product(asked: Asked) -> list[Run]:
    """Return the runs of each size on each layout, with each set of options."""
    asked = asked.chosen()
    varied = variants(asked)
    commands = [_varied(asked.command, options) for options in varied]
    if asked.is_linear and any(command.only for command in commands):  # parts of a solve have no end
        commands = [command.but(steps=command.steps or ITERATIONS) for command in commands]
    runs = []
    for (at, ready), (ranks, threads) in itertools.product(asked.problems, asked.layouts):
        n, shape, at = larger(asked, at, ready, ranks)
        facts = {"growth": _growth(asked)} if asked.study.grows else {}
        runs += [
            Run(command, n, shape, ranks, threads, at, {**facts, **_varied_facts(asked, options)})
            for command, options in zip(commands, varied, strict=True)
        ]
    if asked.study.formula and not any(run.command.only == "exchange" for run in runs):
        runs += _exchange(asked, runs)
    return runs


def _varied_facts(asked: Asked, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the study varied in a run, and their values in its other runs.

    Parts of a solve run a given number of iterations, unlike the solve. Both get the values of the solve.
    """
    command = asked.command
    base = {name: getattr(command, name) for name in options}
    if asked.is_linear:
        base |= {name: command.options.get(name) for name in (*OUTCOMES_OF_SOLVES, *ONLY_OF_SOLVES)}
    return {"varied": options, "base": base}


def _varied(command: Command, options: Mapping[str, Any]) -> Command:
    """With options of the command; "environment" and "python" are its own fields."""
    own = {name: value for name, value in options.items() if name in ("environment", "python")}
    return replace(command, **own).but(**{k: v for k, v in options.items() if k not in own})


def variants(asked: Asked) -> list[dict[str, Any]]:
    """The sets of options that are run at each place."""
    study = asked.study
    found = study.variants(asked) if callable(study.variants) else list(study.variants)
    swept = [
        [{sweep.option: value} for value in sweep.values(asked.given.get(sweep.keyword) or sweep.default)]
        for sweep in study.sweeps
    ]
    return [
        dict(base) | {k: v for each in sets for k, v in each.items()}
        for base in found
        for sets in itertools.product(*swept)
    ]


def larger(asked: Asked, at: int | None, ready: Problem, ranks: int) -> tuple[int, tuple[int, ...], Any]:
    """N, the cells along each axis, and what --n takes, on so many ranks."""
    n = at if asked.is_file and at is not None else ready.shape[0]
    if not asked.study.grows:
        return n, ready.shape, at if asked.is_file else ready.shape
    if growth := _growth(asked):
        cut = asked.command.decomposition
        shape = grown(ready.shape, ranks) if growth == 1 else grown_as_cut(ready.shape, ranks, cut)
        return n, shape, shape
    if asked.is_file:
        n = own_size(asked, ready)
    more = round(n * ranks ** (1 / len(ready.shape)))
    shape = asked.ready(more).shape
    return n, shape, more if asked.is_file else shape


def _growth(asked: Asked) -> int | None:
    """1 or 2; None for a problem that has one number for its size."""
    asked_for = asked.given.get("growth") or 1
    if not (asked.is_file or asked.is_linear):
        return int(asked_for)
    if asked_for == 2:
        raise InputError(
            f"--growth 2: {asked.command.name} has one number for its size, so all axes grow: leave it out"
        )
    return None


def own_size(asked: Asked, ready: Any) -> int:
    """Return the cells along the first axis of a file, which it has as its name n or in hc.cells."""
    n = ready.shape[0] if ready.has_settings else ready.values.get(RESOLUTION)
    if type(n) is not int:
        raise InputError(
            f"{asked.command.name} sets no whole number {RESOLUTION} at its top, from which a larger grid "
            f"could be made for more ranks: write {RESOLUTION} = 128 there, and make the grid of it"
        )
    return n


def _exchange(asked: Asked, runs: Sequence[Run]) -> list[Run]:
    """What 1/β is taken from: the exchange alone of the largest grid on the fewest ranks; none on one, nor of
    what whole runs alone are timed."""
    between = [run for run in runs if run.ranks > 1]
    if not between or asked.is_linear:
        return []
    one = min(between, key=lambda run: (run.ranks, -run.n, run.threads))
    return [replace(one, command=one.command.but(only="exchange"))]


# -- measurements --------------------------------------------------------------------------------------------


def formula_of(asked: Asked, runs: Sequence[Run]) -> dict[int | None, Exchanged]:
    """What is exchanged in each kind of run; grids that cannot be cut as asked for are found here."""
    from halocline.run.domain.execution import chosen_devices

    found: dict[Any, Exchanged] = {}
    on_cpu = chosen_devices(asked.command.device).interface == "cpu"
    for run in runs:
        key = (run.command.order, run.command.dim, run.command.settings)
        if key not in found:
            own = replace(asked, command=run.command)
            found[key] = exchanged_by(own.ready(run.at if isinstance(run.at, int) else run.n))
        if on_cpu:
            found[key].check(run.shape, run.ranks, run.command.decomposition)
    made: dict[int | None, Exchanged] = {}
    for (order, *_), each in found.items():
        made.setdefault(order, each)
    if asked.is_file and runs:
        made[asked.problems[0][1].order] = made[None]  # its record says which order it has
    return made


def outcome(measurement: Measurement) -> str:
    """The result of a run in a few words."""
    if is_solve(measurement):
        return f"{measurement['iterations']:,} iterations, {duration(measurement['seconds'])}"
    if measurement["ns_per_cell_step"] is None:
        return duration(measurement["seconds"])
    return f"{q.nanoseconds(q.ns(measurement))} ns a cell and step"


def carry_out(
    runs: Sequence[Run],
    repeat: int,
    note: Callable[[str], None],
    *,
    study: str,
    says: Callable[[Measurement], str] = outcome,
) -> list[Measurement]:
    """All measurements; `note` takes lines of text before and after each."""
    found = []
    for number, run in enumerate(runs, 1):
        note(f"[{number}/{len(runs)}] {run.words}")
        made = commands.measure(
            run.command, run.at, ranks=run.ranks, threads=run.threads, repeat=repeat, extra=run.extra
        )
        found.append({"study": study, **made, "n": run.n, **run.facts})
        note(f"      {says(found[-1])}")
    return found


# -- the report ----------------------------------------------------------------------------------------------


def theory_of(exchanged: Mapping[int | None, Exchanged], found: Sequence[Measurement]) -> Theory:
    """The closed formula with the constants that were measured."""
    return Theory.of(exchanged, [m for m in found if m["only"] == "exchange"])


def _automatic_values(found: Sequence[Measurement]) -> list[str]:
    """Return sentences on the automatic parameters that all runs of a problem share."""
    sentences = (
        f"{m['case']}: {name} = {value:g} in all runs, as the case chooses for the largest grid, "
        f"{' x '.join(map(str, m['automatic_for']))}."
        for m in found
        for name, value in m.get("automatic", {}).items()
    )
    return list(dict.fromkeys(sentences))


def reported(study: Study, found: Sequence[Measurement], theory: Theory | None) -> Report:
    """What a study shows of its measurements."""
    group = Group(found, theory)
    made = report(study.contents, group) if study.report is None else study.report(group)
    facts = dict(made.facts)
    if theory is not None and study.formula:
        facts["theory"] = {"per_byte": theory.per_byte, "measured_on": theory.measured_on}
        facts["theory"]["exchanged"] = [[order, asdict(each)] for order, each in theory.exchanged.items()]
    one = found[0]
    steps = None if is_solve(one) else counted(one["steps"], "step")
    what = made.what or joined(one["scheme"] or one.get("method"), steps)
    return replace(
        made,
        said=[*_automatic_values(found), *made.said],
        facts=facts,
        what=what,
        footer=made.footer or (solves.CLOCK if is_solve(one) else study.footer),
    )
