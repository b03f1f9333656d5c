"""Transfer methods in the performance model."""

from __future__ import annotations

from typing import Any

import pytest

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.errors import InputError
from halocline.model import Rates, execute
from halocline.plan.layout import lay_out
from halocline.plan.machine import Aware, Host, Machine
from halocline.plan.traffic import Traffic
from modelled_machine import FREE, LATENCY, OVERHEAD, PACKING, line, machine, seconds_of_three_ranks

WORK, ROWS = 64 * 64 * 16 / 1e9, 2 * 512  # seconds and bytes per pass


def test_a_message_is_packed_sent_and_unpacked() -> None:
    """Both messages are packed and posted in turn; the first is unpacked while the second is on its way."""
    packing, unpacking = ROWS / PACKING, ROWS / 2 / PACKING + OVERHEAD
    assert seconds_of_three_ranks("mpi") == pytest.approx(
        WORK + packing + OVERHEAD + max(LATENCY, OVERHEAD + unpacking) + unpacking
    )


def test_a_colocated_receiver_copies_once_and_pays_no_overhead() -> None:
    """The receiver copies as soon as the neighbours have ended their sweeps; no rank packs or posts."""
    assert seconds_of_three_ranks("colocated") == pytest.approx(WORK + LATENCY + ROWS / PACKING)
    assert seconds_of_three_ranks("colocated", "gpu") == pytest.approx(WORK + 1.5 * ROWS / PACKING + LATENCY)
    assert seconds_of_three_ranks("colocated", copying=2 * PACKING) == pytest.approx(
        WORK + LATENCY + ROWS / PACKING / 2
    )


def test_a_fetched_message_needs_one_more_signal_and_request() -> None:
    """A fetch adds a signal, a request and an acknowledgement.

    Both messages have arrived when the first one is unpacked.
    """
    unpacking = ROWS / PACKING + 4 * OVERHEAD
    assert seconds_of_three_ranks("rma") == pytest.approx(WORK + ROWS / 2 / PACKING + 3 * LATENCY + unpacking)


def test_a_rank_copies_between_its_subdomains_without_messages() -> None:
    schedule, layout = line(1, subdomains=3)
    slow = machine(1, latency=1.0, overhead=1.0)
    rates = Rates(bandwidth=1e9, packing=PACKING)
    result = execute(schedule, layout, slow, rates=rates, traced=(0,))
    assert result.seconds == pytest.approx(3 * (WORK + ROWS / PACKING))
    assert {span.kind for span in result.spans} == {"copy", "patch"}
    assert execute(schedule, layout, slow, rates=rates, methods="mpi").seconds > 1


def test_a_rank_serves_its_subdomains_one_after_another() -> None:
    schedule, layout = line(2, subdomains=2)
    assert layout.ranks == 2
    result = execute(schedule, layout, machine(4), rates=FREE, methods="self,mpi", traced=(0, 1))
    assert result.seconds == pytest.approx(2 * WORK)
    assert {span.rank for span in result.spans} == {0, 1}


def test_exposed_cells_are_not_overwritten() -> None:
    """An outer rank does not overwrite cells before the middle rank has copied them.

    Three ranks lie between walls. The outer ranks lend one side each and could run ahead of the middle one,
    which copies two sides.
    """
    grid = hc.Grid((96, 64))
    grid.field("u", boundary=hc.Value(0))

    def step(u: hc.Field) -> None:
        with hc.loop(limit=10):
            u.set(u + 0.1 * hc.second(u, 0))

    schedule = compile_program(hc.program(step).trace(grid.fields["u"]), grid)
    layout = lay_out(grid.shape, 3, strategy="1d-x", traffic=Traffic.of_schedule(schedule), periodic=False)
    rates = Rates(bandwidth=1e12, packing=1e6)
    result = execute(schedule, layout, machine(3, "cpu"), rates=rates, traced=(1, 2), patch=4, passes=4)
    copied = [s.end for s in result.spans if (s.rank, s.name) == (1, "u: from rank 2")]
    begins = sorted(s.begin for s in result.spans if s.rank == 2 and s.kind == "patch")
    assert len(copied) == 4
    assert begins[0] == 0.0, "inner patches of the first pass wait for nobody"
    assert len(begins) == 8, "each pass has inner patches and those at the neighbour"
    for n, end in enumerate(copied[:-1]):
        assert min(begins[2 * n + 2 :]) >= end, "those of the next pass wait"


