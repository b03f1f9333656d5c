"""Wrong input: one clear error with the problem and its reason, equal on every rank, and no hang.

Wrong arguments of the command are tested in system/test_command.py. Invalid grids, fields and equations are
tested in tests/lang.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.run.ranks.mpi import world
from hang import HANG
from loops import some
from suites import cases, examples

N = 16


# -- wrong problems ------------------------------------------------------------------------------------------


def unknown() -> hc.Field:
    return hc.Grid((N, N), walls="node").field("u", boundary=hc.Value(0))


def negative(u: Any) -> Any:
    return -hc.laplacian(u)


def solve(rhs: Any = 1.0, operator: Callable[[Any], Any] = negative, **options: Any) -> hc.Solution:
    return hc.solve(operator, unknown(), rhs, **options)


def with_guess(value: float) -> None:
    u = unknown()
    problem = hc.LinearProblem(negative, u, 1.0)
    problem.fields[u] = one_cell(value)
    problem.solve()


def one_cell(value: float) -> np.ndarray:
    """Return an array of ones, except for the given value at cell (5, 11)."""
    array = np.ones((N, N))
    array[5, 11] = value
    return array


def simulation(*shape: int, function: Callable[..., Any] | None = None, **options: Any) -> hc.Simulation:
    grid = hc.Grid(shape or (N, N), periodic=True)
    grid.field("u")
    options = {"scheme": hc.Euler(), "dt": 1e-4, **options}
    return hc.Simulation(grid, function or (lambda u: {u: hc.laplacian(u)}), **options)


def with_parameter(name: str, value: float) -> None:
    sim = simulation(function=lambda u, kappa: {u: kappa * hc.laplacian(u)}, parameters={"kappa": 0.1})
    sim.parameters[name] = value


def endless() -> None:
    """Run a loop until a number is below 1e-6; the number becomes NaN in the second pass."""
    grid = hc.Grid((N, N), periodic=True)
    grid.field("u")

    @hc.program
    def relax(u: Any) -> None:
        change = hc.scalar("change")
        change.set(1.0)
        with hc.loop(until=change < 1e-6):
            u.set(u - 1.0)
            change.set(hc.max(hc.sqrt(u)))

    sim = hc.Simulation(grid, relax)
    sim["u"] = 1.5
    sim.run()


def other_field() -> hc.Field:
    return hc.Grid((N, N + 1), periodic=True).field("u")


def falling(value: float) -> None:
    """Run with a time step of 3 sqrt(min u): from u = 1, the second step is the root of a negative number."""
    sim = simulation(function=lambda u: {u: 0.0 * u - 1.0}, dt=lambda u: 3.0 * hc.sqrt(hc.min(u)))
    sim["u"] = value
    sim.run(until=100.0)


def assign(sim: hc.Simulation, field: Any, value: Any) -> None:
    sim[field] = value
    sim.run(steps=1)


def without_time() -> hc.Simulation:
    grid = hc.Grid((N, N), periodic=True)
    grid.field("u")

    @hc.program
    def count(u: Any) -> None:
        u.set(u + 1.0)

    return hc.Simulation(grid, count)


def divides_by_nothing(u: Any) -> Any:
    return {u: u * (1 // 0)}


INDEFINITE = r"broke down in iteration {}: the operator is not positive definite: p.Ap is not positive \(-"

# name, function, exception, message
WRONG: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    # linear problems
    ("negative operator", lambda: solve(operator=hc.laplacian, method="cg"), hc.BreakdownError,
     "cg " + INDEFINITE.format(1)),
    ("indefinite operator", lambda: solve(lambda x, y: x * y, lambda u: negative(u) - 60.0 * u),
     hc.BreakdownError, "cg-fused " + INDEFINITE.format(2)),
    ("shape of rhs", lambda: solve(np.ones((N, N - 1))), hc.InputError,
     r"right-hand side has shape \(16, 15\), but the unknown 'u' has shape \(16, 16\)"),
    ("axes of rhs", lambda: solve(np.ones(N)), hc.InputError, r"right-hand side has shape \(16,\), but"),
    ("rhs of another grid", lambda: solve(other_field()), hc.InputError,
     r"right-hand side belongs to another grid, Grid\(\(16, 17\).* 'u', which belongs to Grid\(\(16, 16\)"),
    ("rhs of text", lambda: solve("one"), hc.InputError, "right-hand side is 'one'; expected a field, an"),
    ("NaN in rhs", lambda: solve(one_cell(np.nan)), hc.InputError,
     r"field 'rhs' is nan at cell \(5, 11\) before the solve"),
    ("infinity in rhs", lambda: solve(one_cell(np.inf)), hc.InputError,
     r"field 'rhs' is inf at cell \(5, 11\) before the solve"),
    ("rhs that becomes NaN", lambda: solve(lambda x, y: hc.log(x - 0.5)), hc.InputError,
     r"cg-fused: the right-hand side is (-?inf|-?nan) at cell \(0, 0\)"),
    ("rhs too large to be squared", lambda: solve(lambda x, y: 1e200 * x), hc.InputError,
     "cg-fused: the residual of the initial guess is not finite, or too large to be squared"),
    ("unknown option of a problem", lambda: simulation(desomposition="row"), hc.InputError,
     r"option 'desomposition' is unknown \(did you mean 'decomposition'\?\); known: parameters, "),
    ("parameter that is not there", lambda: with_parameter("kapa", 1.0), hc.InputError,
     r"parameter 'kapa' is unknown \(did you mean 'kappa'\?\)"),
    ("parameter that becomes NaN", lambda: with_parameter("kappa", np.nan), hc.InputError,
     "parameter 'kappa' is nan; expected a finite number"),
    ("NaN in guess", lambda: with_guess(np.nan), hc.InputError,
     r"field 'u' is nan at cell \(5, 11\) before the solve"),
    ("rtol of zero", lambda: solve(rtol=0), hc.InputError, "rtol is 0; expected a positive number"),
    ("negative rtol", lambda: solve(rtol=-1e-3), hc.InputError, "rtol is -0.001; expected a positive"),
    ("rtol of one", lambda: solve(rtol=1), hc.InputError, "rtol is 1; expected a positive number below 1"),
    ("negative limit", lambda: solve(max_iterations=-1), hc.InputError, "max_iterations is -1; expected"),
    ("unknown option", lambda: solve(mehtod="cg"), hc.InputError,
     r"option 'mehtod' is unknown \(did you mean 'method'\?\); known: method, "),
    ("unknown method", lambda: solve(method="cg_fused"), hc.InputError,
     r"method 'cg_fused' is unknown \(did you mean 'cg-fused'\?\); known: cg, cg-fused"),
    # fields and parameters
    ("unknown field", lambda: simulation()["w"], hc.InputError, "field 'w' is unknown; known: u"),
    ("field of another grid", lambda: assign(simulation(), other_field(), 1.0), hc.InputError,
     r"field 'u' belongs to another grid, Grid\(\(16, 17\).*, not to Grid\(\(16, 16\)"),
    ("NaN in a field", lambda: assign(simulation(), "u", one_cell(np.nan)), hc.InputError,
     r"field 'u' is nan at cell \(5, 11\) before the run; all values must be finite"),
    ("shape of an array", lambda: assign(simulation(), "u", np.ones((N, 3))), hc.InputError,
     r"field 'u' has shape \(16, 16\), but the array given for it has shape \(16, 3\)"),
    ("unknown argument", lambda: simulation(function=lambda v: {v: v}), hc.InputError,
     "argument 'v' is unknown; known: u, "),
    ("NaN as parameter", lambda: simulation(parameters={"kappa": np.nan}), hc.InputError,
     "parameter 'kappa' is nan; expected a finite number"),
    ("error of Python", lambda: simulation(function=divides_by_nothing), hc.InputError,
     "function 'divides_by_nothing' raised ZeroDivisionError"),
    # grids and decompositions
    ("no cells", lambda: hc.Grid((N, 0)), hc.InputError, r"shape \(16, 0\): axis y has 0 cells; at least 1"),
    ("negative cells", lambda: hc.Grid(-4), hc.InputError, "shape -4: axis x has -4 cells; at least 1"),
    ("unknown decomposition", lambda: simulation(decomposition="optimial"), hc.InputError,
     "decomposition 'optimial' .*did you mean 'optimal'"),
    ("other count of subdomains", lambda: simulation(decomposition=(7, 1)), hc.InputError,
     r"decomposition 7x1 has 7 subdomains, but \d are needed"),
    ("axis shorter than a halo", lambda: simulation(2, 64, order=6), hc.InputError,
     "axis x has 2 cells, but reads across its periodic ends reach 3 cells"),
    # time
    ("step of zero", lambda: simulation(dt=0), hc.InputError, "dt is 0; expected a positive number"),
    ("step that is a NaN", lambda: simulation(dt=np.nan), hc.InputError, "dt is nan; expected a positive"),
    ("step that becomes zero", lambda: falling(0.0), hc.RunError,
     r"time step is not a positive number but 0 after step 0 \(time 0\)"),
    ("step that becomes NaN", lambda: falling(1.0), hc.RunError,
     r"time step is not a positive number but nan after step 1 \(time 3\)"),
    ("loop whose condition becomes NaN", endless, hc.RunError,
     r"test_wrong_input.py:\d+: the loop never ends, because a number in \(change < 1e-06\) is NaN"),
    ("no time", lambda: without_time().run(until=1.0), hc.InputError,
     "until is given, but this program has no time. Set dt="),
    ("endless time", lambda: simulation().run(until=np.inf), hc.InputError, "until is inf; expected"),
    ("negative steps", lambda: simulation().run(steps=-1), hc.InputError, "steps is -1; expected"),
]  # fmt: skip

WRONG_ON_FOUR: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("more ranks than cells", lambda: simulation(3, 1), hc.InputError, "cannot be cut into 4 subdomains"),
    ("thinner than the halo", lambda: simulation(8, 64, order=6, decomposition=(4, 1)), hc.InputError,
     r"axis x with 8 cells cannot be cut into 4 subdomains of at least 3 cells each .*Use at most 2, or"),
]  # fmt: skip


@pytest.mark.ranks(1, 4, long=(1,))
def test_every_rank_raises_the_same_error() -> None:
    """All ranks raise the error, since a rank that raised alone would leave the others waiting."""
    comm = world()
    wrong = [*WRONG[:: examples(3, 1)], *(WRONG_ON_FOUR if comm.size == 4 else [])]
    for name, function, kind, words in some(wrong):
        with pytest.raises(kind) as caught:
            function()
        assert type(caught.value) is kind, name
        assert re.search(words, str(caught.value)), (name, str(caught.value))
        assert len(set(comm.allgather(str(caught.value)))) == 1, name


@pytest.mark.ranks(1, 4, long=(1,))
def test_a_stopped_run_gives_its_reason_and_is_not_continued() -> None:
    calls: list[float] = []

    def filled(u: Any) -> None:
        hc.stop(hc.max(u) > 0.45, "full")

    sim = simulation(function=lambda u: {u: 0.0 * u + 1.0}, dt=0.03, after_step=filled)
    sim["u"] = 0.0
    outcome = sim.run(until=10.0, every=0.2, callback=lambda sim: calls.append(sim.time))
    assert outcome.reason == "full"
    assert calls == pytest.approx([0.21, 0.42])
    assert 0.45 < sim.evaluate(hc.max(sim.grid.fields["u"])) < 0.49


# -- reports to the user -------------------------------------------------------------------------------------

START = """import numpy as np
import halocline as hc

