"""Messages of an exchange."""

from __future__ import annotations

from executed_plans import check, cube, make_schedule, one_field, plan_subdomain, star
from halocline.compile.footprint import Footprint
from halocline.plan import decompose
from halocline.plan.box import Box


def test_two_ranks_along_a_periodic_axis_are_neighbours_twice():
    program = one_field((True,), [(-1,), (2,)])
    schedule = program.schedule
    d = decompose((8,), 2, thickness=2)
    first, second = (plan_subdomain(schedule, d, rank).sweeps[0] for rank in (0, 1))
    assert [m.peer for m in first.sends] == [1, 1]
    assert len({m.tag for m in first.sends}) == 2
    assert {m.tag for m in first.sends} == {m.tag for m in second.receives}
    assert sorted(m.bytes for m in first.sends) == [8, 16]
    check(program, d)


def test_poisson_on_four_ranks_exchanges_sides():
    schedule = one_field((False, False), star(2, 1)).schedule
    d = decompose((1024, 1024), 4, strategy="1d", periodic=False)
    plan = plan_subdomain(schedule, d, 1)
    assert plan.box == Box((256, 0), (512, 1024))
    assert plan.neighbours == {(-1, 0): 0, (1, 0): 2}
    (sweep,) = plan.sweeps
    assert [m.bytes for m in sweep.receives] == [8192, 8192]
    assert sweep.bytes_sent == sweep.bytes_received == 16384
    assert not sweep.copies
    assert [schedule.operations[0].fills[f.fill].axis for f in sweep.fills] == [1, 1]
    assert not any(f.rims for f in sweep.fills)  # no corner is read
    assert plan.memory == 258 * 1026 * 8
    assert plan_subdomain(schedule, d, 0).neighbours == {(1, 0): 1}


def test_only_required_segments_are_exchanged():
    """A wide read of one field does not widen the halo of another; corners are exchanged if they are read."""
    schedule = make_schedule(
        (True, True),
        [("float64", (False, False)), ("float32", (False, False))],
        [
            (
                {0: Footprint.from_offsets(star(2, 2)), 1: Footprint.from_offsets(cube(2, 1))},
                [Footprint()] * 2,
                (),
            )
        ],
    )
    d = decompose((30, 40), 9, strategy=(3, 3), thickness=2)
    sweep = plan_subdomain(schedule, d, 4).sweeps[0]
    sizes = {m.direction: m.bytes for m in sweep.receives}
    n, m = d.box(4).shape
    assert sizes == {
        (-1, 0): 2 * m * 8 + m * 4,
        (1, 0): 2 * m * 8 + m * 4,
        (0, -1): 2 * n * 8 + n * 4,
        (0, 1): 2 * n * 8 + n * 4,
        **{(a, b): 4 for a in (-1, 1) for b in (-1, 1)},
    }


def test_each_neighbour_and_direction_has_one_message():
    """Slabs of a periodic box with 26 segments send two messages, not eighteen; eight segments are copies."""
    schedule = one_field((True, True, True), cube(3, 1)).schedule
    d = decompose((12, 6, 6), 3, strategy=(3, 1, 1))
    sweep = plan_subdomain(schedule, d, 1).sweeps[0]
    assert [m.direction for m in sweep.receives] == [(-1, 0, 0), (1, 0, 0)]
    assert [len(m.parts) for m in sweep.receives] == [9, 9]
    assert sum(m.bytes for m in sweep.receives) == 2 * 8 * 8 * 8
    assert len(sweep.copies) == 8


def test_exchanges_of_one_schedule_have_their_own_tags():
    footprint = {0: Footprint.from_offsets(cube(2, 1))}
    schedule = make_schedule(
        (True, True), [("float64", (False, False))], [(footprint, [Footprint()], ())] * 3
    )
    sweeps = plan_subdomain(schedule, decompose((9, 9), 9), 4).sweeps
    tags = [m.tag for s in sweeps for m in s.sends]
    assert len(tags) == len(set(tags)) == 24
    assert max(tags) <= 32767  # the minimum of the upper bound that MPI guarantees
