"""Candidate patch shapes for autotuning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, prod

FEWEST_CELLS = 256  # minimum cells of a patch: the overhead of a kernel call is noticeable in smaller patches
EDGES = (32, 40, 50)  # edges of the best cubes of Mendygral et al. (2017), Fig. 5


def candidates(shape: Sequence[int], threads: int) -> tuple[tuple[int, ...], ...]:
    """Return patch shapes to measure in addition to the shapes that suit the caches.

    The candidates are slabs and bars with whole rows. Their sizes give each thread one, four or sixteen
    patches. Further candidates have shortened rows. In three dimensions, the cubes of `EDGES` are also
    included.

    Parameters
    ----------
    shape : sequence of int
        Cells of a subdomain along each axis.
    threads : int
        Threads that share the subdomain.

    Returns
    -------
    tuple of tuple of int
        At most 21 different shapes. No shape is larger than the subdomain. Each shape gives at least one
        patch per thread.
    """
    patch_shapes = dict.fromkeys(
        tuple(min(edge, n) for edge, n in zip(patch, shape, strict=True)) for patch in _shapes(shape, threads)
    )
    return tuple(
        patch
        for patch in patch_shapes
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
