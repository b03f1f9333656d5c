"""Plans of ranks: executed in NumPy, and compared with the whole grid."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tracemalloc
from itertools import product
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suites
from executed_plans import Program, check, cube, make_schedule, one_field, plan_subdomain, segment, star
from halocline.compile.footprint import Footprint
from halocline.plan import Traffic, decompose
from halocline.plan.fit import least_thickness
from work import lines

# --- random programs on random subdomains ---


@st.composite
def cases(draw):
    ndim = draw(st.integers(1, 3))
    parts = tuple(draw(st.integers(1, 3 if ndim < 3 else 2)) for _ in range(ndim))
    if ndim == 3 and draw(st.booleans()):
        parts = (3, *parts[1:])
    periodic = tuple(draw(st.booleans()) for _ in range(ndim))
    most = draw(st.integers(1, 3 if ndim < 3 else 2))
    offset = st.tuples(*[st.integers(-most, most)] * ndim)
    fields = [
        (draw(st.sampled_from(["float64", "float32"])), [draw(st.integers(0, 3)) == 0 for _ in range(ndim)])
        for _ in range(draw(st.integers(1, 3)))
    ]
    offsets = [
        {n: draw(st.lists(offset, min_size=1, max_size=5)) for n in range(len(fields)) if draw(st.booleans())}
        for _ in range(draw(st.integers(1, 2)))
    ]
    reach = draw(st.integers(1, 2))
    sweeps = []
    for reads in offsets:
        footprints = {n: Footprint.from_offsets(o) for n, o in reads.items()}
        footprints = {n: p for n, p in footprints.items() if p}
        valid = {
            n: Footprint(tuple(s for s in p if draw(st.integers(0, 4)) == 0)) for n, p in footprints.items()
        }
        sweeps.append((footprints, valid, Footprint()))
    schedule = make_schedule(periodic, fields, sweeps, reach)
    program = Program(schedule, offsets, [{} for _ in offsets], reach)
    least = least_thickness(schedule)
    shape = tuple(p * max(1, t) + draw(st.integers(0, 2 * p)) for p, t in zip(parts, least, strict=True))
    patch = draw(st.none() | st.tuples(*[st.integers(1, 4)] * ndim))
    decomposition = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=least)
    return program, decomposition, patch


@settings(max_examples=suites.examples(80, 200), deadline=None)
@given(cases())
def test_every_halo_cell_that_is_read_is_correct(case):
    check(*case)


@suites.cases("periodic", product([True, False], repeat=2), default=[(True, False)])
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (1, 2), (2, 2), (3, 2)])
@pytest.mark.parametrize("offsets", [star(2, 1), star(2, 2), cube(2, 1), cube(2, 2)])
@pytest.mark.parametrize("extra", [0, 1])
def test_plans_of_thin_subdomains_are_correct(periodic, parts, offsets, extra):
    """Subdomains may be as thin as the halo (one cell for one layer), and have unequal sizes."""
    program = one_field(periodic, offsets)
    schedule = program.schedule
    least = least_thickness(schedule)
    shape = tuple(p * t + extra for p, t in zip(parts, least, strict=True))
    d = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=least)
    check(program, d, patch=1)


@suites.cases(
    "periodic", product([True, False], repeat=3), default=[(True, False, True), (False, True, False)]
)
@pytest.mark.parametrize("parts", [(1, 1, 1), (2, 1, 1), (1, 2, 1), (2, 2, 2), (3, 1, 2)])
def test_plans_with_corners_in_three_dimensions_are_correct(periodic, parts):
    program = one_field(periodic, cube(3, 1), staggered=(True, False, True))
    d = decompose(tuple(2 * p + 1 for p in parts), prod(parts), strategy=parts, periodic=periodic)
    check(program, d, patch=2)


@suites.cases("periodic", product([True, False], repeat=2), default=[(True, False)])
@pytest.mark.parametrize("parts", [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize(("reads", "extent"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("staggered", [(False, False), (True, False)])
def test_halo_kernels_run_where_their_reads_are_valid(periodic, parts, reads, extent, staggered):
    program = one_field(periodic, star(2, reads), star(2, extent), staggered=staggered)
    schedule = program.schedule
    least = least_thickness(schedule)
    shape = tuple(4 * p + 1 for p in parts)
    d = decompose(shape, prod(parts), strategy=parts, periodic=periodic, thickness=least)
    check(program, d, patch=3)
    for rank in range(d.count):
        plan = plan_subdomain(schedule, d, rank)
        computed = [
            (
                halo.box.lo,
                tuple(h + (t and s) for h, t, s in zip(halo.box.hi, halo.top, staggered, strict=True)),
            )
            for halo in plan.sweeps[0].halos
        ]
        expected = [
            segment(plan, 0, s, tuple(extent * abs(c) for c in s))
            for s in star(2, 1)
            if any(s) and d.neighbour(rank, s) is not None
        ]
        assert sorted(computed) == sorted((box.lo, box.hi) for box in expected)


# --- plain data, planned quickly ---


def test_plans_are_plain_data():
    schedule = one_field((True, False), cube(2, 1), star(2, 1)).schedule
    plan = plan_subdomain(schedule, decompose((32, 32), 4, periodic=(True, False)), 3, threads=2)
    text = json.dumps(plan.to_dict())
    again = pickle.loads(pickle.dumps(plan))
    assert json.dumps(again.to_dict()) == text
    data = json.loads(text)
    assert data["subdomain"] == 3
    assert data["memory_bytes"] == plan.memory
    assert len(data["sweeps"][0]["receives"]) == len(plan.sweeps[0].receives) > 0
    with pytest.raises(ValueError, match="read-only"):
        plan.patches.table[0, 0, 0] = 1


def test_planning_is_fast():
    """A right-hand side of magnetohydrodynamics is planned quickly.

    It has eight fields, sides and edges, and 512³ cells per rank.
    """
    footprint = Footprint.from_offsets(
        o for o in cube(3, 3) if sum(map(bool, o)) <= 2 and len({abs(c) for c in o if c}) <= 1
    )
    fields = [("float64", (False,) * 3)] * 16
    reads = dict.fromkeys(range(8), footprint)
    schedule = make_schedule((True,) * 3, fields, [(reads, [Footprint()] * 16, ())])
    d = decompose((1024,) * 3, 8, thickness=3)
    # many patches, since MPI must be called between patches
    assert 512**3 / 2**16 < len(plan_subdomain(schedule, d, 5).patches) < 6000
    assert lines(lambda: plan_subdomain(schedule, d, 5)) < 150_000


def test_one_rank_of_very_many_is_planned_fast():
    """Neither time nor memory of planning grows with the number of ranks, at 64³ cells per rank."""
    schedule = one_field((True,) * 3, cube(3, 2)).schedule
    memory_of_plans = []
    for parts in ((5, 5, 4), (25, 20, 20), (50, 50, 40), (100, 100, 100)):

        def work(parts=parts):
            shape, count = [64 * p for p in parts], prod(parts)
            d = decompose(shape, count, traffic=Traffic.of_schedule(schedule), thickness=2)
            return plan_subdomain(schedule, d, count // 3)

        assert lines(work) < 120_000
        memory = []
        for _ in range(3):  # other threads of the test process allocate too: the minimum is that of the plan
            tracemalloc.start()
            plan = work()
            memory.append(tracemalloc.get_traced_memory())
            tracemalloc.stop()
        least, peak = map(min, zip(*memory, strict=True))
        memory_of_plans.append(least)
        assert plan.decomposition.parts == parts
        assert len(plan.neighbours) == 26
        assert peak < 500_000
    assert max(memory_of_plans) < 1.2 * min(memory_of_plans)


def test_a_rank_of_very_many_is_planned_in_a_small_process():
    """A rank of 260,000, on 32,500 nodes, is planned from the grid in a process of at most 60 MB."""
    script = """
