"""Expressions at the location of their fields; output at points and on planes.

The tests cover every location, axis, interpolation and precision.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st

import halocline as hc
from halocline.archive.series import ROWS, rows_of
from halocline.errors import InputError
from halocline.io.section import cut
from halocline.lang.location import location as location_name
from halocline.run.fields.fields import location_and_dtype
from halocline.run.fields.regions import INTERPOLATIONS
from halocline.run.memory.store import FieldStore
from loops import some

LOCATIONS = ("cell", "node", "face-x", "face-y", "face-z", "edge-x", "edge-y", "edge-z")


def opened(path: Path) -> xarray.Dataset:
    return xarray.open_zarr(path).load()


def staggering(location: str, ndim: int = 3) -> tuple[bool, ...]:
    return hc.Grid((2,) * ndim).field("f", location=location).staggered


# -- locations of expressions --------------------------------------------------------------------------------


def test_an_expression_has_the_location_of_its_fields() -> None:
    grid = hc.Grid((6, 5, 4))
    fields = {location: grid.field(f"f{n}", location=location) for n, location in enumerate(LOCATIONS)}

    def held(expression: Any) -> str:
        return location_and_dtype(expression.expr)[0]

    for location, f in fields.items():
        assert held(f) == location
        assert held(hc.sqrt(f * f + 1.0) > 0.5) == location
        assert held(f * grid.x) == location
        for axis in range(3):
            step = np.eye(3, dtype=int)[axis]
            up, down = f[tuple(step)], f[tuple(-step)]
            staggered = [s and a != axis for a, s in enumerate(f.staggered)]
            for difference in (up - f, up - down):  # differences by explicit offsets
                assert held(difference) == location_name(staggered)
    u, fx = fields["cell"], fields["face-x"]
    assert held(u + 0.5 * (fx[1, 0, 0] + fx)) == "cell"


# -- interpolation, without a run ----------------------------------------------------------------------------


def stretched(x: Any) -> Any:
    return x + 0.04 * np.sin(2 * np.pi * x)


KINDS: dict[str, dict[str, Any]] = {
    "periodic": {"periodic": True},
    "walls on faces": {"periodic": False},
    "walls on nodes": {"periodic": False, "walls": "node"},
    "stretched": {"periodic": False, "stretch": dict.fromkeys("xyz", stretched)},
}


def interpolated(points: hc.Points, grid: hc.Grid, staggered: Any, values: np.ndarray) -> np.ndarray:
    stencils = points.stencils(grid, staggered)
    return stencils.apply(values[tuple(stencils.points.T)])


@pytest.mark.parametrize("kind", KINDS)
def test_interpolation_has_its_order_at_every_location(kind: str) -> None:
    """The order holds between the walls, and between the last and first points of periodic axes."""
    draw = np.random.default_rng(5)
    places = np.concatenate([draw.uniform(size=(400, 3)), list(product((0.0, 1.0), repeat=3))])
    count = 0

    def smooth(*x: Any) -> Any:
        return np.prod([np.sin(2 * np.pi * (coordinate + 0.1 * n)) for n, coordinate in enumerate(x)], axis=0)

    for location, (interpolation, order) in product(LOCATIONS, (("linear", 2), ("cubic", 4))):
        errors = []
        for n in (32, 64):
            grid = hc.Grid((n, n, n), **KINDS[kind])
            staggered, points = staggering(location), hc.Points(places, interpolate=interpolation)
            stencils = points.stencils(grid, staggered)
            lines = grid.positions(staggered)
            values = smooth(*(line[i] for line, i in zip(lines, stencils.points.T, strict=True)))
            error = np.abs(stencils.apply(values) - smooth(*places.T))
            errors.append((np.median(error), error.max()))
            count += 1
        inside, everywhere = np.log2(np.divide(*errors))
        assert inside == pytest.approx(order, abs=0.3), (location, interpolation)
        assert everywhere > order - 0.5, (location, interpolation)
    assert count == 32


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_value_at_a_point_of_the_field_is_exact(data: st.DataObject) -> None:
    """The bits are equal, even next to infinities, NaN and zeros of both signs."""
    ndim = data.draw(st.integers(1, 3))
    shape = data.draw(st.tuples(*[st.integers(1, 6)] * ndim))
    grid = hc.Grid(
        shape,
        extent=data.draw(st.tuples(*[st.sampled_from((1.0, 0.3, 7.7))] * ndim)),
        origin=data.draw(st.tuples(*[st.sampled_from((0.0, -1.1, 1e3))] * ndim)),
        periodic=data.draw(st.tuples(*[st.booleans()] * ndim)),
        walls=data.draw(st.tuples(*[st.sampled_from(("face", "node"))] * ndim)),
    )
    staggered = data.draw(st.tuples(*[st.booleans()] * ndim))
    points = grid.points(staggered)
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    values = draw.choice((0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -3.7e-30, 2e19), size=points)
    values = values.astype(data.draw(st.sampled_from(("float64", "float32"))))
    index = tuple(data.draw(st.integers(0, n - 1)) for n in points)
    place = [line[i] for line, i in zip(grid.positions(staggered), index, strict=True)]
    for axis, i in enumerate(index):
        if grid.periodic[axis] and staggered[axis] and i == 0 and data.draw(st.booleans()):
            place[axis] += grid.extent[axis]  # the same face
    for interpolation in some(INTERPOLATIONS):
        region = hc.Points([place], interpolate=interpolation)
        if interpolation == "cubic" and any(1 < n < 4 for n in points):
            with pytest.raises(
                InputError, match=r"interpolate 'cubic' needs 4 points along an axis, .* has [23] "
            ):
                region.stencils(grid, staggered)
            continue
        value = interpolated(region, grid, staggered, values)
        assert value.tobytes() == values[index].astype(np.float64)[np.newaxis].tobytes()
        location = np.array(region.coordinates(grid, staggered))[:, 0]
        away = np.abs(location - place)
        assert all(min(d, abs(d - e)) < 1e-9 for d, e in zip(away, grid.extent, strict=True))


def test_planes_and_nearest_points_go_around_periodic_axes() -> None:
    grid = hc.Grid((10, 10), periodic=(True, False))
    faces = (True, True)
    for x, y, expected in ((0.97, 0.97, (0.0, 1.0)), (1.0, 1.0, (0.0, 1.0)), (0.94, 0.06, (0.9, 0.1))):
        coordinates = hc.Points([(x, y)], interpolate="nearest").coordinates(grid, faces)
        np.testing.assert_allclose([line[0] for line in coordinates], expected, atol=1e-15)
        for axis, value, position in (("x", x, expected[0]), ("y", y, expected[1])):
            chosen = hc.Slice(**{axis: value}).choose(grid, faces)
            assert chosen.at[axis] == pytest.approx(position, abs=1e-15)
            number = chosen.selection.first["xy".index(axis)]
            assert grid.positions(faces)["xy".index(axis)][number] == chosen.at[axis]
    assert hc.Slice(x=0.97).choose(grid, (False, False)).at["x"] == pytest.approx(0.95)
    # the lower of two equidistant points is chosen, for any rounding
    for n in range(10):
        lower = n / 10 if n < 9 else 0.0  # across the periodic end
        assert hc.Slice(x=n / 10 + 0.05).choose(grid, faces).at["x"] == pytest.approx(lower)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hc.Points([(0.1, 0.2)], interpolate=None), "interpolate None is unknown; known: nearest"),  # type: ignore[arg-type]
        (lambda: hc.Points(["0.1", "0.2"]), "expected coordinates"),  # type: ignore[list-item]
        (lambda: hc.Points([None]), "expected coordinates"),  # type: ignore[list-item]
        (lambda: hc.Points([10**400]), "expected coordinates"),  # type: ignore[list-item]
        (lambda: hc.Points([]), "Points: no points are given; expected coordinates such as"),
        (lambda: hc.Points([(0.1, 0.5), (0.1,)]).check(hc.Grid((4, 4))), r"\(0\.1,\) is not a point of"),
        (
            lambda: hc.Points([0.5], "cubic").stencils(hc.Grid((3,), periodic=False), (False,)),
            "needs 4 points along an axis, .* has 3 along x: choose 'linear'",
        ),
        (
            lambda: hc.Points([0.5], "cubic").stencils(hc.Grid((2,), periodic=True), (False,)),
            "has 2 along x",
        ),
        (lambda: hc.Points([(0.1, 0.2)], interpolate="quintic"), "interpolate 'quintic' is unknown"),
        (lambda: hc.Points([("a", "b")]), r"places are \[\('a', 'b'\)\]; expected coordinates"),
        (lambda: hc.Points(0.5), "places are 0.5; expected coordinates"),
        (
            lambda: hc.Points([(0.1, 0.5), (0.1, 1.2)]).check(hc.Grid((4, 4))),
            r"\(0\.1, 1\.2\) is not a point of",
        ),
        (lambda: hc.Points([(0.1, np.nan)]).check(hc.Grid((4, 4))), r"\(0\.1, nan\) is not a point of"),
        (lambda: hc.Points([0.1, 0.2]).check(hc.Grid((4, 4))), r"\(0\.1,\) is not a point of"),
        (
            lambda: hc.Box(x=(0.3, 0.45)).choose(hc.Grid((4, 4)), (True, False)),
            r"x is \(0\.3, 0\.45\); no face of",
        ),
    ],
)
def test_wrong_points_are_rejected(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_a_box_may_end_at_the_ends_of_the_grid() -> None:
    """A box may end beyond the grid by a rounding error, such as that of 3 * 0.1."""
    grid = hc.Grid((4, 4), extent=0.3, periodic=(True, False))
    for ends in ((0.15, 3 * 0.1), (0.15, np.inf), (0.15, 0.3)):
        box = hc.Box(x=ends, y=(-np.inf, 0.15))
        box.check(grid)
        assert box.choose(grid, (False, False)).selection.shape == (2, 2)
    for ends in ((0.15, 0.31), (-0.1, 0.15), (0.15, 1e300)):
        for axis in "xy":
            with pytest.raises(InputError, match=r"expected ends from 0 to 0\.3"):
                hc.Box(**{axis: ends}).check(grid)


def test_many_points_are_found_fast() -> None:
    """The search uses arrays: no Python line runs once per point."""
    draw = np.random.default_rng(4)
    grid = hc.Grid((32, 32), periodic=False)
    counts = []
    for count in (10, 10, 1000):  # the first round includes one-time work such as imports
        places, lines = draw.uniform(size=(count, 2)), 0

        def traced(frame: Any, event: str, _: Any) -> Any:
            nonlocal lines
            lines += event == "line" and "/halocline/" in frame.f_code.co_filename
            return traced

        sys.settrace(traced)
        try:
            points = hc.Points(places, interpolate="cubic")
            points.check(grid)
            points.stencils(grid, (False, True))
            points.coordinates(grid, (False, True))
        finally:
            sys.settrace(None)
        counts.append(lines)
    assert counts[1] == counts[2] > 0


def test_points_of_one_axis_are_numbers() -> None:
    assert hc.Points([0.1, 0.2]).places == hc.Points(np.array([[0.1], [0.2]])).places == [(0.1,), (0.2,)]


# -- with a run ----------------------------------------------------------------------------------------------


def on_all_locations(**options: Any) -> hc.Simulation:
    """Return a simulation with a periodic axis, one with walls on faces, and one with walls on nodes."""
    grid = hc.Grid((6, 5, 4), periodic=(True, False, False), walls=("face", "face", "node"))
    for n, location in enumerate(LOCATIONS):
        grid.field(f"f{n}", location=location, dtype=("float64", "float32")[n % 2])
    grid.field("_values1")  # a user field may have this name
    sim = hc.Simulation(grid, lambda f0: {f0: -f0}, scheme=hc.Euler(), dt=0.5, threads=1, **options)
    draw = np.random.default_rng(8)
    for f in grid.fields.values():
        sim[f] = 0.0  # one sweep allocates all fields
    for f in grid.fields.values():
        sim[f] = draw.uniform(size=f.points)
    return sim


@pytest.mark.ranks(1, 2, 3, long=(1, 3))
def test_output_and_gathered_values_of_every_location(shared_tmp_path: Path) -> None:
    """Output of expressions, conditions, statistics, points and planes is equal for any number of ranks."""
    sim, path = on_all_locations(), shared_tmp_path
    fields = [sim.grid.fields[f"f{n}"] for n in range(len(LOCATIONS))]
    places = np.random.default_rng(3).uniform(size=(40, 3))
    written: dict[str, Any] = {}
    for f in fields:
        written |= {f.name: f, f"{f.name}_twice": 2.0 * f}
    written |= {f"{f.name}_above": f > 0.5 for f in fields[:3]}
    outputs = [hc.Output(path / "all.zarr", {**written, "mean": hc.time_mean(fields[1])}, every=hc.steps(1))]
    outputs += [
        hc.Output(
            path / f"{interpolation}.zarr",
            written if interpolation == "linear" else fields,
            every=hc.steps(1),
            region=hc.Points(places, interpolate=interpolation),
        )
        for interpolation in INTERPOLATIONS
    ]
    outputs += [hc.Output(path / "slice.zarr", fields, every=hc.steps(1), region=hc.Slice(x=0.97, z=0.31))]
    sim.run(steps=1, output=outputs)
    gathered = {f.name: sim.gather(f) for f in fields}
    twice = sim.gather(2.0 * fields[3])
    above = sim.gather(fields[5] > 0.5)
    between = sim.gather(fields[2][1, 0, 0] - fields[2])
    drawn = cut(sim, 2.0 * fields[2], {"x": 0.97, "z": 0.31})
    user_values = sim.gather("_values1")
    sim.domain.comm.barrier()
    if sim.domain.comm.rank != 0:
        return
    assert user_values is not None
    assert user_values.shape == sim.grid.shape
    assert twice is not None
    assert (twice.shape, twice.dtype) == (fields[3].points, np.float32)
    np.testing.assert_array_equal(twice, 2 * gathered["f3"])
    assert above is not None
    assert above.dtype == bool
    np.testing.assert_array_equal(above, gathered["f5"] > 0.5)
    assert between is not None
    assert between.shape == sim.grid.shape
    assert drawn is not None
    assert drawn.at == (("x", 0.0), ("z", pytest.approx(0.4)))
    np.testing.assert_array_equal(drawn.values, 2 * gathered["f2"][0, :, 1])
    whole, plane = opened(path / "all.zarr"), opened(path / "slice.zarr")
    at_points = {interpolation: opened(path / f"{interpolation}.zarr") for interpolation in INTERPOLATIONS}
    checked = 0
    for f in fields:
        values = gathered[f.name]
        assert values is not None
        assert values.shape == f.points
        for name, expected in (
            (f.name, values),
            (f"{f.name}_twice", 2 * values),
            (f"{f.name}_above", (values > 0.5).astype(float)),
        ):
            if name not in written:
                continue
            array = whole[name]
            assert array.dtype == (np.float64 if name.endswith("above") else f.dtype)
            assert array.dims[1:] == tuple(
                axis + "_face" * staggered for axis, staggered in zip("xyz", f.staggered, strict=True)
            )
            np.testing.assert_array_equal(array.values[-1], expected)
            for interpolation in INTERPOLATIONS if name == f.name else ("linear",):
                points, stored = hc.Points(places, interpolate=interpolation), at_points[interpolation][name]
                assert stored.dtype == array.dtype
                np.testing.assert_array_equal(
                    stored.values[-1],
                    interpolated(points, sim.grid, f.staggered, expected).astype(stored.dtype),
                )
                checked += 1
        x, _, z = (abs(line - at).argmin() for line, at in zip(f.positions, (0.97, 0.0, 0.31), strict=True))
        x = 0 if f.staggered[0] else x  # across the periodic end
        np.testing.assert_array_equal(plane[f.name].values[-1], values[x, :, z])
        assert (plane[f.name].x, plane[f.name].z) == (f.positions[0][x], f.positions[2][z])
    assert checked == 4 * len(LOCATIONS) + 3
    nearest, linear = at_points["nearest"], at_points["linear"]
    for f in fields:
        for axis, line in enumerate(hc.Points(places, "nearest").coordinates(sim.grid, f.staggered)):
            np.testing.assert_array_equal(nearest["xyz"[axis] + "_face" * f.staggered[axis]].values, line)
    assert {*linear.coords} == {"time", "step", "x", "y", "z"}
    np.testing.assert_array_equal([linear[axis].values for axis in "xyz"], places.T)
    assert linear["f3"].interpolation == "linear"


@pytest.mark.ranks(1, 2, long=(1,))
def test_receivers_continue_after_a_restart(shared_tmp_path: Path) -> None:
    path, places = shared_tmp_path, np.random.default_rng(3).uniform(size=(30, 3))

    def output(sim: hc.Simulation, folder: str, interpolation: str = "cubic") -> hc.Output:
        fields = [sim.grid.fields[name] for name in ("f0", "f3")]
        return hc.Output(
            path / folder, fields, every=hc.steps(1), region=hc.Points(places, interpolate=interpolation)
        )

    sim = on_all_locations()
    sim.run(steps=5, output=output(sim, "whole.zarr"))
    sim = on_all_locations()
    sim.run(
        steps=3,
        output=output(sim, "parts.zarr"),
        checkpoint=hc.Checkpoint(path / "checkpoints", every=hc.steps(2)),
    )
    sim = on_all_locations()
    sim.resume(path / "checkpoints")
    with pytest.raises(InputError, match="holds other output of this run"):
        sim.run(steps=1, output=output(sim, "parts.zarr", "linear"))
    sim.run(steps=2, output=output(sim, "parts.zarr"))
    sim.domain.comm.barrier()
    assert opened(path / "whole.zarr").equals(opened(path / "parts.zarr"))
    assert len(opened(path / "parts.zarr")["time"]) == 6


def test_chunks_of_many_points_hold_fewer_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run resumes within a chunk and after the last chunk, although each commit rewrites a chunk."""
    assert [rows_of(count, 8) for count in (1, 1024, 100_000, 10**9)] == [ROWS, ROWS, 10, 2]
    monkeypatch.setattr("halocline.archive.series.CHUNK", 30 * 8 * 4)
    places = np.random.default_rng(3).uniform(size=(30, 3))

    def output(sim: hc.Simulation, folder: str) -> hc.Output:
        return hc.Output(
            tmp_path / folder, [sim.grid.fields["f0"]], every=hc.steps(1), region=hc.Points(places)
        )

    sim = on_all_locations()
    sim.run(steps=9, output=output(sim, "whole.zarr"))
    for split in (3, 5):  # rows 4 and 6, with chunks of 4 rows
        part, saved = f"parts{split}.zarr", tmp_path / f"checkpoints{split}"
        sim = on_all_locations()
        sim.run(steps=split, output=output(sim, part), checkpoint=hc.Checkpoint(saved))
        sim = on_all_locations()
        sim.resume(saved)
        sim.run(steps=9 - split, output=output(sim, part))
        assert opened(tmp_path / "whole.zarr").equals(opened(tmp_path / part))
        assert sorted(file.name for file in (tmp_path / part / "f0").glob("c.*")) == [
            "c.0.0", "c.1.0", "c.2.0",
        ]  # fmt: skip