def test_inactive_blocks_cost_nothing() -> None:
    """The third of four ranks computes half of its cells, and the last none."""
    grid = hc.Grid((64, 64), active=[[True, True], [True, True], [True, False], [False, False]])
    grid.field("u", boundary=hc.Value(0))

    def step(u: hc.Field) -> None:
        with hc.loop(limit=10):
            u.set(u + 0.1 * hc.laplacian(u))

    schedule = compile_program(hc.program(step).trace(grid.fields["u"]), grid)
    layout = lay_out(grid.shape, 4, strategy="1d-x", traffic=Traffic.of_schedule(schedule), periodic=False)
    result = execute(schedule, layout, machine(4), rates=FREE, traced=range(4), passes=2, methods="mpi")
    busy = [
        sum(s.end - s.begin for s in result.spans if (s.rank, s.kind) == (rank, "patch")) for rank in range(4)
    ]
    whole = 2 * 16 * 64 * 16 / 1e9
    assert busy == pytest.approx([whole, whole, whole / 2, 0.0])
    sent = {(s.rank, s.name) for s in result.spans if s.kind == "message"}
    assert sent == {(a, f"u: from rank {b}") for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))}


# -- devices -------------------------------------------------------------------------------------------------


def gpus(count: int, *, launch: float = 0.0, host: Host | None = None, aware: Aware | None = None) -> Machine:
    """Return nodes of devices whose links have a bandwidth of 1 GB/s and no latency."""
    base = machine(count, bandwidth=1e9)
    (link,) = base.links
    return Machine(
        **{
            **dict(base),
            **{"host": host, "aware": aware},
            "device": base.device.model_copy(update={"launch": launch}),
            "links": (link.model_copy(update={"bandwidth": 1e9}),),
        }
    )


def seconds(nodes: Machine, methods: str, ranks: int = 3, **options: Any) -> float:
    """Return the seconds per pass of devices that exchange rows, without the time of the computation."""
    packing = options.pop("packing", "all")
    schedule, layout = line(ranks, **options)
    rates = Rates(bandwidth=1e15, packing=1e15)
    result = execute(schedule, layout, nodes, rates=rates, methods=methods, packing=packing, overlap=False)
    return result.seconds


def test_plain_mpi_goes_through_the_host_and_is_copied_by_the_receiver() -> None:
    """A row goes through the memory of the host, where the receiving rank copies it.

    Each rank copies two rows.
    """
    host = Host(sockets=("hub",), copying=1e6, latency=1e-4)
    row = ROWS / 2
    times = seconds(gpus(3, host=host), "mpi")
    assert times == pytest.approx(2 * 1e-4 + 2 * row / 1e9 + 2 * row / 1e6, rel=1e-2)
    assert seconds(gpus(3), "mpi") == pytest.approx(2 * row / 1e9, rel=1e-2), "from device to device"
    slow = host.model_copy(update={"staging": 1e5})
    assert seconds(gpus(3, host=slow), "mpi") == pytest.approx(2e-4 + 3 * row / 1e5 + row / 1e6, rel=1e-2)


def test_more_ranks_of_the_same_devices_copy_at_once() -> None:
    host = Host(sockets=("hub",), copying=1e6)
    one = seconds(gpus(4, host=host), "mpi", ranks=1, subdomains=4)
    assert one == pytest.approx(4 * seconds(gpus(4, host=host), "mpi", ranks=4), rel=1e-2)


def test_rows_that_are_not_packed_take_longer_through_the_host() -> None:
    """Each side sends one row."""
    host = Host(sockets=("hub",), copying=1e12, per_row=1e-3)
    assert seconds(gpus(3, host=host), "mpi") < 1e-4
    assert seconds(gpus(3, host=host), "mpi", packing="none") >= 2e-3


def test_serial_messages_of_a_rank_follow_one_another() -> None:
    setup = 1e-3
    for serial, count in ((False, 1), (True, 2)):
        aware = Aware(serial=serial, setup=setup)
        assert seconds(gpus(3, aware=aware), "gpu_aware,mpi") == pytest.approx(count * setup, rel=0.05)


def test_copies_between_the_devices_of_a_rank_cross_links_at_once() -> None:
    times = seconds(gpus(4), "peer,mpi", ranks=1, subdomains=4)
    row = ROWS / 2 / 1e9
    assert 2 * row <= times < 4 * row, "a device receives two rows, and all do at once"


def test_each_call_of_the_host_takes_a_launch() -> None:
    """Packing, copying and unpacking are one launch each, for two messages per rank."""
    launch = 1e-3
    assert seconds(gpus(3, launch=launch), "colocated,mpi") == pytest.approx(6 * launch, rel=0.35)
    alone = seconds(gpus(3, launch=launch), "peer,mpi", ranks=1, subdomains=3)
    assert alone == pytest.approx(6 * launch, rel=1e-2)


def test_unknown_methods_are_rejected() -> None:
    schedule, layout = line(2)
    with pytest.raises(InputError, match="transfer method 'tcp' is unknown"):
        execute(schedule, layout, machine(2), methods="tcp")
