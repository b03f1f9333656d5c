"""A machine of the model, with programs and layouts."""

from __future__ import annotations

from typing import Any

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.schedule import Schedule
from halocline.model import Rates, execute
from halocline.plan.layout import Layout, lay_out
from halocline.plan.machine import Machine, parse_machine
from halocline.plan.traffic import Traffic

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
flops = 1e12

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


def machine(devices: int = 1, kind: str = "gpu", link_latency: float = 0.0, **network: float) -> Machine:
    """Return nodes of devices of 1 GB/s each, with links of infinite bandwidth and one network card.

    The links have a latency of `link_latency` seconds.
    """
    ends = ", ".join([*(f'["device{n}", "hub"]' for n in range(devices)), '["hub", "card"]'])
    fields = {"kind": kind, "devices": devices, "near": link_latency, "ends": ends}
    return parse_machine(MACHINE.format(**{**DEFAULTS, **fields, **network}), "m.toml")


def heat(n: int, ranks: int, parts: tuple[int, int], per_node: int = 1) -> tuple[Schedule, Layout]:
    """Return one sweep per pass, with 16 bytes per cell and one message of 8 n / parts bytes per side."""
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


# -- transfer methods ---------------------------------------------------------------------------------------


def line(ranks: int, *, subdomains: int = 1, per_node: int | None = None) -> tuple[Schedule, Layout]:
    """Return strips of 64 x 64 cells that exchange rows of 512 bytes, periodic along x only."""
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


LATENCY, OVERHEAD, PACKING = 1e-5, 3e-6, 1e8


def seconds_of_three_ranks(methods: str, kind: str = "cpu", **options: Any) -> float:
    """Return the seconds of a pass of three ranks of a node, without overlap and bandwidth limits."""
    schedule, layout = line(3)
    three_devices = machine(3, kind, LATENCY / 2, overhead=OVERHEAD)
    rates = Rates(bandwidth=1e9, packing=PACKING, **options)
    return execute(schedule, layout, three_devices, rates=rates, methods=methods, overlap=False).seconds
