"""Decompositions of two levels: first over nodes, then over the devices or ranks of a node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import gcd, prod
from typing import TYPE_CHECKING

from halocline.errors import InputError
from halocline.lang.axes import per_axis, whole
from halocline.plan.decompose import Decomposition, Parts, decompose
from halocline.plan.traffic import Traffic

OVER_NODES = ("morton", "row")  # strategies that number the subdomains of all nodes at once

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

    The subdomains of node k are those numbered from k `per_node` on. The strategies `morton` and `row` number
    the subdomains of all nodes at once, as in Pekkilä et al. 2022, Section 3.3 and Fig. 6, so that nodes have
    no level of their own.

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
        Its cost is that of a device: what its exchange brings from other nodes, at worst. With `morton` and
        `row` it is that of a subdomain.
    """
    if strategy in OVER_NODES:
        return decompose(
            shape,
            nodes * per_node,
            strategy=strategy,
            radius=radius,
            traffic=traffic,
            thickness=thickness,
            periodic=periodic,
        )
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


def parts_of_node(decomposition: Decomposition, per_node: int) -> Parts:
    """Return the subdomains along each axis of a node that has `per_node` subdomains in sequence.

    They are the last digits of the number of a subdomain; see `Decomposition.order`.

    Raises
    ------
    InputError
        So many subdomains in sequence fill no box.
    """
    parts, remaining = [1] * decomposition.ndim, per_node
    for axis, factor in reversed(decomposition.order):
        digit = gcd(factor, remaining)
        if digit < min(factor, remaining):
            break
        parts[axis] *= digit
        remaining //= digit
    if remaining > 1:
        raise InputError(
            f"nodes of {per_node} subdomains are no boxes of the decomposition "
            f"{'x'.join(map(str, decomposition.parts))} ({decomposition.strategy}): take optimal"
        )
    return tuple(parts)


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
