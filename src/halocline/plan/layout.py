"""Layouts: decompositions with the placement of subdomains on nodes, ranks and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from halocline.lang.grid import checked_choice
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.levels import decompose_levels, flow
from halocline.plan.placement import STRATEGIES, place, placement_cost
from halocline.plan.traffic import Traffic
from halocline.ranges import RANKS, SUBDOMAINS


@dataclass(frozen=True)
class MovedSubdomains:
    """Ranks of subdomains after a move, known only for the subdomains of one rank and their neighbours.

    Parameters
    ----------
    rank : int
    subdomains : tuple of int
        Subdomains of this rank, in the order of the rank.
    homes : mapping of int to (int, int)
        For each known subdomain: its rank, and its index among the subdomains of that rank.
    """

    rank: int
    subdomains: tuple[int, ...]
    homes: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Layout:
    """Subdomains of a decomposition on ranks.

    Each node has one slot per subdomain. The slots are numbered rank by rank. The subdomains of a node are
    consecutive in the decomposition, and all full nodes have the same placement. The size of a layout
    therefore does not depend on the number of ranks. The exception is `nodes_of_ranks`, for launchers that
    distribute ranks over nodes in another order (``mpiexec --map-by node``).

    Parameters
    ----------
    decomposition : Decomposition
    ranks_per_node : int
        Ranks of a full node. The last node may have fewer ranks.
    subdomains_per_rank : int
    slots : tuple of int
        Slot of each subdomain of a node; empty if subdomain i of the node has slot i.
    placement : str
        Strategy that selected the slots.
    nodes_of_ranks : tuple of int
        Node of each rank; empty if consecutive ranks fill one node after the other.
    moved_subdomains : MovedSubdomains, optional
        Ranks of subdomains after a move; see `MovedSubdomains`.
    """

    decomposition: Decomposition
    ranks_per_node: int
    subdomains_per_rank: int
    slots: tuple[int, ...]
    placement: str = "trivial"
    nodes_of_ranks: tuple[int, ...] = ()
    # different on each rank, and therefore excluded from comparisons of layouts between ranks
    moved_subdomains: MovedSubdomains | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, decomposition: Decomposition) -> Layout:
        """Return the layout with one subdomain on each rank, in order, and all ranks on one node."""
        return cls(decomposition, decomposition.count, 1, ())

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.decomposition.count // self.subdomains_per_rank

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return max(self.nodes_of_ranks) + 1 if self.nodes_of_ranks else -(-self.ranks // self.ranks_per_node)

    @property
    def slots_per_node(self) -> int:
        """Number of subdomains of a full node."""
        return self.ranks_per_node * self.subdomains_per_rank

    @cached_property
    def ranks_by_node(self) -> Sequence[int]:
        """All ranks, sorted by node."""
        nodes = self.nodes_of_ranks
        if not nodes:
            return range(self.ranks)
        return tuple(sorted(range(len(nodes)), key=lambda rank: (nodes[rank], rank)))

    @cached_property
    def _places(self) -> dict[int, int]:
        """Position of each rank in `ranks_by_node`."""
        return {rank: place for place, rank in enumerate(self.ranks_by_node)}

    def home(self, subdomain: int) -> tuple[int, int]:
        """Return the rank of a subdomain, and the index of the subdomain on this rank.

        After a move, only the subdomains in `moved_subdomains` are available.
        """
        if self.moved_subdomains is not None:
            return self.moved_subdomains.homes[subdomain]
        node, slot = self.slot(subdomain)
        place, local = divmod(node * self.slots_per_node + slot, self.subdomains_per_rank)
        return self.ranks_by_node[place], local

    def subdomains_of(self, rank: int) -> tuple[int, ...]:
        """Return the subdomains of a rank, in the order of the rank."""
        if not 0 <= rank < self.ranks:
            raise IndexError(f"rank is {rank}; expected 0 to {self.ranks - 1}")
        if self.moved_subdomains is not None:
            assert rank == self.moved_subdomains.rank, (
                "the subdomains of other ranks are not known after a move"
            )
            return self.moved_subdomains.subdomains
        first = (self._places[rank] if self.nodes_of_ranks else rank) * self.subdomains_per_rank
        node, slot = divmod(first, self.slots_per_node)
        if not self._uses_slots(node):
            return tuple(range(first, first + self.subdomains_per_rank))
        subdomains = {s: node * self.slots_per_node + position for position, s in enumerate(self.slots)}
        return tuple(subdomains[slot + local] for local in range(self.subdomains_per_rank))

    def node(self, rank: int) -> int:
        """Return the node of a rank."""
        return self.nodes_of_ranks[rank] if self.nodes_of_ranks else rank // self.ranks_per_node

    def slot(self, subdomain: int) -> tuple[int, int]:
        """Return the node of a subdomain, and its slot on this node."""
        node, position = divmod(subdomain, self.slots_per_node)
        return node, self.slots[position] if self._uses_slots(node) else position

    def _uses_slots(self, node: int) -> bool:
        """Return True if a node uses `slots`; a node that is not full keeps its subdomains in order."""
        return bool(self.slots) and (node + 1) * self.slots_per_node <= self.decomposition.count


def lay_out(
    shape: Sequence[int],
    ranks: int,
    *,
    ranks_per_node: int | None = None,
    subdomains_per_rank: int = 1,
    strategy: str | Sequence[int] | Mapping[str, int] = "optimal",
    traffic: Traffic,
    thickness: int | Sequence[int] | None = None,
    periodic: bool | Sequence[bool] = True,
    placement: str = "aware",
    distance: Sequence[Sequence[float]] | None = None,
    nodes_of_ranks: tuple[int, ...] = (),
) -> Layout:
    """Cut a grid over nodes, ranks and the subdomains of a rank, and place the subdomains.

    Parameters
    ----------
    shape : sequence of int
        Cells of the grid along each axis.
    ranks : int
    ranks_per_node : int, optional
        Ranks of a node; by default, all ranks are on one node. A grid is cut in one level, without regard to
        nodes, in three cases: there is only one node, nodes have different numbers of ranks, or `strategy`
        gives the parts of each axis.
    subdomains_per_rank : int
    strategy, traffic, thickness, periodic
        See `halocline.plan.decompose`.
    placement : {"aware", "trivial", "random"}
        See `halocline.plan.place`.
    distance : matrix, optional
        Seconds per byte between the slots of a node. By default, all distances are equal, and "aware" is the
        same as "trivial".
    nodes_of_ranks : tuple of int
        See `Layout`.

    Raises
    ------
    InputError
    """
    per_node = ranks if ranks_per_node is None else min(ranks_per_node, ranks)
    RANKS.check("ranks", ranks)
    RANKS.check("ranks per node", per_node)
    SUBDOMAINS.check("subdomains per rank", subdomains_per_rank)
    checked_choice("placement", placement, STRATEGIES)
    slots = per_node * subdomains_per_rank
    is_even = all(count == per_node for count in Counter(nodes_of_ranks).values())
    options: dict[str, Any] = {
        "strategy": strategy,
        "traffic": traffic,
        "thickness": thickness,
        "periodic": periodic,
    }
    is_named = isinstance(strategy, str) and not strategy[:1].isdigit()
    if is_even and is_named and ranks % per_node == 0 and ranks > per_node:
        cut = decompose_levels(shape, ranks // per_node, slots, **options)
    else:
        cut = decompose(shape, ranks * subdomains_per_rank, **options)
    if distance is None and placement != "random":
        return Layout(cut, per_node, subdomains_per_rank, (), nodes_of_ranks=nodes_of_ranks)
    # a node in the middle of the grid has the largest flow; all nodes are cut in the same way
    first = ranks // per_node // 2 * slots
    flows = flow(cut, traffic, range(first, first + slots))
    order = place(flows, [[1.0] * slots] * slots if distance is None else distance, strategy=placement)
    return Layout(cut, per_node, subdomains_per_rank, order, placement, nodes_of_ranks)


def link_time(layout: Layout, traffic: Traffic, distance: Sequence[Sequence[float]] | None) -> float | None:
    """Return the message time on the links of a node, divided by that of the trivial placement.

    The time is Σ w_ij d_f(i)f(j) of Pearson et al. (2020), Section III.B. The result is None if the distance
    is unknown, or if the subdomains are not placed.
    """
    if distance is None or not layout.slots:
        return None
    first = layout.nodes // 2 * layout.slots_per_node
    of_node = range(first, min(first + layout.slots_per_node, layout.decomposition.count))
    if len(of_node) < layout.slots_per_node:
        return None
    flows = flow(layout.decomposition, traffic, of_node)
    trivial_cost = placement_cost(flows, distance, tuple(range(len(of_node))))
    return placement_cost(flows, distance, layout.slots) / trivial_cost if trivial_cost else None
