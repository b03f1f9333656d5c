"""Names in generated code, which depends on nothing but the program."""

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
from halocline.compile.printers.spelling import identifier
from halocline.compile.strategy import Strategy

# --- generated code ---


def representative(names: Sequence[str]) -> hc.Simulation:
    """Run a program with all kinds of kernels, and with a field and a parameter of each name."""
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
        weighted = sum(f * hc.parameter(f.name) for f in fields)
        q.set(q + 1e-4 * hc.laplacian(q) * least + hc.sin(grid.z[0, 0, 1]) + weighted)
        with hc.loop(until=total <= least, limit=3):
            total.set(total * sum(hc.parameter(n) for n in names))

    sim = hc.Simulation(grid, step, parameters={"hot": 0.5, **parameters})
    sim["q"] = lambda x, y, z: x + y * z
    for n, field in enumerate(fields):
        sim[field] = n * 1e-3
    sim.run()
    return sim


def wrapped(names: Sequence[str]) -> hc.Simulation:
    """Run a program whose kernel wraps rows around, with a field and a parameter of each name."""
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
    """Return the names that generated code declares."""
    kinds = r"(?:u?int\w*_t|int|double|float|char|hc_\w+)"
    names = set(re.findall(rf"{kinds} \*(\w+)[,)]", source))
    for line in source.splitlines():
        if re.match(rf" *(?:for \()?(?:alignas\(64\) )?(?:const )?{kinds} ", line):
            names |= set(re.findall(r"(?:\w |\*const |\*|, )(\w+)(?= = |\[\d+\];)", line))
    return names


def test_fields_and_parameters_may_have_the_names_of_all_locals_of_generated_code() -> None:
    source = representative(["one"]).schedule.source + wrapped(["one"]).schedule.source
    program_names = "q u w total least hot until steps step dt t h_x h_y h_z o_x o_y o_z"
    many = re.compile(r"t\d\d|.*_\d$")  # numbered repetitions
    names = sorted(n for n in locals_of(source) - {*program_names.split()} if not many.match(n))
    known = "a box i j k k0 k1 end s around large_angle split1 high1 middle1 low1 outside1 piece0 t0 layer"
    derived = "q_s0 q_s1 w_next flux_base flux_origin q_at_0_p1 index1 free_scratch"
    assert {*known.split(), *derived.split()} <= {*names}
    plain = [f"plain{n:03}" for n in range(len(names))]
    for program in (representative, wrapped):
        one, other = program(names), program(plain)
        for field in {"q", "u", "w"} & {*one.grid.fields}:
            np.testing.assert_allclose(one[field], other[field], rtol=1e-6 if field == "w" else 1e-13)
        assert one.values.get("total", 0.0) == pytest.approx(other.values.get("total", 0.0), rel=1e-12)


@pytest.mark.parametrize(
    ("reads", "stages"), [("direct", "memory"), ("queue", "shared"), ("planes", "memory")]
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
    known = "f scalars control partials shared partial kinds n i k i_begin i_end q_data q_layout q_cell loop"
    assert {*known.split()} <= names
    assert ("q_field_tile" in names) == (reads == "planes")
    # these names are scalars, or give way to scalars
    scalar_names = re.compile(r"(q|flux)(_(0|[mp]\d)){3}|h_[xyz]|o_[xyz]|_\w+|hot|total|const")
    assert {name for name in names if identifier(name) == name and not scalar_names.fullmatch(name)} == set()


def declared(source: str) -> set[str]:
    """Return the names of the local variables and arguments of kernels for devices."""
    first = r"\b(?:hc_[a-z]\w*|double|float|int|char) (?:\*(?: ?const| ?HC_RESTRICT)? ?)?(\w+)\b(?! *\()"
    tiles = re.findall(r"HC_TILE\(\w+, (\w+),", source)
    return {*re.findall(first, source), *re.findall(r", (\w+) = ", source), *tiles}


def test_names_of_macros_are_accepted() -> None:
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


def test_the_source_depends_only_on_the_program() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM, live],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed, live in [("0", "none"), ("1", "none"), ("2", "others"), ("3", "others")]
    }
    assert len(outputs) == 1
