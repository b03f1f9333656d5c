"""Convergence study: finer grids compared with exact solutions, published results, or each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from halocline.errors import InputError
from halocline.problems.files import is_file
from halocline.study import differences
from halocline.study.measurement import Measurement, is_solve
from halocline.study.reporting.report import Group, Report
from halocline.study.richardson import LEAST_GRIDS
from halocline.study.study import Asked, Run, Study


class Convergence(Study):
    """Study of runs to the end of a problem, on successively finer grids."""

    pictures = ("convergence.png",)

    def runs(self, asked: Asked) -> list[Run]:
        """Return a run for each grid of a solve, of a file, or of each line of a problem."""
        if asked.is_linear:
            return _of_solves(asked)
        names = asked.ready().known
        if asked.has_settings and (names.exact or names.error or names.extrapolated):
            return _of_lines(asked)
        if not is_file(asked.command.name):
            raise InputError(
                f"case {asked.command.name} has no exact solution to compare with, nor numbers of a steady "
                f"state to extrapolate; cases that have one or the other: {', '.join(_converging())}"
            )
        return _of_file(asked)

    def says(self, measurement: Measurement) -> str:
        if is_solve(measurement):
            return super().says(measurement)
        if "extrapolated" in measurement:
            from halocline.study.reporting import extrapolation

            return extrapolation.in_words(extrapolation.numbers(measurement))
        return "done" if measurement["error"] is None else f"error {measurement['error']:.4e}"

    def finish(self, runs: Sequence[Run], measurements: list[Measurement]) -> list[Measurement]:
        """Return the measurements with differences between grids, or with numbers of a steady state."""
        from halocline.study.reporting import extrapolation

        if "--state" in runs[0].extra:
            _check_times(measurements)
            if all(m["error"] is not None for m in measurements):
                return [{**m, "error_is": "greatest error"} for m in measurements]
            states = [differences.state(Path(run.extra["--state"])) for run in runs]
            pairs = zip(measurements, differences.differences(states), strict=True)
            return [{**m, "error": error, "error_is": differences.NAME} for m, error in pairs]
        if "extrapolated" in measurements[0]:
            return [{**m, **extrapolation.numbers(m)} for m in measurements]
        return measurements

    def report(self, group: Group) -> Report:
        """Return the report of solves with published results, of steady states, or of errors."""
        from halocline.study.reporting import errors, extrapolation, solves

        members, first = group.members, group.first
        if is_solve(first):
            return Report(
                [solves.table(members)],
                solves.verdicts(members),
                lambda: {"convergence.png": solves.plot(members)},
                what=f"{first['method']} to {first['rtol']:g}",
                footer=solves.CLOCK,
            )
        if "extrapolated" in first:
            limits = extrapolation.limits(members)
            return Report(
                extrapolation.tables(members, limits),
                extrapolation.verdicts(members, limits),
                lambda: {"convergence.png": extrapolation.plot(members, limits)} if limits else {},
                {"extrapolated": limits},
                "Numbers of the steady state on finer and finer grids",
                "Numbers are those at the end of each run, which is its steady state.",
            )
        name = first["error_is"]
        between = name == differences.NAME
        compared = members[:-1] if between else members  # the finest grid has no finer one
        footer = "Errors are those at the end of each run."
        return Report(
            errors.tables(members, name),
            errors.verdicts(compared),
            lambda: {"convergence.png": errors.plot(compared, name)} if compared else {},
            {"orders": errors.orders(compared)},
            f"{'Differences between' if between else 'Errors on'} finer and finer grids",
            "Differences are of the fields at the end." if between else footer,
        )


def _of_solves(asked: Asked) -> list[Run]:
    from halocline.run.domain.execution import chosen_devices

    (layout,) = asked.layouts
    sizes = asked.sizes or (256, 512, 1024)
    shapes = [asked.ready(n).shape for n in sizes]
    runs = [Run(asked.command, shape[0], shape, layout, shape) for shape in shapes]
    if asked.drawn is not None:
        extra = {"--pictures": str(asked.drawn)}
        # a trace of devices prevents graph replay
        if chosen_devices(asked.command.device).interface == "cpu":
            extra["--trace"] = str(asked.scratch / "trace.json")
        runs[-1] = replace(runs[-1], extra=extra)
    return runs


def _of_file(asked: Asked) -> list[Run]:
    first: Any = asked.ready()
    sizes = asked.sizes
    if sizes is None:
        base = asked.size_of_file(first)
        sizes = (base // 4, base // 2, base)
    if "exact" not in first.script.defined:
        _check_three(sizes)
    (layout,) = asked.layouts
    facts = {"panel": first.name, "line": "", "expected_order": first.order}
    return [
        Run(
            asked.command,
            n,
            asked.ready(n).shape,
            layout,
            n,
            facts,
            extra={"--state": str(asked.scratch / f"{number}.npz")},
        )
        for number, n in enumerate(sizes)
    ]


def _of_lines(asked: Asked) -> list[Run]:
    from halocline.study.reporting import errors, extrapolation

    command, case = asked.command, asked.ready()
    parameters = {name: case.declared[name].parsed(name, text) for name, text in case.replacements.items()}
    (layout,) = asked.layouts
    runs = []
    for label, family in errors.lines(case, parameters, command.dim, asked.sizes):
        settings = [f"{name}={value}" for name, value in family.lines[0].items() if name not in parameters]
        line_command = replace(command.but(dim=family.dim), settings=(*command.settings, *settings))
        if case.known.is_extrapolated:
            _check_three(family.sizes)
        for n in family.sizes:
            errors.check_proportion(case, family.dim, n)
            problem = replace(asked, command=line_command).ready(n)
            is_steady, error_name = case.known.is_extrapolated, case.known.error_name
            expected = family.order if is_steady or case.known.families else case.order
            facts = {
                **{"panel": family.title, "line": label, "expected_order": expected},
                **(extrapolation.facts(problem) if is_steady else {"error_is": error_name}),
                "base": {"settings": " ".join(command.settings)},
            }
            runs.append(Run(line_command, n, problem.shape, layout, problem.shape, facts))
    return runs


def _converging() -> list[str]:
    """Return the cases that have an exact solution, or numbers to extrapolate."""
    from halocline.problems.files import case_names, path_of
    from halocline.run.simulation.script import Script

    names = {"exact", "error", "extrapolated"}
    return [name for name in case_names() if names & Script(path_of(name)).defined]


def _check_three(sizes: Sequence[int]) -> None:
    """Raise InputError if the number of grids is too small for an order."""
    if len(sizes) < LEAST_GRIDS:
        raise InputError(
            f"--n {','.join(map(str, sizes))}: expected {LEAST_GRIDS} numbers or more: without an exact "
            f"solution an order takes {LEAST_GRIDS} grids"
        )


def _check_times(measurements: Sequence[Measurement]) -> None:
    """Raise InputError if runs end at different times, because their fields are not comparable."""
    times = [m["time"] for m in measurements]
    if any(time is not None and abs(time - times[0]) > 1e-9 * abs(times[0]) for time in times):
        ends = ", ".join(f"t = {m['time']:g} with n = {m['n']}" for m in measurements)
        raise InputError(
            f"{measurements[0]['case']} ends at {ends}: let it run to a time, sim.run(until=...), so that "
            "its grids compare"
        )


STUDY = Convergence(
    "convergence",
    title="Convergence",
    about="Measure the convergence of errors or steady-state numbers on refined grids.",
    help="Each run continues to the end of the problem. Cases with an exact solution are, among others, "
    "[bold]poisson[/] (Table 3.1 of UMBC HPCF-2018-10), [bold]linear-wave[/] (Fig. 13 of Mendygral et al. "
    "2017) and [bold]cp-alfven[/] (left panel of Fig. 23 there). --dim and --set select the matching lines "
    "of these figures.\n\n[bold]cavity[/] and [bold]cavity-2d[/] have no exact solution, but a steady state. "
    "With three or more grids, the study reports the order of each number, its value extrapolated to spacing "
    "0, and the grid-convergence index (Roache 1994; Celik et al. 2008).\n\nA file that calls hc.cells and "
    "defines error, exact or extrapolated is studied as a case. For any other file, each grid is compared "
    "with its function exact(t), or with the next finer grid.",
    examples=(
        "halocline study convergence poisson --n 256,512,1024",
        "halocline study convergence linear-wave --n 64,128,256 --dim 1",
        "halocline study convergence cavity-2d --n 31,63,127",
    ),
    to_the_end=True,
    compares=("axes", "panel", "line", "expected_order", "steps"),
)
