"""Balances: chains of subdomains, cut where ranks take equally long.

A. Pinar and C. Aykanat, Fast optimal load balancing algorithms for 1D partitioning, J. Parallel Distrib.
Comput. 64 (2004), 974: subdomains along a curve are a chain of tasks, of which each rank takes consecutive
ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halocline.plan.decompose import Decomposition, bisected


def chain(decomposition: Decomposition) -> Decomposition:
    """Return the same subdomains, numbered along a Z-order curve: that of a recursive bisection."""
    order = bisected(decomposition.shape, decomposition.parts)
    return replace(decomposition, strategy="bisection", order=order)


def shares(weights: Sequence[float], before: float, total: float, ranks: int) -> list[int]:
    """Return the rank of each of some consecutive tasks of a chain.

    A task goes to the rank in whose part of the total weight its middle lies. This is a heuristic and not the
    best cut of the chain. The weight of a rank is at most the mean plus that of one task: its first and last
    task reach into the parts of others by at most half of themselves.

    Parameters
    ----------
    weights : sequence of float
        Weights of the tasks, at least 0.
    before, total : float
        Weight of the tasks before these in the chain, and of all tasks, which is above 0.
    ranks : int
        Number of ranks.
    """
    found = []
    for weight in weights:
        middle = (before + 0.5 * weight) / total
        found.append(min(int(middle * ranks), ranks - 1))
        before += weight
    return found
