"""Convergence study: errors of solutions on successively finer grids, or steady-state quantities."""

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
from halocline.study.richardson import MIN_GRIDS
from halocline.study.study import Run, Study, StudyRequest


class Convergence(Study):
    """Study that runs a problem to its end on successively finer grids."""

    pictures = ("convergence.png",)

    def runs(self, request: StudyRequest) -> list[Run]:
        """Return one run for each grid of each line in the convergence plot.

        A case may define several lines, each with its own parameters.
        """
        if request.is_linear:
            return _solve_runs(request)
        names = request.build_problem().known
        if request.has_settings and (names.exact or names.error or names.extrapolated):
            return _line_runs(request)
        if not is_file(request.command.name):
            raise InputError(
                f"case {request.command.name} has neither an exact solution nor steady-state quantities to "
                f"extrapolate. Cases that have one of them are {', '.join(_case_names_with_errors())}."
            )
        return _file_runs(request)

    def result_text(self, measurement: Measurement) -> str:
        if is_solve(measurement):
            return super().result_text(measurement)
        if "extrapolated" in measurement:
            from halocline.study.reporting import extrapolation

            return extrapolation.numbers_text(extrapolation.numbers(measurement))
        return "done" if measurement["error"] is None else f"error {measurement['error']:.4e}"

    def add_derived_results(self, runs: Sequence[Run], measurements: list[Measurement]) -> list[Measurement]:
        """Return the measurements, extended by differences between grids or steady-state quantities."""
        from halocline.study.reporting import extrapolation

        if "--state" in runs[0].extra:
            _check_times(measurements)
            if all(m["error"] is not None for m in measurements):
                return [{**m, "error_is": "maximum error"} for m in measurements]
            states = [differences.state(Path(run.extra["--state"])) for run in runs]
            pairs = zip(measurements, differences.differences(states), strict=True)
            return [{**m, "error": error, "error_is": differences.NAME} for m, error in pairs]
        if "extrapolated" in measurements[0]:
            return [{**m, **extrapolation.numbers(m)} for m in measurements]
        return measurements

    def report(self, group: Group) -> Report:
        """Return the report of solves, of steady states, or of errors."""
        from halocline.study.reporting import errors, extrapolation, solves

        members, first = group.members, group.first
        if is_solve(first):
            return Report(
                [solves.table(members)],
                solves.verdicts(members),
                lambda: {"convergence.png": solves.plot(members)},
                subject=f"{first['method']} to {first['rtol']:g}",
                footer=solves.FOOTER,
            )
        if "extrapolated" in first:
            limits = extrapolation.limits(members)
            return Report(
                extrapolation.tables(members, limits),
                extrapolation.verdicts(members, limits),
                lambda: {"convergence.png": extrapolation.plot(members, limits)} if limits else {},
                {"extrapolated": limits},
                "Steady-state quantities on successively finer grids",
                "The quantities are those of the steady state at the end of each run.",
            )
        name = first["error_is"]
        is_difference = name == differences.NAME
        compared = members[:-1] if is_difference else members  # the finest grid has no next finer grid
        footer = "Errors are those at the end of each run."
        return Report(
            errors.tables(members, name),
            errors.verdicts(compared),
            lambda: {"convergence.png": errors.plot(compared, name)} if compared else {},
            {"orders": errors.orders(compared)},
            f"{'Differences between' if is_difference else 'Errors on'} successively finer grids",
            "Differences are those of the fields at the end of each run." if is_difference else footer,
        )


def _solve_runs(request: StudyRequest) -> list[Run]:
    from halocline.run.domain.execution import chosen_devices

    (layout,) = request.layouts
    sizes = request.sizes or (256, 512, 1024)
    shapes = [request.build_problem(n).shape for n in sizes]
    runs = [Run(request.command, shape[0], shape, layout, shape) for shape in shapes]
    if request.picture_folder is not None:
        extra = {"--pictures": str(request.picture_folder)}
        # on devices, a trace would prevent the replay of graphs
        if chosen_devices(request.command.device).interface == "cpu":
            extra["--trace"] = str(request.scratch / "trace.json")
        runs[-1] = replace(runs[-1], extra=extra)
    return runs


