"""Pictures: the data that the first rank receives, and the files."""

from __future__ import annotations

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError
from halocline.io.picture import picture, plot_lines
from halocline.io.section import cut
from halocline.run.ranks.mpi import world


def simulation(shape, *, location="cell", periodic=True, dtype="float64", **options):
    grid = hc.Grid(shape, extent=tuple(float(n) for n in shape), periodic=periodic)
    boundary = None if periodic else hc.Symmetric()
    f = grid.field("f", location=location, dtype=dtype, boundary=boundary)
    sim = hc.Simulation(grid, lambda f: {f: 0.0 * f}, scheme=hc.Euler(), dt=1.0, **options)
    return sim, f


def numbers(shape) -> np.ndarray:
    """Return an array with a different number in each cell."""
    return np.arange(np.prod(shape), dtype=np.float64).reshape(shape)


@pytest.mark.ranks(1, 4, long=(1,))
def test_a_large_section_is_subsampled():
    sim, f = simulation((11, 13))
    sim[f] = numbers((11, 13))
    for most in (1024, 4, 1):
        result = cut(sim, f, most=most)
        if world().rank:
            assert result is None
            continue
        k, m = -(-11 // most), -(-13 // most)
        assert np.array_equal(result.values, numbers((11, 13))[::k, ::m])
        assert result.axes == ("x", "y")
        assert np.array_equal(result.coordinates[0], (np.arange(11) + 0.5)[::k])
        assert result.span == ((0.0, 11.0), (0.0, 13.0))


@pytest.mark.ranks(1, 3, long=(1,))
def test_a_plane_of_three_dimensions_is_gathered():
    shape = (6, 5, 8)
    sim, f = simulation(shape)
    sim[f] = numbers(shape)
    for axis, at, index in [(None, None, 3), ("z", 0.5, 0), ("x", 4.4, 4), ("y", None, 2)]:
        result = cut(sim, "f", {axis or "z": at})
        if world().rank == 0:
            normal = "xyz".index(axis or "z")
            assert np.array_equal(result.values, numbers(shape).take(index, axis=normal))
            assert result.at == ((axis or "z", index + 0.5),)
            assert result.axes == tuple(a for a in "xyz" if a != (axis or "z"))


@pytest.mark.ranks(2)
def test_expressions_leave_no_fields_behind():
    sim, f = simulation((8, 6))
    sim[f] = numbers((8, 6))
    before = set(sim.grid.fields)
    for _ in range(2):
        result = cut(sim, f[1, 0] - 2.0 * f)
        if result is not None:
            values = numbers((8, 6))
            assert np.array_equal(result.values, np.roll(values, -1, 0) - 2 * values)
    sim[f] = 0.0
    cut(sim, 1.0 / f)  # not finite, but the simulation does not check this
    sim.run(steps=1)
    assert set(sim.grid.fields) == before


def test_staggered_fields_are_drawn_at_faces():
    sim, f = simulation((4,), location="face-x", periodic=False)
    result = cut(sim, f)
    assert np.array_equal(result.coordinates[0], np.arange(5.0))
    assert result.values.shape == (5,)


@pytest.mark.ranks(2)
def test_pictures_are_written_to_files(shared_tmp_path):
    from matplotlib.image import imread

    for shape in ((16,), (16, 24), (8, 8, 6)):
        sim, f = simulation(shape)
        sim[f] = numbers(shape)
        target = shared_tmp_path / "new" / f"{len(shape)}.png"
        picture(sim, f, target, title="numbers", label="f [1]", unit="m")
        sim.domain.comm.barrier()
        image = imread(target)
        assert image.shape[0] > 300
        assert image.shape[1] > 300
        assert len(np.unique(image.reshape(-1, image.shape[2]), axis=0)) > 50
    sim, f = simulation((16,))
    plot_lines(sim, {"computed": f, "exact": numbers((16,))}, shared_tmp_path / "lines.svg", label="f")
    sim.domain.comm.barrier()
    text = (shared_tmp_path / "lines.svg").read_text()
    assert "computed" in text
    assert "exact" in text


def test_float32_and_nonfinite_values_are_drawn(tmp_path):
    sim, f = simulation((8, 8), dtype="float32")
    values = numbers((8, 8))
    values[2, 3] = np.nan
    sim[f] = values
    picture(sim, f, tmp_path / "holes.png")
    sim[f] = np.full((8, 8), np.nan)
    picture(sim, f, tmp_path / "nothing.png")
    assert (tmp_path / "nothing.png").stat().st_size > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s, f, p: picture(s, f, p / "a.jpeg"), ".png"),
        (lambda s, f, p: picture(s, "g", p / "a.png"), "field 'g' is unknown"),
        (lambda s, f, p: picture(s, 3.0, p / "a.png"), "expected a field"),
        (lambda s, f, p: picture(3, f, p / "a.png"), "expected a Simulation"),
        (lambda s, f, p: picture(s, f, p / "a.png", axis="z"), "a plane of a 3D grid, but this grid is 2D"),
        (lambda s, f, p: picture(s, hc.Grid((4, 4), periodic=True).field("f"), p / "a.png"), "another grid"),
        (lambda s, f, p: plot_lines(s, [f], p / "a.png"), "one axis"),
    ],
)
def test_invalid_pictures_are_reported(tmp_path, call, words):
    sim, f = simulation((4, 4))
    with pytest.raises(InputError) as raised:
        call(sim, f, tmp_path)
    assert words in str(raised.value)


def test_invalid_planes_and_folders_are_reported(tmp_path):
    sim, f = simulation((4, 4, 4))
    with pytest.raises(InputError, match="axis 'w' is unknown"):
        picture(sim, f, tmp_path / "a.png", axis="w")
    with pytest.raises(InputError, match=r"points from 0\.5 to 3\.5"):
        picture(sim, f, tmp_path / "a.png", at=77.0)
    with pytest.raises(InputError, match="cannot write"):
        picture(sim, f, "/proc/halocline/a.png")
