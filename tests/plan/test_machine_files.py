"""Machine files."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from halocline.errors import InputError
from halocline.plan.machine import known_machines, load_machine, parse_machine

MACHINES = {
    # name: devices, bytes per second from device 0 to the others, network cards
    "summit": (6, [50, 50, 64 / 3, 64 / 3, 64 / 3], 2),
    "puhti": (4, [49, 49, 49], 2),
    "stampede2-skx": (2, [62.4], 1),
    "blue-waters-xe": (2, [12.8], 1),
    "dgx-h100": (8, [450] * 7, 8),
    "dgx-h200": (8, [450] * 7, 8),
    **{"newriver": (2, [12], 1), "cascades": (2, [12], 1)},
    **{"newriver-cpu": (2, [38.4], 1), "cascades-cpu": (2, [62.4], 1), "dell-zenith": (2, [62.4], 1)},
    **{"puhti-cpu": (2, [62.4], 1), "mahti": (2, [96], 1)},
    **{"xeil": (2, [12.8], 1), "xcbdw": (2, [38.4], 1), "xcknl": (1, [], 1)},
    "lumi-g": (8, [200, 50, 50, 50, 50, 100, 100], 4),
}


# -- machines ----------------------------------------------------------------------------------------------


def test_all_machines_are_known() -> None:
    assert set(known_machines()) == set(MACHINES)


@pytest.mark.parametrize("name", MACHINES)
def test_machine_files_are_parsed(name: str) -> None:
    machine = load_machine(name)
    devices, gigabytes, cards = MACHINES[name]
    assert machine.name == name
    assert machine.device.count == devices
    assert [machine.bandwidth(0, b) / 1e9 for b in range(1, devices)] == pytest.approx(gigabytes)
    assert machine.injection == cards * machine.network.bandwidth
    distance = np.array(machine.distance())
    np.testing.assert_array_equal(distance, distance.T)
    assert {machine.card(device) for device in range(devices)} <= set(machine.network.cards)
    assert len(machine.source) > 80, "numbers need a source"
    for a, b in itertools.permutations(range(devices), 2):
        route = machine.route(f"device{a}", f"device{b}")
        assert route[0][0] == f"device{a}"
        assert route[-1][1] == f"device{b}"
        assert all(one[1] == two[0] for one, two in itertools.pairwise(route))
        inner = [end for _, end, _ in route[:-1]]
        assert machine.device.routes or not any(end.startswith("device") for end in inner)


def test_routes_have_the_maximum_bandwidth() -> None:
    """The route uses the links with the maximum bandwidth, then the fewest links, and no other device."""
    machine = parse_machine(
        """
        name = "m"
        title = "M"
        source = "made up"
        nodes = 1
        device = {kind = "gpu", model = "G", count = 3, bandwidth = 9, memory = 1, flops = 1}
        links = [
          {ends = [["device0", "device1"]], bandwidth = 2},
          {ends = [["device0", "hub"], ["device1", "hub"], ["hub", "card"]], bandwidth = 3},
          {ends = [["device1", "device2"]], bandwidth = 5},
          {ends = [["device2", "card"]], bandwidth = 1},
        ]
        network = {cards = ["card"], bandwidth = 1, latency = 0, overhead = 0}
        """,
        "m.toml",
    )
    assert [end for _, end, _ in machine.route("device0", "device1")] == ["hub", "device1"]
    assert [end for _, end, _ in machine.route("device0", "device2")] == ["hub", "card", "device2"]
    assert [end for _, end, _ in machine.route("device1", "device2")] == ["device2"]
    # two devices share the link from the hub to the card
    assert machine.bandwidth(0, 2) == 1
    assert machine.bandwidth(0, 1) == 3
    assert machine.bandwidth(1, 1) == 9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((), ""),
        (("count = 6", "count = 0"), r"device.count: Input should be greater than or equal to 1"),
        (("bandwidth = 9.0e11", ""), r"device.bandwidth: Field required"),
        (("nodes = 4608", 'nodes = 4608\ncolour = "red"'), r"colour: Extra inputs are not permitted"),
        (('["socket0", "socket1"]', '["socket0", "sockets"]'), r"no links lead from 'device0' to 'device3'"),
        (('"card0", "card1"', '"card0", "card7"'), r"no link joins 'card7' to the rest of the node"),
        (("nodes = 4608", "nodes = "), r"is not TOML: "),
    ],
)
def test_invalid_machine_files_are_rejected(change: tuple[str, str], words: str, tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "src" / "halocline" / "plan" / "machines"
    text = (folder / "summit.toml").read_text()
    if change:
        assert change[0] in text
        text = text.replace(*change)
    path = tmp_path / "mine.toml"
    path.write_text(text)
    if not words:
        assert load_machine(path).device.count == tomllib.loads(text)["device"]["count"]
        return
    with pytest.raises(InputError, match=rf"machine file '.*mine\.toml'.*{words}"):
        load_machine(path)


def test_a_missing_machine_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"machine 'sumit' is unknown \(did you mean 'summit'\?\); known: blue"
    ):
        load_machine("sumit")
    with pytest.raises(InputError, match=r"none\.toml' cannot be read \(No such file"):
        load_machine(tmp_path / "none.toml")
