"""Choice of devices, and their assignment to ranks and subdomains."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halocline.errors import InputError
from halocline.plan import decompose, flow, place, placement_cost
from halocline.plan.devices import (
    DeviceChoice,
    deal_devices,
    distance_between,
    share_devices,
)
from halocline.plan.layout import lay_out
from halocline.plan.machine import load_machine
from halocline.plan.traffic import Traffic

# -- choice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "interface", "indices", "text_of_choice"),
    [
        ("cpu", "cpu", (), "cpu"),
        ("cuda", "cuda", (), "cuda"),
        ("cuda:0", "cuda", (0,), "cuda:0"),
        ("opencl:2,0", "opencl", (2, 0), "opencl:2,0"),
        (" cuda: 0 , 1 ", "cuda", (0, 1), "cuda:0,1"),
    ],
)
def test_valid_choices_are_parsed(
    text: str, interface: str, indices: tuple[int, ...], text_of_choice: str
) -> None:
    choice = DeviceChoice.parse(text)
    assert (choice.interface, choice.indices, str(choice)) == (interface, indices, text_of_choice)
    assert DeviceChoice.parse(text_of_choice) == choice


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu", "device 'gpu': 'gpu' is not an interface; expected cpu, cuda or opencl"),
        ("CUDA", "'CUDA' is not an interface"),
        ("", "device '': '' is not an interface"),
        ("cpu:0", "cpu has no device numbers"),
        ("cuda:", "device 'cuda:': '' is not a device number; expected .* such as cuda:0,1"),
        ("cuda:0,", "device 'cuda:0,': '' is not a device number"),
        ("cuda:a", "'a' is not a device number"),
        ("cuda:-1", "'-1' is not a device number"),
        ("cuda:1.0", r"'1\.0' is not a device number"),
        ("cuda:²", "'²' is not a device number"),
        ("cuda:0:1", "'0:1' is not a device number"),
        ("opencl:1,0,01", "names 1 twice; expected each device once"),
        (None, "device None is not text; expected cpu, cuda or opencl"),
        (0, "device 0 is not text"),
    ],
)
def test_invalid_choices_are_rejected(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        DeviceChoice.parse(text)


def test_a_choice_selects_the_expected_devices() -> None:
    assert DeviceChoice().select_visible([]) == ()
    assert DeviceChoice.parse("cuda").select_visible([""] * 3) == (0, 1, 2)
    assert DeviceChoice.parse("cuda:2,0").select_visible([""] * 3) == (2, 0)
    with pytest.raises(InputError, match=r"device 'cuda:0,3': there is no cuda:3; expected 0 to 2 \(see"):
        DeviceChoice.parse("cuda:0,3").select_visible([""] * 3)
    with pytest.raises(InputError, match=r"there is no opencl:1; expected only 0 \(see `halocline doctor`"):
        DeviceChoice.parse("opencl:1").select_visible(["PoCL"])
    with pytest.raises(
        InputError, match=r"device 'cuda': no such device is installed \(no driver\)\. Run `halocline doctor`"
    ):
        DeviceChoice.parse("cuda").select_visible([], "no driver")


def test_devices_of_one_platform_work_together() -> None:
    """The default is all devices of the first platform, and a platform with GPUs comes first."""
    platforms = ["GPUs", "GPUs", "PoCL", "GPUs"]
    assert DeviceChoice.parse("opencl").select_visible(platforms) == (0, 1, 3)
    assert DeviceChoice.parse("opencl:3,1").select_visible(platforms) == (3, 1)
    assert DeviceChoice.parse("opencl:2").select_visible(platforms) == (2,)
    with pytest.raises(
        InputError,
        match=r"^device 'opencl:1,2': opencl:1 belongs to the platform GPUs, but opencl:2 to PoCL\. Select ",
    ):
        DeviceChoice.parse("opencl:1,2").select_visible(platforms)


# -- assignment to ranks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("devices", "ranks", "shared"),
    [
        (1, 1, ((0,),)),
        (4, 1, ((0, 1, 2, 3),)),
        (4, 4, ((0,), (1,), (2,), (3,))),
        (6, 2, ((0, 1, 2), (3, 4, 5))),
        (2, 4, ((0,), (0,), (1,), (1,))),
        (2, 3, ((0,), (0,), (1,))),
        (3, 7, ((0,), (0,), (0,), (1,), (1,), (2,), (2,))),
    ],
)
def test_devices_are_distributed_to_ranks(
    devices: int, ranks: int, shared: tuple[tuple[int, ...], ...]
) -> None:
    assert share_devices(devices, ranks) == shared


@given(st.integers(1, 40), st.integers(1, 40))
def test_all_devices_are_driven_blockwise_and_evenly(devices: int, ranks: int) -> None:
    if devices > ranks and devices % ranks:
        with pytest.raises(InputError, match="cannot be distributed evenly"):
            share_devices(devices, ranks)
        return
    shared = share_devices(devices, ranks)
    assert len(shared) == ranks
    assert len({len(rank_devices) for rank_devices in shared}) == 1, "ranks have equally many subdomains"
    every = [device for rank_devices in shared for device in rank_devices]
    assert sorted(every) == every
    assert set(every) == set(range(devices))
    loads = [every.count(device) for device in range(devices)]
    assert max(loads) - min(loads) <= 1


@pytest.mark.parametrize(
    ("devices", "ranks", "words"),
    [
        (
            6,
            4,
            r"6 devices .* over its 4 ranks. Use 1, 2, 3 or 6 ranks on a node, or select 4 of the devices",
        ),
        (3, 2, r"Use 1 or 3 ranks on a node, or select 2 of"),
        (0, 2, r"0 devices on a node; expected 1 or more"),
        (2, 0, r"0 ranks on a node; expected 1 or more"),
    ],
)
def test_devices_that_cannot_be_distributed_are_reported(devices: int, ranks: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        share_devices(devices, ranks)


@pytest.mark.parametrize(
    ("chosen", "dealt"),
    [
        ([["A", "B"]], [(0, 1)]),
        ([["A", "B"], ["A", "B"]], [(0,), (1,)]),
        ([["A", "B"], ["B", "A"]], [(0,), (0,)]),  # each rank numbers its own device as the first
        ([["A"], ["A"], ["A"]], [(0,)] * 3),
        ([["A"], ["B"], ["C"]], [(0,)] * 3),
        ([["A", "B"], ["C", "D"]], [(0, 1), (0, 1)]),
        ([["X", "X"], ["X", "X"]], [(0,), (1,)]),  # two equal devices without unique names
    ],
)
def test_devices_are_assigned_to_ranks_in_turn(chosen: list[list[str]], dealt: list[tuple[int, ...]]) -> None:
    assert list(deal_devices(chosen)) == dealt


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ([["A", "B"], ["B", "C"]], "see overlapping sets of devices"),
        ([["A", "B"], ["A"]], "see overlapping sets of devices"),
        ([["A", "B"], ["C"]], "see from 1 to 2 devices; expected equal numbers"),
        ([["A"], []], "see from 0 to 1 devices"),
        ([["A", "B", "C"]] * 2, "3 devices of a node cannot be distributed evenly over its 2 ranks"),
        ([[], []], "0 devices on a node"),
        ([], "0 devices on a node"),
    ],
)
def test_devices_that_cannot_be_assigned_in_turn_are_reported(chosen: list[list[str]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        deal_devices(chosen)


# -- assignment to subdomains --------------------------------------------------------------------------------


def bandwidths(machine: str) -> list[list[float]]:
    loaded = load_machine(machine)
    every = range(loaded.device.count)
    return [[loaded.bandwidth(a, b) for b in every] for a in every]


def test_equal_links_do_not_change_the_order() -> None:
    for count in (1, 2, 8, 12):  # the larger counts would use a heuristic search
        drawn = np.random.default_rng(count).uniform(size=(count, count))
        assert place(drawn, distance_between(np.full((count, count), 4.5e11).tolist())) == tuple(range(count))
    assert place(np.ones((8, 8)), distance_between(bandwidths("dgx-h100"))) == tuple(range(8))


def test_placement_solves_the_worst_case_of_the_paper_on_summit() -> None:
    """Subdomains of 720 x 484 x 700 with large common faces share one triad."""
    traffic = Traffic.of_radius(2, 3)
    cut = decompose((1440, 1452, 700), 6, strategy="2x3x1", traffic=traffic)
    sent, distance = flow(cut, traffic, range(6)), distance_between(bandwidths("summit"))
    placement = place(sent, distance)
    costs = {f: placement_cost(sent, distance, f) for f in itertools.permutations(range(6))}
    assert costs[placement] == pytest.approx(min(costs.values()), rel=1e-12)
    assert costs[placement] < max(costs.values()) / 1.2
    assert placement == place(sent, distance)


def test_slots_on_one_device_have_distance_zero() -> None:
    inf = float("inf")  # transfers within a device use no link
    distance = distance_between([[inf, 4.0], [2.0, inf]], (0, 0, 1))
    assert distance == [[0.0, 0.0, 0.25], [0.0, 0.0, 0.25], [0.5, 0.5, 0.0]]


def test_a_layout_uses_the_distance_between_devices() -> None:
    """Neighbours with a large face are placed on a pair of close devices; the two pairs are distant."""
    fast, slow = 1e11, 1e9
    rates = [[fast if (a - b) % 2 == 0 else slow for b in range(4)] for a in range(4)]
    traffic = Traffic.of_radius(1, 2)
    layout = lay_out(
        (400, 20), 2, subdomains_per_rank=2, strategy="2x2", traffic=traffic, distance=distance_between(rates)
    )
    assert layout.placement == "aware"
    sides = {
        frozenset((a, b))
        for a, b in itertools.combinations(range(4), 2)
        if flow(layout.decomposition, traffic, range(4))[a, b] > 20
    }
    pairs = {frozenset((layout.slot(a)[1] % 2, layout.slot(b)[1] % 2)) for a, b in map(tuple, sides)}
    assert len(sides) == 2
    assert all(len(pair) == 1 for pair in pairs)


@pytest.mark.parametrize(
    ("bandwidth", "words"),
    [
        ([[1.0, 2.0]], "bandwidth has 1 rows, but 2 numbers in row 0; expected a square"),
        (
            [[0.0, 0.0], [1.0, 0.0]],
            r"bandwidth from device 0 to 1 is 0\.0; expected positive bytes per second",
        ),
        ([[0.0, 1.0], [float("nan"), 0.0]], "bandwidth from device 1 to 0 is nan"),
    ],
)
def test_invalid_bandwidths_are_rejected(bandwidth: list[list[float]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        distance_between(bandwidth)


def test_placement_needs_as_many_devices_as_subdomains() -> None:
    with pytest.raises(
        InputError, match="matrix flow is for 3 subdomains, but matrix distance is for 2 devices; expected"
    ):
        place(np.ones((3, 3)), distance_between([[0.0, 1.0], [1.0, 0.0]]))
