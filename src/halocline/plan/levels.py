"""Decompositions of two levels: over nodes, and over the devices or ranks of a node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import gcd, prod
from typing import TYPE_CHECKING

from halocline.errors import InputError
from halocline.lang.axes import per_axis, whole_number
from halocline.plan.decompose import Decomposition, Parts, decompose
from halocline.plan.traffic import Traffic

OVER_NODES = ("morton", "row")  # strategies that number the subdomains of all nodes in one sequence

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
    """Divide a grid over nodes with minimum network traffic, and the part of each node over its devices.

    The subdomains of node k have consecutive numbers that start at k times `per_node`. The strategies
    `morton` and `row` cut in one level and number the subdomains of all nodes in one sequence. See Pekkilä et
    al. 2022, Section 3.3 and Fig. 6.

    Parameters
    ----------
    shape : sequence of int
        Cells of the grid along each axis.
    nodes, per_node : int
        Number of nodes, and of subdomains per node.
    strategy, radius, traffic, thickness, periodic
        See `halocline.plan.decompose`. The strategy applies to both levels.

    Returns
    -------
    Decomposition
        The cost is the maximum volume that a device receives from other nodes in an exchange. With `morton`
        and `row`, the cost is that of `decompose`.
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
    # the ends of an axis that one node spans need no network: they are walls, or the node is its own
    # neighbour
    ends = [p > 1 for p in outer.parts]

    def within(shape: Sequence[int]) -> tuple[Decomposition, tuple[int, ...]]:
        inner = cut(shape, per_node, periodic=ends, level="device")
        return inner, tuple(p * q for p, q in zip(outer.parts, inner.parts, strict=True))

    inner, parts = within([-(-n // p) for n, p in zip(outer.shape, outer.parts, strict=True)])
    if thickness is None:
        layers = (traffic or Traffic.of_radius(radius, outer.ndim)).layers
        thickness = [max(pair) for pair in layers]
    least = per_axis(thickness, outer.ndim, "thickness", whole_number, "a whole number of cells")
    if any(p > 1 and n // p < max(1, t) for n, p, t in zip(outer.shape, parts, least, strict=True)):
        # on the smallest node, this cut gives subdomains that are too thin: cut for the smallest node
        inner, parts = within([n // p for n, p in zip(outer.shape, outer.parts, strict=True)])
    return Decomposition(
        outer.shape, parts, outer.periodic, outer.strategy, outer.order + inner.order, inner.cost
    )


def parts_of_node(decomposition: Decomposition, per_node: int) -> Parts:
    """Return the number of parts, along each axis, of a node with `per_node` consecutive subdomains.

    These parts correspond to the last digits of a subdomain number; see `Decomposition.order`.

    Raises
    ------
    InputError
        The given number of consecutive subdomains does not form a box.
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
            f"decomposition {'x'.join(map(str, decomposition.parts))} ({decomposition.strategy}) cannot be "
            f"divided into boxes of {per_node} subdomains, one box per node. Use decomposition optimal."
        )
    return tuple(parts)


def flow(decomposition: Decomposition, traffic: Traffic, subdomains: Sequence[int]) -> NDArray[np.float64]:
    """Return the bytes that the subdomains of a node send each other in an exchange.

    Parameters
    ----------
    subdomains : sequence of int
        Numbers of the subdomains of one node.

    Returns
    -------
    array (n, n)
        Bytes from the i-th to the j-th subdomain. The diagonal contains the bytes that a subdomain sends to
        itself across a periodic axis.
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
