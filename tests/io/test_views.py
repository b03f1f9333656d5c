"""Pictures and films of stores: the plotted data, not the appearance."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import halocline as hc
from halocline.archive.reader import Store
from halocline.cli.app import run
from halocline.errors import InputError, RunError
from halocline.io import views
from halocline.io.figure import put_title
from halocline.io.spectra import spectrum
from halocline.io.views import Selection, _chosen, _figure, _number, _Panel, _title, view


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stores")
    grid = hc.Grid((12, 8, 6), extent=(1.2, 0.8, 0.6), periodic=True)
    T = grid.field("T")
    v = grid.field("v", location="face-x")
    sim = hc.Simulation(grid, lambda T, v: {T: -T, v: v}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[T] = lambda x, y, z: np.sin(2 * np.pi * x / 1.2) + y
    sim[v] = lambda x, y, z: z
    sim.run(
        steps=3,
        output=[
            hc.Output(path / "fields.zarr", every=hc.steps(1), units={"T": "K", "x": "m", "time": "s"}),
            hc.Output(path / "line.zarr", {"T": T}, every=hc.steps(1), region=hc.Slice(y=0.4, z=0.3)),
            hc.Output(path / "numbers.zarr", {"most": hc.max(T)}, every=hc.steps(1)),
            hc.Output(
                path / "points.zarr",
                {"T": T},
                every=hc.steps(1),
                region=hc.Points([(0.1, 0.1, 0.1), (0.9, 0.1, 0.1)]),
            ),
        ],
    )
    return path


def panels(store: Store, options: Selection) -> list[_Panel]:
    return [_Panel(store, info, options) for info in _chosen(store, options)]


def test_a_picture_shows_planes_of_the_last_time(stores: Path) -> None:
    store = Store(stores / "fields.zarr")
    whole = {name: store.open(name).read((3, 0, 0, 0), (4, 12, 8, 6))[0] for name in ("T", "v")}
    figure = _figure(store, panels(store, Selection()), _number(store, None))
    panels_drawn = [ax for ax in figure.axes if ax.images]
    assert [ax.get_title(loc="left") or ax.get_title() for ax in panels_drawn] == [
        "T, z = 0.25 m",
        "v, z = 0.25 m",
    ]
    for ax, name in zip(panels_drawn, ("T", "v"), strict=True):
        np.testing.assert_array_equal(ax.images[0].get_array(), whole[name][:, :, 2].T)
    assert panels_drawn[0].get_xlabel() == "x [m]"
    assert panels_drawn[0].get_xlim() == pytest.approx((0.0, 1.2))
    assert "t = 0.3 s" in figure.get_suptitle()


def test_time_and_cuts_are_the_nearest(stores: Path) -> None:
    store = Store(stores / "fields.zarr")
    expected = Selection(["T"], 0.14, {"x": 0.61})
    (panel,) = panels(store, expected)
    assert _number(store, 0.14) == 1
    drawn = panel.section(1)
    assert drawn.axes == ("y", "z")
    assert drawn.at == (("x", pytest.approx(0.65)),)
    np.testing.assert_array_equal(drawn.values, store.open("T").read((1, 6, 0, 0), (2, 7, 8, 6))[0, 0])
    (panel,) = panels(store, Selection(["T"], None, {"x": 0.0, "z": 0.0}))
    assert panel.section(0).axes == ("y",)


def test_numbers_and_points_are_drawn_as_time_series(stores: Path) -> None:
    for name, lines in (("numbers.zarr", 1), ("points.zarr", 2)):
        store = Store(stores / name)
        figure = _figure(store, panels(store, Selection()), _number(store, None))
        (ax,) = figure.axes
        assert len(ax.lines) == lines
        values = store.open("T" if lines == 2 else "most")
        whole = values.read((0,) * len(values.shape), values.shape).reshape(4, -1)
        for n, line in enumerate(ax.lines):
            np.testing.assert_array_equal(line.get_ydata(), whole[:, n])


def test_a_checkpoint_is_drawn(tmp_path: Path) -> None:
    """The fields of a checkpoint are drawn on faces and in cells."""
    grid = hc.Grid((7, 5))
    T = grid.field("T", boundary=hc.Value(0.0))
    v = grid.field("v", location="face-x", boundary=hc.Value(0.0))
    sim = hc.Simulation(grid, lambda T, v: {T: -T, v: -v}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[T], sim[v] = (lambda x, y: x + y), (lambda x, y: x - y)
    sim.run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "checkpoints"))
    store = Store(next((tmp_path / "checkpoints").glob("step-*")))
    figure = _figure(store, panels(store, Selection()), _number(store, None))
    images = [ax.images[0].get_array() for ax in figure.axes if ax.images]
    for result, field in zip(images, (T, v), strict=True):
        np.testing.assert_array_equal(result, sim.gather(field).T)


@given(st.integers(1, 3), st.integers(4, 9), st.integers(0, 10**6))
def test_a_spectrum_adds_up_to_the_variance(ndim: int, n: int, seed: int) -> None:
    shape = tuple(n + a for a in range(ndim))
    values = np.random.default_rng(seed).standard_normal(shape)
    _, power = spectrum(values, [np.arange(m) * 0.3 for m in shape])
    assert power.sum() == pytest.approx(values.var(), rel=1e-9)


def test_a_wave_is_one_peak_of_the_spectrum() -> None:
    x = (np.arange(32) + 0.5) / 32 * 2.0
    k, power = spectrum(3.0 * np.sin(2 * np.pi * 5 * x / 2.0)[:, None] * np.ones(32), [x, x])
    assert k[np.argmax(power)] == pytest.approx(2 * np.pi * 5 / 2.0)
    assert power.max() == pytest.approx(4.5)
    with pytest.raises(InputError, match="evenly spaced"):
        spectrum(np.ones(3), [np.array([0.0, 1.0, 3.0])])


def test_a_film_has_a_frame_for_each_time_with_the_same_colours(stores: Path, tmp_path: Path) -> None:
    done: list[int] = []
    view(Store(stores / "fields.zarr"), tmp_path / "T.gif", Selection(["T"]), done.append)
    film = Image.open(tmp_path / "T.gif")
    assert film.n_frames == 4
    assert done == [1, 2, 3, 4]
    (panel,) = panels(Store(stores / "fields.zarr"), Selection(["T"]))
    low, high = panel.limits(range(4))
    plane = Store(stores / "fields.zarr").open("T").read((0, 0, 0, 2), (4, 12, 8, 3))
    assert (low, high) == (plane.min(), plane.max())
    view(Store(stores / "line.zarr"), tmp_path / "line.gif", Selection())
    assert Image.open(tmp_path / "line.gif").n_frames == 4


@pytest.mark.skipif(shutil.which("ffmpeg") is not None, reason="there is ffmpeg")
def test_a_missing_ffmpeg_is_reported(stores: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"ffmpeg is not on PATH.*\.gif"):
        view(Store(stores / "fields.zarr"), tmp_path / "T.mp4", Selection())


@pytest.mark.parametrize(
    ("name", "target", "options", "words"),
    [
        ("fields.zarr", "a.txt", Selection(), r"expected a name that ends in \.png"),
        ("fields.zarr", "a.png", Selection(["U"]), "array 'U' is unknown"),
        ("fields.zarr", "a.png", Selection(at={"w": 0.0}), "has no such axis; expected some of x, y, z"),
        ("numbers.zarr", "a.gif", Selection(), "contains no fields"),
        ("numbers.zarr", "a.png", Selection(at={"x": 0.0}), "has no such axis, nor any other"),
        (
            "line.zarr",
            "a.png",
            Selection(at={"x": 0.5}),
            "array 'T' has no axes other than x, and a cut at x = 0.5 leaves no axis to draw",
        ),
        ("line.zarr", "a.gif", Selection(at={"x": 0.5}), "leaves no axis to draw"),
        (
            "fields.zarr",
            "a.png",
            Selection(["v"], at={"x": 0.5, "z": 0.25, "y": 0.1}),
            "array 'v' has no axes other than x_face, y, z, and a cut at x = 0.5, y = 0.1, z = 0.25 leaves",
        ),
        ("numbers.zarr", "a.png", Selection(spectrum=True), "contains nothing to draw"),
        ("fields.zarr", "a.png", Selection(spectrum=True, at={"z": 0.3}), "a spectrum requires whole fields"),
        ("fields.zarr", "a.gif", Selection(every=0), "every is 0; expected a whole number from 1"),
        (
            "fields.zarr",
            "a.png",
            Selection(at={"z": 0.8}),
            r"'T' of .* has points from 0\.05 to 0\.55 along z",
        ),
    ],
)
def test_invalid_views_are_rejected(
    stores: Path, name: str, target: str, options: Selection, words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words):
        view(Store(stores / name), tmp_path / target, options)
    assert not list(tmp_path.iterdir())


def test_messages_name_arguments_in_python(stores: Path, tmp_path: Path) -> None:
    """Messages name the option of the command together with the argument of the function."""
    store = Store(stores / "fields.zarr")
    store.arrays = {f"T{n}": store.arrays["T"] for n in range(13)} | store.arrays
    with pytest.raises(InputError, match=r"15 arrays.*\(names=, --fields\)"):
        view(store, tmp_path / "a.png", Selection())
    with pytest.raises(InputError, match=r"^a cut at w = 0: ") as caught:
        view(Store(stores / "fields.zarr"), tmp_path / "a.png", Selection(at={"w": 0.0}))
    assert "--at" not in str(caught.value)


def test_the_command_draws_views(stores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out" / "T.png"
    assert run(["view", str(stores / "fields.zarr"), str(target), "--fields", "T", "--at", "z=0.1"]) == 0
    assert str(target) in capsys.readouterr().err
    assert Image.open(target).size[0] > 300
    with pytest.raises(InputError, match="--at z: expected an axis and a coordinate"):
        run(["view", str(stores / "fields.zarr"), str(target), "--at", "z"])
    with pytest.raises(InputError, match=r"--at z=0\.2: the coordinate of axis z is already 0\.1"):
        run(["view", str(stores / "fields.zarr"), str(target), "--at", "z=0.1", "--at", "z=0.2"])
    with pytest.raises(InputError, match=r"a cut at x = 0.5 leaves no axis to draw"):
        run(["view", str(stores / "line.zarr"), str(target), "--at", "x=0.5"])
    spectra = tmp_path / "spectrum.png"
    assert run(["view", str(stores / "fields.zarr"), str(spectra), "--spectrum"]) == 0


@pytest.mark.parametrize("time", [None, 0.1])
def test_a_film_is_written_completely_or_not_at_all(stores: Path, time: float | None, tmp_path: Path) -> None:
    def stop(frames: int) -> None:
        if frames == 2:
            raise KeyboardInterrupt

    target = tmp_path / "T.gif"
    target.write_text("the one before")
    with pytest.raises(KeyboardInterrupt if time is None else InputError):
        view(Store(stores / "fields.zarr"), target, Selection(["T"], time), stop)
    assert target.read_text() == "the one before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_film_subsamples_many_times(stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(stores / "fields.zarr")
    view(store, tmp_path / "T.gif", Selection(["T"], every=3))
    assert Image.open(tmp_path / "T.gif").n_frames == 2
    with pytest.raises(InputError, match="has 4 times, and every=4 selects 1 of them"):
        view(store, tmp_path / "T.gif", Selection(["T"], every=4))
    monkeypatch.setattr(views, "MOST_FRAMES", 3)
    with pytest.raises(InputError, match=r"a film of 4 frames; expected at most 3\. .*--every 2\)"):
        view(store, tmp_path / "T.gif", Selection(["T"]))
    with pytest.raises(InputError, match=r"every=2 applies only to films, but a\.png is a picture"):
        view(store, tmp_path / "a.png", Selection(every=2))


def test_each_frame_of_a_film_shows_its_time(stores: Path) -> None:
    store = Store(stores / "fields.zarr")
    for options in (
        Selection(["T"]),
        Selection(["T"], at={"y": 0.4, "z": 0.3}),
        Selection(["T"], spectrum=True),
    ):
        (panel,), (other,) = panels(store, options), panels(store, options)
        figure, other_figure = _figure(store, [panel], 0), _figure(store, [other], 2)
        panel.show(2)
        put_title(figure, _title(store, 2))
        titles = [drawing._suptitle for drawing in (figure, other_figure)]
        assert len({(title.get_text(), title.get_position(), title.get_size()) for title in titles}) == 1
        drawn, expected = figure.axes[0], other_figure.axes[0]
        if drawn.images:
            actual = [axes.images[0].get_array() for axes in (drawn, expected)]
        else:
            actual = [axes.lines[0].get_ydata() for axes in (drawn, expected)]
        np.testing.assert_array_equal(*actual)


def test_titles_contain_the_position_of_a_cut_store(stores: Path) -> None:
    store = Store(stores / "line.zarr")
    (ax,) = _figure(store, panels(store, Selection()), 0).axes
    assert (ax.get_title(loc="left") or ax.get_title()) == "T, y = 0.35, z = 0.25"


def test_work_arrays_are_drawn_only_by_name(tmp_path: Path) -> None:
    grid = hc.Grid((6, 5), extent=(3.0, 1.0), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.RK3(), dt=0.1, threads=1)
    sim[T] = 1.0
    sim.run(steps=1, checkpoint=hc.Checkpoint(tmp_path / "checkpoints"))
    store = Store(next((tmp_path / "checkpoints").glob("step-*")))
    (panel,) = panels(store, Selection())
    assert panel.info.name == "T"
    np.testing.assert_array_equal(panel.lines["x"], grid.positions()[0])
    assert [panel.info.name for panel in panels(store, Selection(["T_w"]))] == ["T_w"]


def test_figures_have_the_aspect_ratio_of_their_data(tmp_path: Path) -> None:
    grid = hc.Grid((32, 4), extent=(8.0, 1.0), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[T] = lambda x, y: x
    sim.run(steps=1, output=hc.Output(tmp_path / "w.zarr", {"a": T, "b": 2 * T}))
    store = Store(tmp_path / "w.zarr")
    figure = _figure(store, panels(store, Selection()), 1)
    width, height = figure.get_size_inches()
    assert figure.axes[0].get_subplotspec().get_gridspec().ncols == 1  # one below the other
    assert width > 1.2 * height


def test_times_far_from_those_of_a_store_are_rejected(tmp_path: Path) -> None:
    grid = hc.Grid((4, 4), periodic=True)
    grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim.run(steps=2, output=hc.Output(tmp_path / "a.zarr", every=hc.steps(1)))  # at 0, 0.1 and 0.2
    store = Store(tmp_path / "a.zarr")
    assert [_number(store, time) for time in (-0.09, 0.06, 0.29, None)] == [0, 1, 2, 2]
    for time in (-0.2, 0.4, 1e9):
        with pytest.raises(InputError, match=r"has times from 0 to 0\.2"):
            _number(store, time)


def test_a_spectrum_reports_axes_with_walls(tmp_path: Path) -> None:
    grid = hc.Grid((16, 16), periodic=(True, False))
    T = grid.field("T", boundary=hc.Value(0.0))
    sim = hc.Simulation(grid, lambda T: {T: -T}, scheme=hc.Euler(), dt=0.1, threads=1)
    sim[T] = lambda x, y: np.sin(2 * np.pi * x) * y
    whole, part = hc.Output(tmp_path / "a.zarr"), hc.Output(tmp_path / "b.zarr", region=hc.Box(x=(0.0, 0.5)))
    sim.run(steps=1, output=[whole, part])
    for name, walls in (("a", "y"), ("b", "x, y")):
        store = Store(tmp_path / f"{name}.zarr")
        (ax,) = _figure(store, panels(store, Selection(spectrum=True)), 1).axes
        assert (ax.get_title(loc="left") or ax.get_title()) == f"spectrum of T, as if periodic along {walls}"


@pytest.mark.parametrize(
    ("dimensions", "values", "words"),
    [
        ("xy", np.ones((3, 4), complex), "it has type complex128; expected real numbers"),
        ("xy", np.ones((0, 4)), "it holds no points"),
        ("", np.ones(()), "it is a single number"),
        ("abcd", np.ones((2, 2, 2, 2)), "it has 4 axes in space; expected at most 3"),
        ("x", np.array(["a", "b"]), "it has type .*; expected real numbers"),
    ],
)
def test_arrays_of_other_programs_that_cannot_be_drawn_are_rejected(
    dimensions: str, values: Any, words: str, tmp_path: Path
) -> None:
    dataset = xarray.Dataset({"T": (tuple(dimensions), values)})
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    with pytest.raises(InputError, match=rf"a\.zarr: array 'T' cannot be drawn: {words}"):
        view(Store(tmp_path / "a.zarr"), tmp_path / "a.png", Selection())
    assert not (tmp_path / "a.png").exists()
