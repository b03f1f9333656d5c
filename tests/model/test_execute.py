"""Execution of plans on machine files."""

from __future__ import annotations

import itertools
import math

import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.errors import InputError
from halocline.model import Rates, execute
from halocline.plan.layout import lay_out
from halocline.plan.machine import load_machine
from halocline.plan.traffic import Traffic
from halocline.study.measuring.exchange import exchange_schedule
from modelled_machine import FREE, heat, machine


def test_the_time_of_one_rank_is_its_memory_traffic() -> None:
    schedule, cut = heat(64, 1, (1, 1))
    result = execute(schedule, cut, machine(), rates=FREE)
    assert result.seconds == pytest.approx(64 * 64 * 16 / 1e9)


@pytest.mark.parametrize("ranks", [4, 16])
def test_work_is_the_bound_if_messages_are_free(ranks: int) -> None:
    side = math.isqrt(ranks)
    schedule, cut = heat(64, ranks, (side, side))
    result = execute(schedule, cut, machine(), rates=FREE)
    assert result.seconds == pytest.approx(64 * 64 / ranks * 16 / 1e9)


@pytest.mark.parametrize(("latency", "overlap"), [(1e-9, True), (1e-4, True), (1e-9, False), (1e-4, False)])
def test_overlap_hides_the_expected_share(latency: float, overlap: bool) -> None:
    """Inner patches hide the latency up to their own time; without overlap, nothing is hidden."""
    schedule, cut = heat(64, 4, (2, 2))
    result = execute(schedule, cut, machine(latency=latency), rates=FREE, overlap=overlap, patch=8)
    work, inner = 32 * 32 * 16 / 1e9, 16 * 16 * 16 / 1e9
    assert latency < inner or latency > work
    hidden = min(latency, inner) if overlap else 0.0
    assert result.seconds == pytest.approx(work + latency - hidden)


def test_a_card_is_shared_by_the_devices_of_a_node() -> None:
    """The devices of a node share a network card.

    A node of four devices carries one message up and one down per device. A node of one device carries two
    of these, and two sideways.
    """
    schedule, cut = heat(64, 8, (2, 4), per_node=4)
    slow = 1e6
    together = execute(schedule, cut, machine(4, bandwidth=slow), rates=FREE)
    assert together.seconds == pytest.approx(4 * 2 * 16 * 8 / slow, rel=0.02)
    schedule, cut = heat(64, 8, (2, 4))
    alone = execute(schedule, cut, machine(1, bandwidth=slow), rates=FREE)
    assert alone.seconds == pytest.approx(2 * (16 + 32) * 8 / slow, rel=0.02)


def test_ranks_wait_for_reductions() -> None:
    grid = hc.Grid((12, 12), periodic=True)
    grid.field("u")

    def step(u: hc.Field) -> None:
        total = hc.scalar("total")
        with hc.loop(limit=10):
            u.set(2.0 * u)
            total.set(hc.sum(u))

    schedule = compile_program(hc.program(step).trace(grid.fields["u"]), grid)
    traffic = Traffic.of_schedule(schedule)
    cut = lay_out(grid.shape, 16, ranks_per_node=1, strategy=(4, 4), traffic=traffic)
    result = execute(schedule, cut, machine(latency=1e-3), rates=FREE)
    # the work of a rank, and four hops up and down the reduction tree
    assert result.seconds == pytest.approx(9 * 16 / 1e9 + 8e-3)
    assert result.ends == pytest.approx([result.seconds * n for n in (1, 2, 3)])


@pytest.mark.parametrize("latency", [1e-9, 3e-8, 1e-3])
def test_reductions_overlap_with_independent_computation(latency: float) -> None:
    grid = hc.Grid((12, 12), periodic=True)
    grid.field("u"), grid.field("v")

    def step(u: hc.Field, v: hc.Field) -> None:
        total, half = hc.scalars("total half")
        with hc.loop(limit=10):
            u.set(2.0 * u)
            total.set(hc.sum(u))
            v.set(v + u[0, 1] - u[0, -1])
            half.set(total / 2)

    program = hc.program(step).trace(grid.fields["u"], grid.fields["v"])
    schedule = compile_program(program, grid)
    traffic = Traffic.of_schedule(schedule)
    cut = lay_out(grid.shape, 4, ranks_per_node=1, strategy=(4, 1), traffic=traffic)
    result = execute(schedule, cut, machine(latency=latency), rates=FREE)
    first, second = (36 * sweep.bytes / 1e9 for sweep in schedule.pass_sweeps())
    hops = 4 * latency
    assert result.seconds == pytest.approx(first + max(second, hops))


def test_spans_of_a_rank_do_not_overlap() -> None:
    schedule, cut = heat(64, 16, (4, 4), per_node=4)
    node_of_four = machine(4, "cpu", latency=1e-6, overhead=1e-7)
    result = execute(schedule, cut, node_of_four, traced=(5,), patch=4)
    assert {span.rank for span in result.spans} == {5}
    spans = sorted((s.begin, s.end) for s in result.spans if s.kind != "message")
    assert all(end <= begin + 1e-15 for (_, end), (begin, _) in itertools.pairwise(spans))
    assert {span.kind for span in result.spans} == {"pack", "unpack", "patch", "message"}
    assert {span.name for span in result.spans if span.kind == "pack"} == {"u: pack", "u: send"}
    messages = {span.name for span in result.spans if span.kind == "message"}
    assert messages == {f"u: from rank {n}" for n in (1, 9)}, "those of other nodes"
    copied = {span.name for span in result.spans if span.kind == "unpack"}
    assert copied >= {f"u: from rank {n}" for n in (4, 6)}, "those of its own"


def test_many_ranks_take_the_same_time_as_few_of_the_same_size() -> None:
    times = []
    for side in (4, 32):
        schedule, cut = heat(16 * side, side * side, (side, side))
        times.append(execute(schedule, cut, machine(latency=1e-5), rates=FREE, passes=2).seconds)
    assert times[0] == pytest.approx(times[1])


def test_placement_uses_the_links_of_a_node() -> None:
    """An aware placement makes the exchange 20 % faster than a trivial one, if only the links matter.

    The case is the worst one for a trivial placement on a node of Summit, from Pearson et al. (2020),
    Section IV.B.
    """
    grid = hc.Grid((1440, 1452, 700), periodic=True)
    schedule = exchange_schedule(grid, 4, "float32", 3)
    summit = load_machine("summit")
    seconds = {}
    for placement in ("aware", "trivial"):
        options = {"strategy": "bisection", "traffic": Traffic.of_schedule(schedule), "placement": placement}
        layout = lay_out(grid.shape, 6, **options, distance=summit.distance())
        assert layout.decomposition.box(0).shape == (720, 484, 700)
        seconds[placement] = execute(schedule, layout, summit, rates=Rates(1e30, 1e30)).seconds
    assert 1.2 < seconds["trivial"] / seconds["aware"] < 1.4


def test_invalid_executions_are_rejected() -> None:
    schedule, cut = heat(16, 4, (2, 2))
    with pytest.raises(
        InputError, match=r"4 ranks \(1 per node\) need 4 nodes, but machine 'm' has 3\. Use fewer nodes"
    ):
        execute(schedule, cut, machine().model_copy(update={"nodes": 3}))
    with pytest.raises(InputError, match="passes is 1; expected at least 2"):
        execute(schedule, cut, machine(), passes=1)
