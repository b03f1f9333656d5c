"""Names: those of users never meet those of solvers, of the compiler or of generated code; and code depends
on nothing but the program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.printers.text import identifier
from halocline.compile.strategy import Strategy
from halocline.errors import InputError
from halocline.solvers.cg import METHODS

# --- scalars of solvers ---


def solved(names: Sequence[str], method: str) -> np.ndarray:
    """The solution of a problem whose operator holds parameters of these names."""
    grid = hc.Grid((7, 6), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    values = {name: 20.0 + n for n, name in enumerate(names)}
    solution = hc.solve(
        lambda u: -hc.laplacian(u) + sum(hc.parameter(name) for name in names) * u,
        u,
        grid.x * sum(hc.parameter(name) for name in names),
        method=method,
        rtol=1e-12,
        parameters=values,
    )
    assert solution.converged
    largest, *found = solution.fields.evaluate(hc.max(abs(u)), *(hc.parameter(name) for name in names))
    assert largest == np.abs(solution.fields[u]).max()
    assert found == list(values.values())
    return np.array(solution.fields[u])


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_parameter_may_have_the_name_of_any_scalar_of_a_solver(method: str) -> None:
    own = "alpha rho old beta next_rho curvature first goal rtol max_iterations result0 reduced1 sum0 around"
    names = f"{own} _sum0 _around _limit0 _passes0 _reduced1".split()
    plain = [f"mu{n}" for n in range(len(names))]
    np.testing.assert_allclose(solved(names, method), solved(plain, method), rtol=1e-11)


def test_a_parameter_may_have_the_name_of_a_result() -> None:
    grid = hc.Grid(5)
    u = grid.field("u")
    sim = hc.Simulation(
        grid, lambda u, result0: {u: u}, parameters={"result0": 3.0}, scheme=hc.Euler(), dt=1.0
    )
    sim[u] = 2.0
    assert sim.evaluate(hc.max(u) * hc.parameter("result0"), hc.parameter("result0") + 1.0) == (6.0, 4.0)


def test_two_solves_in_one_program() -> None:
    grid = hc.Grid((7, 6), walls="node")
    u, v = grid.field("u", boundary=hc.Value(0)), grid.field("v", boundary=hc.Value(0))

    @hc.program
    def both(u: Any, v: Any, tolerance: Any, limit: Any) -> None:
        METHODS["cg-fused"](lambda x: -hc.laplacian(x), u, hc.parameter("alpha"), tolerance, limit)
        METHODS["cg"](lambda x: -hc.laplacian(x) + hc.parameter("rho") * x, v, u, tolerance, limit)

    values = {"tolerance": 1e-12, "limit": 200.0, "alpha": 1.0, "rho": 3.0}
    sim = hc.Simulation(grid, both, parameters=values)
    sim.run()
    first = hc.solve(lambda x: -hc.laplacian(x), u, 1.0, rtol=1e-12)
    np.testing.assert_allclose(sim[u], first.fields[u], rtol=1e-10)
    second = hc.solve(lambda x: -hc.laplacian(x) + 3.0 * x, v, np.array(sim[u]), rtol=1e-12)
    np.testing.assert_allclose(sim[v], second.fields[v], rtol=1e-10)


@pytest.mark.parametrize("parameters", [{}, {"mu": 1.0}])
def test_a_scalar_after_a_parameter_of_its_name_is_an_error(parameters: dict[str, float]) -> None:
    grid = hc.Grid(5)
    grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        u.set(u * hc.parameter("mu"))
        hc.scalar("mu").set(hc.max(u))

    with pytest.raises(InputError, match="already has a scalar or parameter named 'mu'"):
        hc.Simulation(grid, step, parameters=parameters)


def test_a_program_s_own_scalar_may_not_be_left_without_a_value() -> None:
    grid = hc.Grid(5)
    grid.field("u")
    with pytest.raises(InputError, match="parameter '_mu' is unknown"):
        hc.Simulation(grid, hc.program(lambda u: u.set(u * hc.parameter("_mu"))))


# --- fields of solvers ---


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_repeated_solve_leaves_no_fields_and_compiles_nothing(method: str) -> None:
    grid = hc.Grid((9, 8), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    right = np.random.default_rng(5).uniform(size=grid.shape)

    def problem(rhs: Any) -> hc.LinearProblem:
        return hc.LinearProblem(lambda u: -hc.laplacian(u), u, rhs, method=method)

    one, fields = problem(right), list(grid.fields)
    other = problem(2.0 * right)
    assert list(grid.fields) == fields
    assert other.prepared.library == one.prepared.library
    second, first = other.solve(rtol=1e-12).fields[u], one.solve(rtol=1e-12).fields[u]
    np.testing.assert_allclose(second, 2.0 * np.array(first), rtol=1e-9)


def test_a_repeated_simulation_leaves_no_fields_and_compiles_nothing() -> None:
    grid = hc.Grid((9, 8), periodic=True)
    u = grid.field("u")

    def equation(u: Any) -> Any:
        kept = hc.stage(u * u, "kept", storage="array")
        return {u: hc.laplacian(kept)}

    def simulation() -> hc.Simulation:
        return hc.Simulation(grid, equation, scheme=hc.RK3(), dt=1e-4)

    one, fields = simulation(), list(grid.fields)
    other = simulation()
    assert list(grid.fields) == fields
    assert other.prepared.library == one.prepared.library
    for sim, scale in ((one, 1.0), (other, 2.0)):
        sim[u] = scale + grid.x
    one.run(steps=2)
    alone = one.checksum("u")
    other.run(steps=2)
    assert one.checksum("u") == alone != other.checksum("u")


def test_an_own_field_asked_for_twice_is_two_fields() -> None:
    grid = hc.Grid(5)
    names = []

    @hc.program
    def twice(u: Any) -> None:
        for w in (u.like("w"), u.like("w")):
            names.append(w.name)
            w.set(u)

    u = grid.field("u")
    for _ in range(2):
        twice.trace(u)
    assert [*names, u.like("w").name] == ["w", "w2", "w", "w2", "w3"]


# --- generated code ---


def representative(names: Sequence[str]) -> hc.Simulation:
    """A program with all kinds of kernels, run; it has a field and a parameter of each of these names."""
    grid = hc.Grid((5, 6, 7), periodic=(True, False, True))
    q = grid.field("q", boundary=hc.Value(hc.parameter("hot")))
    grid.field("w", dtype="float32", boundary=hc.BoundaryKernel(lambda u: u[0] + u.of(q)[0]))
    fields = [grid.field(name) for name in names]
    parameters = {name: 1.0 + n / 1024 for n, name in enumerate(names)}

    @hc.program
    def step(q: Any, w: Any) -> None:
        flux = hc.stage(q * q[0, 1, 0] + hc.exp(q), "flux", storage="patch")
        w.set(hc.sin(flux[1, 0, 0] - flux) + w[0, 0, 1] * hc.cos(grid.y) + w[0, 1, 0])
        total, least = hc.scalars("total least")
        total.set(hc.sum(w) + hc.norm(q) + hc.value(q, (1, 2, 3)))
        least.set(1e-3 * hc.min(w) * total)
        mine = sum(f * hc.parameter(f.name) for f in fields)
        q.set(q + 1e-4 * hc.laplacian(q) * least + hc.sin(grid.z[0, 0, 1]) + mine)
        with hc.loop(until=total <= least, limit=3):
            total.set(total * sum(hc.parameter(n) for n in names))

    sim = hc.Simulation(grid, step, parameters={"hot": 0.5, **parameters})
    sim["q"] = lambda x, y, z: x + y * z
    for n, field in enumerate(fields):
        sim[field] = n * 1e-3
    sim.run()
    return sim


def wrapped(names: Sequence[str]) -> hc.Simulation:
    """The same for a kernel that wraps rows around."""
    grid = hc.Grid((5, 7), periodic=True)
    u = grid.field("u")
    fields = [grid.field(name) for name in names]
    parameters = {name: 1.0 + n / 1024 for n, name in enumerate(names)}

    @hc.program
    def step(u: Any) -> None:
        u.set(u[0, 1] * u[1, 0] + sum(f * hc.parameter(f.name) for f in fields))

    sim = hc.Simulation(grid, step, parameters=parameters)
    sim[u] = lambda x, y: x + y
    for n, field in enumerate(fields):
        sim[field] = n * 1e-3
    sim.run()
    return sim


def locals_of(source: str) -> set[str]:
    """The names that generated code declares."""
    kinds = r"(?:u?int\w*_t|int|double|float|char|hc_\w+)"
    found = set(re.findall(rf"{kinds} \*(\w+)[,)]", source))
    for line in source.splitlines():
        if re.match(rf" *(?:for \()?(?:alignas\(64\) )?(?:const )?{kinds} ", line):
            found |= set(re.findall(r"(?:\w |\*const |\*|, )(\w+)(?= = |\[\d+\];)", line))
    return found


def test_fields_and_parameters_may_have_the_names_of_all_locals_of_generated_code() -> None:
    source = representative(["one"]).schedule.source + wrapped(["one"]).schedule.source
    given = "q u w total least hot until steps step dt t h_x h_y h_z o_x o_y o_z"
    many = re.compile(r"t\d\d|.*_\d$")  # more of the same
    names = sorted(n for n in locals_of(source) - {*given.split()} if not many.match(n))
    known = "a box i j k k0 k1 end s around far split1 high1 middle1 low1 outside1 piece0 t0 layer"
    derived = "q_s0 q_s1 w_next flux_base flux_origin q_at_0_p1 index1 free_scratch"
    assert {*known.split(), *derived.split()} <= {*names}
    plain = [f"plain{n:03}" for n in range(len(names))]
    for program in (representative, wrapped):
        one, other = program(names), program(plain)
        for field in {"q", "u", "w"} & {*one.grid.fields}:
            np.testing.assert_allclose(one[field], other[field], rtol=1e-6 if field == "w" else 1e-13)
        assert one.values.get("total", 0.0) == pytest.approx(other.values.get("total", 0.0), rel=1e-12)


@pytest.mark.parametrize(
    ("reads", "stages"), [("direct", "memory"), ("queue", "group"), ("planes", "memory")]
)
def test_no_parameter_becomes_a_local_of_kernels_for_devices(reads: str, stages: str) -> None:
    grid = hc.Grid((5, 6, 7), periodic=(True, False, True))
    q = grid.field("q", boundary=hc.Value(hc.parameter("hot")))

    @hc.program
    def step(q: Any) -> None:
        flux = hc.stage(hc.exp(q), "flux", storage="patch")
        q.set(q + hc.laplacian(q) * hc.sin(grid.z[0, 0, 1]) + flux[1, 0, 0] - flux[0, 0, 1])
        total = hc.scalar("total")
        total.set(hc.sum(q) + hc.value(q, (1, 2, 3)))
        q.set(q[1, 0, 0] + q[-1, 0, 0] + q[0, 0, 1] + hc.mixed(q, 1, 2))
        with hc.loop(until=total <= 0, limit=2):
            total.set(total * 2)

    device = compile_program(step.trace(q), grid, device=Strategy(reads, stages=stages)).device
    assert device is not None
    names = declared(device.source[device.source.index("HC_KERNEL sweep") :])
    known = "f scalars control partials shared partial kinds n i k i_begin i_end q_data q_where q_here loop"
    assert {*known.split()} <= names
    assert ("q_plane" in names) == (reads == "planes")
    # these are scalars, or give way to them
    given = re.compile(r"(q|flux)(_(0|[mp]\d)){3}|h_[xyz]|o_[xyz]|_\w+|hot|total|const")
    assert {name for name in names if identifier(name) == name and not given.fullmatch(name)} == set()


def declared(source: str) -> set[str]:
    """The names that kernels for devices declare, and what they take."""
    first = r"\b(?:hc_[a-z]\w*|double|float|int|char) (?:\*(?: ?const| ?HC_RESTRICT)? ?)?(\w+)\b(?! *\()"
    return {*re.findall(first, source), *re.findall(r", (\w+) = ", source)}


@pytest.mark.usefixtures("opencl")
def test_parameters_on_devices_may_have_the_names_of_locals_keywords_and_macros() -> None:
    names = (
        "f n k lo0 shared control half kernel global constant restrict image2d_t double2 NAN INFINITY M_PI"
    )
    grid = hc.Grid(9, periodic=True)
    u = grid.field("u")

    @hc.program
    def step(u: Any) -> None:
        mine = sum(hc.parameter(name) * 2.0**n for n, name in enumerate(names.split()))
        u.set(u[1] + mine)
        hc.scalar("total").set(hc.sum(u))

    values = {name: 1.0 + n for n, name in enumerate(names.split())}
    sim = hc.Simulation(grid, step, parameters=values, device="opencl:0")
    sim[u] = 0.0
    sim.run()
    mine = sum((1.0 + n) * 2.0**n for n in range(len(values)))
    np.testing.assert_array_equal(sim[u], mine)
    assert sim.values["total"] == 9 * mine


def test_names_of_macros_are_no_matter() -> None:
    grid = hc.Grid(5, periodic=True)
    names = ["NULL", "INT32_MAX", "SIZE_MAX", "HC_NAN", "HC_LANES", "INT64_C", "linux", "memcpy", "int64_t"]
    total = sum(grid.field(name) for name in names)
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(total)))
    for name in names:
        sim[name] = 1.0
    sim.run()
    np.testing.assert_array_equal(sim[u], float(len(names)))


# --- the same program, the same code ---

PROGRAM = """
import sys
import halocline as hc
from halocline.compile.compiler import compile_program

grid = hc.Grid((8, 9), periodic=(False, True))
others = [grid.field(f"o{n}") for n in range(12)]
half = [grid.field(f"h{n}", boundary=hc.Value(0.0)) for n in range(6)]


def wall(u):
    return u[0] + sum(u.of(o)[0] for o in others)


u = grid.field("u", boundary=hc.BoundaryKernel(wall))
alive = []
if sys.argv[1] == "others":
    alive = [bytearray(n) for n in range(0, 9000, 7)]  # so that addresses differ
    alive += [b + a for a in half for b in half] + [b * a for a in half for b in half]
    alive += [b[1, 0] + a[1, 0] for a in half for b in half]


@hc.program
def step(u):
    u.set(u[1, 0] + u[-1, 0] + sum(a * b + (a + b) for a in half for b in half) + half[0][1, 0] * half[1])


print(compile_program(step.trace(u), grid))
"""


def test_the_source_depends_on_nothing_but_the_program() -> None:
    made = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, live],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed, live in [("0", "none"), ("1", "none"), ("2", "others"), ("3", "others")]
    }
    assert len(made) == 1
