"""Rates of a rank: its share of a node, and the seconds of a sweep."""

from __future__ import annotations

from dataclasses import replace

import pytest

from halocline.compile.schedule import Loop, Sweep
from halocline.lang.dtype import ITEMSIZE
from halocline.model.rates import Rates, memory_of_node
from halocline.plan.machine import Machine
from modelled_machine import heat, machine


def test_ranks_share_the_devices_of_a_node() -> None:
    of_node = machine(devices=4)
    assert Rates.of(of_node, 4) == Rates(1e9, 0.5e9, flops=1e12)
    assert Rates.of(of_node, 8) == Rates(0.5e9, 0.5e9, flops=0.5e12)
    assert Rates.of(of_node, 1) == Rates(1e9, 0.5e9, flops=1e12)
    assert Rates.of(of_node, 1, subdomains_per_rank=4) == Rates(4e9, 0.5e9, flops=4e12)


def test_threads_have_a_maximum_bandwidth() -> None:
    whole = machine(1, "cpu")
    cores = whole.model_copy(update={"device": whole.device.model_copy(update={"core_bandwidth": 2e8})})
    assert [Rates.of(cores, 1, threads=n).bandwidth for n in (1, 3, 8)] == [2e8, 6e8, 1e9]
    assert Rates.of(cores, 1).bandwidth == 1e9


def processors(**of_device: float) -> Machine:
    """Return a node of two processors of 4 cores, 1 GB/s and 1 Gflop/s each."""
    whole = machine(2, "cpu")
    return whole.model_copy(
        update={"device": whole.device.model_copy(update={"cores": 4, "flops": 1e9, **of_device})}
    )


def test_one_rank_whose_threads_span_a_node_has_its_bandwidth() -> None:
    node = processors()
    assert Rates.of(node, 1).bandwidth == 2e9
    assert [Rates.of(node, 1, threads=n).bandwidth for n in (4, 6, 8)] == pytest.approx([1e9, 1.5e9, 2e9])
    assert [Rates.of(node, n, threads=2).bandwidth for n in (1, 2, 4)] == [1e9, 1e9, 0.5e9]
    assert [Rates.of(node, 1, threads=n).flops for n in (1, 4, 8)] == pytest.approx([0.25e9, 1e9, 2e9])
    assert Rates.of(node, 1, threads=16).flops == 2e9, "two threads of a core are no faster than one"


def test_a_partial_processor_counts_as_one_more() -> None:
    """If two of three ranks share a processor, each has half of its bandwidth and cores."""
    node = processors()
    assert [3 * Rates.of(node, 3, threads=n).bandwidth for n in (1, 2)] == pytest.approx([1.5e9, 1.5e9])
    assert Rates.of(node, 3, threads=1).flops == pytest.approx(0.25e9)
    assert 5 * Rates.of(node, 5, threads=1).bandwidth == pytest.approx(5e9 / 3)
    assert 3 * Rates.of(node, 3, threads=4).bandwidth == pytest.approx(2e9), "twelve threads on eight cores"
    assert 3 * Rates.of(node, 3).bandwidth == pytest.approx(2e9)


def test_fields_in_a_cache_are_faster() -> None:
    """If half of the fields stay in the cache, half of the bytes come from the cache."""
    node = processors(cache=1e6, cache_bandwidth=0.5e9)
    assert Rates.of(node, 2, memory=2e6, threads=4).bandwidth == pytest.approx(2e9)
    assert Rates.of(node, 2, memory=4e6, threads=4).bandwidth == pytest.approx(2 / (1 / 1e9 + 1 / 2e9))
    assert Rates.of(node, 2, threads=4).bandwidth == pytest.approx(1e9)
    assert Rates.of(processors(cache=1e6), 2, memory=2e6).bandwidth == 1e9


def test_arithmetic_may_bound_sweeps() -> None:
    schedule, _ = heat(8, 2, (2, 1))
    (sweep,) = schedule.pass_sweeps()
    rates = Rates.of(processors(sustained=0.125), 2)
    assert rates.flops == 0.125e9
    assert rates.per_cell(sweep) == pytest.approx(max(sweep.bytes / 1e9, sweep.flops / 0.125e9))
    assert rates.per_cell(sweep) > sweep.bytes / 1e9
    assert rates.slowed(2.0).per_cell(sweep) == pytest.approx(2 * rates.per_cell(sweep))


def test_float32_sweeps_have_twice_the_arithmetic_rate() -> None:
    schedule, _ = heat(8, 2, (2, 1))
    (sweep,) = schedule.pass_sweeps()
    first, *rest = (replace(info, dtype="float32") for info in schedule.fields)
    singles = replace(schedule, fields=(first, *rest))
    mixed = replace(schedule, fields=(first, *schedule.fields[1:]))
    assert len(set(sweep.operands)) > 1
    assert [candidate.dtype_of(sweep) for candidate in (schedule, mixed, singles)] == [
        "float64",
        "float64",
        "float32",
    ]
    assert singles.dtype_of() == "float64"
    rates = Rates(bandwidth=1e30, packing=1.0, flops=1e9)
    assert rates.per_cell(sweep, "float32") == rates.per_cell(sweep) / 2 == sweep.flops / 2e9


def test_the_time_of_a_sweep_follows_from_bytes_operations_and_sums() -> None:
    schedule, layout = heat(8, 2, (2, 1))
    (loop,) = [operation for operation in schedule.operations if isinstance(operation, Loop)]
    (sweep,) = [operation for operation in loop.body if isinstance(operation, Sweep)]
    rates = Rates(bandwidth=1e9, packing=1.0, per_flop=1e-10, per_sum=1e-9)
    assert rates.per_cell(sweep) == pytest.approx(sweep.bytes / 1e9 + sweep.flops * 1e-10)
    slow = rates.slowed(2.0)
    assert slow.per_cell(sweep) == pytest.approx(2 * rates.per_cell(sweep))
    assert slow == replace(rates, bandwidth=5e8, per_flop=2e-10, per_sum=2e-9)
    assert memory_of_node(schedule, layout) == len(schedule.fields) * ITEMSIZE["float64"] * 64 / 2
