"""The closed performance formula of Astaroth: the longer of work and traffic.

J. Pekkilä et al., Scalable communication for high-order stencil computations using CUDA-aware MPI, Parallel
Computing 111 (2022), Section 3.1, Eq. 4, and Section 3.2, Eqs. 5 to 12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from halocline.errors import InputError
from halocline.plan.levels import decompose_levels, parts_of_node
from halocline.plan.traffic import Traffic, exchange_cost


@dataclass(frozen=True)
class StepTime:
    """The time of a step of the worst-placed node, in seconds.

    Attributes
    ----------
    parts : tuple of int
        Subdomains along each axis, one for each device.
    work : float
        τ_W: all cells of a device.
    between : float
        τ_Q of the network: what a node receives and sends; 0 for one node.
    within : float
        τ_Q inside a node: what a device receives from the others of its node.
    overhead : float
        τ_0.
    """

    parts: tuple[int, ...]
    work: float
    between: float
    within: float
    overhead: float

    @property
    def seconds(self) -> float:
        """max(τ_W, τ_Q) + τ_0, with the larger of both τ_Q (Eqs. 4, 5 and 11)."""
        return max(self.work, self.between, self.within) + self.overhead

    @property
    def bound(self) -> str:
        """What takes the time: "work", "between nodes" or "within the node"."""
        times = {"work": self.work, "between nodes": self.between, "within the node": self.within}
        return max(times, key=times.__getitem__)


def step_time(
    shape: Sequence[int],
    nodes: int,
    devices: int = 1,
    *,
    radius: int | Sequence[int | tuple[int, int]] = 1,
    traffic: Traffic | None = None,
    per_cell: float,
    per_halo_cell: float,
    per_halo_cell_within: float = 0.0,
    overhead: float = 0.0,
    periodic: bool | Sequence[bool] = True,
    strategy: str = "optimal",
) -> StepTime:
    """The time of a step by the closed formula: no latency, no link that others use too.

    Parameters
    ----------
    shape : sequence of int
        Cells of the grid.
    nodes, devices : int
        How many nodes, and devices in each.
    radius : int, per axis int or (lower, upper)
        Layers of halo; all sides, edges and corners are exchanged.
    traffic : Traffic, optional
        What is really exchanged, instead of `radius`; halo cells are then bytes.
    per_cell : float
        1/π: seconds that a device takes for a cell.
    per_halo_cell : float
        1/β: seconds that a node takes to send or receive a cell of halo, once a step and field set as the
        caller counts them.
    per_halo_cell_within : float
        The same between two devices of a node; 0 where that is free.
    overhead : float
        τ_0, seconds a step.
    periodic, strategy
        As for `halocline.plan.decompose`.

    Raises
    ------
    InputError
        Negative times, or a grid that cannot be cut so.

    Examples
    --------
    >>> from halocline.model import step_time
    >>> one = step_time((512,) * 3, 1, radius=3, per_cell=2.2e-9, per_halo_cell=3.9e-9)
    >>> many = step_time((512,) * 3, 16, 4, radius=3, per_cell=2.2e-9, per_halo_cell=3.9e-9)
    >>> round(one.seconds / 64 / many.seconds, 2)
    0.73
    """
    times = {
        "per_cell": per_cell,
        "per_halo_cell": per_halo_cell,
        "per_halo_cell_within": per_halo_cell_within,
        "overhead": overhead,
    }
    for name, value in times.items():
        if not value >= 0:
            raise InputError(f"{name} is {value!r}; expected seconds, not negative")
    if traffic is None:
        traffic = Traffic.of_radius(radius, len(shape))
    whole = decompose_levels(shape, nodes, devices, strategy=strategy, traffic=traffic, periodic=periodic)
    per_device = parts_of_node(whole, devices)
    over_nodes = tuple(p // q for p, q in zip(whole.parts, per_device, strict=True))
    largest = [-(-n // p) for n, p in zip(whole.shape, whole.parts, strict=True)]
    inside = [-(-n // p) for n, p in zip(whole.shape, over_nodes, strict=True)]
    moved = exchange_cost(traffic, whole.shape, whole.periodic, "node")(over_nodes)
    # all that a device in the middle of others receives, and what of it comes from its own node
    received = exchange_cost(traffic, inside, (True,) * len(inside), "node")(per_device) // 2
    local = received - exchange_cost(traffic, inside, (True,) * len(inside), "device")(per_device)
    between = moved * per_halo_cell if nodes > 1 else 0.0
    within = local * per_halo_cell_within if devices > 1 else 0.0
    return StepTime(whole.parts, prod(largest) * per_cell, between, within, overhead)
