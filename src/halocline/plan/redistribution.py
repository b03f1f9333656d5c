"""Redistribution of cells between ranks, as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from halocline.plan.box import Box
from halocline.plan.decompose import Decomposition


@dataclass(frozen=True)
class Piece:
    """Cells that one rank sends to another.

    Parameters
    ----------
    rank : int
        Rank at the other end.
    subdomain : int
        Subdomain that contains the cells.
    box : Box
        Cells in the indices of the grid.
    """

    rank: int
    subdomain: int
    box: Box


@dataclass(frozen=True)
class Redistribution:
    """New subdomains of a rank, and the cells that it sends and receives.

    The size of this object does not depend on the number of ranks. Both ranks of a pair list the pieces
    between them in the same order.

    Parameters
    ----------
    subdomains : tuple of int
        Subdomains of this rank after the redistribution, in the order of the rank.
    sends, receives : tuple of Piece
    """

    subdomains: tuple[int, ...]
    sends: tuple[Piece, ...]
    receives: tuple[Piece, ...]


def redistribution(
    decomposition: Decomposition,
    subdomains: Iterable[int],
    leaving: Mapping[int, int],
    arriving: Mapping[int, int],
) -> Redistribution:
    """Return the redistribution of whole subdomains.

    Parameters
    ----------
    decomposition : Decomposition
    subdomains : iterable of int
        Subdomains of this rank after the redistribution, in the order of the rank.
    leaving, arriving : mapping of int to int
        Destination rank, or source rank, of each subdomain that moves.
    """

    def pieces(moves: Mapping[int, int]) -> tuple[Piece, ...]:
        return tuple(Piece(rank, n, decomposition.box(n)) for n, rank in sorted(moves.items()))

    return Redistribution(tuple(subdomains), pieces(leaving), pieces(arriving))
