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
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepare import prepare_schedule
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.mpi import world
from halocline.study.measuring.exchange import exchange_schedule, measure, weak_shape


def check_exchange(
    shape: tuple[int, ...], fields: int, dtype: str, radius: int, corners: bool, **execution: Any
) -> Domain:
    """Give every cell of every field a number of its own, and look for it in the halos of neighbours."""
    grid = hc.Grid(shape, periodic=True)
    domain = Domain(grid, world(), Execution(**execution))
    store = FieldStore(domain)
    prepared = prepare_schedule(
        store, exchange_schedule(grid, fields, dtype, radius, corners=corners), "exchange"
    )
    ids = np.arange(prod(shape)).reshape(shape)
    boxes = [domain.decomposition.box(number) for number in domain.subdomains]
    for passes in (1.0, 2.0):
        for n in range(fields):
            for box, storage in zip(boxes, store.storages[f"q{n}"], strict=True):
                storage.whole()[...] = -passes
                storage.view()[...] = (
                    ids[tuple(map(slice, box.lo, box.hi))] + n * prod(shape) + passes
                ).reshape(storage.view().shape)
        prepared.run({"passes": passes})
        for n in range(fields):
            for box, storage in zip(boxes, store.storages[f"q{n}"], strict=True):
                around = [
                    np.arange(l - radius, h + radius) % s
                    for l, h, s in zip(box.lo, box.hi, shape, strict=True)
                ]
                beyond = [np.pad(np.zeros(n, dtype=int), radius, constant_values=1) for n in box.shape]
                found = storage.whole().reshape([len(a) for a in around])
                wanted = ids[np.ix_(*around)] + n * prod(shape) + passes
                if not corners:
                    wanted = np.where(sum(np.ix_(*beyond)) <= 1, wanted, -passes)
                np.testing.assert_array_equal(found, wanted.astype(dtype))
    return domain


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 3))
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
    check_exchange(shape, fields, dtype, radius, corners, threads=1)


METHODS_IN_TURN = ("mpi", "self,mpi", "peer,mpi", "colocated,mpi", "rma,mpi", "self,peer,colocated,rma,mpi")


@pytest.mark.ranks(1, 2, 3, 4, long=(1, 3))
@pytest.mark.parametrize("methods", METHODS_IN_TURN)
@pytest.mark.parametrize("subdomains_per_rank", [1, 2, 3])
def test_every_method_fills_the_halos(methods: str, subdomains_per_rank: int) -> None:
    """On one node and on pretended ones, with one thread and with two."""
    for mailboxes, (threads, ranks_per_node, corners) in enumerate(
        ((1, None, True), (2, 2, False), (2, 1, True)), 1
    ):
        domain = check_exchange(
            (24, 13, 14) if threads == 1 else (25, 26),
            2,
            "float64" if corners else "float32",
            2,
            corners,
            threads=threads,
            methods=methods,
            subdomains_per_rank=subdomains_per_rank,
            ranks_per_node=ranks_per_node,
            mailboxes=mailboxes,
        )
        assert domain.transfers.methods == tuple(methods.split(","))
        assert domain.transfers.layout.nodes == -(-world().size // (ranks_per_node or world().size))


@pytest.mark.ranks(1, 2, long=(1,))
@pytest.mark.parametrize("methods", ["mpi", "rma,mpi", "self,peer,colocated,rma"])
def test_messages_that_are_checked_fill_the_halos_too(methods: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_CHECK", "1")
    options = {"threads": 2, "methods": methods, "subdomains_per_rank": 2, "ranks_per_node": 1}
    check_exchange((12, 13), 2, "float64", 2, True, **options)


def test_a_wrong_wish_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_CHECK", "yes")
    with pytest.raises(ValueError, match="HALOCLINE_CHECK is yes, expected 0 or 1"):
        check_exchange((12, 13), 1, "float64", 1, True, threads=1)


@pytest.mark.ranks(1, 2, long=(1,))
def test_what_is_told() -> None:
    whole, own = 20**3, 16**3
    for methods in METHODS_IN_TURN:
        found = measure(
            (16, 16, 16), radius=2, fields=3, dtype="float64", repeats=2, threads=1, methods=methods
        )
        assert found["seconds"] > 0
        assert found["ranks"] == world().size
        if found["ranks"] == 1:
            around = next(m for m in ("self", "peer", "rma", "mpi") if m in methods)
            assert found["messages"] == (around in ("rma", "mpi"))
            assert found["bytes_by_method"] == {around: (whole - own) * 3 * 8}
        else:
            assert found["parts"] == (2, 1, 1)
            across = 2 * 2 * 20 * 20
            around = 12 * 20 * 20 - 8 * 16 * 16 - across
            wanted: dict[str, int] = {}
            for method, cells in (
                (next(m for m in ("colocated", "rma", "mpi") if m in methods), across),
                (next(m for m in ("self", "peer", "rma", "mpi") if m in methods), around),
            ):
                wanted[method] = wanted.get(method, 0) + cells * 3 * 8
            assert found["bytes_by_method"] == wanted
        assert found["rate"] == sum(found["bytes_by_method"].values()) / found["seconds"]


@pytest.mark.ranks(2)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("methods", ["mpi", "colocated,mpi", "rma,mpi"])
def test_only_what_crosses_ranks(axis: int, methods: str) -> None:
    """Where just the axis that is cut is periodic; benchmarks/exchange.py counts on it."""
    cut = tuple(2 if a == axis else 1 for a in range(3))
    found = measure(
        tuple(8 * parts for parts in cut),
        radius=3,
        fields=2,
        corners=False,
        periodic=[parts == 2 for parts in cut],
        repeats=1,
        threads=1,
        decomposition=cut,
        methods=methods,
    )
    assert found["parts"] == cut
    assert found["bytes_by_method"] == {methods.partition(",")[0]: 2 * 3 * 8 * 8 * 2 * 4}


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
    assert told["bytes_by_method"] == {"self": 6 * 24 * 24 * 3 * 2 * 4}
    with pytest.raises(InputError, match="scaling 'big' is unknown"):
        run([*line.split(), "--scaling", "big"])
