"""`halocline study strong CASE`, `halocline study weak CASE` and `halocline study convergence CASE`."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from halocline.cli.options import whole_numbers
from halocline.cli.output import check_files, note, say, write, write_json, written
from halocline.cli.problem import names_file, problem_of
from halocline.cli.run_case import parameters_of
from halocline.cli.studies import alone, command, layouts, lead, prepare, threads_each
from halocline.errors import InputError
from halocline.physics.cases import case_named, cases_that_converge
from halocline.ranges import ORDER, POINTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.physics.case import Case
    from halocline.study.measure import FileRun, Measurement, Steps
    from halocline.study.problem import FileProblem
    from halocline.study.run_case import CaseRun
    from halocline.study.table import Table
    from halocline.study.theory import Theory, Travels

WARM_UP = 2  # steps, where there are more
N = 64  # cells along the first axis, where none are given
CLOCK = (
    "Time is that of the loop over steps, from a barrier before to one after, without those at the start "
    "that warm up; the median of the runs."
)


class Run(NamedTuple):
    """A run of a study: what runs, N, cells along each axis, ranks, threads, and what --n takes."""

    case: Any
    n: int
    shape: tuple[int, ...]
    ranks: int
    threads: int
    at: int | tuple[int, ...] | None


def measured_as(
    name: str, settings: Sequence[str] | None, device: str | None, **options: Any
) -> Steps | FileRun:
    """What a study measures: steps of a case, or a file as it is."""
    from halocline.study.measure import FileRun, Steps

    if not names_file(name):
        return Steps(name, settings=tuple(settings or ()), device=device, **options)
    made = FileRun(name, tuple(settings or ()), device)
    same = {"decomposition": "optimal"}  # as it is where nothing was given
    _refuse(made, {f"--{o}": value for o, value in options.items() if value != same.get(o)})
    return made


def strong(
    case: Steps | FileRun,
    *,
    n: str | None,
    ranks: str,
    threads: str,
    orders: str | None,
    parts: bool,
    warm_up: int | None,
    repeat: int,
    json: str | None,
    csv: Path | None,
    html: Path | None,
    pictures: Path | None,
) -> None:
    """Measure each size on every number of ranks and threads, and print the tables."""
    from halocline.study import case_orders, case_parts, case_strong
    from halocline.study.case_parts import PARTS
    from halocline.study.case_runs import same_bits, wholes
    from halocline.study.measure import FileRun
    from halocline.study.theory import Theory

    alone()
    sizes = _sizes(case, n, ("poisson",))
    if isinstance(case, FileRun):
        _refuse(case, {"--orders": orders, "--parts": parts or None, "--warm-up": warm_up})
    else:
        case = _chosen(_warmed(case, warm_up), sizes[0])
    there = layouts(ranks, threads, case.device)
    several = [case.order]
    if orders:
        first = () if case.order is None else (case.order,)
        several = sorted({*first, *whole_numbers(orders, "--orders", ORDER)})
    ready = {order: [_ready(_of_order(case, order), each) for each in sizes] for order in several}
    names = ["strong.png", *(["parts.png"] if parts else []), *(["orders.png"] if orders else [])]
    _check(json, csv, html, pictures, names)
    variants: list[Steps | FileRun] = [case]
    if not isinstance(case, FileRun):
        kinds = list(PARTS.values()) if parts else [(None, "read")]
        variants = [replace(case, only=only, halo=halo) for only, halo in kinds]
        variants += [replace(case, order=order) for order in several if order != case.order]
    runs = [
        Run(own, made.shape[0], made.shape, r, t, each if isinstance(own, FileRun) else made.shape)
        for each, made in zip(sizes, ready[case.order], strict=True)
        for r, t in there
        for own in variants
    ]
    if not parts:
        runs += _exchange(case, runs)
    travelling = _travels({order: made[0] for order, made in ready.items()}, runs)
    own_order = case.order
    if isinstance(case, FileRun):
        own_order = ready[case.order][0].order
        travelling[own_order] = travelling[case.order]
    measured = _measure(runs, repeat)
    theory = Theory.of(travelling, [m for m in measured if m["only"] == "exchange"])
    whole, same = wholes(measured), [m for m in measured if m["order"] in (case.order, own_order)]
    found = wholes(same)
    tables = case_strong.tables(found, theory)
    said = [*same_bits(whole), *case_strong.verdicts(found, theory)]
    if parts:
        tables, said = [*tables, *case_parts.tables(same)], [*said, *case_parts.verdicts(same)]
    if orders:
        tables, said = [*tables, *case_orders.tables(whole, theory)], [*said, *case_orders.verdicts(whole)]

    def draw() -> dict[str, Figure]:
        drawn = {"strong.png": case_strong.plot(found, theory)}
        if parts:
            drawn["parts.png"] = case_parts.plot(same)
        if orders:
            drawn["orders.png"] = case_orders.plot(whole)
        energy = case_strong.plot_energy(found)
        return drawn | ({} if energy is None else {"energy.png": energy})

    _leave("Strong scaling", case, measured, _facts(theory), tables, said, draw, json, csv, html, pictures)


def _exchange(case: Steps | FileRun, runs: Sequence[Run]) -> list[Run]:
    """What 1/β is taken from: the exchange alone of the largest grid on the fewest ranks; none on one."""
    from halocline.study.measure import Steps

    between = [run for run in runs if run.ranks > 1]
    if not between or not isinstance(case, Steps):  # of a file whole runs alone are timed
        return []
    one = min(between, key=lambda run: (run.ranks, -run.n, run.threads))
    return [one._replace(case=replace(case, only="exchange"))]


def weak(
    case: Steps | FileRun,
    *,
    n: str | None,
    ranks: str,
    threads: str,
    warm_up: int | None,
    repeat: int,
    json: str | None,
    csv: Path | None,
    html: Path | None,
    pictures: Path | None,
) -> None:
    """Measure as many cells for each rank, and print the tables."""
    from halocline.study import case_weak
    from halocline.study.case_runs import same_bits, wholes
    from halocline.study.measure import FileRun
    from halocline.study.predict import grown
    from halocline.study.problem import RESOLUTION, FileProblem
    from halocline.study.theory import Theory

    alone()
    sizes = _sizes(case, n)
    if isinstance(case, FileRun):
        _refuse(case, {"--warm-up": warm_up})
    else:
        case = _chosen(_warmed(case, warm_up), sizes[0])
    there = layouts(ranks, threads, case.device)
    ready = [_ready(case, each) for each in sizes]
    _check(json, csv, html, pictures, ["weak.png"])
    runs: list[Run] = []
    for own in ready:
        for r, t in there:
            if isinstance(own, FileProblem):
                larger, at = _grown(case, own, r)
                runs.append(Run(case, int(own.values[RESOLUTION]), larger.shape, r, t, at))
            else:
                shape = grown(own.shape, r)
                runs.append(Run(case, own.shape[0], shape, r, t, shape))
    runs += _exchange(case, runs)
    travelling = _travels({case.order: ready[0]}, runs)
    if isinstance(case, FileRun):
        travelling[ready[0].order] = travelling[case.order]
    measured = _measure(runs, repeat)
    theory = Theory.of(travelling, [m for m in measured if m["only"] == "exchange"])
    found = wholes(measured)
    tables, said = case_weak.tables(found, theory), [*same_bits(found), *case_weak.verdicts(found)]

    def draw() -> dict[str, Figure]:
        return {"weak.png": case_weak.plot(found)}

    _leave("Weak scaling", case, measured, _facts(theory), tables, said, draw, json, csv, html, pictures)


def convergence(
    case: Steps | FileRun,
    *,
    n: str | None,
    ranks: int | None,
    threads: int | None,
    json: str | None,
    csv: Path | None,
    html: Path | None,
    pictures: Path | None,
) -> None:
    """Run a case on finer and finer grids, and print how fast its error falls, or what the numbers of its
    steady state converge to."""
    from halocline.study import case_convergence
    from halocline.study.measure import FileRun

    alone()
    if isinstance(case, FileRun):
        _check(json, csv, html, pictures, ["convergence.png"])
        done = _of_file(case, n, ranks or 1, threads_each(case.device, ranks or 1, threads))
        _leave(
            "Convergence", case, done.measured, done.facts, done.tables, done.said, done.draw, json, csv,
            html, pictures, what=done.what, footer=done.footer,
        )  # fmt: skip
        return
    known = ["poisson", *cases_that_converge()]
    own = case_named(case.name, listed=known)
    if own.error is None and own.extrapolated is None:
        raise InputError(
            f"case {case.name} has no exact solution to compare with, nor numbers of a steady state to "
            f"extrapolate; cases that have one or the other: {', '.join(known)}"
        )
    sizes = None if n is None else sorted(whole_numbers(n, "--n", POINTS))
    given = parameters_of(case.settings, case.name, own)
    lines = case_convergence.lines(own, given, case.dim, sizes)
    ranks = ranks or 1
    threads = threads_each(case.device, ranks, threads)
    runs: list[Run] = []
    facts: list[dict[str, Any]] = []
    first: dict[int | None, CaseRun | FileProblem] = {}
    for line in lines:
        each = replace(case, dim=line.dim, settings=(*case.settings, *line.settings))
        if own.error is None:
            _check_three(line.sizes)
        for count in line.sizes:
            _check_proportion(own, line.dim, count)
            ready = _ready(each, count)
            first.setdefault(line.dim, ready)
            runs.append(Run(each, count, ready.shape, ranks, threads, ready.shape))
            # along the map of a stretched axis, which is what differences are expanded in
            spacing = {} if own.error else {"spacing": ready.grid.even_spacing(0)}
            facts.append({**line.facts, **spacing})
    _check(json, csv, html, pictures, ["convergence.png"])
    if ranks > 1:
        _travels(first, runs, lambda each: each.dim)
    study = _errors if own.error else _limits
    done = study(own, runs, facts)
    _leave(
        "Convergence", case, done.measured, done.facts, done.tables, done.said, done.draw, json, csv, html,
        pictures, what=done.what, footer=done.footer,
    )  # fmt: skip


@dataclass(frozen=True)
class _Study:
    """What a convergence study found, and how it is shown."""

    measured: Sequence[Measurement]
    facts: Mapping[str, Any]
    tables: Sequence[Table]
    said: Sequence[str]
    draw: Callable[[], dict[str, Figure]]
    what: str
    footer: str


def _errors(own: Case, runs: Sequence[Run], facts: Sequence[Mapping[str, Any]]) -> _Study:
    """Of a case that has an exact solution."""
    from halocline.study import case_convergence as study

    found = _measure(runs, 1, lambda m: "no error" if m["error"] is None else f"error {m['error']:.4e}")
    measured = [{**m, **each} for m, each in zip(found, facts, strict=True)]
    return _Study(
        measured,
        {"orders": study.orders(measured)},
        study.tables(measured, own.error_name),
        study.verdicts(measured),
        lambda: {"convergence.png": study.plot(measured, own.error_name)},
        "Errors on finer and finer grids",
        "Errors are those at the end of each run, as its case defines them.",
    )


def _limits(own: Case, runs: Sequence[Run], facts: Sequence[Mapping[str, Any]]) -> _Study:
    """Of a case that is steady in the end."""
    from halocline.study import case_extrapolation as study

    what = own.extrapolated
    assert what is not None
    found = _measure(runs, 1, lambda m: study.in_words(study.numbers(own, m)))
    measured = [{**m, **each, **study.numbers(own, m)} for m, each in zip(found, facts, strict=True)]
    limits = study.limits(measured, what)
    return _Study(
        measured,
        {"extrapolated": limits},
        study.tables(measured, limits, what),
        study.verdicts(measured, limits),
        lambda: {"convergence.png": study.plot(measured, limits)},
        "Numbers of the steady state on finer and finer grids",
        "Numbers are those at the end of each run, which is its steady state.",
    )


def _sizes(case: Steps | FileRun, n: str | None, also: Sequence[str] = ()) -> list[Any]:
    """The sizes that --n gives, or else one: that of a file, or 64 cells."""
    from halocline.study.measure import Steps

    if isinstance(case, Steps):
        case_named(case.name, also)
    if n is None:
        return [N] if isinstance(case, Steps) else [None]
    return sorted(whole_numbers(n, "--n", POINTS))


def _refuse(case: FileRun, options: Mapping[str, Any]) -> None:
    """Raise InputError for what a file does not let one choose."""
    for option, value in options.items():
        if value is not None:
            given = "" if value is True else f" {value}"
            raise InputError(
                f"{option}{given}: {case.name} is a file, which decides that itself: leave it out"
            )


def _of_order(case: Any, order: int | None) -> Any:
    return case if order == case.order else replace(case, order=order)


def _grown(case: Steps | FileRun, own: FileProblem, ranks: int) -> tuple[FileProblem, int]:
    """The problem of a file with about as many cells for each rank as it has for one, and its n."""
    from halocline.study.problem import RESOLUTION, FileProblem

    n = own.values.get(RESOLUTION)
    if type(n) is not int:
        raise InputError(
            f"{case.name} sets no whole number {RESOLUTION} at its top, from which a larger grid could be "
            f"made for more ranks: write {RESOLUTION} = 128 there, and make the grid of it"
        )
    larger = round(n * ranks ** (1 / len(own.shape)))
    found = _ready(case, larger)
    assert isinstance(found, FileProblem)
    return found, larger


def _of_file(case: FileRun, n: str | None, ranks: int, threads: int) -> _Study:
    """The convergence of a file: to the solution that it knows, or from grid to grid."""
    from halocline.study import case_convergence as study
    from halocline.study import self_convergence as own
    from halocline.study.file_run import EXACT
    from halocline.study.problem import FileProblem

    first = _ready(case, None)
    assert isinstance(first, FileProblem)
    if n is None:
        _, base = _grown(case, first, 1)
        sizes = [base // 4, base // 2, base]
    else:
        sizes = sorted(whole_numbers(n, "--n", POINTS))
    if EXACT not in first.script.functions:
        _check_three(sizes)
    runs = [Run(case, each, _ready(case, each).shape, ranks, threads, each) for each in sizes]
    with tempfile.TemporaryDirectory(prefix="halocline-") as folder:
        states = [Path(folder, f"{number}.npz") for number in range(len(runs))]
        found = _measure(
            runs, 1, lambda m: "done" if m["error"] is None else f"error {m['error']:.4e}",
            lambda number: {"--state": str(states[number - 1])},
        )  # fmt: skip
        own.check_times(found)
        known = all(m["error"] is not None for m in found)
        errors = [m["error"] for m in found] if known else own.differences(list(map(own.state, states)))
    line = {"panel": first.name, "line": "", "expected_order": first.order}
    measured = [{**m, **line, "error": error} for m, error in zip(found, errors, strict=True)]
    name = "greatest error" if known else own.NAME
    compared = measured if known else measured[:-1]
    return _Study(
        measured,
        {"orders": study.orders(compared)},
        study.tables(measured, name),
        study.verdicts(compared),
        lambda: {"convergence.png": study.plot(compared, name)},
        "Errors on finer and finer grids" if known else "Differences between finer and finer grids",
        "Errors are those at the end of each run." if known else "Differences are of the fields at the end.",
    )


def _check_three(sizes: Sequence[int]) -> None:
    """Raise InputError where there are too few grids for an order."""
    from halocline.study.case_extrapolation import LEAST_GRIDS

    if len(sizes) < LEAST_GRIDS:
        raise InputError(
            f"--n {','.join(map(str, sizes))}: expected {LEAST_GRIDS} numbers or more: without an exact "
            f"solution an order takes {LEAST_GRIDS} grids"
        )


def _check_proportion(case: Case, dim: int, n: int) -> None:
    """Raise InputError where n cells along the first axis leave no whole numbers along the others: errors of
    grids in other proportions do not compare."""
    shape = case.shape_of(None, dim)
    least = math.lcm(*(shape[0] // math.gcd(shape[0], cells) for cells in shape))
    if n % least:
        raise InputError(
            f"--n {n}: on {dim} axes expected a multiple of {least}, so that all grids have the proportion "
            f"of {' x '.join(map(str, shape))}"
        )


def _warmed(case: Steps, warm_up: int | None) -> Steps:
    """With the steps that are done, and those of them that are not timed."""
    steps = case_named(case.name).steps if case.steps is None else case.steps
    if steps is None:
        raise InputError(f"{case.name} runs to a time, but a study measures a number of steps: give --steps")
    warm_up = min(WARM_UP, steps - 1) if warm_up is None else warm_up
    if not 0 <= warm_up < steps:
        raise InputError(f"--warm-up {warm_up}: expected a whole number from 0, fewer than the {steps} steps")
    return replace(case, steps=steps, warm_up=warm_up)


def _chosen(case: Steps, n: int) -> Steps:
    """With order and scheme; a case that is a program has neither."""
    ready = _ready(case, n)
    return case if ready.is_program else replace(case, order=ready.order, scheme=ready.scheme)


def _ready(case: Steps | FileRun, n: int | None) -> CaseRun | FileProblem:
    """The case on its grid: what cannot be is found before anything runs."""
    return problem_of(
        case.name,
        None if n is None else [n],
        case.settings,
        dim=case.dim,
        order=case.order,
        scheme=case.scheme,
    )


def _check(
    json: str | None, csv: Path | None, html: Path | None, pictures: Path | None, names: Sequence[str]
) -> None:
    check_files(json, csv, html, *([] if pictures is None else [pictures / name for name in names]))


def _speed(measurement: Measurement) -> str:
    from halocline.study.case_runs import nanoseconds, ns

    return f"{nanoseconds(ns(measurement))} ns a cell and step"


def _measure(
    runs: Sequence[Run],
    repeat: int,
    outcome: Callable[[Measurement], str] = _speed,
    extra: Callable[[int], Mapping[str, str] | None] = lambda number: None,
) -> list[Measurement]:
    """All measurements; `outcome` says the result of one in a few words, and `extra` gives further options of
    each, by its number."""
    from halocline.study.measure import measure
    from halocline.study.table import joined, method

    prepare()
    measured = []
    for number, (case, n, shape, ranks, threads, at) in enumerate(runs, 1):
        cells = "x".join(map(str, shape))
        part = "" if case.only is None else f", {case.only} alone"
        part += "" if case.halo == "read" else ", with corners"
        device = case.options().get("--device")
        on = f", device {device}" if device else ""
        where = f"ranks {ranks}, threads {threads}{on}"
        what = joined(f"{cells} cells", *case.settings, method(case.order, None), where)
        note(f"[{number}/{len(runs)}] {what}{part}")
        found = measure(case, at, ranks=ranks, threads=threads, repeat=repeat, extra=extra(number))
        measured.append({"n": n, **found})
        note(f"      {outcome(found)}")
    return measured


def _travels(
    made: Mapping[int | None, CaseRun | FileProblem],
    runs: Sequence[Run],
    kind: Callable[[Steps], int | None] = lambda case: case.order,
) -> dict[int | None, Travels]:
    """What travels in each kind of run, at each order by default; grids that cannot be cut as asked for are
    found here."""
    from halocline.run.domain.execution import chosen_devices
    from halocline.study.theory import travels

    found = {order: travels(run) for order, run in made.items()}
    for case, _, shape, ranks, *_ in runs:
        if chosen_devices(case.device).interface == "cpu":
            found[kind(case)].check(shape, ranks, case.decomposition)
    return found


def _facts(theory: Theory) -> dict[str, Any]:
    return {"theory": {"per_byte": theory.per_byte, "measured_on": theory.measured_on}}


def _what(one: Measurement) -> str:
    """What was measured, in a few words."""
    from halocline.study.table import counted, joined

    return joined(one["scheme"], counted(one["steps"], "step"))


def _leave(
    title: str,
    case: Steps | FileRun,
    measured: Sequence[Measurement],
    facts: Mapping[str, Any],
    tables: Sequence[Table],
    said: Sequence[str],
    draw: Any,
    json: str | None,
    csv: Path | None,
    html: Path | None,
    pictures: Path | None,
    *,
    what: str = "",
    footer: str = CLOCK,
) -> None:
    """Files, page, pictures, tables; `facts` go into the JSON beside the measurements. On the page `what`
    says what was measured, scheme and steps by default, and `footer` how."""
    from halocline.study.measure import as_csv

    if json != "-":
        for table in tables:
            say("\n" + table.text())
        say("\n".join(said))
    write_json(json, {"measurements": list(measured), **facts})
    if csv:
        write(csv, as_csv(measured))
    drawn: list[Path] = []
    if html or pictures:
        from halocline.io.style import save, styled
        from halocline.study.page import Page, facts_of_measurements

        with styled():
            figures = draw()
            if pictures:
                for name, figure in figures.items():
                    drawn.append(pictures / name)
                    save(figure, drawn[-1])
            if html:
                page = Page(
                    title=f"{title}: {case.name}",
                    lead=lead(what or _what(measured[0]), measured),
                    said=said,
                    tables=tables,
                    figure=list(figures.values()),
                    pictures=[],
                    facts=facts_of_measurements(measured),
                    command=command(),
                    commands=[m["command"] for m in measured],
                    footer=footer,
                )
                write(html, page.html())
    written([json, csv, html, *drawn])
