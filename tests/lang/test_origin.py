"""Labels of sweeps: statements of the user's file, or words; never source lines of the framework."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import halocline as hc
from example_runs import NEEDS
from halocline.lang.equations import equations
from halocline.lang.expression import as_expr
from halocline.lang.origin import Line, framework_origin, returned_lines
from halocline.lang.program import Assign, AssignScalar
from halocline.lang.stepping import Recorded, stepping
from halocline.problems.files import path_of
from halocline.problems.problem import problem_of
from halocline.run.output.output import Statistics
from halocline.solvers.cg import reference_program, solve_program
from stepped_programs import program_of
from sweep_labels import check, check_numbers, framework_text, labels_of, programs

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
# modules that other examples import, and examples that need packages which may be missing
MODULES = {"gas.py", "hancock.py", "sod_exact.py", *(f"{name}.py" for name in NEEDS)}
KINDS = ("alfven-decay", "brio-wu", "cavity-2d", "heat", "helical-turbulence", "poisson", "wave")
SCHEMES = [hc.Euler(), hc.RK2(), hc.RK3(), hc.RK3Previous(), hc.RK4(), hc.SSPRK3()]


def test_explanations_of_examples_show_no_line_of_the_framework() -> None:
    names = tuple(str(f) for f in EXAMPLES if f.name not in MODULES) + KINDS
    forbidden = framework_text()
    counts = [check(program, forbidden) for program in programs(names)]
    assert len(counts) >= 17
    assert all(counts)


@pytest.mark.parametrize("name", ["orszag-tang", "mhd-benchmark", "sound-wave", "cavity-2d", "cavity"])
def test_explanations_of_a_copied_case_show_lines_of_its_file(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "mine.py"
    copy.write_text(path_of(name).read_text())
    lines = [line for sweep in labels_of(problem_of(str(copy)).program) for line in sweep]
    assert lines
    assert {line.file for line in lines} <= {"", str(copy)}
    # words name an equation or a number, and are not a statement of a program
    assert not [line.description for line in lines if "(" in line.description or "=" in line.description]


@pytest.mark.parametrize("name", ["alfven-decay", "cavity-2d", "heat", "poisson", "wave"])
def test_explanations_show_the_constants_of_a_program(name: str) -> None:
    assert check_numbers(name)


@pytest.fixture
def grid() -> hc.Grid:
    return hc.Grid((8, 8), periodic=True)


@pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: type(scheme).__name__)
def test_sweeps_of_schemes_show_the_equation(grid: hc.Grid, scheme: hc.Scheme) -> None:
    grid.field("T")

    def heat(T, kappa, t):
        return {T: kappa * hc.laplacian(T) * t}  # dT/dt

    program = program_of(grid, heat, parameters={"kappa": 0.1}, scheme=scheme, dt=0.1)
    origins = labels_of(program)
    assert origins
    equation = [Line(__file__, heat.__code__.co_firstlineno + 1, "T: kappa * hc.laplacian(T) * t")]
    copy = framework_origin("copy at the start of the step: T")
    for sweep in origins:
        assert sweep in (equation, [copy], [copy, *equation])
    assert equation in origins
    text = equations(program)
    assert "* 1.0)" not in text
    assert "(1.0 *" not in text


def test_each_entry_of_a_mapping_has_its_line(grid: hc.Grid) -> None:
    u, v = grid.field("u"), grid.vector("v")

    def rates(u, v):
        twice = 2 * hc.max(u)
        return {
            u: twice
            * hc.laplacian(u),
            v: hc.grad(u) - v,
        }  # fmt: skip

    program = program_of(grid, rates, scheme=hc.Euler(), dt=lambda u: 0.1 / hc.max(u))
    assigned = next(s for s in program.all_statements() if isinstance(s, Assign))
    first = rates.__code__.co_firstlineno
    assert assigned.lines[u] == Line(__file__, first + 3, "u: twice * hc.laplacian(u)")
    assert assigned.lines[v[0]] == assigned.lines[v[1]] == Line(__file__, first + 5, "v: hc.grad(u) - v")
    reduced = [s.line for s in program.all_statements() if isinstance(s, AssignScalar) and s.line.file]
    assert [line.text for line in reduced] == ["0.1 / hc.max(u)", "return {"]


def test_origins_of_values_that_functions_return() -> None:
    def variable(u):
        result = {u: 1.0}
        result[u] += 1.0
        return result

    class Method:
        def __call__(self, u):
            return {u: 2.0}

    def labels(function, count=1):
        return [line.text for line in returned_lines(function, count)]

    assert labels(variable) == ["return result"]
    assert labels(partial(variable, 1)) == ["return result"]
    assert labels(Method()) == labels(Method().__call__) == ["u: 2.0"]
    assert labels(lambda u: {u: 3.0}) == ["u: 3.0"]
    assert labels(lambda u: {u: 3.0}, 2) == ["{u: 3.0}"] * 2
    assert labels(eval("lambda u: {u: 3.0}", {})) == [""]
    assert [line.label for line in returned_lines(eval("lambda u: {u: 3.0}", {}), 1)] == ["<string>:1"]
    assert returned_lines(hc.laplacian) is None
    assert returned_lines(max) is None


def test_statements_of_the_framework_have_descriptions(grid: hc.Grid) -> None:
    T = grid.field("T")
    statistics = Statistics(grid, "T", {"T_mean": hc.time_mean(T)})
    program = stepping(
        grid,
        lambda T: {T: hc.laplacian(T)},
        scheme=hc.RK3(),
        dt=0.1,
        counting=[statistics],
        recorded=[Recorded(2, (hc.max(T),))],
    ).program
    labels = [line.text for sweep in labels_of(program) for line in sweep]
    assert labels == [
        *["T: hc.laplacian(T)"] * 3,
        "statistics over time: T_mean",
        "recorded output: max(T)",
    ]
    check(program, framework_text())


def test_sweeps_of_solvers_have_descriptions() -> None:
    grid = hc.Grid((8, 8), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    program = solve_program("cg", lambda u: -hc.laplacian(u), u, as_expr(1.0))
    labels = [line.text.removeprefix("conjugate gradients: ") for s in labels_of(program) for line in s]
    assert labels == [
        "start from zero, or from the values of x",
        "first residual r = b - A(x)",
        "first search direction p = r",
        "rho = dot(r, r)",
        "q = A(p)",
        "curvature = dot(p, q)",
        "solution x + alpha p",
        "residual r - alpha q",
        "next rho = dot(r, r)",
        "search direction p = r + beta p",
    ]
    forbidden = framework_text()
    for other in (
        program,
        solve_program("cg-fused", lambda u: -hc.laplacian(u), u, as_expr(1.0), null_space=True),
        reference_program(lambda u: -hc.laplacian(u), u, as_expr(1.0), null_space=True),
    ):
        assert check(other, forbidden)


def test_an_error_names_the_line_of_the_user(grid: hc.Grid) -> None:
    u = grid.field("u")

    def rates(u):
        hc.stage(u, "s")
        return {u: u.no_such_name}

    with pytest.raises(hc.InputError, match=f"at {__file__}:{rates.__code__.co_firstlineno + 2}"):
        program_of(grid, rates, scheme=hc.Euler(), dt=0.1)
    assert u.name == "u"
