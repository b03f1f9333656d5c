"""Decompositions of two levels: first over nodes, then over the devices or ranks of a node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from halocline.lang.axes import per_axis, whole
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.traffic import Traffic

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def decompose_levels(
    shape: Sequence[int],
    nodes: int,
    per_node: int,
    *,
    strategy: str = "optimal",
    radius: int | Sequence[int | tuple[int, int]] = 1,
    traffic: Traffic | None = None,
    thickness: int | Sequence[int] | None = None,
    periodic: bool | Sequence[bool] = True,
) -> Decomposition:
    """Cut a grid over nodes, so that the network carries least, and each node's part over its devices.

    The subdomains of node k are those numbered from k `per_node` on.

    Parameters
    ----------
    shape : sequence of int
    nodes, per_node : int
        Their product is the number of subdomains.
    strategy, radius, traffic, thickness, periodic
        As for `halocline.plan.decompose`; a strategy holds for both levels.

    Returns
    -------
    Decomposition
        Its cost is that of a device: what its exchange brings from other nodes, at worst.
    """

    cut = partial(decompose, strategy=strategy, radius=radius, traffic=traffic, thickness=thickness)
    outer = cut(shape, nodes, periodic=periodic)
    # the ends of an axis that one node spans lead to itself, or to walls
    ends = [p > 1 for p in outer.parts]

    def within(shape: Sequence[int]) -> tuple[Decomposition, tuple[int, ...]]:
        inner = cut(shape, per_node, periodic=ends, level="device")
        return inner, tuple(p * q for p, q in zip(outer.parts, inner.parts, strict=True))

    inner, parts = within([-(-n // p) for n, p in zip(outer.shape, outer.parts, strict=True)])
    if thickness is None:
        layers = (traffic or Traffic.of_radius(radius, outer.ndim)).layers
        thickness = [max(own) for own in layers]
    least = per_axis(thickness, outer.ndim, "thickness", whole, "a whole number of cells")
    if any(p > 1 and n // p < max(1, t) for n, p, t in zip(outer.shape, parts, least, strict=True)):
        # nodes' parts are not equal: what fits the largest is too thin for the smallest
        inner, parts = within([n // p for n, p in zip(outer.shape, outer.parts, strict=True)])
    return Decomposition(
        outer.shape, parts, outer.periodic, outer.strategy, outer.order + inner.order, inner.cost
    )


def flow(decomposition: Decomposition, traffic: Traffic, subdomains: Sequence[int]) -> NDArray[np.float64]:
    """The bytes that subdomains of a node send each other in an exchange.

    Parameters
    ----------
    subdomains : sequence of int
        Numbers of subdomains, those of one node.

    Returns
    -------
    array (n, n)
        From the i-th to the j-th of them; on the diagonal what one sends to itself around a periodic axis.
    """
    import numpy as np

    places = {number: i for i, number in enumerate(subdomains)}
    sent = np.zeros((len(places), len(places)))
    for number, i in places.items():
        shape = decomposition.box(number).shape
        for direction, weight in traffic.weights:
            neighbour = decomposition.neighbour(number, direction)
            if neighbour is not None and neighbour in places:
                area = prod(1 if d else n for n, d in zip(shape, direction, strict=True))
                sent[places[neighbour], i] += weight * area
    return sent
