"""Halo exchange between ranks that share a device, and between devices, by each method in turn.

Some float32 fields have n^3 cells per subdomain. Only the cut axis is periodic, so that only messages between
subdomains count. Ranks that share a device take turns on it. The limit is one copy within the memory of the
first device, of as many bytes as all subdomains receive.

Prints, for each cut axis, milliseconds per exchange of each method, the speed-up over `mpi`, and the share of
the speed of the copy. Methods that are not possible on this machine are named.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from gpu import arguments, keep, label
from measure import in_turn, median, numbers, ratio

from halocline.errors import RunError
from halocline.run.ranks.launch import environment, mpiexec

HERE = Path(__file__).parent
AXES = "xyz"
METHODS = {"mpi": "mpi", "colocated": "colocated,mpi", "gpu_aware": "gpu_aware,mpi", "peer": "peer,mpi"}
PATIENCE = 120  # seconds for one process


class NotHere(Exception):
    """A method that is not possible on this machine, and the reason."""


def seconds(expected: int, *command: object) -> float:
    """Return the seconds per exchange that a command prints, after a check of the bytes that it moved."""
    line = list(map(str, command))
    done = subprocess.run(
        line, capture_output=True, text=True, env=environment(), timeout=PATIENCE, check=False
    )
    if done.returncode:
        lines = done.stderr.splitlines()
        if notices := [text for text in lines if "was asked for" in text]:
            reasons = [text.partition(": ")[2] for text in lines if "is not used between devices: " in text]
            raise NotHere(reasons[0] if reasons else notices[0])
        raise SystemExit(f"{' '.join(line)}\nended with status {done.returncode}:\n{done.stderr}")
    actual, size = done.stdout.split()[-2:]
    if int(size) != expected:
        raise SystemExit(f"{' '.join(line)} moved {size} bytes, expected {expected}")
    return float(actual)


def copy_of(device: Any, size: int) -> Callable[[], float]:
    """Return a function that measures one copy of the given bytes, with the start and wait of an exchange."""
    to, source, queue = device.allocate(size), device.allocate(size), device.queue()

    def run() -> float:
        queue.copy(to, source)
        queue.finish()
        start_time = perf_counter()
        for _ in range(30):
            queue.copy(to, source)
            queue.finish()
        return (perf_counter() - start_time) / 30

    return run


def cases(devices: list[Any], ranks: list[int]) -> list[tuple[str, int, list[Any], tuple[str, ...]]]:
    """Return the measurements: title, number of ranks, devices and methods."""
    between = ("mpi", "colocated", "gpu_aware")
    result = [(f"{n} ranks share {label(devices[:1])}", n, devices[:1], between) for n in ranks]
    if len(devices) > 1:
        result.append((f"1 rank drives {label(devices[:2])}", 1, devices[:2], ("mpi", "peer")))
        result.append((f"2 ranks, a device each of {label(devices[:2])}", 2, devices[:2], between))
    if len(devices) > 3:
        result.append((f"4 ranks, a device each of {label(devices[:4])}", 4, devices[:4], between))
    return result


def possible(turns: dict[str, Callable[[], float]]) -> dict[str, Callable[[], float]]:
    """Return the methods that run, after one run of each, and print the others."""
    able = {}
    for name, run in turns.items():
        try:
            run()
            able[name] = run
        except NotHere as reason:
            print(f"  {name}: not here ({reason})", flush=True)
    return able


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__ or "", n=256, axes=AXES, radius=3, fields=4, rounds=5, ranks="2,4", methods=",".join(METHODS)
    )
    try:
        starter = mpiexec()
    except RunError as error:
        raise SystemExit(str(error)) from None
    n, radius, fields = options.n, options.radius, options.fields
    rows: list[dict[str, Any]] = []
    for title, ranks, devices, methods in cases(options.devices, numbers(options.ranks)):
        for axis in options.axes.replace(",", ""):
            problem = (AXES.index(axis), n, radius, fields)
            count = max(ranks, len(devices))  # subdomains
            size = 2 * radius * n**2 * fields * 4 * (count // ranks)
            program = (sys.executable, HERE / "exchange_halocline.py", *problem, options.rounds)
            print(f"{title}, cut along {axis}, {size / 2**20:.2f} MiB into a rank", flush=True)
            start = (starter, "-n", ranks)  # one rank too: without MPI it could only copy
            turns: dict[str, Callable[[], float]] = {
                name: partial(seconds, size, *start, *program, METHODS[name], label(devices))
                for name in methods
                if name in options.methods.split(",")
            }
            turns = possible(turns) | {"copy": copy_of(devices[0], size * ranks)}
            times = in_turn(turns, options.repeats)
            row: dict[str, Any] = {"case": title, "ranks": ranks, "devices": label(devices), "axis": axis}
            row |= {"n": n, "radius": radius, "fields": fields, "bytes_of_a_rank": size}
            row["ms"] = {name: 1e3 * median(seconds_of_runs) for name, seconds_of_runs in times.items()}
            for name, ms in row["ms"].items():
                line = f"  {name:10} {ms:9.3f} ms"
                if name not in ("mpi", "copy") and "mpi" in times:
                    row[f"{name} over mpi"] = ratio(times, name, "mpi")
                    line += f", {row[f'{name} over mpi']:6.2f} times faster than mpi"
                if name != "copy":
                    row[f"{name}, share of a copy"] = ratio(times, name, "copy")
                    line += f", {row[f'{name}, share of a copy']:5.0%} of the speed of a copy"
                print(line, flush=True)
            rows.append(row)
            keep(options, "gpu_exchange", rows, None)


if __name__ == "__main__":
    main()
