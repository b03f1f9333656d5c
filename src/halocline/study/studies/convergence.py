"""Convergence: finer and finer grids, compared with what is known exactly, a paper, or each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halocline.convergence import differences
from halocline.errors import InputError
from halocline.problems.names import Names
from halocline.study.measurement import Measurement, is_solve
from halocline.study.reporting.report import Group, Report
from halocline.study.study import Asked, Run, Study

LEAST_GRIDS = 3  # for an order without an exact solution


def plan(asked: Asked) -> list[Run]:
    """A run for each grid: of a solve, of a file, or of each line of the families of a case."""
    if asked.is_linear:
        return _solves(asked)
    return _of_file(asked) if asked.is_file else _of_case(asked)


def _solves(asked: Asked) -> list[Run]:
    from halocline.run.domain.execution import chosen_devices

    (ranks,), (threads,) = asked.ranks, asked.threads
    sizes = asked.sizes or (256, 512, 1024)
    shapes = [asked.ready(n).shape for n in sizes]
    runs = [Run(asked.command, shape[0], shape, ranks, threads, shape) for shape in shapes]
    if asked.drawn is not None:
        extra = {"--pictures": str(asked.drawn)}
        if chosen_devices(asked.command.device).interface == "cpu":  # nothing is traced of devices
            extra["--trace"] = str(asked.scratch / "trace.json")
        runs[-1] = replace(runs[-1], extra=extra)
    return runs


def _of_file(asked: Asked) -> list[Run]:
    from halocline.study.engine import own_size

    first: Any = asked.ready(None)
    sizes = asked.sizes
    if sizes is None:
        base = own_size(asked, first)
        sizes = (base // 4, base // 2, base)
    if "exact" not in first.script.functions:
        _check_three(sizes)
    (ranks,), (threads,) = asked.ranks, asked.threads
    facts = {"panel": first.name, "line": "", "expected_order": first.order}
    return [
        Run(
            *(asked.command, n, asked.ready(n).shape, ranks, threads, n, facts),
            extra={"--state": str(asked.scratch / f"{number}.npz")},
        )
        for number, n in enumerate(sizes)
    ]


def _of_case(asked: Asked) -> list[Run]:
    from halocline.problems.problem import problem_of
    from halocline.study.reporting import errors

    command, known = asked.command, _converging()
    own = problem_of(command.name, None, command.settings)
    if command.name not in known:
        raise InputError(
            f"case {command.name} has no exact solution to compare with, nor numbers of a steady state to "
            f"extrapolate; cases that have one or the other: {', '.join(known)}"
        )
    given = {name: own.declared[name].parsed(name, text) for name, text in own.given.items()}
    (ranks,), (threads,) = asked.ranks, asked.threads
    runs = []
    for line in errors.lines(own, given, command.dim, asked.sizes):
        each = replace(
            asked, command=replace(command.but(dim=line.dim), settings=(*command.settings, *line.settings))
        )
        if own.known.error is None:
            _check_three(line.sizes)
        for n in line.sizes:
            errors.check_proportion(own, line.dim, n)
            ready = each.ready(n)
            # along the map of a stretched axis, which is what differences are expanded in
            spacing = {} if own.known.error else {"spacing": ready.grid.even_spacing(0)}
            base = {"settings": " ".join(command.settings)}
            facts = {**line.facts, **spacing, "base": base}
            runs.append(Run(each.command, n, ready.shape, ranks, threads, ready.shape, facts))
    return runs


def _converging() -> list[str]:
    """Return the cases that have an exact solution, or numbers to extrapolate."""
    from halocline.problems.files import case_names, path_of
    from halocline.run.simulation.script import Script

    names = {"exact", "error", "extrapolated"}
    return [name for name in case_names() if names & Script(path_of(name)).defined]


def _names(case: str) -> Names | None:
    """Return the names that the file of a case defines; None for another problem."""
    from halocline.problems.files import case_names
    from halocline.problems.problem import Problem

    return Problem(case).known if case in case_names() else None


def _check_three(sizes: Sequence[int]) -> None:
    """Raise InputError where there are too few grids for an order."""
    if len(sizes) < LEAST_GRIDS:
        raise InputError(
            f"--n {','.join(map(str, sizes))}: expected {LEAST_GRIDS} numbers or more: without an exact "
            f"solution an order takes {LEAST_GRIDS} grids"
        )


def _check_times(measurements: Sequence[Measurement]) -> None:
    """Raise InputError where runs end at different times: their fields do not compare."""
    times = [m["time"] for m in measurements]
    if any(time is not None and abs(time - times[0]) > 1e-9 * abs(times[0]) for time in times):
        ends = ", ".join(f"t = {m['time']:g} with n = {m['n']}" for m in measurements)
        raise InputError(
            f"{measurements[0]['case']} ends at {ends}: let it run to a time, sim.run(until=...), so that "
            "its grids compare"
        )


def finish(runs: Sequence[Run], found: list[Measurement]) -> list[Measurement]:
    """With the differences of grids that have no exact solution, and the numbers of a steady state."""
    from halocline.study.reporting import extrapolation

    one = found[0]
    if "--state" in runs[0].extra:
        _check_times(found)
        if any(m["error"] is None for m in found):
            states = [differences.state(Path(run.extra["--state"])) for run in runs]
            compared = differences.differences(states)
            return [
                {**m, "error": each, "error_is": differences.NAME}
                for m, each in zip(found, compared, strict=True)
            ]
        return [{**m, "error_is": "greatest error"} for m in found]
    names = _names(one["case"])
    if names is not None and names.is_extrapolated:
        return [{**m, **extrapolation.numbers(names, m)} for m in found]
    return found


def says(measurement: Measurement) -> str:
    """The result of a run in a few words."""
    from halocline.study.engine import outcome

    if is_solve(measurement):
        return outcome(measurement)
    if "spacing" in measurement:
        from halocline.study.reporting import extrapolation

        names = _names(measurement["case"])
        assert names is not None
        return extrapolation.in_words(extrapolation.numbers(names, measurement))
    return "done" if measurement["error"] is None else f"error {measurement['error']:.4e}"


def report(group: Group) -> Report:
    """Of solves beside the published ones, of steady states extrapolated, or of errors."""
    from halocline.study.reporting import errors, extrapolation, solves

    found = group.found
    if is_solve(found[0]):
        return Report(
            [solves.table(found)],
            solves.verdicts(found),
            lambda: {"convergence.png": solves.plot(found)},
            what=f"{found[0]['method']} to {found[0]['rtol']:g}",
            footer=solves.CLOCK,
        )
    names = _names(found[0]["case"])
    if names is not None and names.extrapolated is not None and names.is_extrapolated:
        what, limits = names.extrapolated, extrapolation.limits(found, names.extrapolated)
        return Report(
            extrapolation.tables(found, limits, what),
            extrapolation.verdicts(found, limits),
            lambda: {"convergence.png": extrapolation.plot(found, limits)} if limits else {},
            {"extrapolated": limits},
            "Numbers of the steady state on finer and finer grids",
            "Numbers are those at the end of each run, which is its steady state.",
        )
    name = found[0].get("error_is") or (errors.ERROR if names is None else names.error_name)
    itself = name == differences.NAME
    compared = found[:-1] if itself else found  # the finest grid has nothing finer
    kind = "Differences between" if itself else "Errors on"
    of_case = "Errors are those at the end of each run, as its case defines them."
    of_file = (
        "Differences are of the fields at the end." if itself else "Errors are those at the end of each run."
    )
    return Report(
        errors.tables(found, name),
        errors.verdicts(compared),
        lambda: {"convergence.png": errors.plot(compared, name)} if compared else {},
        {"orders": errors.orders(compared)},
        f"{kind} finer and finer grids",
        of_file if "error_is" in found[0] else of_case,
    )


STUDY = Study(
    "convergence",
    title="Convergence",
    about="Finer and finer grids: how fast the error falls, or what numbers of a steady state converge to.",
    help="Each run goes to the end of the problem. Cases that have an exact solution are, among others, "
    "[bold]poisson[/], in the form of Table 3.1 of UMBC HPCF-2018-10, [bold]linear-wave[/], which draws "
    "Fig. 13 of Mendygral et al. 2017, and [bold]cp-alfven[/], the left panel of Fig. 23 there; --dim and "
    "--set leave only the lines that match.\n\n[bold]cavity[/] and [bold]cavity-2d[/] have none, but are "
    "steady in the end: three grids or more, of any spacings, give the order of each of their numbers, what "
    "it leads to at spacing 0, and the grid-convergence index (Roache 1994; Celik et al. 2008).\n\nGrids of "
    "a file are compared with its function exact(t), or each with the next finer one.",
    examples=(
        "halocline study convergence poisson --n 256,512,1024",
        "halocline study convergence linear-wave --n 64,128,256 --dim 1",
        "halocline study convergence cavity-2d --n 31,63,127",
    ),
    plan=plan,
    finish=finish,
    report=report,
    says=says,
    to_the_end=True,
    compares=("axes", "panel", "line", "expected_order", "steps"),
    files=("convergence.png",),
)
