"""Machine description of this host, from the properties that the system reports or from measurements."""

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
from halocline.study.measuring.command import command_error
from halocline.study.measuring.paces import RADIUS, SIDE
from halocline.study.measuring.predict import Case
from halocline.words import amount, counted, duration

HOST = "host"
FLOPS = 3.2e10  # assumed operations per second of a core: 16 per cycle at 2 GHz


def calibration_file() -> Path:
    """Return the path of the calibration of this host, in the folder of the kernel cache."""
    return cache_folder() / "machines" / f"{platform.node() or HOST}.toml"


def machine_named(name: str) -> Machine:
    """Return a machine by name or file. "host" is this host, with its calibration if there is one.

    Raises
    ------
    InputError
        See `halocline.plan.machine.load_machine`.
    """
    if name != HOST:
        return load_machine(name)
    file = calibration_file()
    return load_machine(file) if file.is_file() else detect_host()


def detect_host() -> Machine:
    """Return this host with the properties that the system reports, and a measured memory bandwidth.

    The measurement takes 0.1 s.
    """
    facts = this_machine()
    bandwidth = triad_bandwidth(Communicator(), facts.cores, 4 * last_level_cache())
    return _machine(
        "Detected. The bandwidth is that of a += s * b on all cores, and the rate of operations is that of "
        "multiply-adds on vectors. Latencies are typical rounded values.",
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
    **device_values: Any,
) -> Machine:
    """Return a machine with one node. Its devices are the sockets, linked to each other through a board.

    Numbers are totals of the node. The numbers in `device_values` are those of one socket or core.
    """
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
        **device_values,
    )
    ends = tuple((f"device{n}", "board") for n in range(count))
    title = f"This host ({facts.cores} cores in {count} socket{'s' if count > 1 else ''}, {device.model})"
    if measured is None:
        title += ", detected; `halocline model calibrate` measures this host"
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


# -- measurements on ranks -----------------------------------------------------------------------------------


def run_task(ranks: int, task: Mapping[str, Any]) -> Any:
    """Run a task of `halocline.study.measuring.paces` on several ranks, and return its result.

    Raises
    ------
    InputError, RunError
        The task fails on the ranks.
    """
    words = ["-m", "halocline.study.measuring.paces", json.dumps(task)]
    process = run_on_ranks(ranks, words, HALOCLINE_DEVICE="cpu")  # without devices
    if process.returncode:
        raise command_error(process, f"the measurement on {counted(ranks, 'rank')} failed:")
    return json.loads(process.stdout)


def calibrate(on_progress: Callable[[int], None] | None = None) -> Machine:
    """Measure this host with one rank and with one rank per core, and return it as a machine.

    Each of the two measurements takes some seconds. First, all ranks run kernels at the same time, without
    communication. The numbers of bytes, operations and sums of these kernels are known. Each kernel runs with
    fields that fit into the cache, and with fields that exceed the cache. Then the ranks time exchanges and
    reductions.

    Raises
    ------
    RunError
        A measurement fails.
    """
    cores = this_machine().cores
    rank_measurements = []
    for ranks in sorted({1, cores}):
        rank_measurements.append(run_task(ranks, {"do": HOST}))
        if on_progress is not None:
            on_progress(len(rank_measurements))
    return machine_from_measurements(rank_measurements)


def machine_from_measurements(measurements: Sequence[Mapping[str, Any]]) -> Machine:
    """Return the machine, derived from measurements on one rank and on one rank per core."""
    paces = []
    for entry in measurements:
        for cache_state, limit in (("inside", float(entry["cache"])), ("outside", math.inf)):
            per_byte, per_flop, per_sum = roofline(entry["kernels"][cache_state])
            costs = {"bandwidth": 1 / per_byte, "per_flop": per_flop, "per_sum": per_sum}
            paces.append(Throughput(ranks=entry["ranks"], memory=limit, **costs))
    single_rank, all_ranks = measurements[0]["between"], measurements[-1]["between"]
    ranks, begin = measurements[-1]["ranks"], single_rank["begin"]
    received_bytes = 2 * RADIUS * SIDE * SIDE * 8  # bytes into each rank in a large exchange
    packing = received_bytes / max(single_rank["copy"] - begin, 1e-9)
    message = all_ranks.get("message") or begin
    signal = all_ranks.get("signal") or (begin + message) / 2
    colocated, large = all_ranks.get("large colocated"), all_ranks.get("large message")
    latency = max(signal, 0.0)  # `begin` is not subtracted, because it overlaps with the latency
    # The time of a message contains the overheads of the sender and of the receiver. If the latency is longer
    # than an overhead, it replaces one of the two overheads.
    overhead = max(0.0, message - begin) / 2
    if overhead < latency:
        overhead = max(0.0, message - begin - latency)
    # packing and unpacking overlap with the messages of the other rank
    transfer_time = 0.0 if large is None else large - begin
    hops = math.ceil(math.log2(ranks))
    single_rank_pace, cache_pace, memory_pace = paces[1], paces[-2], paces[-1]
    sustained = ranks / memory_pace.per_flop if memory_pace.per_flop else FLOPS * ranks
    flops = max(sustained, measurements[-1].get("flops") or 0.0)
    return _machine(
        f"Measured on {' and '.join(str(entry['ranks']) for entry in measurements)} ranks of this host.",
        bandwidth=memory_pace.bandwidth * ranks,
        flops=flops,
        sustained=sustained / flops,
        core_bandwidth=single_rank_pace.bandwidth,
        cache_bandwidth=max(cache_pace.bandwidth, memory_pace.bandwidth),
        latency=latency,
        messages=ranks * received_bytes / max(transfer_time, ranks * received_bytes / 1e12),
        overhead=overhead,
        measured=Measured(
            begin=begin,
            packing=packing,
            copying=packing
            if colocated is None
            else received_bytes / max(colocated - max(begin, latency), 1e-9),
            hop=max(all_ranks["sum"] - all_ranks["sum alone"], 0.0) / hops if hops else 0.0,
            sweeps=tuple(paces),
        ),
    )


