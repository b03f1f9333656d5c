"""This host as a machine of the model: detected, and calibrated by what ranks measure (`paces`)."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from halocline.compile.cache import cache_folder
from halocline.errors import InputError
from halocline.io.table import Table, table_of
from halocline.model import Rates, execute, memory_of_node
from halocline.plan.layout import Layout, lay_out
from halocline.plan.machine import Device, Link, Machine, Measured, Network, Throughput, load_machine
from halocline.plan.traffic import Traffic
from halocline.run.host.machine import last_level_cache, sockets, this_machine
from halocline.run.measurements.bandwidth import triad_bandwidth
from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.launch import run_on_ranks
from halocline.study.measuring.command import failed
from halocline.study.measuring.paces import RADIUS, SIDE
from halocline.study.measuring.predict import Case
from halocline.words import amount, counted, duration

HOST = "host"
FLOPS = 3.2e10  # operations a second of a core where none were measured: 16 a cycle of 2 GHz


def calibration_file() -> Path:
    """Where the calibration of this host is kept: in the folder of compiled kernels, by the host's name."""
    return cache_folder() / "machines" / f"{platform.node() or HOST}.toml"


def machine_named(name: str) -> Machine:
    """A machine by name or file; "host" is this one, as calibrated, else as detected.

    Raises
    ------
    InputError
        See `halocline.plan.machine.load_machine`.
    """
    if name != HOST:
        return load_machine(name)
    file = calibration_file()
    return load_machine(file) if file.is_file() else detected()


def detected() -> Machine:
    """This host by what the system reports, and the bandwidth of its memory measured now (0.1 s)."""
    facts = this_machine()
    bandwidth = triad_bandwidth(Communicator(), facts.cores, 4 * last_level_cache())
    return _machine(
        "Detected; the bandwidth is that of a += s * b on all cores, the operations are multiply-adds of "
        "vectors. Latencies are round figures.",
        bandwidth=bandwidth,
        flops=multiply_add_peak(Communicator(), facts.cores) or FLOPS * facts.cores,
        latency=2e-7,
        messages=bandwidth / 2,
        overhead=5e-7,
        measured=None,
    )


