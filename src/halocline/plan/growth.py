"""Growth of a grid with the ranks of a weak scaling study (the cavity code, Section 4.3).

With growth 1 each rank has a cube where the grid of one is a cube and ranks are in Z-order, as for Fig. 13 of
Pekkilä et al. 2022, which does not say how grids grow.
"""

from __future__ import annotations

from collections.abc import Sequence

from halocline.plan.decompose import decompose


def grown(shape: Sequence[int], factor: int) -> tuple[int, ...]:
    """The grid for `factor` times as many ranks: axes doubled in turn, the slowest-stride axis first (growth
    1); what is odd of the factor lengthens the axis whose turn it is."""
    made, axis = list(shape), 0
    while factor > 1:
        by = 2 if factor % 2 == 0 else factor
        made[axis % len(made)] *= by
        factor //= by
        axis += 1
    return tuple(made)


def grown_as_cut(shape: Sequence[int], ranks: int, strategy: str) -> tuple[int, ...]:
    """The grid for so many ranks, longer along the axes that it is cut along (growth 2)."""
    parts = decompose(tuple(shape), ranks, strategy=strategy).parts
    return tuple(n * count for n, count in zip(shape, parts, strict=True))