def roofline(rows: Sequence[Mapping[str, float]]) -> tuple[float, float, float]:
    """Return the times of a byte, an operation and a summand that best fit the times of kernels.

    The times are in seconds, and none of them is negative. The fit minimizes the sum of the squared relative
    errors.
    """
    from scipy.optimize import nnls

    work = np.array([[row["bytes"], row["flops"], row["sums"]] for row in rows])
    seconds = np.array([row["seconds"] for row in rows])
    unit_times, _ = nnls(work / seconds[:, None], np.ones(len(rows)))
    min_byte_time = 1e-3 * seconds.min() / work[:, 0].max()  # a bandwidth must be finite
    return max(float(unit_times[0]), float(min_byte_time)), float(unit_times[1]), float(unit_times[2])


def toml_text(machine: Machine) -> str:
    """Return a machine in the format of machine files, which `load_machine` reads."""
    return tomli_w.dumps(_round_numbers(machine.model_dump(exclude_none=True)))


def _round_numbers(value: Any) -> Any:
    """Return a value with all numbers rounded to six digits, because measurements are less accurate."""
    if isinstance(value, Mapping):
        return {key: _round_numbers(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_round_numbers(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def table(machine: Machine) -> Table:
    """Return the table of the measured costs of sweeps and messages of a calibrated machine."""
    measured = machine.measured
    assert measured is not None
    columns: dict[str, Callable[[Throughput], str]] = {
        "ranks": lambda pace: f"{pace.ranks}",
        "fields": lambda pace: "larger" if math.isinf(pace.memory) else f"to {amount(pace.memory)}",
        "bytes": lambda pace: f"{pace.bandwidth / 1e9:.1f} GB/s",
        "operations": lambda pace: f"{1e-9 / pace.per_flop:.1f} Gflop/s" if pace.per_flop else "free",
        "time per\nsummand": lambda pace: f"{1e9 * pace.per_sum:.2f} ns",
    }
    network, device = machine.network, machine.device
    note = (
        f"overhead: {duration(measured.begin)} per sweep, {duration(network.overhead)} per sent or received "
        f"message\nlatency of a signal to a neighbour: {duration(device.latency)}; reduction: "
        f"{duration(measured.hop)} per doubling of the ranks\npacking: {measured.packing / 1e9:.1f} GB/s; "
        f"copies from a neighbour: {measured.copying / 1e9:.1f} GB/s; messages: "
        f"{(device.messages or 0.0) / 1e9:.1f} GB/s"
    )
    return table_of("Costs of the sweeps of a rank", measured.sweeps, columns, left=0, note=note)


# -- π -------------------------------------------------------------------------------------------------------


def measured_pace(case: Mapping[str, Any], prepared_case: Case, machine: Machine, ranks: int) -> float:
    """Return the measured time of the sweeps of a case (1/π), divided by the time predicted for `machine`.

    J. Pekkilä et al. (2022), Section 3.1, measure π with the case on one device. This function runs the case
    on several ranks at the same time, because the ranks share memory. The ranks do not communicate, because
    the model predicts the exchanges.

    Parameters
    ----------
    case : mapping
        Name of the case ("case") and size on a rank ("n"). Optional keys are "settings", "dim", "order",
        "scheme" and "dtype".
    prepared_case : Case
        Schedule and shape of the case.
    machine : Machine
        This host.
    ranks : int
        Number of ranks that run at the same time.
    """
    schedule, shape = prepared_case
    seconds = run_task(ranks, {"do": "case", "case": dict(case), "alone": True})
    layout: Layout = lay_out(shape, 1, traffic=Traffic.of_schedule(schedule), periodic=schedule.periodic)
    memory = memory_of_node(schedule, layout)
    # rates of kernels with the fields of one rank, while the other ranks also use the memory
    rates = Rates.of(machine, ranks, memory=memory)
    expected = execute(schedule, layout, machine, rates=rates).seconds
    if not expected > 0:
        raise InputError(f"{machine.title}: the predicted time of a pass is 0")
    return float(seconds) / expected
