"""The closed performance formula, and plans executed on machine files."""

from __future__ import annotations

import itertools
import json
import math
from math import prod
from pathlib import Path
from typing import Any

import pytest

import equations
import halocline as hc
from halocline.cli.app import run
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.model import Rates, execute, step_time
from halocline.plan.layout import Layout, lay_out
from halocline.plan.machine import Machine, load_machine, parse_machine
from halocline.plan.trace import TRACE_EVENTS
from halocline.plan.traffic import Traffic
from halocline.study.measuring import predict
from halocline.study.measuring.exchange import exchange_schedule

PUBLISHED = json.loads((Path(__file__).parent / "data" / "model_strong_scaling.json").read_text())
OPTIONS = {
    "radius": PUBLISHED["radius"],
    "per_cell": PUBLISHED["inverse_pi_ns_per_cell"] * 1e-9,
    "per_halo_cell": PUBLISHED["inverse_beta_ns_per_cell"] * 1e-9,
}


@pytest.mark.parametrize(("n", "efficiency"), PUBLISHED["ideal_parallel_efficiency"].items())
def test_strong_scaling_of_the_paper(n: str, efficiency: float) -> None:
    shape = (int(n),) * 3
    devices = PUBLISHED["devices_per_node"]
    nodes = PUBLISHED["devices"] // devices
    one = step_time(shape, 1, **OPTIONS)
    many = step_time(shape, nodes, devices, **OPTIONS)
    assert one.seconds / (nodes * devices) / many.seconds == pytest.approx(efficiency, abs=6e-4)


def test_each_time_is_what_the_formula_says() -> None:
    """512³ on 16 nodes of 4 devices: nodes 4 x 2 x 2, devices 1 x 2 x 2 of a node (Eqs. 6 to 12)."""
    made = step_time((512,) * 3, 16, 4, **OPTIONS, per_halo_cell_within=1e-9, overhead=1e-3)
    assert made.parts == (4, 4, 4)
    node, device, r = (128, 256, 256), (128, 128, 128), 3
    assert made.work == pytest.approx(prod(device) * OPTIONS["per_cell"])
    halo = 2 * (prod(n + 2 * r for n in node) - prod(node))
    assert made.between == pytest.approx(halo * OPTIONS["per_halo_cell"])
    local = prod(n + r * (p >= 2) for n, p in zip(device, (1, 2, 2), strict=True)) - prod(device)
    assert made.within == pytest.approx(local * 1e-9)
    assert made.seconds == max(made.work, made.between, made.within) + 1e-3
    assert made.bound == "between nodes"


def test_one_node_needs_no_network() -> None:
    made = step_time((64, 64), 1, 4, per_cell=1e-9, per_halo_cell=1.0, per_halo_cell_within=2.0)
    assert made.between == 0
    assert made.bound == "within the node"


def test_wrong_numbers() -> None:
    with pytest.raises(InputError, match=r"per_cell is -1; expected seconds, not negative"):
        step_time((8, 8), 1, per_cell=-1, per_halo_cell=1.0)
    with pytest.raises(InputError, match="cannot be cut"):
        step_time((8, 8), 100, per_cell=1.0, per_halo_cell=1.0)


# -- discrete-event execution ------------------------------------------------------------------------------


MACHINE = """
name = "m"
title = "M"
source = "made up"
nodes = 1000000

[device]
kind = "{kind}"
model = "G"
count = {devices}
bandwidth = 1e9
memory = 1e9
flops = 1e9

[[links]]
ends = [{ends}]
bandwidth = 1e30
latency = {near}

[network]
cards = ["card"]
bandwidth = {bandwidth}
latency = {latency}
overhead = {overhead}
"""
DEFAULTS = {
    **{"kind": "gpu", "devices": 1, "near": 0.0, "ends": '["device0", "hub"], ["hub", "card"]'},
    **{"bandwidth": 1e30, "latency": 0.0, "overhead": 0.0},
}


def machine(devices: int = 1, kind: str = "gpu", near: float = 0.0, **network: float) -> Machine:
    """Nodes of devices of 1 GB/s each, joined by links of infinite bandwidth, `near` seconds long, with one
    network card."""
    ends = ", ".join([*(f'["device{n}", "hub"]' for n in range(devices)), '["hub", "card"]'])
    own = {"kind": kind, "devices": devices, "near": near, "ends": ends}
    return parse_machine(MACHINE.format(**{**DEFAULTS, **own, **network}), "m.toml")


