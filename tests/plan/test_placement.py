"""Placement on a node, decompositions of two levels, and machine files."""

from __future__ import annotations

import itertools
import tomllib
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.errors import InputError
from halocline.plan import decompose, decompose_levels, flow, place, placement_cost
from halocline.plan.layout import Layout, lay_out
from halocline.plan.machine import known_machines, load_machine, parse_machine
from halocline.plan.placement import STRATEGIES
from halocline.plan.traffic import Traffic

MACHINES = {
    # name: devices, bytes a second from device 0 to the others, network cards
    "summit": (6, [50, 50, 64 / 6, 64 / 6, 64 / 6], 2),
    "puhti": (4, [49, 49, 49], 2),
    "stampede2-skx": (2, [62.4], 1),
    "blue-waters-xe": (2, [12.8], 1),
    "dgx-h100": (8, [450] * 7, 8),
    "dgx-h200": (8, [450] * 7, 8),
    "lumi-g": (8, [200, 50, 50, 50, 50, 100, 100], 4),
}


# -- machines ----------------------------------------------------------------------------------------------


def test_all_machines_are_known() -> None:
    assert set(known_machines()) == set(MACHINES)


@pytest.mark.parametrize("name", MACHINES)
def test_machine(name: str) -> None:
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


def test_the_widest_road_is_taken() -> None:
    """Over two links of 3 instead of one of 2; of equally wide ones the shortest; never through a device."""
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
    # two devices share what leads from the hub to the card
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
def test_a_machine_file_that_is_wrong(change: tuple[str, str], words: str, tmp_path: Path) -> None:
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


def test_a_machine_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"machine 'sumit' is unknown \(did you mean 'summit'\?\); known: blue"
    ):
        load_machine("sumit")
    with pytest.raises(InputError, match=r"none\.toml' cannot be read \(No such file"):
        load_machine(tmp_path / "none.toml")


# -- placement -----------------------------------------------------------------------------------------------


matrices = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        *[st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n)] * 2
    )
)


@settings(max_examples=60)
@given(matrices)
def test_aware_is_the_least_of_all(both: tuple[list[list[int]], list[list[int]]]) -> None:
    w, d = both
    n = len(w)

    def cost(f: tuple[int, ...]) -> int:
        return sum(w[i][j] * d[f[i]][f[j]] for i in range(n) for j in range(n) if i != j)

    found = place(w, d)
    assert sorted(found) == list(range(n))
    assert placement_cost(w, d, found) == cost(found)
    least = min(map(cost, itertools.permutations(range(n))))
    assert cost(found) == least
    assert found == next(f for f in itertools.permutations(range(n)) if cost(f) == least)


def test_a_large_node_is_placed_by_a_heuristic() -> None:
    """Two rings, the second shuffled: there is a placement on which every message has a link of its own."""
    n = 12
    ring = np.zeros((n, n))
    for i in range(n):
        ring[i, (i + 1) % n] = ring[(i + 1) % n, i] = 1.0
    shuffle = np.random.default_rng(5).permutation(n)
    distance = 1.0 + 4.0 * (ring[np.ix_(shuffle, shuffle)] == 0)
    found = place(ring, distance)
    assert sorted(found) == list(range(n))
    costs = {s: placement_cost(ring, distance, place(ring, distance, strategy=s)) for s in STRATEGIES}
    assert costs["aware"] <= 0.75 * min(costs["trivial"], costs["random"])
    assert place(ring, distance) == found, "the same each time"


