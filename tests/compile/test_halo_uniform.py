"""Uniform halos: each exchange carries all fields, with the maximum width, and all edges and corners."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import halocline as hc
from halocline.cli.app import run
from halocline.compile.compiler import compile_program
from halocline.compile.footprint import Footprint
from halocline.errors import InputError
from halocline.explanation import explain as telling


def whole(width: int, ndim: int) -> Footprint:
    return Footprint.of(
        (d, tuple(width * abs(o) for o in d)) for d in product((-1, 0, 1), repeat=ndim) if any(d)
    )


def schedules(function: Any, grid: hc.Grid, *names: str) -> list[Any]:
    """Return the schedules with halos as read, and with uniform halos."""
    return [
        compile_program(hc.program(function).trace(*(grid.fields[n] for n in names)), grid, halo=halo)
        for halo in ("read", "uniform")
    ]


@pytest.mark.parametrize(
    ("offset", "halo", "counts"), [((1, 1, 1), "edges", (18, 19)), ((0, 1, 1), "faces", (6, 7))]
)
def test_exchanges_cover_the_halo_shape_and_all_read_segments(
    offset: tuple[int, ...], halo: str, counts: tuple[int, int]
) -> None:
    """All fields exchange the segments of the named shape, and a field also the segment that it reads.

    The shapes are the 18 segments of Pekkilä et al. 2022, and the faces of the first version of the cavity
    code (Sections 4.4 and 4.5).
    """
    grid = hc.Grid((16, 16, 16), periodic=True)
    for name in ("a", "b"):
        grid.field(name)

    def step(a: Any, b: Any) -> None:
        a.set(a[2, 0, 0] + b[offset])

    program = hc.program(step).trace(grid.fields["a"], grid.fields["b"])
    schedule = compile_program(program, grid, halo=halo)
    (exchange,) = [sweep.exchange for sweep in schedule.sweeps() if sweep.exchange]
    segments = {schedule.fields[number].name: dict(footprint) for number, footprint in exchange.items()}
    assert (len(segments["a"]), len(segments["b"])) == counts
    assert offset in segments["b"]
    assert all(max(width) == 2 for direction, width in segments["a"].items() if direction != offset)


def test_all_fields_are_exchanged_with_the_largest_width() -> None:
    grid = hc.Grid((16, 16, 16), periodic=(True, True, False))
    boundary = {"z-": hc.Value(0.0), "z+": hc.Value(0.0)}
    for name in ("p", "v", "w"):
        grid.field(name, boundary=boundary)

    def step(p: Any, v: Any, w: Any) -> None:
        v.set(v + p[2, 0, 0] - p[-2, 0, 0])
        w.set(v[0, 1, 0] + 2 * w)
        p.set(p + w)

    read, uniform = schedules(step, grid, "p", "v", "w")
    numbers = {info.name: n for n, info in enumerate(uniform.fields)}
    exchanges = [sweep.exchange for sweep in read.sweeps() if sweep.exchange]
    widened = [sweep.exchange for sweep in uniform.sweeps() if sweep.exchange]
    assert [set(footprints) for footprints in exchanges] == [{numbers["p"]}, {numbers["v"]}]
    assert [set(footprints) for footprints in widened] == [{numbers["p"], numbers["v"]}] * 2
    assert all(footprint == whole(2, 3) for footprints in widened for footprint in footprints.values())
    halos = {info.name: info.halo for info in uniform.fields}
    assert halos["p"] == halos["v"] == ((2, 2),) * 3
    assert halos["w"] == ((0, 0),) * 3, "nobody reads it from a neighbour"
    assert read.source == uniform.source
    assert [s.reads for s in read.sweeps()] == [s.reads for s in uniform.sweeps()]
    assert [s.fills for s in read.sweeps()] == [s.fills for s in uniform.sweeps()]


def test_computation_in_the_halo_does_not_overwrite_exchanged_cells() -> None:
    grid = hc.Grid((16, 16), periodic=True)
    for name in "auvwx":
        grid.field(name)

    def step(a: Any, u: Any, v: Any, w: Any, x: Any) -> None:
        w.set(u[1, 0])
        v.set(a[1, 0] + w[1, 0])
        u.set(2.0 * a)
        x.set(u[1, 0])

    _, uniform = schedules(step, grid, *"auvwx")
    names = [{uniform.fields[n].name for n in sweep.exchange} for sweep in uniform.sweeps()]
    assert names == [{"a", "u", "w"}, {"a", "w"}, set()]


def test_cells_computed_in_the_halo_are_not_exchanged() -> None:
    """The search direction of conjugate gradients is not exchanged; the residual is, with its corners."""
    grid = hc.Grid((32, 32), walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    problem = hc.LinearProblem(lambda v: -hc.laplacian(v), u, 1.0, halo="uniform")
    names = [info.name for info in problem.schedule.fields]
    _, first, repeated, _ = problem.schedule.sweeps()  # the first sweep sets the start
    for sweep in (first, repeated):
        assert sweep.halo_kernel is not None
        assert {names[n]: footprint for n, footprint in sweep.exchange.items()} == {
            "u": whole(1, 2),
            "r": whole(1, 2),
        }


@pytest.mark.ranks(2)
def test_larger_exchanges_and_thin_subdomains_are_reported() -> None:
    from halocline.study.measuring.exchange import busiest_rank_traffic

    def simulation(n: int, halo: str) -> hc.Simulation:
        grid = hc.Grid((n, 24), periodic=True)
        grid.field("T")
        grid.field("S")

        def wide(T: Any, S: Any) -> Any:
            return {T: T[0, 3] - T[0, -3], S: S[1, 0] - T[1, 0]}

        return hc.Simulation(
            grid, wide, scheme=hc.Euler(), dt=1e-3, threads=1, halo=halo, decomposition="1d-x", methods="mpi"
        )

    amounts = [
        sum(busiest_rank_traffic(simulation(24, halo).prepared)[1].values()) for halo in ("read", "uniform")
    ]
    assert amounts[1] > 3 * amounts[0]
    simulation(4, "read").run(steps=1)
    with pytest.raises(InputError, match="axis x with 4 cells cannot be cut into 2 subdomains of at least 3"):
        simulation(4, "uniform")


def test_explain_reports_uniform_halos(capfd: pytest.CaptureFixture[str]) -> None:
    line = ["explain", "poisson", "--n", "64", "--ranks", "4", "--halo"]
    assert run([*line, "uniform"]) == 0
    output = capfd.readouterr().out
    assert "Uniform halos: each exchange transfers all exchanged fields with the widest halo width" in output
    assert "because halos are uniform" in output
    assert "corners are neither read nor exchanged" not in output
    assert run([*line, "read"]) == 0
    assert "uniform" not in capfd.readouterr().out
    with pytest.raises(InputError, match="halo 'wide' is unknown; known: read, faces, edges, uniform"):
        run([*line, "wide"])
    grid = hc.Grid((32, 32), periodic=True)
    grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.Euler(), dt=1e-4, halo="uniform")
    assert telling.explain(sim, ranks=4).halo == "uniform"