def heat(n: int, ranks: int, parts: tuple[int, int], per_node: int = 1) -> tuple[Schedule, Layout]:
    """One sweep a pass, 16 bytes a cell, one message of 8 n / parts bytes from each side."""
    grid = hc.Grid((n, n), periodic=True)
    grid.field("u")

    def step(u: hc.Field) -> None:
        with hc.loop(limit=10):
            u.set(u + 0.1 * hc.laplacian(u))

    program = hc.program(step).trace(grid.fields["u"])
    schedule = compile_program(program, grid)
    traffic = Traffic.of_schedule(schedule)
    return schedule, lay_out(grid.shape, ranks, ranks_per_node=per_node, strategy=parts, traffic=traffic)


FREE = Rates(bandwidth=1e9, packing=1e30)


def test_one_rank_takes_what_its_bytes_take() -> None:
    schedule, cut = heat(64, 1, (1, 1))
    found = execute(schedule, cut, machine(), rates=FREE)
    assert found.seconds == pytest.approx(64 * 64 * 16 / 1e9)


@pytest.mark.parametrize("ranks", [4, 16])
def test_work_bounds_where_messages_are_free(ranks: int) -> None:
    side = math.isqrt(ranks)
    schedule, cut = heat(64, ranks, (side, side))
    found = execute(schedule, cut, machine(), rates=FREE)
    assert found.seconds == pytest.approx(64 * 64 / ranks * 16 / 1e9)


@pytest.mark.parametrize(("latency", "overlap"), [(1e-9, True), (1e-4, True), (1e-9, False), (1e-4, False)])
def test_what_is_hidden(latency: float, overlap: bool) -> None:
    """Inner patches hide the latency, if it is shorter than they take; without overlap nothing does."""
    schedule, cut = heat(64, 4, (2, 2))
    found = execute(schedule, cut, machine(latency=latency), rates=FREE, overlap=overlap, patch=8)
    work, inner = 32 * 32 * 16 / 1e9, 16 * 16 * 16 / 1e9
    assert latency < inner or latency > work
    hidden = min(latency, inner) if overlap else 0.0
    assert found.seconds == pytest.approx(work + latency - hidden)


def test_a_card_is_shared_by_the_devices_of_a_node() -> None:
    """A node of four has one message up and one down of each device to carry; a node of one has two of these
    and two sideways."""
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
    found = execute(schedule, cut, machine(latency=1e-3), rates=FREE)
    # the work of a rank, and four hops up and down the tree
    assert found.seconds == pytest.approx(9 * 16 / 1e9 + 8e-3)
    assert found.ends == pytest.approx([found.seconds * n for n in (1, 2, 3)])


@pytest.mark.parametrize("latency", [1e-9, 3e-8, 1e-3])
def test_a_reduction_goes_on_while_what_does_not_need_it_is_computed(latency: float) -> None:
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
    found = execute(schedule, cut, machine(latency=latency), rates=FREE)
    first, second = (36 * sweep.bytes / 1e9 for sweep in schedule.pass_sweeps())
    hops = 4 * latency
    assert found.seconds == pytest.approx(first + max(second, hops))


def test_spans_of_a_rank_do_not_overlap() -> None:
    schedule, cut = heat(64, 16, (4, 4), per_node=4)
    there = machine(4, "cpu", latency=1e-6, overhead=1e-7)
    found = execute(schedule, cut, there, traced=(5,), patch=4)
    assert {span.rank for span in found.spans} == {5}
    own = sorted((s.begin, s.end) for s in found.spans if s.kind != "message")
    assert all(end <= begin + 1e-15 for (_, end), (begin, _) in itertools.pairwise(own))
    assert {span.kind for span in found.spans} == {"pack", "unpack", "patch", "message"}
    assert {span.name for span in found.spans if span.kind == "pack"} == {"u: pack", "u: send"}
    came = {span.name for span in found.spans if span.kind == "message"}
    assert came == {f"u: from rank {n}" for n in (1, 9)}, "those of other nodes"
    copied = {span.name for span in found.spans if span.kind == "unpack"}
    assert copied >= {f"u: from rank {n}" for n in (4, 6)}, "those of its own"


def test_many_ranks_take_the_same_time_as_few_of_the_same_size() -> None:
    times = []
    for side in (4, 32):
        schedule, cut = heat(16 * side, side * side, (side, side))
        times.append(execute(schedule, cut, machine(latency=1e-5), rates=FREE, passes=2).seconds)
    assert times[0] == pytest.approx(times[1])


def test_placement_on_the_links_of_a_node() -> None:
    """Pearson et al. (2020), Section IV.B: the worst case for a trivial placement on a node of Summit, whose
    exchange an aware one makes 20 % faster; here where links alone matter."""
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