def test_the_worst_case_of_the_paper() -> None:
    """Pearson et al. (2020), Section IV.B: 1440 x 1452 x 700 on the six GPUs of a Summit node; node-aware
    placement makes the exchange 20 % faster."""
    machine, traffic = load_machine("summit"), Traffic.of_radius(3, 3)
    whole = decompose((1440, 1452, 700), 6, strategy="bisection", traffic=traffic)
    assert [n // p for n, p in zip(whole.shape, whole.parts, strict=True)] == [720, 484, 700]
    sent, distance = flow(whole, traffic, range(6)), machine.distance()
    cost = {s: placement_cost(sent, distance, place(sent, distance, strategy=s)) for s in STRATEGIES}
    assert cost["aware"] < cost["random"]
    assert 1.1 < cost["trivial"] / cost["aware"] < 1.3


@pytest.mark.parametrize(
    ("flow_", "distance", "options", "words"),
    [
        ([[0, 1]], [[0]], {}, r"flow has shape \(1, 2\); expected a square matrix"),
        ([[0]], [[0, 1], [1, 0]], {}, "flow is among 1 subdomains, but distance among 2 devices"),
        ([[0, -1], [0, 0]], [[0, 1], [1, 0]], {}, "flow holds numbers that are negative or not finite"),
        ([[0]], [[0]], {"strategy": "best"}, "placement 'best' is unknown; known are aware, trivial, random"),
    ],
)
def test_wrong_matrices(flow_: list[list[int]], distance: list[list[int]], options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        place(flow_, distance, **options)


# -- two levels ------------------------------------------------------------------------------------------


def test_levels_of_the_paper() -> None:
    """Pearson et al. (2020), Fig. 4: 4 x 24 x 2 on 12 nodes of 4 devices: nodes 2 x 6 x 1, devices 2 x 2."""
    made = decompose_levels((4, 24, 2), 12, 4, strategy="bisection")
    assert made.parts == (4, 12, 1)
    for node in range(12):
        places = [made.coordinates(4 * node + device) for device in range(4)]
        corner = tuple(map(min, zip(*places, strict=True)))
        assert corner[0] % 2 == corner[1] % 2 == 0
        assert sorted(places) == sorted((corner[0] + i, corner[1] + j, 0) for i in (0, 1) for j in (0, 1))


def test_the_smallest_node_is_cut_too() -> None:
    """Nodes have 3 and 2 of 5 cells: three ranks cannot share the latter along that axis."""
    traffic = Traffic((((1, 0, 0), 1), ((-1, 0, 0), 1)), ((1, 1), (1, 1), (0, 0)))
    made = decompose_levels((13, 10, 5), 2, 3, strategy="row", traffic=traffic, periodic=(True, True, False))
    assert min(min(made.box(number).shape) for number in range(6)) >= 1
    with pytest.raises(InputError, match="cannot be cut into 3"):
        decompose_levels((5,), 2, 3, periodic=False)
    assert decompose_levels((7,), 2, 3, periodic=False).parts == (6,)


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from(["optimal", "bisection", "row"]),
    st.booleans(),
)
def test_a_node_has_one_box(
    shape: list[int], nodes: int, devices: int, strategy: str, periodic: bool
) -> None:
    try:
        made = decompose_levels(shape, nodes, devices, strategy=strategy, periodic=periodic)
    except InputError:
        return
    assert min(min(made.box(number).shape) for number in range(made.count)) >= 1
    outer = decompose(shape, nodes, strategy=strategy, periodic=periodic)
    assert made.count == nodes * devices
    seen = np.zeros(shape, dtype=int)
    for node in range(nodes):
        boxes = [made.box(node * devices + device) for device in range(devices)]
        for box in boxes:
            seen[tuple(map(slice, box.lo, box.hi))] += 1
        whole = outer.box(node)
        assert tuple(min(b.lo[a] for b in boxes) for a in range(len(shape))) == whole.lo
        assert tuple(max(b.hi[a] for b in boxes) for a in range(len(shape))) == whole.hi
        assert sum(b.size for b in boxes) == whole.size
    assert (seen == 1).all()


@settings(max_examples=40)
@given(
    st.tuples(st.integers(6, 15), st.integers(6, 15)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.booleans(), st.booleans()),
    st.integers(1, 2),
)
def test_flow_counts_cells(
    shape: tuple[int, int], parts: tuple[int, int], periodic: tuple[bool, bool], radius: int
) -> None:
    """Against halos looked up cell by cell."""
    made = decompose(shape, parts[0] * parts[1], strategy=parts, periodic=periodic, radius=radius)
    owner = np.zeros(shape, dtype=int)
    for n in range(made.count):
        box = made.box(n)
        owner[tuple(map(slice, box.lo, box.hi))] = n
    wanted = np.zeros((made.count, made.count))
    for n in range(made.count):
        box = made.box(n)
        for i in range(box.lo[0] - radius, box.hi[0] + radius):
            for j in range(box.lo[1] - radius, box.hi[1] + radius):
                outside = (i, j) not in box
                there = all(p or 0 <= k < m for k, m, p in zip((i, j), shape, periodic, strict=True))
                if outside and there:
                    wanted[owner[i % shape[0], j % shape[1]], n] += 1
    np.testing.assert_array_equal(flow(made, Traffic.of_radius(radius, 2), range(made.count)), wanted)


# -- layouts ------------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(
    st.integers(1, 7),
    st.integers(1, 7),
    st.integers(1, 3),
    st.sampled_from(["optimal", "bisection", "row", "1d"]),
    st.sampled_from([None, *STRATEGIES]),
)
def test_every_subdomain_has_one_home(
    ranks: int, per_node: int, per_rank: int, strategy: str, placement: str | None
) -> None:
    slots = min(per_node, ranks) * per_rank
    distance = None
    if placement is not None:
        distance = np.random.default_rng(slots).uniform(1, 2, (slots, slots))
    try:
        made = lay_out(
            (40, 36, 30),
            ranks,
            ranks_per_node=per_node,
            subdomains_per_rank=per_rank,
            strategy=strategy,
            traffic=Traffic.of_radius(1, 3),
            distance=distance,
            placement=placement or "aware",
        )
    except InputError as error:
        if "cut" not in str(error):
            raise
        return
    assert (made.ranks, made.nodes) == (ranks, -(-ranks // min(per_node, ranks)))
    owned = [made.owned(rank) for rank in range(ranks)]
    assert sorted(s for own in owned for s in own) == list(range(ranks * per_rank))
    for rank, own in enumerate(owned):
        assert len(own) == per_rank
        for local, subdomain in enumerate(own):
            assert made.home(subdomain) == (rank, local)
        # placement moves subdomains within their node alone
        assert {made.node(rank)} == {subdomain // slots for subdomain in own}


def test_an_aware_layout_is_the_best_within_a_node() -> None:
    machine, traffic = load_machine("summit"), Traffic.of_radius(3, 3)
    options = {"ranks_per_node": 6, "strategy": "bisection", "traffic": traffic}
    distance = np.array(machine.distance())
    cost = {}
    for placement in STRATEGIES:
        made = lay_out((1440, 1452, 1400), 12, **options, distance=distance.tolist(), placement=placement)
        slots = tuple(made.home(subdomain)[0] % 6 for subdomain in range(6))
        cost[placement] = placement_cost(flow(made.decomposition, traffic, range(6)), distance, slots)
    sent = flow(made.decomposition, traffic, range(6, 12))
    least = min(placement_cost(sent, distance, f) for f in itertools.permutations(range(6)))
    assert cost["aware"] == pytest.approx(least)
    assert cost["aware"] < cost["random"]


def test_wrong_layouts() -> None:
    for options, words in (
        ({"subdomains_per_rank": 0}, "subdomains per rank is 0; expected a whole number from 1"),
        ({"ranks_per_node": 0}, "ranks per node is 0; expected a whole number from 1"),
        ({"placement": "best"}, "placement 'best' is unknown; known are aware, trivial, random"),
    ):
        with pytest.raises(InputError, match=words):
            lay_out((8, 8), 2, traffic=Traffic.of_radius(1, 2), **options)
    made = lay_out((8, 8), 2, traffic=Traffic.of_radius(1, 2))
    with pytest.raises(IndexError):
        made.owned(2)


@settings(max_examples=100)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["optimal", "bisection", "row"]),
    st.randoms(use_true_random=False),
)
def test_ranks_that_do_not_follow_each_other_node_by_node(
    nodes: int, per_node: int, per_rank: int, strategy: str, random: Random
) -> None:
    """Whatever order a launcher deals them out in, a node has the part of the grid that it would have had."""
    options: dict[str, Any] = {
        "ranks_per_node": per_node,
        "subdomains_per_rank": per_rank,
        "strategy": strategy,
        "traffic": Traffic.of_radius(1, 3),
    }
    plain = lay_out((40, 36, 30), nodes * per_node, **options)
    dealt = [node for node in range(nodes) for _ in range(per_node)]
    random.shuffle(dealt)
    made = lay_out((40, 36, 30), nodes * per_node, **options, nodes_of_ranks=tuple(dealt))
    assert made.decomposition == plain.decomposition
    assert made.nodes == nodes
    for node in range(nodes):
        ours, theirs = (
            sorted(s for rank in range(of.ranks) if of.node(rank) == node for s in of.owned(rank))
            for of in (made, plain)
        )
        assert ours == theirs
    for rank in range(made.ranks):
        assert [made.home(s) for s in made.owned(rank)] == [(rank, local) for local in range(per_rank)]


def test_nodes_in_turn_exchange_as_little_as_nodes_in_order() -> None:
    """What crosses nodes, of 4 x 2 ranks on a long grid; in one level every neighbour would be elsewhere."""

    def crossing(made: Layout) -> int:
        cut, total = made.decomposition, 0
        for number in range(cut.count):
            for axis, d in product(range(2), (-1, 1)):
                peer = cut.neighbour(number, tuple(d if a == axis else 0 for a in range(2)))
                if peer is not None and made.node(made.home(peer)[0]) != made.node(made.home(number)[0]):
                    shape = cut.box(number).shape
                    total += shape[1 - axis]
        return total

    options: dict[str, Any] = {"ranks_per_node": 2, "traffic": Traffic.of_radius(1, 2), "periodic": False}
    in_order = crossing(lay_out((64, 64), 8, **options))
    in_turn = crossing(lay_out((64, 64), 8, **options, nodes_of_ranks=(0, 1, 2, 3) * 2))
    assert in_turn == in_order == 2 * 2 * 64
    # where nodes differ, each has subdomains that follow each other
    uneven = lay_out((64, 64), 8, **options, nodes_of_ranks=(0, 1, 0, 0, 1, 0, 1, 0))
    assert [uneven.node(uneven.home(number)[0]) for number in range(8)] == [0] * 5 + [1] * 3
