"""Grids with inactive blocks: results next to them, their cost, and wrong input."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
import suites
from compared_blocks import check_blocks, spread
from halocline.compile.compiler import compile_program
from halocline.errors import InputError
from halocline.lang.blocks import Blocks
from halocline.plan.decompose import decompose
from halocline.plan.layout import Layout
from halocline.plan.patches import cut_patches
from halocline.plan.rank import plan_subdomain
from halocline.plan.subdomain import Subdomain
from halocline.plan.transfer import Transfers
from hang import HANG
from loops import some
from random_blocks import cases


@st.composite
def grids(draw: st.DrawFn) -> tuple[tuple[int, ...], np.ndarray[Any, Any]]:
    shape = tuple(draw(st.lists(st.integers(1, 20), min_size=1, max_size=3)))
    counts = tuple(draw(st.integers(1, min(n, 5))) for n in shape)
    bits = draw(st.lists(st.booleans(), min_size=int(np.prod(counts)), max_size=int(np.prod(counts))))
    mask = np.array(bits, dtype=bool).reshape(counts)
    mask[draw(st.sampled_from(list(np.ndindex(counts))))] = True
    return shape, mask


@given(grids(), st.data())
@settings(max_examples=60)
def test_boxes_and_patches_cover_the_active_cells_once(
    grid: tuple[tuple[int, ...], np.ndarray[Any, Any]], data: st.DataObject
) -> None:
    shape, mask = grid
    blocks, active_cells = Blocks.of(mask, shape), spread(mask, shape)
    assert blocks.cells == active_cells.sum()
    lo = tuple(data.draw(st.integers(0, n - 1)) for n in shape)
    hi = tuple(data.draw(st.integers(l + 1, n)) for l, n in zip(lo, shape, strict=True))
    box = tuple(map(slice, lo, hi))
    covered = np.zeros(shape, dtype=int)
    for piece in blocks.pieces(lo, hi):
        covered[tuple(map(slice, *piece))] += 1
    assert (covered[box] == active_cells[box]).all()
    assert covered.sum() == active_cells[box].sum()
    assert blocks.has_active_cell(lo, hi) == active_cells[box].any()

    parts = tuple(data.draw(st.integers(1, min(n, 3))) for n in shape)
    cut = decompose(shape, int(np.prod(parts)), strategy=parts, radius=0)
    covered[:] = 0
    for number in range(cut.count):
        subdomain = Subdomain(cut, number)
        patch = data.draw(st.none() | st.integers(1, 9))
        none = [(0, 0)] * len(shape)
        patches = cut_patches(subdomain, [], none, patch=patch, threads=2, blocks=blocks)
        assert len(patches.owners) == len(patches)
        assert subdomain.active(blocks) == (len(patches) > 0)
        for first, end, _ in patches.table:
            origin = np.array(subdomain.box.lo)
            covered[tuple(map(slice, origin + first, origin + end))] += 1
    assert (covered == active_cells).all()


def smooth(u: Any, v: Any, inside: Any) -> None:
    """Read corners and beyond walls; `inside` is 1 in cells that keep the result, or None."""

    def masked(value: Any) -> Any:
        return value if inside is None else hc.where(inside > 0, value, 0.0)

    total = hc.scalar("total")
    p = hc.stage(hc.exp(-u * u) - 0.2 * u[1, -1], "p")
    v.set(masked(p[-1, 1] + 0.3 * u[0, 2] + 1.0))
    u.set(masked(u + 0.1 * (v[1, 1] - v) + 0.2))
    total.set(hc.sum(masked(u * v)))
    u.set(masked(u + 1e-4 * total))


@pytest.mark.ranks(1, 3, long=(1,))
def test_a_grid_with_holes_has_the_bits_of_one_where_results_are_set_to_zero() -> None:
    mask = np.array([[0, 0, 1, 1], [1, 1, 1, 0], [1, 0, 0, 1]], dtype=bool)
    shape = (25, 31)
    results = []
    for holes in (True, False):
        grid = hc.Grid(shape, periodic=(False, True), active=mask if holes else None)
        u = grid.field("u", boundary=hc.Derivative(0.4))
        v = grid.field("v", boundary=hc.Value(1.5))

        if holes:
            sim = hc.Simulation(grid, hc.program(lambda u, v: smooth(u, v, None)), threads=2)
        else:
            inside = grid.field("inside", boundary=hc.Value(0.0))
            sim = hc.Simulation(grid, hc.program(lambda u, v, inside: smooth(u, v, inside)), threads=2)
            sim[inside] = spread(mask, shape).astype(float)
        sim[u] = np.random.default_rng(2).uniform(-1, 1, shape) * spread(mask, shape)
        sim.run(steps=4)
        results.append((sim.gather(u), sim.gather(v), sim.values["total"]))
    for a, b in some(zip(*results, strict=True)):
        assert a is None or np.array_equal(a, b)


def test_setting_a_field_leaves_inactive_cells_at_zero() -> None:
    mask = np.array([[1, 0], [0, 1]], dtype=bool)
    cells = spread(mask, (7, 9))
    grid = hc.Grid((7, 9), active=mask)
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + 1.0)))
    ways: list[Any] = [2.0, np.full((7, 9), 2.0), lambda x, y: 2.0 + 0 * x, lambda x, y: np.float64(2.0)]
    for value in ways:
        sim[u] = value
        assert np.array_equal(sim[u], 2.0 * cells)
    sim.run(steps=3)
    assert np.array_equal(sim.gather(u), 5.0 * cells)
    with pytest.raises(ValueError, match="a copy that cannot be written"):
        sim[u][0, 0] = 1.0
    assert sim.evaluate(hc.count(u > 0), hc.sum(u)) == (cells.sum(), 5.0 * cells.sum())


@pytest.mark.ranks(1, 2, long=(1,))
def test_blocks_become_active_and_inactive() -> None:
    first = np.array([[1, 1], [1, 0]], dtype=bool)
    next_mask = np.array([[0, 1, 1]], dtype=bool)
    grid = hc.Grid((12, 12), periodic=True, active=first)
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + 1.0 + 0 * u[1, 1])), subdomains_per_rank=2)
    sim[u] = 1.0
    sim.run(steps=2)
    before = 3.0 * spread(first, grid.shape)
    gathered = sim.gather(u)
    assert gathered is None or np.array_equal(gathered, before)
    sim.activate(next_mask)
    active = spread(next_mask, grid.shape)
    gathered = sim.gather(u)
    assert gathered is None or np.array_equal(gathered, before * active)
    sim.run(steps=3)
    gathered = sim.gather(u)
    assert gathered is None or np.array_equal(gathered, (before + 3.0) * active)
    assert sim.evaluate(hc.count(u > 0)) == active.sum()


MEMORY = """
import sys
import numpy as np
import halocline as hc
from halocline.run.ranks.mpi import world

