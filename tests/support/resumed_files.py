"""A file that runs several times, and its results."""

from __future__ import annotations

import json
from pathlib import Path

from halocline.cli.app import run

RUNS = """import halocline as hc

n = 16
kappa = 0.1
grid = hc.Grid((n, n), periodic=True)
T = grid.field("T")
sim = hc.Simulation(
    grid, lambda T, kappa: {T: kappa * hc.laplacian(T)}, parameters={"kappa": kappa},
    scheme=hc.RK3(), dt=1e-3,
)
sim[T] = lambda x, y: x * (1 - x) * y
seen = []
sim.run(steps=20, every=0.005, callback=lambda sim: seen.append(sim.steps))
left = sim.steps, sim.time, sim.checksum(T)
"""

UNTIL_40 = "while sim.time < 0.0399:\n    sim.run(until=sim.time + 1e-3)\n"
LEFT = """
import json, pathlib
pathlib.Path("left.json").write_text(json.dumps(found))
"""


def resumed_results(path: Path, *words: str) -> tuple[int, float, str, list[int]]:
    """Run a file in this process; return its steps, time, checksum, and the steps of callback calls."""
    assert run(["run", str(path), "--threads", "1", *words]) == 0
    (steps, time, checksum), callback_steps = json.loads(Path("left.json").read_text())
    return steps, time, checksum, callback_steps
