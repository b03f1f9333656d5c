"""Patch shapes that are worth a measurement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, prod

FEWEST_CELLS = 256  # of a patch: below, what a kernel call costs shows
EDGES = (32, 40, 50)  # the best cubes of Mendygral et al. (2017), Fig. 5


def candidates(shape: Sequence[int], threads: int) -> tuple[tuple[int, ...], ...]:
    """Patch shapes to try beside those that the caches ask for.

    Slabs and bars with whole rows, so tall that each thread has one, four or sixteen; rows that are cut; and
    in three dimensions the cubes that were best for others.

    Parameters
    ----------
    shape : sequence of int
        Cells of a subdomain.
    threads : int
        That share it.

    Returns
    -------
    tuple of tuple of int
        At most 21 shapes, without repetition; none larger than the subdomain, none that leaves a thread
        without a patch.
    """
    found = dict.fromkeys(
        tuple(min(edge, n) for edge, n in zip(patch, shape, strict=True)) for patch in _shapes(shape, threads)
    )
    return tuple(
        patch
        for patch in found
        if prod(patch) >= min(FEWEST_CELLS, prod(shape))
        and prod(ceil(n / edge) for n, edge in zip(shape, patch, strict=True)) >= threads
    )


def _shapes(shape: Sequence[int], threads: int) -> Iterator[tuple[int, ...]]:
    tall = [ceil(shape[0] / (share * threads)) for share in (1, 4, 16)]
    if len(shape) == 1:
        yield from ((height,) for height in tall)
    elif len(shape) == 2:
        yield from ((height, shape[1]) for height in tall)
        yield from ((height, row) for row in (256, 512, 2048) for height in tall[:2])
    else:
        yield from ((height, width, shape[2]) for width in (shape[1], 64, 32, 16, 8) for height in tall)
        yield from ((tall[0], width, 256) for width in (32, 64, 128))
        yield from ((edge,) * 3 for edge in EDGES)
