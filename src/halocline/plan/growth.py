"""Growth of a grid with the ranks of a weak-scaling study (the cavity code of Virginia Tech, Section 4.3).

With growth 1, each rank has a cube if the grid of one rank is a cube and ranks are in Z-order. The grids
resemble those of Fig. 13 of Pekkilä et al. 2022; that paper does not describe the growth.
"""

from __future__ import annotations

from collections.abc import Sequence

from halocline.plan.decompose import decompose


def grown(shape: Sequence[int], factor: int) -> tuple[int, ...]:
    """Return the grid for `factor` times as many ranks (growth 1).

    The axes are doubled in turn, starting with the axis of largest stride. An odd remaining factor multiplies
    the next axis in turn.
    """
    lengths, axis = list(shape), 0
    while factor > 1:
        by = 2 if factor % 2 == 0 else factor
        lengths[axis % len(lengths)] *= by
        factor //= by
        axis += 1
    return tuple(lengths)


def grown_as_cut(shape: Sequence[int], ranks: int, strategy: str) -> tuple[int, ...]:
    """Return the grid for a number of ranks, extended along the axes that are cut (growth 2)."""
    parts = decompose(tuple(shape), ranks, strategy=strategy).parts
    return tuple(n * count for n, count in zip(shape, parts, strict=True))
