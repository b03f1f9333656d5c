"""Load balancing on two ranks: the balance of the ranks, the speed-up of a step, and the cost.

    python benchmarks/balance.py [--n 400] [--steps 200] [--repeats 7] [--json FILE]

Each rank has 16 subdomains and a core of its own. There are three cases. In the first, blocks in one corner
of the grid are inactive. In the second, a branch makes cells in one corner much more expensive. In the third,
the second rank shares its core with a process that only counts. In each case, the program balances the
subdomains three times, by their measured times.

The program prints the time of the slowest rank, divided by the mean time, before and after balancing. It also
prints the speed-up of a step, and the time of one balancing in units of the time of a step.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from measure import arguments, median, save

import halocline as hc
from halocline.run.ranks.launch import run_on_ranks

EACH, BALANCES = 16, 3
CASES = {
    "inactive": "blocks in a corner are inactive",
    "corner": "cells in a corner take many times as long",
    "slow": "one rank shares its core",
}


def simulation(case: str, n: int) -> hc.Simulation:
    """Return a simulation of heat; in the case "corner", cells in a corner also add up cosines."""
    active = {"active": [[x + y < 5 for y in range(8)] for x in range(8)]} if case == "inactive" else {}
    grid = hc.Grid((4 * n, 4 * n), periodic=True, **active)
    T = grid.field("T")

    @hc.program
    def step(T: Any) -> None:
        new = T + 0.1 * sum((T[d] - T for d in ((0, 1), (0, -1), (1, 0), (-1, 0))), 0.0)
        if case == "corner":
            costly = new + 1e-9 * sum((hc.cos(k * T) for k in range(1, 9)), 0.0)
            new = hc.branch((grid.x < 0.3) & (grid.y < 0.3), costly, new)
        T.set(new)

    sim = hc.Simulation(grid, step, subdomains_per_rank=EACH, threads=1, overlap=True)
    sim[T] = lambda x, y: hc.sin(6.28 * x) * hc.cos(6.28 * y)
    return sim


def measure(case: str, n: int, steps: int) -> None:
    """Run a case on this rank; the first rank prints the result."""
    from mpi4py import MPI

    rank, cores = MPI.COMM_WORLD.rank, sorted(os.sched_getaffinity(0))
    core = cores[rank % len(cores)]
    os.sched_setaffinity(0, {core})
    counting = None
    if case == "slow" and rank == 1:
        counting = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        os.sched_setaffinity(counting.pid, {core})
    try:
        sim = simulation(case, n)

        def paced() -> tuple[float, float]:
            """Return the seconds of a step, and the time of the slowest rank divided by the mean time."""
            sim.domain.work.clear()
            seconds = sim.run(steps=steps).loop_seconds / steps
            times = sim.domain.comm.allgather(sum(sim.domain.work.values()))
            return seconds, max(times) * len(times) / sum(times)

        paced()
        before = paced()
        result, first = [], []
        for _ in range(BALANCES):
            result.append(sim.balance())
            began = time.perf_counter()
            sim.run(steps=1)  # with a new plan and a new engine if subdomains have moved
            first.append(time.perf_counter() - began)
            after = paced()
    finally:
        if counting is not None:
            counting.kill()
    if rank == 0:
        print(json.dumps({
            "case": case, "cells": sim.store.cells, "step": [before[0], after[0]],
            "slowest": [before[1], after[1]], "subdomain": result[-1].largest,
            "balance": [balance.seconds for balance in result], "first": first,
            "moved": [balance.moved_count for balance in result],
            "bytes": [balance.bytes for balance in result],
        }))  # fmt: skip


def main() -> None:
    """Start the ranks of each case."""
    options = arguments(str(__doc__), n=400, steps=200)
    rows: list[dict[str, Any]] = []
    for case, words in CASES.items():
        runs = []
        for _ in range(options.repeats):
            done = run_on_ranks(2, [__file__, "measure", case, str(options.n), str(options.steps)])
            if done.returncode:
                raise SystemExit(done.stderr)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        before, after = ([run["slowest"][end] for run in runs] for end in (0, 1))
        gain = median([run["step"][0] / run["step"][1] for run in runs])
        cost = median([
            (seconds + first) / run["step"][1]
            for run in runs
            for seconds, first, moved_counts in zip(run["balance"], run["first"], run["moved"], strict=True)
            if moved_counts
        ])  # fmt: skip
        share = max(run["subdomain"] for run in runs)
        print(
            f"{words}: slowest rank {median(before):.2f} times the mean, after {BALANCES} balances "
            f"{median(after):.2f} (at most {max(after):.2f}; one subdomain {share:.2f}); a step "
            f"{gain:.2f} times as fast; a balance that moves some takes "
            f"{cost:.0f} steps, with the first one after it"
        )
        rows += runs
    save(options.json, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
