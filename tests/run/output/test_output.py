"""Rejected output, and the memory that output needs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray

import halocline as hc
from halocline.errors import InputError
from output_runs import heat
from stores import open_content


@pytest.mark.ranks(1, 2, long=(1,))
def test_values_beyond_float32_are_reported_once(
    shared_tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning reports the number over all ranks at the first step with such values."""
    sim = heat()
    T, v = sim.grid.fields["T"], sim.grid.fields["v"]
    large = np.ones(T.points)
    large[0, 0, :3] = large[-1, -1, -2:] = 1e39
    large[5, 5, 5] = 3.4e38  # within the range
    sim[T] = large
    outputs = {"T": T, "v": v, "most": hc.max(T)}
    sim.run(
        steps=2, output=hc.Output(shared_tmp_path / "a.zarr", outputs, every=hc.steps(1), dtype="float32")
    )
    sim.domain.comm.barrier()
    if sim.domain.comm.rank != 0:
        return
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1, warnings
    assert (
        "a.zarr: at step 0, finite values beyond the range of float32 are written as infinity" in warnings[0]
    )
    assert "1 of most, 5 of T. Choose" in warnings[0]
    stored = open_content(shared_tmp_path / "a.zarr")
    assert np.isinf(stored["T"].values[0]).sum() == 5
    assert np.isinf(stored["most"].values).all()


def test_values_beyond_float32_are_rejected_for_fields(tmp_path: Path) -> None:
    """Numbers, arrays, functions and stores with such values are rejected."""
    sim = heat()
    T, v = sim.grid.fields["T"], sim.grid.fields["v"]
    large = np.full(v.points, 1e30)
    large[1, 2, 3] = -1e39
    axes = ("x", "y_face", "z")
    xarray.Dataset({"v": (axes, large)}).to_zarr(tmp_path / "v.zarr", zarr_format=3, consolidated=False)

    def untraced(x: Any, y: Any, z: Any) -> Any:
        return np.interp(x, [0.0, 1.2], [1.0, 1e39])

    for values in (1e39, large, xarray.DataArray(large, dims=axes), tmp_path / "v.zarr" / "v", untraced):
        with pytest.raises(InputError, match=r"field 'v' is float32, and [\d,]+ of [\d,]+ values given"):
            sim[v] = values
    n = int(np.count_nonzero(np.abs(4e38 * v.positions[0]) > 3.5e38)) * math.prod(v.points[1:])
    assert 0 < n < math.prod(v.points)
    sim[v] = lambda x, y, z: 4e38 * x
    with pytest.raises(InputError, match=rf"field 'v' is float32, and {n:,} of [\d,]+ values given"):
        sim.settle()
    sim[v] = lambda x, y, z: 2.5e38 * x
    sim.settle()
    assert np.isfinite(sim[v]).all()
    for values in (3e38, np.where(large < 0, np.inf, large), np.full(v.points, 7)):
        sim[v] = values
    sim[T] = 1e300


@pytest.mark.ranks(2)
def test_a_value_beyond_float32_on_one_rank_is_an_error_on_all() -> None:
    sim = heat()
    v = sim.grid.fields["v"]
    sim[v] = 2.0
    large = np.full(v.points, 1e30)
    large[1, 2, 3] = -1e39

    def untraced(x: Any, y: Any, z: Any) -> Any:
        return np.where(np.interp(x, [0.0, 1.0], [0.0, 1.0]) < 0.3, 1e39, 1.0) + 0 * (y + z)

    for values in (large, untraced):
        with pytest.raises(InputError, match="field 'v' is float32"):
            sim[v] = values
    assert sim.evaluate(hc.max(v)) == 2.0, "no rank has written its part"


