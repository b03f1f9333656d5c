"""Nests that process a patch together, plane by plane."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.compile.compiler import arranged, compile_program
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Allocate, Nest, Planes, Slot
from halocline.compile.ir.verify import InvalidKernel, verify
from halocline.compile.passes.scratch import combine_nests, planes, scratch


def kernel_of(shape: tuple[int, ...], make: Any) -> Kernel:
    grid = hc.Grid(shape, periodic=True)
    u = grid.field("u")
    (nests,) = arranged(hc.program(make).trace(u), grid).nests.values()
    return nests.kernel


def plain(name: str) -> str:
    """Return the name that the user gave to a stage."""
    return name.partition(".")[0]


def flow(u: Any) -> None:
    """Set `u` from stages: s1 reads s0 two planes up, the result three planes down, and s2 in place."""
    first = hc.stage(u[1, 0] * u[0, 1], "s0", storage="patch")
    second = hc.stage(first[2, 0] + first[0, -1], "s1", storage="patch")
    third = hc.stage(second * first[1, 0], "s2", storage="patch")
    u.set(0.1 * (third + first[-3, 0] + second[-1, 0]))


def test_nests_run_the_minimum_of_planes_ahead() -> None:
    kernel = scratch(planes(kernel_of((16, 16), flow)))
    ahead = {plain(nest.body[0].array): nest.planes_ahead for nest in kernel.body if isinstance(nest, Nest)}
    assert ahead == {"s0": 2, "s1": 0, "s2": 0, "u": 0}
    # from the stored plane to the oldest plane that is read, rounded up to a power of two
    rings = {plain(s.array): s.planes for s in kernel.body if isinstance(s, Allocate)}
    assert rings == {"s0": 8, "s1": 2, "s2": 1}
    assert [s.planes for s in kernel.body if isinstance(s, Slot)] == [8, 2, 1]
    rolled = combine_nests(kernel)
    assert isinstance(rolled.body[-1], Planes)
    # s0 begins three planes below the patch and is two ahead, so the first step is five below
    assert (rolled.body[-1].before, rolled.body[-1].after) == (5, 0)
    verify(rolled)


def test_stages_of_one_plane_reuse_memory() -> None:
    def chain(u: Any) -> None:
        value = u
        for n in range(6):
            value = hc.stage(0.4 * (value[0, 1] + value[0, -1]), f"s{n}", storage="patch")
        u.set(value)

    grid = hc.Grid((40, 40), periodic=True)
    u = grid.field("u")
    (sweep,) = compile_program(hc.program(chain).trace(u), grid).sweeps()
    assert [slot.planes for slot in sweep.scratch] == [1, 1]
    assert sweep.scratch[0].points((40, 40)) == (1, 50)


def test_grids_of_one_axis_have_no_planes() -> None:
    def chain(u: Any) -> None:
        u.set(hc.stage(u[1] * u[-1], "s", storage="patch")[1])

    kernel = kernel_of((16,), chain)
    assert planes(kernel) is kernel


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: replace(s, planes=4) if isinstance(s, Allocate) and s.planes == 8 else s, "ring of 4"),
        (
            lambda s: replace(s, planes_ahead=1) if isinstance(s, Nest) and s.planes_ahead == 2 else s,
            "1 planes ahead",
        ),
        (
            lambda s: replace(s, planes_ahead=None) if isinstance(s, Nest) and s.planes_ahead == 0 else s,
            "plane by plane",
        ),
    ],
)
def test_verify_detects_reads_of_missing_planes(change: Any, words: str) -> None:
    kernel = scratch(planes(kernel_of((16, 16), flow)))
    with pytest.raises(InvalidKernel, match=words):
        verify(combine_nests(replace(kernel, body=tuple(map(change, kernel.body)))))


offsets = st.tuples(st.integers(-2, 2), st.integers(-1, 1))
links = st.lists(st.tuples(offsets, offsets, st.integers(0, 3)), min_size=1, max_size=5)


@settings(max_examples=12, deadline=None)
@given(links, st.tuples(st.integers(1, 9), st.integers(3, 20)), st.booleans())
def test_rings_hold_all_planes_that_are_read(reads: list[Any], patch: tuple[int, int], wall: bool) -> None:
    """Rings of planes give the bits of inline stages for all patches, also for face fields at a wall."""
    if wall:  # a stage has no ghosts, so it is read along the wall only
        reads = [((0, a[1]), (0, b[1]), back) for a, b, back in reads]

    def bits(storage: str, **options: Any) -> str:
        grid = hc.Grid((19, 23), periodic=(not wall, True))
        u = grid.field("u", boundary=hc.Symmetric() if wall else None)
        f = grid.field("f", location="face-x")

        @hc.program
        def step(u: Any, f: Any) -> None:
            values = [u]
            for n, (a, b, back) in enumerate(reads):
                other = values[max(0, n - back)]
                sum_ = 0.4 * values[-1][a] + 0.3 * other[b] + 0.1 * u
                values.append(hc.stage(sum_, f"s{n}", storage=storage))
            face = hc.stage(values[-1] - values[-1][-1, 0], "face", location="face-x", storage=storage)
            hc.assign({u: values[-1] + 0.01 * (face[1, 0] - face), f: face.expr})

        sim = hc.Simulation(grid, step, **options)
        sim[u] = np.random.default_rng(6).uniform(0, 1, grid.shape)
        sim.run(steps=2)
        return sim.checksum(u) + sim.checksum(f)

    assert bits("patch", patch=patch) == bits("patch", threads=2) == bits("inline")
