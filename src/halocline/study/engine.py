"""Planning, measurements and report of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from math import prod
from typing import Any

from halocline.plan.layout import lay_out
from halocline.study.measurement import Measurement, is_solve
from halocline.study.measuring import command as commands
from halocline.study.reporting import solves
from halocline.study.reporting.report import Group, Report
from halocline.study.reporting.theory import StepExchanges, Theory, step_exchanges
from halocline.study.study import Run, Study, StudyRequest
from halocline.words import counted, joined

# -- runs ----------------------------------------------------------------------------------------------------


def plan_runs(request: StudyRequest) -> list[Run]:
    """Return the runs of a study. All runs of a problem have the same automatic parameters.

    The case chooses automatic parameters for the largest grid of the problem. Runs with different settings or
    different numbers of axes count as different problems.
    """
    runs = request.study.runs(request)
    for run in runs:
        run.command.check()
    if request.command.subcommand != "run" or not request.has_settings or request.is_linear:
        return runs

    def problem(run: Run) -> Any:
        return run.command.settings, len(run.shape)

    largest: dict[Any, Run] = {}
    for run in sorted(runs, key=lambda run: -prod(run.shape)):
        largest.setdefault(problem(run), run)
    automatic = {
        key: replace(request, command=run.command).build_problem(*run.shape).known.automatic
        for key, run in largest.items()
    }
    return [_with_automatic(run, automatic[problem(run)], largest[problem(run)].shape) for run in runs]


def _with_automatic(run: Run, values: Mapping[str, float], shape: tuple[int, ...]) -> Run:
    """Return a run with the automatic parameters that the case chose for a grid of the given shape."""
    if not values:
        return run
    settings = (*run.command.settings, *(f"{name}={value:g}" for name, value in values.items()))
    facts = {**run.facts, "automatic": dict(values), "automatic_for": shape}
    return replace(run, command=replace(run.command, settings=settings), facts=facts)


# -- measurements --------------------------------------------------------------------------------------------


def exchanges_by_order(request: StudyRequest, runs: Sequence[Run]) -> dict[int | None, StepExchanges]:
    """Return the exchanges of a step for each order of differences.

    Raises
    ------
    InputError
        A grid cannot be decomposed for the ranks of a run.
    """
    from halocline.run.domain.execution import chosen_devices

    exchanges: dict[Any, StepExchanges] = {}
    by_order: dict[int | None, StepExchanges] = {}
    on_cpu = chosen_devices(request.command.device).interface == "cpu"
    for run in runs:
        key = (run.command.order, run.command.dim, run.command.settings)
        if key not in exchanges:
            problem_on_grid = replace(request, command=run.command).build_problem(
                run.size_option if isinstance(run.size_option, int) else run.n
            )
            exchanges[key] = step_exchanges(problem_on_grid)
            by_order.setdefault(run.command.order, exchanges[key])
        if on_cpu:
            lay_out(
                run.shape,
                run.layout.ranks,
                ranks_per_node=run.layout.per_node,
                strategy=run.command.decomposition,
                **vars(exchanges[key]),
            )
    if not request.has_settings and runs:
        # The command of a file without settings has no order, but the measurements contain the order of the
        # problem.
        by_order[request.problems[0][1].order] = by_order[None]
    return by_order


def measure_runs(
    study: Study,
    runs: Sequence[Run],
    repeat: int,
    note: Callable[[str], None],
    keep: Callable[[list[Measurement]], None] = lambda measurements: None,
) -> list[Measurement]:
    """Measure the runs of a study one by one, and return all measurements.

    All runs are adapted to the devices of this machine before the first run begins.

    Parameters
    ----------
    study : Study
    runs : sequence of Run
    repeat : int
        Number of repetitions of each run.
    note : callable
        Function that receives a line of text before and after each run.
    keep : callable
        Function that is called after each run, with all measurements so far.
    """
    runs = [run.on_this_machine for run in runs]
    measurements: list[Measurement] = []
    for number, run in enumerate(runs, 1):
        note(f"[{number}/{len(runs)}] {run.description}")
        record = commands.measure(run.command, run.size_option, run.layout, repeat=repeat, extra=run.extra)
        measurements.append({"study": study.name, **record, "n": run.n, **run.facts})
        note(f"      {study.result_text(measurements[-1])}")
        keep(measurements)
    return study.add_derived_results(runs, measurements)


# -- the report ----------------------------------------------------------------------------------------------


def _automatic_values(measurements: Sequence[Measurement]) -> list[str]:
    """Return sentences on the automatic parameters that are the same in all runs of a problem."""
    sentences = (
        f"{m['case']}: {name} = {value:g} in all runs, the automatic value for the largest grid, "
        f"{' x '.join(map(str, m['automatic_for']))}."
        for m in measurements
        for name, value in m.get("automatic", {}).items()
    )
    return list(dict.fromkeys(sentences))


def build_report(study: Study, measurements: Sequence[Measurement], theory: Theory | None) -> Report:
    """Return the report of a study. Without `theory`, it contains no results of the closed formula."""
    report, first = study.report(Group(measurements, theory)), measurements[0]
    facts = dict(report.facts)
    if theory is not None and study.has_formula:
        facts["theory"] = {"per_byte": theory.per_byte, "measured_on": theory.measured_on}
        facts["theory"]["exchanged"] = [
            [order, asdict(exchanged)] for order, exchanged in theory.exchanges.items()
        ]
    steps = None if is_solve(first) else counted(first["steps"], "step")
    return replace(
        report,
        sentences=[*_automatic_values(measurements), *report.sentences],
        facts=facts,
        subject=report.subject or joined(first["scheme"] or first.get("method"), steps),
        footer=report.footer or (solves.FOOTER if is_solve(first) else study.footer),
    )