@pytest.mark.usefixtures("opencl")
def test_devices_send_only_the_values_of_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[Any] = []
    on_host = FieldStore.on_host

    def noted(store: FieldStore, storages: list[Any]) -> list[Any]:
        fetched.extend(storages if store.domain.devices else ())
        return on_host(store, storages)

    monkeypatch.setattr(FieldStore, "on_host", noted)
    grid = hc.Grid((12, 10), periodic=(True, False))
    T = grid.field("T", boundary=hc.Value(0.25))
    v = grid.field("v", location="face-y", dtype="float32", boundary=hc.Value(0.0))
    sim = hc.Simulation(grid, lambda T, v: {T: -T, v: -v}, scheme=hc.Euler(), dt=0.1, device="opencl:0,1")
    sim[T], sim[v] = (lambda x, y: x * y + 1.0), (lambda x, y: x + y)
    region = hc.Points([(0.0, 0.0), (1.0, 1.0), (0.33, 0.99)])
    sim.run(steps=2, output=hc.Output(tmp_path / "a.zarr", [T, v], every=hc.steps(1), region=region))
    assert not fetched
    stored = opened(tmp_path / "a.zarr")
    for f in (T, v):
        expected = interpolated(region, grid, f.staggered, sim.gather(f))
        np.testing.assert_array_equal(stored[f.name].values[-1], expected.astype(f.dtype))
    assert fetched