def _file_runs(request: StudyRequest) -> list[Run]:
    first: Any = request.build_problem()
    sizes = request.sizes
    if sizes is None:
        base = request.size_of_file(first)
        sizes = (base // 4, base // 2, base)
    if "exact" not in first.script.defined:
        _check_grid_count(sizes)
    (layout,) = request.layouts
    facts = {"panel": first.name, "line": "", "expected_order": first.order}
    return [
        Run(
            request.command,
            n,
            request.build_problem(n).shape,
            layout,
            n,
            facts,
            extra={"--state": str(request.scratch / f"{number}.npz")},
        )
        for number, n in enumerate(sizes)
    ]


def _line_runs(request: StudyRequest) -> list[Run]:
    from halocline.study.reporting import errors, extrapolation

    command, case = request.command, request.build_problem()
    parameters = {name: case.declared[name].parsed(name, text) for name, text in case.replacements.items()}
    (layout,) = request.layouts
    runs = []
    for label, family in errors.lines(case, parameters, command.dim, request.sizes):
        settings = [f"{name}={value}" for name, value in family.lines[0].items() if name not in parameters]
        line_command = replace(command.with_options(dim=family.dim), settings=(*command.settings, *settings))
        if case.known.is_extrapolated:
            _check_grid_count(family.sizes)
        for n in family.sizes:
            errors.check_proportion(case, family.dim, n)
            problem = replace(request, command=line_command).build_problem(n)
            is_steady, error_name = case.known.is_extrapolated, case.known.error_name
            expected = family.order if is_steady or case.known.families else case.order
            facts = {
                **{"panel": family.title, "line": label, "expected_order": expected},
                **(extrapolation.facts(problem) if is_steady else {"error_is": error_name}),
                "base": {"settings": " ".join(command.settings)},
            }
            runs.append(Run(line_command, n, problem.shape, layout, problem.shape, facts))
    return runs


def _case_names_with_errors() -> list[str]:
    """Return the names of the cases that define `exact`, `error` or `extrapolated`."""
    from halocline.problems.files import case_names, path_of
    from halocline.run.simulation.script import Script

    names = {"exact", "error", "extrapolated"}
    return [name for name in case_names() if names & Script(path_of(name)).defined]


def _check_grid_count(sizes: Sequence[int]) -> None:
    """Raise InputError if the number of grids is too small for an order."""
    if len(sizes) < MIN_GRIDS:
        raise InputError(
            f"--n {','.join(map(str, sizes))}: expected at least {MIN_GRIDS} numbers. Without an exact "
            f"solution, the order of convergence is computed from at least {MIN_GRIDS} grids. "
            "Add sizes to --n."
        )


def _check_times(measurements: Sequence[Measurement]) -> None:
    """Raise InputError if runs end at different times. Their fields are then not comparable."""
    times = [m["time"] for m in measurements]
    if any(time is not None and abs(time - times[0]) > 1e-9 * abs(times[0]) for time in times):
        ends = ", ".join(f"t = {m['time']:g} with n = {m['n']}" for m in measurements)
        raise InputError(
            f"{measurements[0]['case']} ends at different times: {ends}. Use sim.run(until=...), so that all "
            "runs end at the same time."
        )


STUDY = Convergence(
    "convergence",
    title="Convergence",
    about="Measure the convergence of errors or steady-state numbers on refined grids.",
    help="Each run continues to the end of the problem. Cases with an exact solution are, for example, "
    "[bold]poisson[/] (Table 3.1 of UMBC HPCF-2018-10), [bold]linear-wave[/] (Fig. 13 of Mendygral et al. "
    "2017) and [bold]cp-alfven[/] (Fig. 23, left, of Mendygral et al. 2017). --dim and --set select the "
    "lines of these figures.\n\n[bold]cavity[/] and [bold]cavity-2d[/] have no exact solution, but a steady "
    "state. With three or more grids, the study reports for each result the order of convergence, the value "
    "extrapolated to spacing 0, and the grid-convergence index (Roache 1994; Celik et al. 2008).\n\nA file "
    "is treated like a case if it calls `hc.cells` and defines `error`, `exact` or `extrapolated`. For any "
    "other file, the result on each grid is compared with the function exact(t) of the file. If the file has "
    "no such function, the result is compared with the result on the next finer grid.",
    examples=(
        "halocline study convergence poisson --n 256,512,1024",
        "halocline study convergence linear-wave --n 64,128,256 --dim 1",
        "halocline study convergence cavity-2d --n 31,63,127",
    ),
    runs_to_end=True,
    compared_conditions=("axes", "panel", "line", "expected_order", "steps"),
)
