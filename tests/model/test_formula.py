"""The closed performance formula."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest

from halocline.errors import InputError
from halocline.model import step_time

PUBLISHED = json.loads((Path(__file__).parents[1] / "data" / "model_strong_scaling.json").read_text())
OPTIONS = {
    "radius": PUBLISHED["radius"],
    "per_cell": PUBLISHED["inverse_pi_ns_per_cell"] * 1e-9,
    "per_halo_cell": PUBLISHED["inverse_beta_ns_per_cell"] * 1e-9,
}


@pytest.mark.parametrize(("n", "efficiency"), PUBLISHED["ideal_parallel_efficiency"].items())
def test_strong_scaling_agrees_with_the_paper(n: str, efficiency: float) -> None:
    shape = (int(n),) * 3
    devices = PUBLISHED["devices_per_node"]
    nodes = PUBLISHED["devices"] // devices
    one = step_time(shape, 1, **OPTIONS)
    many = step_time(shape, nodes, devices, **OPTIONS)
    assert one.seconds / (nodes * devices) / many.seconds == pytest.approx(efficiency, abs=6e-4)


def test_each_time_follows_from_the_formula() -> None:
    """Each time follows Eqs. 6 to 12.

    The grid has 512³ cells on 16 nodes of 4 devices: nodes 4 x 2 x 2, devices 1 x 2 x 2 of a node.
    """
    times = step_time((512,) * 3, 16, 4, **OPTIONS, per_halo_cell_within=1e-9, overhead=1e-3)
    assert times.parts == (4, 4, 4)
    node, device, r = (128, 256, 256), (128, 128, 128), 3
    assert times.work == pytest.approx(prod(device) * OPTIONS["per_cell"])
    halo = 2 * (prod(n + 2 * r for n in node) - prod(node))
    assert times.between == pytest.approx(halo * OPTIONS["per_halo_cell"])
    local = prod(n + r * (p >= 2) for n, p in zip(device, (1, 2, 2), strict=True)) - prod(device)
    assert times.within == pytest.approx(local * 1e-9)
    assert times.seconds == max(times.work, times.between, times.within) + 1e-3
    assert times.bound == "between nodes"


def test_one_node_needs_no_network() -> None:
    times = step_time((64, 64), 1, 4, per_cell=1e-9, per_halo_cell=1.0, per_halo_cell_within=2.0)
    assert times.between == 0
    assert times.bound == "within the node"


def test_invalid_numbers_are_rejected() -> None:
    with pytest.raises(InputError, match=r"per_cell is -1; expected a time in seconds of at least 0"):
        step_time((8, 8), 1, per_cell=-1, per_halo_cell=1.0)
    with pytest.raises(InputError, match="cannot be cut"):
        step_time((8, 8), 100, per_cell=1.0, per_halo_cell=1.0)
