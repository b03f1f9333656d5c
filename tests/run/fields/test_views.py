"""Views of fields: wrong indices, and fields on devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import halocline as hc
from halocline.errors import InputError

if TYPE_CHECKING:
    from halocline import _native
from vector_problem import problem


@pytest.mark.ranks(2)
def test_an_index_beyond_the_points_of_a_rank_is_explained() -> None:
    sim, u, w = problem()
    sim[u], sim[w] = 1.0, 2.0
    part = sim[u]
    assert part.shape != u.points
    for index in ((7, 5), (slice(None), 6)):
        with pytest.raises(IndexError, match=r"the global indices of this array are x .*hc.value"):
            part[index]
        with pytest.raises(InputError, match=r"sim.gather\(u\)"):
            part[index] = 0.0
    part[0, 0] = 2.0
    part += 1.0
    assert type(part * 2.0) is np.ndarray
    assert type(part[0]) is np.ndarray
    assert sim.evaluate(hc.sum(u)) == 48 * 2.0 + 2.0
    gathered = sim.gather(w)
    assert (gathered is None) == (sim.domain.comm.rank > 0)
    with pytest.raises(InputError, match=r"sim\[u\]\[\.\.\.\] = array"):
        sim[u] = np.zeros(part.shape)


def test_writes_to_views_of_devices_are_rejected_with_a_remedy(opencl: list[_native.Device]) -> None:
    sim, u, w = problem(device="opencl:0")
    sim[u], sim[w] = 1.0, (2.0, 3.0)
    assert sim.gather(w)[:, 0, 0].tolist() == [2.0, 3.0]
    for view in (sim[u], sim.views(u)[0][1], sim.views(w)[1][0][1]):
        with pytest.raises(InputError, match=r"lies on a device, .*Set the whole field by sim\["):
            view[...] = 0.0
        with pytest.raises(InputError, match=r"lies on a device"):
            view += 1.0
