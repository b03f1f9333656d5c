"""Equal bits for any ranks, threads, patches and decompositions, and for fused or streaming kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import halocline as hc
from bitwise_checks import WAYS, check_all, variations
from bitwise_programs import DTYPES, heat, solve
from halocline.run.ranks.mpi import world
from loops import some
from suites import cases


@pytest.mark.parametrize(("dtype", "every"), [
    pytest.param("float64", 3, marks=pytest.mark.ranks(4)),
    pytest.param("float64", 1, marks=pytest.mark.ranks(1, 2, 4, long=(1, 2, 4))),
    pytest.param("float32", 1, marks=pytest.mark.ranks(1, 2, 4, long=(1, 2, 4))),
])  # fmt: skip
def test_every_decomposition_gives_the_same_bits(dtype: str, every: int) -> None:
    """All problems have equal bits, in one test, since the start of ranks takes longer than most problems."""
    from mpi4py import MPI

    check_all(dtype, lambda ndim: variations(MPI.COMM_WORLD.size, ndim), every)


@pytest.mark.parametrize(("dtype", "every"), [
    pytest.param("float64", 3, marks=pytest.mark.ranks(3)),
    pytest.param("float64", 1, marks=pytest.mark.ranks(1, 2, 3, long=(1, 2, 3))),
    pytest.param("float32", 1, marks=pytest.mark.ranks(1, 2, 3, long=(1, 2, 3))),
])  # fmt: skip
def test_every_layout_gives_the_same_bits(dtype: str, every: int) -> None:
    check_all(dtype, lambda ndim: WAYS, every)


@hc.program
def turn(u: Any) -> None:
    u.set(u[0, 1] - u[1, 0])


@pytest.mark.ranks(4)
def test_round_robin_ranks_on_nodes_give_the_same_bits() -> None:
    """The bits are equal for ranks placed as by ``mpiexec --map-by node``, on two simulated nodes."""
    from mpi4py import MPI

    plain = world()
    node = plain.node.Split(plain.rank % 2)
    dealt = replace(plain, node=node, ranks_per_node=2, nodes_of_ranks=(0, 1, 0, 1), _groups={})
    for problem in (heat, solve("cg-fused")):
        expected = problem("float64", communicator=MPI.COMM_SELF, threads=1)
        for methods in ("self,peer,colocated,mpi", "rma,mpi"):
            for subdomains in (1, 2):
                options = {"methods": methods, "subdomains_per_rank": subdomains, "threads": 1}
                assert problem("float64", communicator=dealt, **options) == expected
    grid = hc.Grid((24, 24), periodic=True)
    grid.field("u")
    sim = hc.Simulation(grid, turn, communicator=dealt)
    assert sim.domain.transfers is not None
    assert [sim.domain.transfers.layout.subdomains_of(rank) for rank in range(4)] == [(0,), (2,), (1,), (3,)]
    assert [subdomain.number for subdomain in hc.explain(sim, rank=1).plan.subdomains] == [2]
    node.Free()


@hc.program
def smooth(u: Any, v: Any) -> None:
    u.set(u + 0.01 * hc.laplacian(u) * u.grid.h(0) ** 2)
    v.set(u * u - 0.5)
    hc.scalar("total").set(hc.sum(v))


@hc.program
def smooth_and_search(u: Any, v: Any) -> None:
    smooth(u, v)
    hc.scalar("greatest").set(hc.max(v))
    hc.scalar("least").set(hc.min(u * v))
    hc.scalar("here").set(hc.value(v, at=(3, 4, 66)))
    hc.scalar("many").set(hc.count(v > -0.3))


@pytest.mark.parametrize("equations", [smooth, smooth_and_search])
def test_streaming_stores_give_the_same_bits(equations: Any) -> None:
    """Kernels for fields that exceed the cache give equal bits on small fields."""
    from halocline.compile.driver import compile_library
    from halocline.lang.clock import PAUSE
    from halocline.run.engine.bind import build_engine

    for dtype in some(DTYPES):
        results = {}
        for streaming in (False, True):
            grid = hc.Grid((37, 41, 67), periodic=(True, False, True))
            u = grid.field("u", dtype=dtype, boundary=hc.Value(1.0))
            v = grid.field("v", dtype=dtype)

            sim = hc.Simulation(grid, equations, patch=(8, 8, 20), threads=2)
            sim[u] = np.random.default_rng(3).uniform(-1, 1, grid.shape)
            prepared = sim.prepared
            values = prepared.values
            for name, value in {
                **grid.scalar_values(),
                "t": 0.0,
                "until": np.inf,
                PAUSE: np.inf,
                "steps": 3.0,
            }.items():
                values[prepared.schedule.scalars.index(name)] = value
            library = compile_library(prepared.schedule.source, streaming=streaming)
            build_engine(sim.store, prepared.schedule, prepared.plan, library, values).run()
            results[streaming] = [sim.checksum(u), sim.checksum(v), values.tolist()]
            if equations is smooth_and_search:
                last = sim.gather(v)
                names = ("greatest", "least", "here", "many")
                scalars = [values[prepared.schedule.scalars.index(name)] for name in names]
                assert scalars == [
                    last.max(),
                    (sim.gather(u) * last).min(),
                    last[3, 4, 66],
                    (last > -0.3).sum(),
                ]
        assert results[False] == results[True]


@cases("shape, dtype", [((5, 1203), "float64"), ((5, 7, 131), "float32")], lambda case: len(case[0]) == 2)
def test_a_solve_with_streaming_stores_gives_the_same_bits(
    shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bits are equal for sums over rows of several pieces, and for patches that split a cache line."""
    results = []
    for exceeds in (False, True):
        monkeypatch.setattr("halocline.run.engine.prepare.exceeds_cache", lambda *_, exceeds=exceeds: exceeds)
        for patch in (None, (3,) * (len(shape) - 1) + (101,)):
            grid = hc.Grid(shape, walls="node")
            u = grid.field("u", dtype=dtype, boundary=hc.Value(0))
            rhs = np.random.default_rng(5).uniform(-1e3, 1e3, shape)
            problem = hc.LinearProblem(lambda v: 0.1 * v - 1e-3 * hc.laplacian(v), u, rhs, patch=patch)
            solution = problem.solve(rtol=1e-4, max_iterations=30)
            results.append((solution.iterations, solution.fields.checksum(u), solution.residuals.tolist()))
    assert results.count(results[0]) == 4


def test_stages_give_the_same_bits_for_any_storage() -> None:
    for dtype in some(DTYPES):
        checksums = []
        for storage in ("auto", "inline", "patch"):
            grid = hc.Grid((19, 23), periodic=(True, False))
            u = grid.field("u", dtype=dtype, boundary=hc.Extrapolate(2))
            grid.field("v", dtype=dtype)

            def step(u: Any, v: Any, storage: str = storage) -> None:
                slope = hc.stage(u * u[0, 1] - 0.3 * u[1, 0] * u, "slope", storage=storage)
                flux = hc.stage(slope * u + 0.7 * slope[0, -1] * u[1, 1], "flux", storage=storage)
                v.set(u - 0.1 * (flux[0, 1] - flux) + 0.3 * flux[1, 0] * slope)

            sim = hc.Simulation(grid, hc.program(step), patch=5)
            sim[u] = np.random.default_rng(4).uniform(0.5, 1.5, grid.shape)
            sim.run()
            checksums.append(sim.checksum("v"))
        assert len(set(checksums)) == 1
