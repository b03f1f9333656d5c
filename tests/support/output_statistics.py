"""Statistics over time of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import halocline as hc


def statistics(path: Path, sim: hc.Simulation, **how: Any) -> hc.Output:
    T, v = sim.grid.fields["T"], sim.grid.fields["v"]
    wanted = {
        "T": T,
        "mean": hc.time_mean(T * T),
        "variance": hc.time_variance(T),
        "least": hc.time_min(T),
        "greatest": hc.time_max(v),
    }
    return hc.Output(path, wanted, **{"every": hc.steps(5), **how})
