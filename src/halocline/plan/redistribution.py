"""Redistribution: cells that move from subdomains of one layout to those of another."""

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
        The rank at the other end.
    source, target : int
        Subdomain that has the cells, and the one that gets them.
    box : Box
        The cells in the indices of the grid.
    """

    rank: int
    source: int
    target: int
    box: Box


@dataclass(frozen=True)
class Redistribution:
    """What one rank sends and receives when subdomains move; its size does not grow with the number of ranks.

    Two ranks list the pieces from one to the other in the same order.

    Parameters
    ----------
    source, target : Decomposition
        How the grid is cut before and afterwards.
    subdomains : tuple of int
        Subdomains of this rank afterwards, in its order.
    sends, receives : tuple of Piece
    """

    source: Decomposition
    target: Decomposition
    subdomains: tuple[int, ...]
    sends: tuple[Piece, ...]
    receives: tuple[Piece, ...]


def moved(
    decomposition: Decomposition,
    subdomains: Iterable[int],
    leaving: Mapping[int, int],
    arriving: Mapping[int, int],
) -> Redistribution:
    """Return the redistribution in which whole subdomains move.

    Parameters
    ----------
    subdomains : iterable of int
        Subdomains of this rank afterwards, in its order.
    leaving, arriving : mapping of int to int
        The rank that each subdomain goes to, or comes from.
    """

    def pieces(moves: Mapping[int, int]) -> tuple[Piece, ...]:
        return tuple(Piece(rank, n, n, decomposition.box(n)) for n, rank in sorted(moves.items()))

    return Redistribution(decomposition, decomposition, tuple(subdomains), pieces(leaving), pieces(arriving))