def _machine(
    source: str,
    *,
    bandwidth: float,
    flops: float,
    latency: float,
    messages: float,
    overhead: float,
    measured: Measured | None,
    **of_device: Any,
) -> Machine:
    """Return one node of sockets, joined by a board; numbers are of all of them, `of_device` of one or of a
    core."""
    facts, count = this_machine(), sockets()
    device = Device(
        kind="cpu",
        model=facts.cpu or "processor",
        count=count,
        bandwidth=bandwidth / count,
        memory=(facts.memory_bytes or 2**30) / count,
        flops=flops / count,
        cores=max(1, facts.cores // count),
        latency=latency,
        messages=messages / count,
        cache=last_level_cache() / count,
        **of_device,
    )
    ends = tuple((f"device{n}", "board") for n in range(count))
    title = f"This host ({facts.cores} cores in {count} socket{'s' if count > 1 else ''}, {device.model})"
    if measured is None:
        title += ", detected; `halocline model calibrate` measures it"
    return Machine(
        name=HOST,
        title=title,
        source=source,
        nodes=1,
        device=device,
        links=(Link(ends=(*ends, ("board", "card")), bandwidth=messages, latency=latency),),
        network=Network(cards=("card",), bandwidth=messages, latency=latency, overhead=overhead),
        measured=measured,
    )


# -- what ranks measure --------------------------------------------------------------------------------------


def on_ranks(ranks: int, task: Mapping[str, Any]) -> Any:
    """Return the measurements of a task of `halocline.study.measuring.paces` on some ranks.

    Raises
    ------
    InputError, RunError
        It fails there.
    """
    words = ["-m", "halocline.study.measuring.paces", json.dumps(task)]
    done = run_on_ranks(ranks, words, HALOCLINE_DEVICE="cpu")  # it is this host that is measured
    if done.returncode:
        raise failed(done, f"measuring on {counted(ranks, 'rank')} failed:")
    return json.loads(done.stdout)


def calibrate(on_progress: Callable[[int], None] | None = None) -> Machine:
    """Measure this host with one rank and with one for each core: some seconds for each.

    Kernels of known bytes, operations and sums, small enough for the cache and too large for it, are run by
    each rank by itself, all at once. Exchanges and reductions are run between them.

    Raises
    ------
    RunError
    """
    cores = this_machine().cores
    found = []
    for ranks in sorted({1, cores}):
        found.append(on_ranks(ranks, {"do": HOST}))
        if on_progress is not None:
            on_progress(len(found))
    return machine_of(found)


def machine_of(found: Sequence[Mapping[str, Any]]) -> Machine:
    """The machine file that measurements on one rank, and on one for each core, make."""
    paces = []
    for each in found:
        for where, limit in (("inside", float(each["cache"])), ("outside", math.inf)):
            per_byte, per_flop, per_sum = roofline(each["kernels"][where])
            costs = {"bandwidth": 1 / per_byte, "per_flop": per_flop, "per_sum": per_sum}
            paces.append(Throughput(ranks=each["ranks"], memory=limit, **costs))
    one, most = found[0]["between"], found[-1]["between"]
    ranks, begin = found[-1]["ranks"], one["begin"]
    moved = 2 * RADIUS * SIDE * SIDE * 8  # bytes into each rank by a large exchange
    packing = moved / max(one["copy"] - begin, 1e-9)
    message = most.get("message") or begin
    signal = most.get("signal") or (begin + message) / 2
    colocated, large = most.get("large colocated"), most.get("large message")
    latency = max(signal, 0.0)  # what begins a sweep passes meanwhile
    # sender and receiver pay for a message; its way, where that is longer, takes the place of one of them
    overhead = max(0.0, message - begin) / 2
    if overhead < latency:
        overhead = max(0.0, message - begin - latency)
    # packing and unpacking hide behind the messages of the other rank
    through = 0.0 if large is None else large - begin
    hops = math.ceil(math.log2(ranks))
    alone, inside, outside = paces[1], paces[-2], paces[-1]
    reached = ranks / outside.per_flop if outside.per_flop else FLOPS * ranks
    flops = max(reached, found[-1].get("flops") or 0.0)
    return _machine(
        f"Measured on {' and '.join(str(each['ranks']) for each in found)} ranks of this host.",
        bandwidth=outside.bandwidth * ranks,
        flops=flops,
        sustained=reached / flops,
        core_bandwidth=alone.bandwidth,
        cache_bandwidth=max(inside.bandwidth, outside.bandwidth),
        latency=latency,
        messages=ranks * moved / max(through, ranks * moved / 1e12),
        overhead=overhead,
        measured=Measured(
            begin=begin,
            packing=packing,
            copying=packing if colocated is None else moved / max(colocated - max(begin, latency), 1e-9),
            hop=max(most["sum"] - most["sum alone"], 0.0) / hops if hops else 0.0,
            sweeps=tuple(paces),
        ),
    )


def roofline(rows: Sequence[Mapping[str, float]]) -> tuple[float, float, float]:
    """Seconds of a byte, an operation and a summand that come nearest to what kernels took, none negative:
    the squares of relative errors are least."""
    from scipy.optimize import nnls

    each = np.array([[row["bytes"], row["flops"], row["sums"]] for row in rows])
    seconds = np.array([row["seconds"] for row in rows])
    found, _ = nnls(each / seconds[:, None], np.ones(len(rows)))
    least = 1e-3 * seconds.min() / each[:, 0].max()  # bytes are never free
    return max(float(found[0]), float(least)), float(found[1]), float(found[2])


def as_toml(machine: Machine) -> str:
    """A machine as the text of a file that `load_machine` takes."""
    return tomli_w.dumps(_rounded(machine.model_dump(exclude_none=True)))


def _rounded(value: Any) -> Any:
    """With six digits of each number, which is more than was measured."""
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def table(machine: Machine) -> Table:
    """What a calibrated machine has measured of sweeps, and between ranks."""
    found = machine.measured
    assert found is not None
    columns: dict[str, Callable[[Throughput], str]] = {
        "ranks": lambda pace: f"{pace.ranks}",
        "fields": lambda pace: "larger" if math.isinf(pace.memory) else f"to {amount(pace.memory)}",
        "bytes": lambda pace: f"{pace.bandwidth / 1e9:.1f} GB/s",
        "operations": lambda pace: f"{1e-9 / pace.per_flop:.1f} Gflop/s" if pace.per_flop else "free",
        "a summand": lambda pace: f"{1e9 * pace.per_sum:.2f} ns",
    }
    network, device = machine.network, machine.device
    note = (
        f"To begin a sweep: {duration(found.begin)}; to send or take a message: "
        f"{duration(network.overhead)}\na word to a neighbour: {duration(device.latency)}; a reduction, each "
        f"doubling of ranks: {duration(found.hop)}\npacking: {found.packing / 1e9:.1f} GB/s; copying from a "
        f"neighbour: {found.copying / 1e9:.1f} GB/s; messages: {(device.messages or 0.0) / 1e9:.1f} GB/s"
    )
    return table_of("What sweeps of a rank take", found.sweeps, columns, left=0, note=note)


# -- π -------------------------------------------------------------------------------------------------------


def pace_of(case: Mapping[str, Any], made: Case, machine: Machine, ranks: int) -> float:
    """How many times as long the sweeps of a case take as `machine` predicts: 1/π over that.

    π is measured on one device by running the case (J. Pekkilä et al. 2022, Section 3.1): here by each of so
    many ranks by itself, all at once, since they share memory. What they exchange is left to the model.

    Parameters
    ----------
    case : mapping
        "case" names it, "n" is that of a rank; "settings", "dim", "order", "scheme" and "dtype" may follow.
    made : Case
        Its schedule and shape.
    machine : Machine
        This host.
    ranks : int
    """
    schedule, shape = made
    seconds = on_ranks(ranks, {"do": "case", "case": dict(case), "alone": True})
    layout: Layout = lay_out(shape, 1, traffic=Traffic.of_schedule(schedule), periodic=schedule.periodic)
    memory = memory_of_node(schedule, layout)
    # kernels are those for as much memory as one rank has, slowed by the others
    rates = Rates.of(machine, ranks, memory=memory)
    expected = execute(schedule, layout, machine, rates=rates).seconds
    if not expected > 0:
        raise InputError(f"{machine.title}: a pass takes no time")
    return float(seconds) / expected
