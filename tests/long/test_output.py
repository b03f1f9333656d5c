"""Memory of output."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import halocline as hc
from output_runs import heat
from stores import open_content


def test_outputs_of_one_name_have_separate_memory(tmp_path: Path) -> None:
    """Outputs with the same name and another precision or location use separate memory."""
    sim = heat()
    T, v = sim.grid.fields["T"], sim.grid.fields["v"]
    twice = {name: {"s": 2 * f} for name, f in (("v", v), ("T", T))}
    sim.run(steps=2, output=[hc.Output(tmp_path / f"{n}.zarr", contents) for n, contents in twice.items()])
    for name in ("v", "T"):
        np.testing.assert_array_equal(open_content(tmp_path / f"{name}.zarr")["s"].values[-1], 2 * sim[name])
    for name, contents in reversed(twice.items()):
        sim.run(steps=2, output=hc.Output(tmp_path / "s.zarr", contents, overwrite=True))
        np.testing.assert_array_equal(open_content(tmp_path / "s.zarr")["s"].values[-1], 2 * sim[name])
    for f in (T, v):
        output = hc.Output(
            tmp_path / "mean.zarr", {"mean": hc.time_mean(f)}, every=hc.steps(2), overwrite=True
        )
        sim.run(steps=2, output=output)
        assert open_content(tmp_path / "mean.zarr")["mean"].shape[1:] == f.points
