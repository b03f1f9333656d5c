"""The exchange alone: halos hold what their neighbours own, and the bench tells the truth about it."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halocline as hc
from halocline.cli.app import run
from halocline.errors import InputError
from halocline.run.domain import Domain, Prepared
from halocline.run.mpi import world
from halocline.study.exchange import exchange_schedule, measure, weak_shape


@pytest.mark.ranks(1, 2, 3, 4)
@pytest.mark.parametrize(
    ("shape", "fields", "dtype", "radius", "corners"),
    [
        ((12, 13, 14), 4, "float32", 3, True),
        ((12, 8, 9), 2, "float64", 2, False),
        ((17, 12), 3, "float64", 3, True),
        ((19,), 1, "float32", 4, True),
    ],
)
def test_halos_hold_what_neighbours_own(
    shape: tuple[int, ...], fields: int, dtype: str, radius: int, corners: bool
) -> None:
    """Every cell of every field has a number of its own."""
    grid = hc.Grid(shape, periodic=True)
    domain = Domain(grid, world(), 1, "optimal", None)
    prepared = Prepared(domain, exchange_schedule(grid, fields, dtype, radius, corners=corners), "exchange")
    ids = np.arange(prod(shape)).reshape(shape)
    box = domain.decomposition.box(domain.comm.rank)
    for n in range(fields):
        storage = domain.storages[f"q{n}"]
        storage.whole()[...] = -1.0
        storage.view()[...] = (ids[tuple(map(slice, box.lo, box.hi))] + n * prod(shape)).reshape(
            storage.view().shape
        )
    prepared.run({"passes": 1.0})
    around = [np.arange(l - radius, h + radius) % s for l, h, s in zip(box.lo, box.hi, shape, strict=True)]
    beyond = [np.pad(np.zeros(n, dtype=int), radius, constant_values=1) for n in box.shape]
    axes_beyond = sum(np.ix_(*beyond))
    for n in range(fields):
        found = domain.storages[f"q{n}"].whole().reshape([len(a) for a in around])
        wanted = ids[np.ix_(*around)] + n * prod(shape)
        if not corners:
            wanted = np.where(axes_beyond <= 1, wanted, -1)
        np.testing.assert_array_equal(found, wanted.astype(dtype))


@pytest.mark.ranks(1, 2)
def test_what_is_told() -> None:
    found = measure((16, 16, 16), radius=2, fields=3, dtype="float64", repeats=2, threads=1)
    whole, own = 20**3, 16**3
    assert found.seconds > 0
    assert found.ranks == world().size
    if found.ranks == 1:
        assert (found.messages, found.bytes_sent) == (0, 0)
        assert found.bytes_copied == (whole - own) * 3 * 8
    else:
        assert found.parts == (2, 1, 1)
        assert found.messages == 2
        assert found.bytes_sent == 2 * 2 * 20 * 20 * 3 * 8
        assert found.bytes_copied == (12 * 20 * 20 - 8 * 16 * 16 - 2 * 2 * 20 * 20) * 3 * 8
    assert found.rate == (found.bytes_sent + found.bytes_copied) / found.seconds


def test_weak_shapes() -> None:
    assert weak_shape(750, 1) == (750, 750, 750)
    assert weak_shape(750, 6) == (1363,) * 3  # Pearson et al. (2020): round(750 count^(1/3))³
    assert weak_shape(100, 4, 2) == (200, 200)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radius": 0}, "radius is 0; expected a whole number from 1"),
        ({"fields": 0}, "fields is 0; expected a whole number from 1"),
        ({"repeats": 0}, "repeats is 0; expected a whole number from 1"),
        ({"dtype": "float16"}, "dtype 'float16' is unknown"),
        ({"radius": 9}, "reaches 9 cells"),
    ],
)
def test_wrong_numbers(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        measure((8, 8), **options)


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "exchange.json"
    line = f"bench exchange --n 24 --fields 2 --repeat 2 --threads 1 --no-corners --json {record}"
    assert run(line.split()) == 0
    assert "Exchange of 2 float32 fields of 24x24x24 cells, radius 3, sides" in capfd.readouterr().out
    told = json.loads(record.read_text())
    assert told["bytes_copied"] == 6 * 24 * 24 * 3 * 2 * 4
    with pytest.raises(InputError, match="scaling 'big' is unknown"):
        run([*line.split(), "--scaling", "big"])
