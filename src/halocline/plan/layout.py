"""Which rank has which subdomains: a decomposition, and its placement on nodes, ranks and their devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from halocline.lang.grid import chosen
from halocline.plan.decompose import Decomposition, decompose
from halocline.plan.levels import decompose_levels, flow
from halocline.plan.placement import STRATEGIES, place, placement_cost
from halocline.plan.traffic import Traffic
from halocline.ranges import RANKS, SUBDOMAINS


@dataclass(frozen=True)
class MovedSubdomains:
    """Homes of subdomains that have moved, as far as one rank knows them: its own, and those around them.

    Parameters
    ----------
    rank : int
    subdomains : tuple of int
        Subdomains of this rank, in its order.
    homes : mapping of int to (int, int)
        For each subdomain that the rank knows: the rank that has it, and which of that rank's it is.
    """

    rank: int
    subdomains: tuple[int, ...]
    homes: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Layout:
    """The subdomains of a decomposition on ranks.

    A node has a slot for each of its subdomains: those of its ranks one after the other. The subdomains of a
    node follow each other in the decomposition, and every node places its own alike, so that nothing here
    grows with the number of ranks, unless a launcher has dealt them out to nodes in another order
    (``mpiexec --map-by node``).

    Parameters
    ----------
    decomposition : Decomposition
    ranks_per_node : int
        The last node may have fewer.
    subdomains_per_rank : int
    slots : tuple of int
        The slot of each subdomain of a node.
        Empty: in order.
    placement : str
        How the slots were chosen.
    nodes_of_ranks : tuple of int
        The node of each rank, where they do not follow each other node by node.
    moved : MovedSubdomains, optional
        Where subdomains are once they have moved, as far as one rank knows it.
    """

    decomposition: Decomposition
    ranks_per_node: int
    subdomains_per_rank: int
    slots: tuple[int, ...]
    placement: str = "trivial"
    nodes_of_ranks: tuple[int, ...] = ()
    # another on each rank, so that it is no part of what ranks compare
    moved: MovedSubdomains | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, decomposition: Decomposition) -> Layout:
        """One subdomain on each rank, in order, and all ranks on one node."""
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
        """Subdomains of a full node."""
        return self.ranks_per_node * self.subdomains_per_rank

    @cached_property
    def ranks_by_node(self) -> Sequence[int]:
        """All ranks, node by node."""
        nodes = self.nodes_of_ranks
        if not nodes:
            return range(self.ranks)
        return tuple(sorted(range(len(nodes)), key=lambda rank: (nodes[rank], rank)))

    @cached_property
    def _places(self) -> dict[int, int]:
        """The place of each rank in `ranks_by_node`."""
        return {rank: place for place, rank in enumerate(self.ranks_by_node)}

    def home(self, subdomain: int) -> tuple[int, int]:
        """The rank that has a subdomain, and which of that rank's it is.

        Of subdomains that have moved, only those known to `moved` are found.
        """
        if self.moved is not None:
            return self.moved.homes[subdomain]
        node, slot = self.slot(subdomain)
        place, local = divmod(node * self.slots_per_node + slot, self.subdomains_per_rank)
        return self.ranks_by_node[place], local

    def owned(self, rank: int) -> tuple[int, ...]:
        """The subdomains of a rank, in its order."""
        if not 0 <= rank < self.ranks:
            raise IndexError(f"rank {rank} of {self.ranks}")
        if self.moved is not None:
            assert rank == self.moved.rank, "no rank knows the subdomains of others after they have moved"
            return self.moved.subdomains
        first = (self._places[rank] if self.nodes_of_ranks else rank) * self.subdomains_per_rank
        node, slot = divmod(first, self.slots_per_node)
        if not self._placed(node):
            return tuple(range(first, first + self.subdomains_per_rank))
        found = {s: node * self.slots_per_node + within for within, s in enumerate(self.slots)}
        return tuple(found[slot + local] for local in range(self.subdomains_per_rank))

    def node(self, rank: int) -> int:
        """The node of a rank."""
        return self.nodes_of_ranks[rank] if self.nodes_of_ranks else rank // self.ranks_per_node

    def slot(self, subdomain: int) -> tuple[int, int]:
        """The node of a subdomain, and its slot there."""
        node, within = divmod(subdomain, self.slots_per_node)
        return node, self.slots[within] if self._placed(node) else within

    def _placed(self, node: int) -> bool:
        """A node that is not full leaves its subdomains in order."""
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
    """Cut a grid over nodes, ranks and the subdomains of a rank, and place them.

    Parameters
    ----------
    shape : sequence of int
    ranks : int
    ranks_per_node : int, optional
        All on one node by default. On one node, where not all nodes have as many ranks, or where the parts of
        each axis are given, the grid is cut in one level.
    subdomains_per_rank : int
    strategy, traffic, thickness, periodic
        As for `halocline.plan.decompose`.
    placement : {"aware", "trivial", "random"}
        See `halocline.plan.place`.
    distance : matrix, optional
        Seconds per byte between the slots of a node. Without it all are equally far: then the placement
        "aware" is "trivial".
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
    chosen("placement", placement, STRATEGIES)
    slots = per_node * subdomains_per_rank
    even = all(count == per_node for count in Counter(nodes_of_ranks).values())
    options: dict[str, Any] = {
        "strategy": strategy,
        "traffic": traffic,
        "thickness": thickness,
        "periodic": periodic,
    }
    named = isinstance(strategy, str) and not strategy[:1].isdigit()
    if even and named and ranks % per_node == 0 and ranks > per_node:
        cut = decompose_levels(shape, ranks // per_node, slots, **options)
    else:
        cut = decompose(shape, ranks * subdomains_per_rank, **options)
    if distance is None and placement != "random":
        return Layout(cut, per_node, subdomains_per_rank, (), nodes_of_ranks=nodes_of_ranks)
    # a node in the middle exchanges most; nodes are cut alike
    first = ranks // per_node // 2 * slots
    sent = flow(cut, traffic, range(first, first + slots))
    order = place(sent, [[1.0] * slots] * slots if distance is None else distance, strategy=placement)
    return Layout(cut, per_node, subdomains_per_rank, order, placement, nodes_of_ranks)


def link_time(layout: Layout, traffic: Traffic, distance: Sequence[Sequence[float]] | None) -> float | None:
    """Return the time of messages on the links of a node, over that of subdomains that are placed in order.

    It is the ratio of Σ w_ij d_f(i)f(j) of Pearson et al. (2020), Section III.B. 1 for subdomains in order.
    None: the distance is not known, or devices take no subdomains.
    """
    if distance is None or not layout.slots:
        return None
    first = layout.nodes // 2 * layout.slots_per_node
    of_node = range(first, min(first + layout.slots_per_node, layout.decomposition.count))
    if len(of_node) < layout.slots_per_node:
        return None
    sent = flow(layout.decomposition, traffic, of_node)
    ordered = placement_cost(sent, distance, tuple(range(len(of_node))))
    return placement_cost(sent, distance, layout.slots) / ordered if ordered else None
