"""Explicit 3D heat steps compared with Devito (heat_devito.py, in an environment of its own), in turn.

Each case has one process of Halocline and one of Devito. Each process is set up once and then waits for its
turns. Prints million cells per second of both, their ratio, and the share of the bound: 16 bytes per cell (8
in float32) at the measured speed of a streaming copy.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from itertools import product
from pathlib import Path

from measure import arguments, competitor, in_turn, median, numbers, ratio, save

from halocline.run.measurements.bandwidth import copy_bandwidth

DEVITO = "devito==4.8.23"
HERE = Path(__file__).parent
PLACE = HERE.parent / "build" / "devito"


def devito_python() -> Path:
    """Return the Python of Devito's environment, which the first call creates."""
    python = PLACE / "bin" / "python"
    if not (PLACE / "installed").exists():
        venv.create(PLACE, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", DEVITO], check=True)
        (PLACE / "installed").touch()
    return python


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__ or "", n="256,512", orders="2,6", dtypes="float64,float32", threads="1,2", steps=0
    )
    other = devito_python()
    rows = []
    cases = product(
        numbers(options.n), options.dtypes.split(","), numbers(options.orders), numbers(options.threads)
    )
    for n, dtype, order, threads in cases:
        steps = options.steps or max(10, round(1.5e9 / n**3) * threads)
        halocline_command = (sys.executable, HERE / "heat_halocline.py", n, order, dtype, threads, steps)
        devito_command = (other, HERE / "heat_devito.py", n, order, dtype, steps)
        with (
            competitor(*halocline_command, threads=threads) as halocline,
            competitor(*devito_command, threads=threads) as devito,
        ):
            times = in_turn({"halocline": halocline, "devito": devito}, options.repeats)
        speed = 1 / median(times["halocline"])
        bytes_per_cell = 16 if dtype == "float64" else 8
        bound = copy_bandwidth(threads, n**3 * bytes_per_cell) / 1e6 / bytes_per_cell
        row = {
            "n": n,
            "dtype": dtype,
            "order": order,
            "threads": threads,
            "million_cells_per_second": speed,
            "devito": 1 / median(times["devito"]),
            "times_faster": ratio(times, "halocline", "devito"),
            "share_of_bound": speed / bound,
        }
        rows.append(row)
        print(
            f"{n}^3 {dtype} order {order} threads {threads}: {speed:7.0f} million cells/s, "
            f"Devito {row['devito']:7.0f}: {row['times_faster']:5.2f} times faster, "
            f"{row['share_of_bound']:4.0%} of the bound",
            flush=True,
        )
        save(options.json, rows)  # all cases together take a while


if __name__ == "__main__":
    main()