def test_components_have_the_units_of_their_vector(tmp_path: Path) -> None:
    grid = hc.Grid((6, 4), periodic=True)
    V = grid.vector("V")
    sim = hc.Simulation(grid, lambda V: {V: -V}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[V[0]], sim[V[1]] = 1.0, 2.0
    sim.run(steps=1, output=hc.Output(tmp_path / "V.zarr", [V], units={"V": "m/s", "V_y": "km/s"}))
    stored = open_content(tmp_path / "V.zarr")
    assert (stored["V_x"].units, stored["V_y"].units) == ("m/s", "km/s")


# -- rejected output -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda sim: hc.Output("o", every=0), "every is 0"),
        (lambda sim: hc.Output("o", dtype="int8"), "dtype 'int8' is unknown"),
        (lambda sim: hc.Output("o", dtype=np.int8), "dtype 'int8' is unknown"),
        (lambda sim: hc.Output("o", units="K"), "units is 'K'; expected a mapping"),
        (
            lambda sim: hc.Output("o", units={"T": math.nan}),
            "units has the entry 'T': nan; expected strings as key and value",
        ),
        (
            lambda sim: hc.Output("o", units={"T": None}),
            "units has the entry 'T': None; expected strings as key and value",
        ),
        (
            lambda sim: hc.Output("o", units={1: "K"}),
            "units has the entry 1: 'K'; expected strings as key and value",
        ),
        (
            lambda sim: hc.Output("o", {"a": 2 * hc.time_mean(sim.grid.fields["T"])}),
            "a mean over time cannot",
        ),
        (lambda sim: hc.Checkpoint("o", time_limit=3), "time_limit is 3; expected a text"),
        (lambda sim: hc.Output("o", compression="gzip"), "compression 'gzip' is unknown"),
        (lambda sim: hc.Output("o", region="all"), r"region is 'all'; expected hc\.Slice"),
        (lambda sim: hc.Output("o", io_threads=0), "io_threads is 0"),
        (lambda sim: hc.Output("o", sim.grid.fields["T"]), "expected a list of fields"),
        (lambda sim: hc.Output("o", ["U"]), "field 'U' is unknown"),
        (lambda sim: hc.Output("o", [2 * sim.grid.fields["T"]]), "which has no name"),
        (lambda sim: hc.Output("o", {"x": sim.grid.fields["T"]}), "output name 'x'"),
        (lambda sim: hc.Output("o", {"a b": sim.grid.fields["T"]}), "output name 'a b'"),
        (lambda sim: hc.Output("o", ["T", "T"]), "two arrays of the output have the name 'T'"),
        (lambda sim: hc.Output("o", {"u": hc.Grid(4).field("u")}), "belongs to another grid"),
        (
            lambda sim: hc.Output("o", region=hc.Slice(z=1.5)),
            r"Slice: z is 1\.5; expected a number from 0 to 0\.8",
        ),
        (lambda sim: hc.Output("o", region=hc.Slice(x=0, y=0, z=0)), "use hc.Points"),
        (lambda sim: hc.Output("o", region=hc.Slice(w=0)), "Slice: unknown axis 'w'; the axes are x, y, z"),
        (lambda sim: hc.Output("o", region=hc.Box(x=(0.5, 0.2))), "expected its lower and upper end"),
        (lambda sim: hc.Output("o", region=hc.Box(x=(0.51, 0.52))), "no cell of"),
        (
            lambda sim: hc.Output("o", region=hc.Box(y=(0.5, 1.2))),
            r"Box: y is \(0\.5, 1\.2\); expected ends from 0 to 1, the extent of the axis. Use -inf",
        ),
        (
            lambda sim: hc.Output("o", region=hc.Box(z=(-0.1, 0.2))),
            r"expected ends from 0 to 0\.8, .*a box does not wrap around it",
        ),
        (
            lambda sim: hc.Output("o", region=hc.Coarsen(1)),
            "cells is 1; expected a whole number of at least 2",
        ),
        (lambda sim: hc.Output("o", region=hc.Coarsen(5)), r"axis x has 12 cells, not a multiple of 5"),
        (lambda sim: hc.Output("o", ["v"], region=hc.Coarsen(2)), "only cell values are averaged"),
        (lambda sim: hc.Output("o", region=hc.Points([(0.5, 0.5)])), r"\(0\.5, 0\.5\) is not a point of"),
        (
            lambda sim: hc.Output("o", region=hc.Points([])),
            "Points: no points are given; expected coordinates such as",
        ),
        (lambda sim: [hc.Output("o"), hc.Output("./o")], "o is the path of two outputs"),
        (lambda sim: "o", r"output is 'o'; expected an hc\.Output|expected an hc\.Output"),
    ],
)
def test_invalid_output_is_rejected_before_the_run(
    make: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sim = heat()
    with pytest.raises(InputError, match=words):
        sim.run(steps=1, output=make(sim))
    assert sim.steps == 0
    assert not list(tmp_path.iterdir())


def test_output_is_rejected_as_a_checkpoint(tmp_path: Path) -> None:
    heat().run(steps=1, output=hc.Output(tmp_path / "a.zarr"))
    with pytest.raises(
        InputError, match=r"a\.zarr is an output store; expected a checkpoint, or a folder of"
    ):
        heat().resume(tmp_path / "a.zarr")
    heat().run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "c"))
    with pytest.raises(InputError, match=r"c is not a store of Halocline|c is a checkpoint"):
        heat().run(steps=1, output=hc.Output(tmp_path / "c", overwrite=True))
    newest = next(folder for folder in (tmp_path / "c").iterdir() if folder.is_dir())
    with pytest.raises(InputError, match="is a checkpoint\\. Choose another path for the output\\."):
        heat().run(steps=1, output=hc.Output(newest, overwrite=True))


def test_rejected_output_uses_no_memory(tmp_path: Path) -> None:
    """A rejected output allocates no memory, also none that a later output would reuse."""
    sim = heat()
    T, v = sim.grid.fields["T"], sim.grid.fields["v"]
    heat().run(steps=1, output=hc.Output(tmp_path / "a.zarr"))
    before = set(sim.store.storages)
    for outputs in (
        hc.Output(tmp_path / "a.zarr", {"s": 2 * v}),
        [hc.Output(tmp_path / "b.zarr", {"s": 2 * v}), hc.Output(tmp_path / "c.zarr", ["none"])],
    ):
        with pytest.raises(InputError):
            sim.run(steps=1, output=outputs)
        assert set(sim.store.storages) == before
    sim.run(steps=1, output=hc.Output(tmp_path / "b.zarr", {"s": 2 * T}))
    assert set(sim.store.storages) == before
    np.testing.assert_array_equal(open_content(tmp_path / "b.zarr")["s"].values[-1], 2 * sim[T])
