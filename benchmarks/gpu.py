"""Common parts of the benchmarks on devices: options, the speed of device copies, and records."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from measure import RESULTS, in_turn, median, ratio, save
from measure import parser as measure_parser

from halocline.errors import HaloclineError
from halocline.native import native
from halocline.plan.devices import DeviceChoice
from halocline.run.host.machine import this_machine

ELSEWHERE = RESULTS.parents[1] / "out" / "gpu-bench"  # records with other sizes than those of a result
MEBIBYTE = 2**20
PLACES = {"peer_python"}  # options that do not change what a benchmark measures
COPIES, PASSES = 0.02, 0.2  # seconds of passes that are timed together


def arguments(description: str, **defaults: Any) -> argparse.Namespace:
    """Return the command-line options of a benchmark on devices.

    `device` is the text of the option, `devices` are the devices, and `full` is True if all sizes are those
    of a result.
    """
    parser = measure_parser(description, **defaults)
    parser.add_argument("--device", default="cuda", help="cuda or opencl, with numbers: cuda:0,1")
    parser.add_argument("--copy", type=int, default=1024, help="MiB that are copied to measure bandwidth")
    parser.add_argument("--commit", default="", help="what is measured, where git cannot tell")
    for action in parser._actions:
        if action.dest == "json":  # the name of the device is known only in this module
            action.nargs, action.const = "?", Path()
            action.help = (
                "write the records to this file; without a name among the results, or to out/gpu-bench where "
                "sizes are not those that are meant"
            )
    options = parser.parse_args()
    sizes = {**defaults, "copy": parser.get_default("copy")}
    sizes = {name: value for name, value in sizes.items() if name not in PLACES}
    options.full = all(getattr(options, name) == value for name, value in sizes.items())
    try:
        choice = DeviceChoice.parse(options.device)
        result = native().devices(choice.interface) if choice.interface != "cpu" else []
        platforms = [device.platform for device in result]
        numbers_of_devices = (
            choice.select_visible(platforms, native().why_no_devices(choice.interface)) if result else ()
        )
        if not numbers_of_devices:
            raise SystemExit(f"device {options.device!r}: {_missing_reason(choice)}")
        options.devices = [result[n] for n in numbers_of_devices]
    except HaloclineError as error:
        raise SystemExit(str(error)) from None
    return options


def _missing_reason(choice: DeviceChoice) -> str:
    if choice.interface == "cpu":
        return "expected cuda or opencl, with device numbers to select some devices, such as cuda:0,1"
    return native().why_no_devices(choice.interface) or "there is none"


def label(devices: Sequence[Any]) -> str:
    """Return the name of devices in a command."""
    return f"{devices[0].interface}:" + ",".join(str(device.index) for device in devices)


class Copies:
    """Copies within the memory of a device; each call copies and returns seconds per byte.

    A copied byte counts twice, since it is read and written.

    Parameters
    ----------
    device : native Device
    size : int
        Bytes that are copied in one pass over the buffers.
    queues : int
        Number of concurrent queues, each with buffers of its own.
    """

    def __init__(self, device: Any, size: int, queues: int) -> None:
        self.size = size // queues
        self.pairs = [(device.allocate(self.size), device.allocate(self.size)) for _ in range(queues)]
        self.queues = [device.queue() for _ in range(queues)]
        self.passes = 1
        self()
        self.passes = max(2, round(COPIES / (self() * 2 * size)))

    def __call__(self) -> float:
        start_time = perf_counter()
        for _ in range(self.passes):
            for queue, (to, source) in zip(self.queues, self.pairs, strict=True):
                queue.copy(to, source)
        for queue in self.queues:
            queue.flush()
        for queue in self.queues:
            queue.finish()
        return (perf_counter() - start_time) / (2 * self.passes * self.size * len(self.queues))


def fastest_copies(device: Any, mebibytes: int) -> Copies:
    """Return the faster of one large copy and of four concurrent copies, which are eight streams."""
    size = min(mebibytes * MEBIBYTE, int(device.free_memory) // 8)
    best: tuple[float, int] | None = None
    for queues in (1, 4):
        copies = Copies(device, size, queues)
        result = min(copies() for _ in range(5)), queues
        best = result if best is None else min(best, result)
    assert best is not None
    return Copies(device, size, best[1])


def against_copies(
    sim: Any,
    copies: Copies,
    least: int,
    repeats: int,
    peers: Mapping[str, Callable[[int], float]] | None = None,
) -> dict[str, Any]:
    """Return the seconds of a pass of a simulation, and its share of the bound, measured in turn with copies.

    At least `least` passes are timed together.

    Parameters
    ----------
    peers : mapping of str to function, optional
        Other programs of the same problem. Each function takes a number of passes, and returns the seconds of
        one pass. They are measured in the same turns.

    Returns
    -------
    dict
        If there are peers, the item "peers" has their times, and the ratios to the time of Halocline.
    """
    sim.run(steps=least)
    passes = max(least, round(PASSES / (sim.run(steps=least).loop_seconds / least)))

    def run() -> float:
        return float(sim.run(steps=passes).loop_seconds) / passes

    competitors: dict[str, Callable[[], float]] = {"pass": run, "copy": copies}
    for name, peer in (peers or {}).items():
        competitors[f"peer {name}"] = partial(peer, passes)
    times = in_turn(competitors, repeats)
    times["bound"] = [sim.bytes_per_step * copy_seconds for copy_seconds in times["copy"]]
    row: dict[str, Any] = {
        "passes": passes,
        "ms": 1e3 * median(times["pass"]),
        "copy_gigabytes_per_second": 1e-9 / median(times["copy"]),
        "share_of_bound": 1 / ratio(times, "bound", "pass"),
    }
    if peers is not None:
        row["peers"] = {
            name: {
                "ms": 1e3 * median(times[f"peer {name}"]),
                "ratio": ratio(times, "pass", f"peer {name}"),
            }
            for name in peers
        }
    return row


def copy_rate(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the bytes per second of the copies that ran in turn with some measurements."""
    return 1e9 * median([row["copy_gigabytes_per_second"] for row in rows])


def keep(
    options: argparse.Namespace, name: str, rows: list[dict[str, Any]], copies: float | None, **facts: Any
) -> None:
    """Write a record with the devices, their drivers and the bound, if a record is requested.

    Without a file name, the record is written to the results if the sizes are those of a result. Otherwise
    it is written to out/gpu-bench.

    Parameters
    ----------
    copies : float or None
        Rate of copies within a device in bytes per second. Shares of a bound refer to this rate.
    **facts
        More items of the record.
    """
    if options.json is None:
        return
    first = options.devices[0]
    file = options.json
    if file == Path():
        model = re.sub(r"[^a-z0-9]+", "_", first.name.lower()).strip("_")
        file = (RESULTS if options.full is True else ELSEWHERE) / f"{name}_{model}.json"
        if options.full is False:
            print(f"record: {file.relative_to(RESULTS.parents[1])}, since sizes are others than a result has")
            options.full = None  # once
    devices = [
        {n: getattr(device, n) for n in ("interface", "index", "name", "driver", "architecture", "memory")}
        for device in options.devices
    ]
    save(
        file,
        rows,
        commit=options.commit or this_machine().commit,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        devices=devices,
        copy_bytes_per_second=copies,
        **facts,
    )
