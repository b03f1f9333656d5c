"""Stages: locations of their points, lifetimes, and shared memory slots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.compile.compiler import arranged, compile_program
from halocline.compile.ir.statements import Slot
from halocline.compile.passes.scratch import stage_uses
from halocline.errors import InputError
from halocline.run.ranks.mpi import world
from stage_chains import chain
from suites import cases

# -- locations ---------------------------------------------------------------------------------------


@pytest.mark.ranks(1, 2, 3, long=(1, 2))
@pytest.mark.parametrize("storage", ["inline", "patch", "array"])
def test_a_flux_from_cell_values_includes_the_upper_wall_face(storage: str) -> None:
    """The flux has a face at the upper wall, in reductions and arrays too; the solution agrees with NumPy."""
    grid = hc.Grid((9, 6), periodic=(False, True))
    u = grid.field("u", boundary=hc.Value(0.25))

    @hc.program
    def step(u: Any) -> None:
        largest, total, count = hc.scalars("largest total count")
        flux = hc.stage(u * u - u[-1, 0], "flux", storage=storage, location="face-x")
        largest.set(hc.max(flux))
        total.set(hc.sum(3 * flux))
        count.set(hc.count(flux < 1e9))
        u.set(u - 0.1 * (flux[1, 0] - flux))

    sim = hc.Simulation(grid, step)
    start = np.random.default_rng(4).uniform(size=grid.shape)
    sim[u] = start
    outcome = sim.run(steps=1)
    wide = np.pad(start, ((1, 1), (0, 0)))
    wide[0], wide[-1] = 0.5 - start[0], 0.5 - start[-1]
    flux = wide[1:] ** 2 - wide[:-1]
    assert flux.shape == (10, 6)
    assert outcome.scalars["count"] == flux.size
    assert outcome.scalars["largest"] == pytest.approx(flux.max(), rel=1e-14)
    assert outcome.scalars["total"] == pytest.approx(3 * flux.sum(), rel=1e-13)
    if world().size == 1:  # on several ranks the view is only a part
        np.testing.assert_allclose(sim[u], start - 0.1 * (flux[1:] - flux[:-1]), rtol=1e-13)


@pytest.mark.ranks(1, 2, 4, long=(1, 2))
@pytest.mark.parametrize("storage", ["inline", "patch", "array"])
def test_electric_fields_on_edges_preserve_the_divergence(storage: str) -> None:
    """The curl of an edge field keeps the divergence of a face field (constrained transport)."""
    grid = hc.Grid((8, 10), periodic=(True, False))
    b = grid.vector("b", location="face", boundary=hc.Symmetric())
    v = grid.vector("v", boundary=hc.Antisymmetric())

    @hc.program
    def step(b: Any, v: Any) -> None:
        at = hc.stage(v[0] * hc.shift(b[1], 1) - v[1] * hc.shift(b[0], 0), "at", storage="patch")
        mean = 0.25 * (at + at[-1, 0] + at[0, -1] + at[-1, -1])
        emf = hc.stage(mean, "emf", storage=storage, location="edge-z")
        hc.assign({b[0]: b[0] - 0.1 * (emf[0, 1] - emf), b[1]: b[1] + 0.1 * (emf[1, 0] - emf)})

    sim = hc.Simulation(grid, step)
    draw = np.random.default_rng(5)
    for f in (*b, *v):
        sim[f] = draw.uniform(-1, 1, f.points)
    divergence = (b[0][1, 0] - b[0]) + (b[1][0, 1] - b[1])
    start = sim[b[0]].copy()
    before = sim.evaluate(hc.sum(divergence * divergence))
    point_values = [sim.evaluate(hc.value(divergence, x=0.3, y=0.5))]
    sim.run(steps=5)
    assert float(np.abs(sim[b[0]] - start).max()) > 1e-3
    after = sim.evaluate(hc.sum(divergence * divergence))
    point_values.append(sim.evaluate(hc.value(divergence, x=0.3, y=0.5)))
    assert before == pytest.approx(after, rel=1e-13)
    assert point_values[0] == pytest.approx(point_values[1], abs=1e-14)


def test_invalid_locations_are_rejected() -> None:
    grid = hc.Grid((4, 4), periodic=True)
    grid.field("u")

    def run(**options: Any) -> None:
        def step(u: Any) -> None:
            u.set(u + hc.stage(u * 2, "twice", **options))

        hc.Simulation(grid, hc.program(step))

    with pytest.raises(InputError, match="stage 'twice': location 'face-z' names an axis"):
        run(location="face-z")
    with pytest.raises(InputError, match="stage 'twice': location 'middle' is unknown; expected one of cell"):
        run(location="middle")
    with pytest.raises(InputError, match="expected one location as text, such as 'cell'"):
        run(location=["cell"])


def test_components_have_their_own_locations() -> None:
    grid = hc.Grid((4, 4))
    u = grid.field("u", boundary=hc.Symmetric())

    @hc.program
    def step(u: Any) -> None:
        flux = hc.stage(hc.grad(u), "flux", location="face")
        assert [part.staggered for part in flux] == [(True, False), (False, True)]
        with pytest.raises(InputError, match=r"stage of 2 components: location .* has 1"):
            hc.stage(hc.grad(u), "other", location=["cell"])
        u.set(flux[0][0, 0] + flux[1][0, 0])

    compile_program(step.trace(u), grid)


# -- lifetimes ---------------------------------------------------------------------------------------


def test_stages_of_a_chain_take_two_slots() -> None:
    grid = hc.Grid(64, periodic=True)
    grid.field("u")
    program = hc.program(lambda u: u.set(chain(u, 7))).trace(grid.fields["u"])
    (nests,) = arranged(program, grid).nests.values()
    lives, slots = stage_uses(nests.kernel)
    assert [(life.first, life.last) for life in lives] == [(n, n + 1) for n in range(7)]
    assert [life.slot for life in lives] == [0, 1, 0, 1, 0, 1, 0]
    # each slot is as large as the largest of its stages
    assert [slot.extra for slot in slots] == [(lives[0].extra), (lives[1].extra)]
    (sweep,) = compile_program(program, grid).sweeps()
    assert sweep.scratch == (Slot(0, 8, (12,)), Slot(1, 8, (10,)))


def test_a_stage_read_while_another_is_stored_keeps_its_memory() -> None:
    grid = hc.Grid(64, periodic=True)
    u, v = grid.field("u"), grid.field("v", dtype="float32")

    @hc.program
    def step(u: Any, v: Any) -> None:
        first = hc.stage(u[1] * u[-1], "first", storage="patch")
        second = hc.stage(first[1] + first[-1], "second", storage="patch")
        third = hc.stage(second[1] * first, "third", storage="patch")
        other = hc.stage(v[1] * v[-1], "other", storage="patch")
        hc.assign({u: third[1] - third[-1], v: other[1] * v})

    (nests,) = arranged(step.trace(u, v), grid).nests.values()
    lives, slots = stage_uses(nests.kernel)
    for one in lives:
        for other in lives:
            if one is not other and one.slot == other.slot:
                assert one.last < other.first or other.last < one.first
                assert one.item == other.item
    assert len(slots) == 4  # the third stage reads the first; float32 stages have separate memory


@pytest.mark.parametrize("length", [3, 12])
def test_bits_do_not_depend_on_patches(length: int) -> None:
    def bits(**options: Any) -> str:
        grid = hc.Grid(200, periodic=True)
        u = grid.field("u")
        sim = hc.Simulation(grid, hc.program(lambda u: u.set(0.5 * chain(u, length) + 0.1)), **options)
        sim[u] = np.random.default_rng(6).uniform(0, 1, 200)
        sim.run(steps=1)
        return sim.checksum(u)

    assert len({bits(), bits(patch=30), bits(threads=2, patch=61)}) == 1


# -- devices -----------------------------------------------------------------------------------------


@cases("length", [3, 20], default=[3])
def test_a_thread_block_keeps_stages_that_fit(opencl: Any, length: int) -> None:
    """The last stages are stored in shared memory in turn, and the earlier ones in global memory."""

    def flow(**options: Any) -> tuple[hc.Simulation, str]:
        grid = hc.Grid((40, 150), periodic=(True, False))
        u = grid.field("u", boundary=hc.Symmetric())

        def step(u: Any) -> None:
            value = u
            for n in range(length):
                value = hc.stage(0.3 * (value[1, 0] + value[0, -1]) + 0.1 * u, f"s{n}", storage="patch")
            u.set(value[0, 1] + 0.1)

        sim = hc.Simulation(grid, hc.program(step), **options)
        sim[u] = np.random.default_rng(8).uniform(0, 1, grid.shape)
        sim.run(steps=2)
        return sim, sim.checksum(u)

    reference = flow()[1]
    sim, checksum = flow(device="opencl")
    assert checksum == reference
    device = sim.schedule.device
    assert device is not None
    (kernels,) = (parts for name, parts in device.kernels.items() if name.startswith("sweep"))
    apart = len(kernels) - 1
    assert [any(split.kind == "block" for split in kernel.splits) for kernel in kernels] == [
        False
    ] * apart + [True]
    assert (0 < apart < 12) if length > 12 else apart == 0
    assert all(kernel.scratch for kernel in kernels) == (apart > 0)
    assert flow(device="opencl", subdomains_per_rank=2)[1] == reference