def test_wrong_executions() -> None:
    schedule, cut = heat(16, 4, (2, 2))
    with pytest.raises(
        InputError, match="4 ranks, 1 on a node, need 4 nodes; machine 'm' has 3: ask for fewer nodes"
    ):
        execute(schedule, cut, machine().model_copy(update={"nodes": 3}))
    with pytest.raises(InputError, match="passes is 1; two at least"):
        execute(schedule, cut, machine(), passes=1)


# -- transfer methods ---------------------------------------------------------------------------------------


def line(ranks: int, *, subdomains: int = 1, per_node: int | None = None) -> tuple[Schedule, Layout]:
    """Strips of 64 x 64 cells that exchange rows of 512 bytes, periodic along x alone."""
    grid = hc.Grid((64 * ranks * subdomains, 64), periodic=(True, False))
    grid.field("u", boundary=hc.Value(0))

    def step(u: hc.Field) -> None:
        with hc.loop(limit=10):
            u.set(u + 0.1 * hc.second(u, 0))

    schedule = compile_program(hc.program(step).trace(grid.fields["u"]), grid)
    layout = lay_out(
        grid.shape,
        ranks,
        ranks_per_node=per_node or ranks,
        subdomains_per_rank=subdomains,
        strategy="1d-x",
        traffic=Traffic.of_schedule(schedule),
        periodic=grid.periodic,
    )
    return schedule, layout


WORK, ROWS = 64 * 64 * 16 / 1e9, 2 * 512  # seconds and bytes a pass
LATENCY, OVERHEAD, PACKING = 1e-5, 3e-6, 1e8


def together(methods: str, kind: str = "cpu", **options: Any) -> float:
    """Seconds of a pass of three ranks of a node that hide nothing, on links of infinite bandwidth."""
    schedule, layout = line(3)
    there = machine(3, kind, LATENCY / 2, overhead=OVERHEAD)
    rates = Rates(bandwidth=1e9, packing=PACKING, **options)
    return execute(schedule, layout, there, rates=rates, methods=methods, overlap=False).seconds


def test_a_message_is_packed_sent_and_unpacked() -> None:
    """Both sides are packed and posted one after the other; the first is taken while the second flies."""
    packed, taken = ROWS / PACKING, ROWS / 2 / PACKING + OVERHEAD
    assert together("mpi") == pytest.approx(WORK + packed + OVERHEAD + max(LATENCY, OVERHEAD + taken) + taken)


def test_a_colocated_receiver_copies_once_and_pays_no_overhead() -> None:
    """The neighbours are ready when they have ended their own sweep; nobody packs or posts."""
    assert together("colocated") == pytest.approx(WORK + LATENCY + ROWS / PACKING)
    assert together("colocated", "gpu") == pytest.approx(WORK + 1.5 * ROWS / PACKING + LATENCY)
    assert together("colocated", copying=2 * PACKING) == pytest.approx(WORK + LATENCY + ROWS / PACKING / 2)


def test_what_is_fetched_takes_a_signal_and_a_request_more() -> None:
    """And an overhead more for the acknowledgement; both have come when the first is taken."""
    taken = ROWS / PACKING + 4 * OVERHEAD
    assert together("rma") == pytest.approx(WORK + ROWS / 2 / PACKING + 3 * LATENCY + taken)


def test_a_rank_copies_between_its_subdomains_without_messages() -> None:
    schedule, layout = line(1, subdomains=3)
    slow = machine(1, latency=1.0, overhead=1.0)
    rates = Rates(bandwidth=1e9, packing=PACKING)
    found = execute(schedule, layout, slow, rates=rates, traced=(0,))
    assert found.seconds == pytest.approx(3 * (WORK + ROWS / PACKING))
    assert {span.kind for span in found.spans} == {"copy", "patch"}
    assert execute(schedule, layout, slow, rates=rates, methods="mpi").seconds > 1


def test_a_rank_is_one_server_for_all_its_subdomains() -> None:
    schedule, layout = line(2, subdomains=2)
    assert layout.ranks == 2
    found = execute(schedule, layout, machine(4), rates=FREE, methods="self,mpi", traced=(0, 1))
    assert found.seconds == pytest.approx(2 * WORK)
    assert {span.rank for span in found.spans} == {0, 1}


