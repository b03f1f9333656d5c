"""Halos after an exchange, compared with the owners' cells."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

import halocline as hc
from halocline.run.domain.domain import Domain
from halocline.run.domain.execution import Execution
from halocline.run.engine.prepare import prepare_schedule
from halocline.run.memory.store import FieldStore
from halocline.run.ranks.mpi import world
from halocline.study.measuring.exchange import exchange_schedule


def check_exchange(
    shape: tuple[int, ...], fields: int, dtype: str, radius: int, corners: bool, **execution: Any
) -> Domain:
    """Check that halos hold the unique numbers that the owners store in their cells."""
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
                in_halo = [np.pad(np.zeros(n, dtype=int), radius, constant_values=1) for n in box.shape]
                cells = storage.whole().reshape([len(a) for a in around])
                expected = ids[np.ix_(*around)] + n * prod(shape) + passes
                if not corners:
                    expected = np.where(sum(np.ix_(*in_halo)) <= 1, expected, -passes)
                np.testing.assert_array_equal(cells, expected.astype(dtype))
    return domain


METHODS_IN_TURN = ("mpi", "self,mpi", "peer,mpi", "colocated,mpi", "rma,mpi", "self,peer,colocated,rma,mpi")
