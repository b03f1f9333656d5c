"""Load balancing: division of a chain of subdomains into shares of equal time.

The method follows A. Pinar and C. Aykanat, Fast optimal load balancing algorithms for 1D partitioning, J.
Parallel Distrib. Comput. 64 (2004), 974. Subdomains along a curve are a chain of tasks. Each rank takes
consecutive tasks of the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halocline.plan.decompose import Decomposition, bisected


def chain(decomposition: Decomposition) -> Decomposition:
    """Return a decomposition with the same subdomains, numbered along a Z-order curve.

    The curve is that of a recursive bisection of the grid.
    """
    order = bisected(decomposition.shape, decomposition.parts)
    return replace(decomposition, strategy="bisection", order=order)


def shares(weights: Sequence[float], before: float, total: float, ranks: int) -> list[int]:
    """Return the rank of each task in a consecutive part of a chain of tasks.

    Each rank has an equal interval of the total weight. A task is assigned to the rank whose interval
    contains the middle of the task. This heuristic does not give the optimal cut. Only the first and the last
    task of a rank can exceed the interval, each by at most half of the weight of the task. The weight of a
    rank is therefore at most the mean plus the weight of one task.

    Parameters
    ----------
    weights : sequence of float
        Weights of the tasks, at least 0.
    before : float
        Total weight of the tasks that precede this part of the chain.
    total : float
        Total weight of the chain, above 0.
    ranks : int
        Number of ranks.
    """
    task_ranks = []
    for weight in weights:
        middle = (before + 0.5 * weight) / total
        task_ranks.append(min(int(middle * ranks), ranks - 1))
        before += weight
    return task_ranks
