"""The part of the exchange that computation hides: two ranks of one thread, steps of heat.

    python benchmarks/overlap.py [--shape 768,128,128] [--wires 1gbit,500mbit] [--patch 192,128,128]

First both ranks are on this node, with each method: the two cores that compute also copy. Then messages use a
wire of a limited rate between two emulated nodes (benchmarks/wire.py), which transfers bytes without the
cores, as a network does. There at least 80 % of the exchange should be hidden if computation takes longer
than the exchange. Long patches are measured too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import arguments, numbers, save
from wire import wire

from halocline.run.ranks.launch import environment, mpiexec

WANTED = 0.8


def steps(shape: str, radius: int, fields: int, dtype: str, repeats: int, methods: str, patch: str) -> None:
    """Measure on a rank, and print one line for each method."""
    from functools import partial

    from halocline.run.ranks.mpi import world
    from halocline.study.measuring import overlap

    make = partial(overlap.heat, tuple(numbers(shape)), radius=radius, fields=fields, dtype=dtype)
    result = overlap.measure(
        make,
        repeats=repeats,
        threads=1,
        methods=methods.split(","),
        decomposition="1d-x",
        patch=numbers(patch) if patch else None,
    )
    if world().rank == 0:
        print(json.dumps(result))


def measured(before: list[str], more: dict[str, str], *problem: object) -> list[dict[str, Any]]:
    """Return the results of two ranks."""
    command = [*before, str(mpiexec()), "-n", "2", sys.executable, str(Path(__file__)), "--on-rank"]
    done = subprocess.run(
        [*command, *map(str, problem)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment(), **more},
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return rows


def hidden(share: float | None) -> str:
    """Return a share as text."""
    return "too short to tell" if share is None else f"{share:.0%} hidden"


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__ or "",
        shape="768,128,128",
        radius=3,
        fields=4,
        dtype="float32",
        wires="1gbit,500mbit",
        patch="192,128,128",
    )
    problem = (options.shape, options.radius, options.fields, options.dtype, options.repeats)
    actual = measured([], {}, *problem, "colocated,mpi,rma", "")
    rows = [{"wire": None, "patch": "", **row} for row in actual]
    for rate in filter(None, options.wires.split(",")):
        try:
            with wire(rate) as (before, more):
                for patch in ("", options.patch):
                    actual = measured(before, more, *problem, "mpi", patch)
                    rows += [{"wire": rate, "patch": patch, **row} for row in actual]
        except OSError as error:
            print(f"no wire of {rate}: {error}")
    for row in rows:
        title = f"{row['name']}, {row['wire']} wire" if row["wire"] else f"{row['name']}, one node"
        title += f", patches of {row['patch']}" if row["patch"] else ""
        costs = row["exchange"] - row["neither"]
        aimed = row["wire"] and not row["patch"] and row["compute"] > costs
        expected = f" (wanted {WANTED:.0%})" if aimed else ""
        print(
            f"{title:42} step {1e3 * row['step']:6.2f} ms, waiting {1e3 * row['waiting']:6.2f}, compute "
            f"{1e3 * row['compute']:6.2f}, exchange {1e3 * costs:6.2f}: {hidden(row['share'])}{expected}, "
            f"without overlap {hidden(row['share_waiting'])}"
        )
    save(options.json, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-rank"]:
        shape, radius, fields, dtype, repeats, methods, patch = sys.argv[2:]
        steps(shape, int(radius), int(fields), dtype, int(repeats), methods, patch)
    else:
        main()
