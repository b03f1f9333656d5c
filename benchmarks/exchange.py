"""Halo exchange between two ranks compared with C programs (peers/exchange_*.c), in turn on one machine.

Some float32 fields have n^3 cells per rank, in memory of the same layout. Only the cut axis is periodic, so
that only messages between ranks count. The peers are MPI_Neighbor_alltoallw and persistent messages, both
directly from and to derived datatypes. The limits are memcpy out of the other rank's shared window, row by
row or in one piece. Both ranks copy at once and without waits. A further limit is memcpy row by row in memory
with huge pages, which Halocline uses and windows do not.

Prints, for each cut axis, milliseconds per exchange, and for Halocline's methods the speed-up over the peers,
or the share of the speed of memcpy.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from measure import arguments, in_turn, median, ratio, save

from halocline.run.ranks.launch import environment, mpiexec
from halocline.study.measuring.exchange import PASSES

HERE = Path(__file__).parent
AXES = "xyz"
METHODS = {"mpi": "mpi", "colocated": "colocated,mpi", "rma": "rma,mpi"}
PEERS = {  # source and flags
    "alltoallw": ("exchange_alltoallw.c",),
    "persistent": ("exchange_persistent.c",),
    "memcpy rows": ("exchange_memcpy.c",),
    "memcpy rows, huge pages": ("exchange_memcpy.c", "-DHUGE=1"),
    "memcpy": ("exchange_memcpy.c", "-DCONTIGUOUS=1"),
}
RATIOS = {  # method of Halocline, peer, target
    "colocated over mpi": ("colocated", "mpi", 2.0),
    "colocated, share of memcpy of rows": ("colocated", "memcpy rows", 0.7),
    "colocated, share of memcpy of rows, huge pages": ("colocated", "memcpy rows, huge pages", None),
    "colocated, share of memcpy": ("colocated", "memcpy", None),
    "mpi over alltoallw": ("mpi", "alltoallw", 1.0),
    "mpi over persistent": ("mpi", "persistent", 1.0),
    "rma over mpi": ("rma", "mpi", None),
}


def build_peer(folder: Path, name: str) -> Path:
    """Compile a C program with the flags of its users."""
    source, *flags = PEERS[name]
    program = folder / name.replace(", ", "_").replace(" ", "_")
    mpicc = mpiexec().with_name("mpicc")
    command = [mpicc, "-O3", "-march=native", *flags, HERE / "peers" / source, "-o", program]
    subprocess.run(command, check=True)
    return program


def seconds(expected: int, *command: object) -> float:
    """Return the seconds per exchange that a command on two ranks prints, and check its bytes."""
    full = [str(mpiexec()), "-n", "2", *map(str, command)]
    done = subprocess.run(full, check=True, stdout=subprocess.PIPE, text=True, env=environment())
    actual, size = done.stdout.split()
    if int(size) != expected:
        raise SystemExit(f"{command[0]} moved {size} bytes, expected {expected}")
    return float(actual)


def main() -> None:
    """Measure and print."""
    methods = ",".join(METHODS)
    options = arguments(__doc__ or "", n=256, axes=AXES, radius=3, fields=4, rounds=5, methods=methods)
    n, radius, fields = options.n, options.radius, options.fields
    size = 2 * radius * n**2 * fields * 4
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        programs = {name: build_peer(Path(folder), name) for name in PEERS}
        for axis in options.axes.replace(",", ""):
            problem = (AXES.index(axis), n, radius, fields)
            ours = (sys.executable, HERE / "exchange_halocline.py", *problem, options.rounds)
            times = in_turn(
                {
                    **{m: partial(seconds, size, *ours, METHODS[m]) for m in options.methods.split(",")},
                    **{
                        name: partial(seconds, size, program, *problem, PASSES, options.rounds)
                        for name, program in programs.items()
                    },
                },
                options.repeats,
            )
            row: dict[str, Any] = {"axis": axis, "n": n, "radius": radius, "fields": fields, "bytes": size}
            row["ms"] = {name: 1e3 * median(seconds_of_runs) for name, seconds_of_runs in times.items()}
            print(
                f"cut along {axis}, {size / 2**20:.1f} MiB a rank, ms:",
                ", ".join(f"{name} {ms:.2f}" for name, ms in row["ms"].items()),
            )
            for title, (method, other, expected) in RATIOS.items():
                if method not in times or other not in times:
                    continue
                row[title] = ratio(times, method, other)
                print(f"  {title:46} {row[title]:6.2f}" + (f"  (wanted {expected})" if expected else ""))
            sys.stdout.flush()
            rows.append(row)
            save(options.json, rows)


if __name__ == "__main__":
    main()