def resident():
    with open("/proc/self/smaps_rollup") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Rss:")) / 1024

mask = np.zeros((8, 8, 1), dtype=bool)
mask[{active}] = True
grid = hc.Grid((64, 128, 256), periodic=True, active=mask)
u = grid.field("u")
sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + 0.1 * (u[1, 1, 0] - u[-1, 0, 1]))), threads=2)
empty = resident()
sim[u] = 1.0
sim.run(steps=2)
sim.checksum(u), sim.evaluate(hc.sum(u))
held = np.array(world().allgather(resident() - empty)).sum()
if world().rank == 0:
    print(f"{{held:.0f}}")
"""


@suites.cases("ranks", [1, 2], default=[1])
def test_an_inactive_block_holds_no_memory(ranks: int) -> None:
    from halocline.run.ranks import launch

    def megabytes(active: str) -> float:
        command = [sys.executable, "-c", MEMORY.format(active=active)]
        if ranks > 1:
            command = [str(launch.mpiexec()), "-n", str(ranks), *command]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG)
        return float(run.stdout.split()[-1])

    # seven eighths of two buffers of 16 MiB, except for pages at borders, and halos
    assert megabytes(":") - megabytes("::2, ::4") > 24


def test_explain_reports_the_number_of_active_cells() -> None:
    grid = hc.Grid((8, 8), active=[[True, False], [True, True]])
    grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + 1.0)))
    assert "48 of these 64 cells are in active blocks" in str(hc.explain(sim))


def wrong() -> list[tuple[Any, str]]:
    return [
        (np.ones((2, 2, 2), dtype=bool), "active has 3 axes; expected 2"),
        (np.ones((2, 9), dtype=bool), "active has 9 blocks along axis y of 8 cells; expected 1 to 8"),
        (np.ones((2, 2)), "active has entries of dtype float64; expected True or False"),
        (np.zeros((2, 2), dtype=bool), "active has no active block"),
    ]


@pytest.mark.parametrize(("mask", "words"), wrong())
def test_invalid_masks_are_reported(mask: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        hc.Grid((8, 8), active=mask)


def test_values_at_inactive_points_are_rejected() -> None:
    grid = hc.Grid((8, 8), active=[[True, False]])
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + hc.value(u, (1, 1)))))
    sim[u] = 1.0
    with pytest.raises(
        InputError, match=r"the value at \(3, 7\) is requested, but this cell lies in an inactive block"
    ):
        sim.evaluate(hc.value(u, (3, -1)))
    with pytest.raises(InputError, match=r"the value at \(1, 1\) is requested, but"):
        sim.activate([[False, True]])
    sim.run(steps=1)  # nothing was lost
    assert np.array_equal(sim[u], 2.0 * spread(np.array([[True, False]]), (8, 8)))
    plain = hc.Grid((8, 8))
    plain.field("u")
    sim = hc.Simulation(plain, hc.program(lambda u: u.set(u + 1.0)))
    with pytest.raises(InputError, match="Create it with active="):
        sim.activate([[True]])


def test_a_mostly_inactive_grid_may_exceed_memory() -> None:
    grid = hc.Grid((2**20, 2**22), active=[[True], [False]])  # half of 35 TB is too much
    grid.field("u")
    with pytest.raises(InputError, match="the fields need 17,592"):
        hc.Simulation(grid, hc.program(lambda u: u.set(u + 1.0)))
    mask = np.zeros((2**12, 1), dtype=bool)
    mask[2000] = True
    grid = hc.Grid((2**20, 2**14), active=mask)  # 137 GB, of which 34 MB are active
    u = grid.field("u")
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u + 1.0)))
    sim.run(steps=2)
    assert sim.evaluate(hc.sum(u)) == 2.0 * 256 * 2**14


def test_a_delayed_time_step_is_exact_after_a_change_of_blocks() -> None:
    grid = hc.Grid((16, 8), periodic=True, active=[[True], [False]])
    u = grid.field("u")
    sim = hc.Simulation(
        grid, lambda u: {u: 0.0 * u}, scheme=hc.Euler(), dt=lambda u: hc.max(u), time_step="delayed"
    )
    sim[u] = lambda x, y: 1.0 + x
    sim.run(steps=3)
    sim.activate([[True, False], [False, False], [False, False], [False, False]])
    expected = sim.evaluate(hc.max(u))
    before = sim.time
    sim.run(steps=1)
    assert sim.time - before == pytest.approx(expected)


@given(cases())
@settings(max_examples=suites.examples(4, 8), deadline=None)
def test_random_holes_have_the_bits_of_dense_fields(case: dict[str, Any]) -> None:
    check_blocks(case)


def test_blocks_have_no_walls_between_them() -> None:
    """A block next to an inactive one reads zeros, not the ghosts of a boundary condition."""
    grid = hc.Grid((6,), active=[True, False, True])
    u = grid.field("u", boundary=hc.Value(5.0))
    sim = hc.Simulation(grid, hc.program(lambda u: u.set(u[1])))
    sim[u] = np.arange(1.0, 7.0)
    sim.run()
    assert sim[u].tolist() == [2.0, 0.0, 0.0, 0.0, 6.0, 4.0]


def test_ghosts_beside_blocks_are_filled_for_later_sweeps() -> None:
    """Ghosts are formed next to blocks for which only a later sweep reads them.

    The ghosts of g beyond y- are computed from those of f beyond x-, next to inactive blocks. The previous
    sweep also reads f beyond x-, but only next to active blocks.
    """
    mask = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 1]], dtype=bool)
    grid = hc.Grid((6, 6), active=mask)
    f = grid.field("f", boundary={"x-": hc.Value(5.0)})
    g = grid.field("g", boundary={"x-": hc.Value(0.0), "y-": hc.BoundaryKernel(lambda q: q.of(f)[4])})
    first, second = grid.field("first"), grid.field("second")

    @hc.program
    def program() -> None:
        first.set(f[-1, 0])
        with hc.loop(limit=1):  # a separate sweep
            second.set(g[-1, -1] + f[-1, 0])

    sim = hc.Simulation(grid, program)
    sim[f] = np.ones((6, 6)) * spread(mask, (6, 6))
    sim.run()
    assert sim[first][0].tolist() == [9.0, 9.0, 0.0, 0.0, 0.0, 0.0]
    # beyond both walls, g is the ghost of f next to cell (0, 4), which is zero
    assert sim[second][0].tolist() == [10.0 + 9.0, 9.0, 0.0, 0.0, 0.0, 0.0]


def test_a_subdomain_without_an_active_cell_is_sent_nothing() -> None:
    """A subdomain without an active cell neither sends nor receives messages, so that both sides match."""
    grid = hc.Grid((12, 4), active=[[True], [False], [True]])
    u = grid.field("u", boundary=hc.Value(0.0))
    v = grid.field("v")
    program = hc.program(lambda: v.set(u[1, 0] + u[-1, 0] + u[0, 1]))
    schedule = compile_program(program.trace(), grid)
    for parts in ((3, 1), (3, 2)):
        cuts = decompose(grid.shape, parts[0] * parts[1], strategy=parts, periodic=False)
        sent, received = set(), set()
        for number in range(cuts.count):
            (sweep,) = plan_subdomain(schedule, Transfers(Layout.of(cuts), ("self", "mpi")), number).sweeps
            sent |= {(number, message.peer, message.tag) for message in sweep.sends}
            received |= {(message.peer, number, message.tag) for message in sweep.receives}
        assert sent == received
        # messages between the halves of active blocks, which read upward
        assert len(sent) == {1: 0, 2: 2}[parts[1]]


def test_ghosts_are_filled_beside_an_inactive_block_thinner_than_the_halo() -> None:
    """Ghosts are formed next to an inactive block that is thinner than a read across it."""
    grid = hc.Grid((6,), active=[False, True, True, True, True, True])
    u = grid.field("u", boundary=hc.Value(5.0))
    v = grid.field("v")
    sim = hc.Simulation(grid, hc.program(lambda: v.set(u[-2])))
    sim[u] = np.arange(1.0, 7.0)
    sim.run()
    assert sim[v].tolist() == [0.0, 10.0, 0.0, 2.0, 3.0, 4.0]