def test_cells_that_are_lent_are_not_overwritten() -> None:
    """Three ranks between walls: the outer ones lend one side and could run ahead of the one in the middle,
    which copies two."""
    grid = hc.Grid((96, 64))
    grid.field("u", boundary=hc.Value(0))

    def step(u: hc.Field) -> None:
        with hc.loop(limit=10):
            u.set(u + 0.1 * hc.second(u, 0))

    schedule = compile_program(hc.program(step).trace(grid.fields["u"]), grid)
    layout = lay_out(grid.shape, 3, strategy="1d-x", traffic=Traffic.of_schedule(schedule), periodic=False)
    rates = Rates(bandwidth=1e12, packing=1e6)
    found = execute(schedule, layout, machine(3, "cpu"), rates=rates, traced=(1, 2), patch=4, passes=4)
    copied = [s.end for s in found.spans if (s.rank, s.name) == (1, "u: from rank 2")]
    mine = sorted(s.begin for s in found.spans if s.rank == 2 and s.kind == "patch")
    assert len(copied) == 4
    assert mine[0] == 0.0, "inner patches of the first pass wait for nobody"
    assert len(mine) == 8, "each pass has inner patches and those at the neighbour"
    for n, end in enumerate(copied[:-1]):
        assert min(mine[2 * n + 2 :]) >= end, "those of the next pass wait"


def test_what_is_inactive_costs_nothing() -> None:
    """Of four ranks the third has half of its cells to compute, the last none."""
    grid = hc.Grid((64, 64), active=[[True, True], [True, True], [True, False], [False, False]])
    grid.field("u", boundary=hc.Value(0))

    def step(u: hc.Field) -> None:
        with hc.loop(limit=10):
            u.set(u + 0.1 * hc.laplacian(u))

    schedule = compile_program(hc.program(step).trace(grid.fields["u"]), grid)
    layout = lay_out(grid.shape, 4, strategy="1d-x", traffic=Traffic.of_schedule(schedule), periodic=False)
    found = execute(schedule, layout, machine(4), rates=FREE, traced=range(4), passes=2, methods="mpi")
    busy = [
        sum(s.end - s.begin for s in found.spans if (s.rank, s.kind) == (rank, "patch")) for rank in range(4)
    ]
    whole = 2 * 16 * 64 * 16 / 1e9
    assert busy == pytest.approx([whole, whole, whole / 2, 0.0])
    sent = {(s.rank, s.name) for s in found.spans if s.kind == "message"}
    assert sent == {(a, f"u: from rank {b}") for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))}


def test_unknown_methods() -> None:
    schedule, layout = line(2)
    with pytest.raises(InputError, match="transfer method 'tcp' is unknown"):
        execute(schedule, layout, machine(2), methods="tcp")


# -- predictions of a study --------------------------------------------------------------------------------


def test_a_weak_study_without_a_network_is_perfect() -> None:
    schedule, shape = predict.prepared("poisson", 64)
    found = predict.predict(schedule, shape, machine(4), [1, 2, 8, 12], scaling="weak")
    assert [p.shape for p in found] == [(64, 64), (128, 64), (256, 128), (384, 128)]
    assert [p.ranks for p in found] == [4, 8, 32, 48]
    assert [p.efficiency for p in found] == pytest.approx(
        [1.0] * 4, rel=0.03
    )  # packing differs with the cuts
    assert found[0].seconds == pytest.approx(64 * 64 / 4 * 64 / 1e9, rel=0.1)  # 8 streams of 8 bytes