import re, sys
from pathlib import Path
import halocline as hc
import numpy  # counts as memory, not as planning
from halocline.compile.compiler import compile_program
from halocline.lang.stepping import stepping
from halocline.plan import Traffic
from halocline.plan.fit import least_thickness
from halocline.plan.layout import lay_out
from halocline.plan.rank import plan_rank
from halocline.plan.transfer import Transfers

grid = hc.Grid((4160,) * 3, periodic=True)
T = grid.field("T")
heat = lambda kappa: {T: kappa * hc.laplacian(T)}
program = stepping(grid, heat, parameters=["kappa"], scheme=hc.RK3(), dt=1e-9, order=6).program
schedule = compile_program(program, grid)
traffic, thickness = Traffic.of_schedule(schedule), least_thickness(schedule)
sys.path.insert(0, sys.argv[1])
from work import lines
counts = []
for rank in (0, 131_313, 259_999):
    def work():
        global plan
        layout = lay_out((4160,) * 3, 260_000, ranks_per_node=8, traffic=traffic, thickness=thickness)
        plan = plan_rank(schedule, Transfers(layout), rank)
    counts.append(lines(work))
most = re.search(r"VmHWM: *(\\d+) kB", Path("/proc/self/status").read_text().replace("\\t", " "))
print(max(counts), int(most[1]) * 1024, len(plan.subdomains[0].neighbours))
"""
    support = str(Path(__file__).parents[1] / "support")
    output = subprocess.run(
        [sys.executable, "-c", script, support], capture_output=True, text=True, check=True
    ).stdout
    count, memory, neighbours = map(float, output.split())
    assert neighbours == 6
    assert count < 80_000
    assert memory < 60e6
