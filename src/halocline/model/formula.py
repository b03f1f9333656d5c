"""Closed performance formula of Astaroth: the maximum of the times for work and for traffic.

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
    """Time of a step on the node with the most traffic, in seconds.

    Attributes
    ----------
    parts : tuple of int
        Number of subdomains along each axis, with one subdomain per device.
    work : float
        τ_W: time for all cells of a device.
    between : float
        τ_Q of the network: time for the data that a node receives and sends; 0 for one node.
    within : float
        τ_Q inside a node: time for the data that a device receives from other devices of its node.
    overhead : float
        τ_0: fixed time of a step.
    """

    parts: tuple[int, ...]
    work: float
    between: float
    within: float
    overhead: float

    @property
    def seconds(self) -> float:
        """Time of a step, max(τ_W, τ_Q) + τ_0, with the larger τ_Q (Eqs. 4, 5 and 11)."""
        return max(self.work, self.between, self.within) + self.overhead

    @property
    def bound(self) -> str:
        """Name of the limiting time: "work", "between nodes" or "within the node"."""
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
    """Return the time of a step by the closed formula, without latency and without shared links.

    Parameters
    ----------
    shape : sequence of int
        Number of cells of the grid along each axis.
    nodes, devices : int
        Number of nodes, and number of devices per node.
    radius : int, per axis int or (lower, upper)
        Number of halo layers; all sides, edges and corners are exchanged.
    traffic : Traffic, optional
        Data of the actual exchanges, instead of `radius`. The unit of halo data is then one byte.
    per_cell : float
        1/π: seconds per cell on a device.
    per_halo_cell : float
        1/β: seconds per halo cell that a node sends or receives. This time includes all fields and all
        exchanges of a step.
    per_halo_cell_within : float
        Seconds per halo cell between two devices of a node; 0 if such transfers take no time.
    overhead : float
        τ_0: seconds per step.
    periodic, strategy
        See `halocline.plan.decompose`.

    Raises
    ------
    InputError
        A time is negative, or the grid cannot be divided into this number of subdomains.

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
            raise InputError(f"{name} is {value!r}; expected a time in seconds of at least 0")
    if traffic is None:
        traffic = Traffic.of_radius(radius, len(shape))
    decomposition = decompose_levels(
        shape, nodes, devices, strategy=strategy, traffic=traffic, periodic=periodic
    )
    per_device = parts_of_node(decomposition, devices)
    over_nodes = tuple(p // q for p, q in zip(decomposition.parts, per_device, strict=True))
    largest_box = [-(-n // p) for n, p in zip(decomposition.shape, decomposition.parts, strict=True)]
    node_box = [-(-n // p) for n, p in zip(decomposition.shape, over_nodes, strict=True)]
    network_cells = exchange_cost(traffic, decomposition.shape, decomposition.periodic, "node")(over_nodes)
    # Number of halo cells that a device with neighbours on all sides receives, and the number of these cells
    # that come from its own node.
    halo_cells = exchange_cost(traffic, node_box, (True,) * len(node_box), "node")(per_device) // 2
    cells_within = halo_cells - exchange_cost(traffic, node_box, (True,) * len(node_box), "device")(
        per_device
    )
    between = network_cells * per_halo_cell if nodes > 1 else 0.0
    within = cells_within * per_halo_cell_within if devices > 1 else 0.0
    return StepTime(decomposition.parts, prod(largest_box) * per_cell, between, within, overhead)