def test_a_strong_study_loses_where_latency_grows() -> None:
    schedule, shape = predict.prepared("poisson", 256)
    found = predict.predict(schedule, shape, machine(1, latency=1e-4), [1, 4, 16])
    assert found[0].efficiency == 1
    assert found[0].efficiency > found[1].efficiency > found[2].efficiency
    # the formula knows no latency
    assert [found[0].formula / p.formula for p in found] == pytest.approx([1, 4, 16], rel=0.01)
    assert all(p.seconds > 0.999999 * p.formula for p in found)
    assert {p.bound for p in found} == {"work"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": [1, 0]}, "nodes is 0; expected a whole number from 1"),
        ({"nodes": [2, 3], "scaling": "weak"}, "3 nodes are no multiple of 2"),
        ({"nodes": [1], "scaling": "big"}, "scaling 'big' is unknown; known are strong, weak"),
        ({"nodes": [1], "strategy": "2x2"}, "decomposition 2x2 names parts, but a study cuts"),
        ({"nodes": [1], "ranks_per_node": 0}, "ranks per node is 0; expected a whole number from 1"),
    ],
)
def test_wrong_studies(options: dict[str, Any], words: str) -> None:
    schedule, shape = predict.prepared("poisson", 64)
    with pytest.raises(InputError, match=words):
        predict.predict(schedule, shape, machine(), **options)


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    picture, record = tmp_path / "summit.png", tmp_path / "summit.json"
    line = f"model poisson --n 512 --machine summit --nodes 1,4 --picture {picture} --json {record}"
    assert run(line.split()) == 0
    out = capfd.readouterr().out
    assert "Summit, Oak Ridge" in out
    assert "Efficiency stays above 80% up to 1 node; on 4 nodes" in out
    told = json.loads(record.read_text())
    assert [p["nodes"] for p in told["runs"]] == [1, 4]
    assert told["runs"][0]["ranks"] == 6
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("line", "title", "bytes_per_cell"),
    [
        ("heat --n 64", "heat, 64 x 64 x 64 cells, order 6, rk3; a pass is a step", 80),
        ("heat --n 512 --dim 2 --scheme euler --order 2", "heat, 512 x 512 cells, order 2, euler", 16),
        ("wave --n 512", "wave, 512 x 512 cells, leapfrog; a pass is a step", 72),
    ],
)
def test_other_cases(
    line: str, title: str, bytes_per_cell: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.toml").write_text(MACHINE.format(**DEFAULTS))
    record = tmp_path / "r.json"
    words = f"model {line} --machine {tmp_path}/m.toml --json {record}"
    assert run(words.split()) == 0
    assert title in capfd.readouterr().out
    told = json.loads(record.read_text())
    (one,) = told["runs"]
    assert one["formula"] == pytest.approx(prod(one["shape"]) * bytes_per_cell / 1e9)
    assert one["seconds"] == pytest.approx(one["formula"], rel=0.3), "and copies around periodic axes"


def test_cases_are_those_that_a_simulation_runs() -> None:
    """Traced without memory, they come to the same sweeps."""

    def told(schedule: Schedule) -> list[Any]:
        names = [field.name for field in schedule.fields]
        return [
            (s.bytes, s.flops, {names[n]: halo for n, halo in s.exchange.items()})
            for s in schedule.pass_sweeps()
        ]

    assert told(predict.prepared("heat", 16)[0]) == told(equations.heat((16, 16, 16)).schedule)
    assert told(predict.prepared("wave", 16)[0]) == told(equations.wave((16, 16)).schedule)


def test_a_prediction_is_traced_as_a_run_is(tmp_path: Path) -> None:
    """The same processes, threads and kinds of events as `chrome_events` writes of a run."""
    trace, picture = tmp_path / "t.json", tmp_path / "t.png"
    line = "model poisson --n 256 --machine stampede2-skx --ranks-per-node 4 --nodes 1,2 --traced 2,4"
    assert run(f"{line} --trace {trace} --timeline {picture} --json {tmp_path}/r.json".split()) == 0
    events = json.loads(trace.read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert names == {"rank 2", "rank 4", "thread 0", "messages"}
    done = [e for e in events if e["ph"] == "X"]
    assert {e["cat"] for e in done} == {"patch", "pack", "unpack", "reduction"}
    assert {e["cat"] for e in done} < set(TRACE_EVENTS)
    assert {e["ph"] for e in events if e["cat" if "cat" in e else "ph"] == "message"} == {"b", "e"}
    assert "spans" not in json.loads((tmp_path / "r.json").read_text())["runs"][0]
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--traced 8 --trace {}/t.json", "rank 8 is to be traced, but on 1 node there are 0 to 5"),
        ("--traced 1", "--traced 1 names ranks, but nothing shows them: give --trace or --timeline"),
        ("--picture {}/a.xyz", "a.xyz: expected a name that ends in .png, .pdf, .svg"),
        ("--trace {0}/same.json --json {0}/same.json", "same.json is to hold two things"),
    ],
)
def test_wrong_outputs_are_told_before_any_work(options: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as told:
        run(f"model poisson --n 1024 --machine summit {options.format(tmp_path)}".split())
    assert words in str(told.value)
    assert not list(tmp_path.iterdir())


def test_fewer_ranks_of_a_node_have_more_of_its_memory() -> None:
    schedule, shape = predict.prepared("poisson", 512)
    times = [
        predict.predict(schedule, shape, machine(2, latency=1e-7), [8 // each], ranks_per_node=each)[
            0
        ].seconds
        for each in (2, 4, 8)
    ]
    assert times[0] < times[1] < times[2]


@pytest.mark.parametrize(("strategy", "parts"), [("1d-x", (4, 1)), ("1d-y", (1, 4)), ("2d", (2, 2))])
def test_cuts_along_named_axes_are_predicted(strategy: str, parts: tuple[int, ...]) -> None:
    schedule, shape = predict.prepared("poisson", 512)
    (found,) = predict.predict(schedule, shape, machine(2), [2], strategy=strategy)
    assert found.parts == parts
