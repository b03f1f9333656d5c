"""A fallback by hc.branch compared with hc.where: the step of examples/sedov.py on one thread.

python benchmarks/branches.py [rounds]

Prints million cells per second while the blast grows. The values are medians of rounds in which both run in
turn.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import halocline as hc

EXAMPLES = Path(hc.__file__).parents[2] / "examples"
FALL_BACK = "hc.branch(good[a], second, first)"


def blast(n: int, choice: str) -> Any:
    """Return the initial simulation of the example, with the text `choice` instead of the fallback branch."""
    source = (EXAMPLES / "sedov.py").read_text()
    assert FALL_BACK in source
    setup = source.replace(FALL_BACK, choice).partition("\np = primitive")[0]
    setup = setup.replace("hc.Simulation(grid, step,", "hc.Simulation(grid, step, threads=1,")
    names: dict[str, Any] = {}
    sys.argv[1:] = [str(n)]
    exec(compile(setup, f"sedov, {choice}", "exec"), names)
    return names["sim"]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    sys.path.insert(0, str(EXAMPLES))
    print("cells    branch   where   ratio")
    for n in (128, 256, 512):
        sims = {kind: blast(n, FALL_BACK.replace("branch", kind)) for kind in ("branch", "where")}
        speeds: dict[str, list[float]] = {kind: [] for kind in sims}
        steps = max(10, round(5e6 / n**2))
        for sim in sims.values():
            sim.run(steps=3)
        for _ in range(rounds):
            for kind, sim in sims.items():
                speeds[kind].append(n * n * steps / sim.run(steps=steps).loop_seconds / 1e6)
        branch, where_rate = (statistics.median(result) for result in speeds.values())
        print(f"{n}^2  {branch:7.1f} {where_rate:7.1f} {branch / where_rate:7.2f}", flush=True)


if __name__ == "__main__":
    main()
