"""Output of time statistics of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import halocline as hc


def statistics(path: Path, sim: hc.Simulation, **options: Any) -> hc.Output:
    """Return an output of means, a variance and extrema over time."""
    T, v = sim.grid.fields["T"], sim.grid.fields["v"]
    statistics_of_fields = {
        "T": T,
        "mean": hc.time_mean(T * T),
        "variance": hc.time_variance(T),
        "least": hc.time_min(T),
        "greatest": hc.time_max(v),
    }
    return hc.Output(path, statistics_of_fields, **{"every": hc.steps(5), **options})