grid = hc.Grid((16, 16), walls="node")
u = grid.field("u", boundary=hc.Value(0))
"""

# end of the script, exit status, message
SCRIPTS = {
    "breakdown": (
        'hc.solve(lambda u: hc.laplacian(u), u, 1.0, method="cg")\n',
        2,
        "cg broke down in iteration 1: the operator is not positive definite",
    ),
    "NaN": (
        "f = np.ones((16, 16))\nf[5, 11] = np.nan\nhc.solve(lambda u: -hc.laplacian(u), u, f)\n",
        2,
        "field 'rhs' is nan at cell (5, 11) before the solve",
    ),
    "time step": (
        "sim = hc.Simulation(grid, lambda u: {u: u}, scheme=hc.Euler(), dt=lambda u: hc.max(u))\n"
        "sim[u] = 0.0\nsim.run(until=1.0)\n",
        1,  # the input could have been valid; the run could not continue
        "the time step is not a positive number but 0 after step 0",
    ),
}


@cases(
    "name, ranks",
    itertools.product(SCRIPTS, (1, 4)),
    default=[("breakdown", 1), ("NaN", 4), ("time step", 1)],
)
def test_a_script_ends_with_one_error_that_shows_its_line(name: str, ranks: int, tmp_path: Path) -> None:
    text, status, words = SCRIPTS[name]
    (tmp_path / "wrong.py").write_text(START + text)
    command = [sys.executable, "wrong.py"]
    if ranks > 1:
        command = [sys.executable, "-m", "halocline.cli", "run", "wrong.py", "--ranks", str(ranks)]
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=HANG, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert done.stderr.count("halocline: error:") == done.stderr.count(words) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert f'wrong.py", line {len((START + text).splitlines())}, in <module>' in done.stderr
