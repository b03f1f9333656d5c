"""Redistribution: cells that move between ranks, as plain data."""

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
    subdomain : int
        The subdomain that the cells belong to.
    box : Box
        The cells in the indices of the grid.
    """

    rank: int
    subdomain: int
    box: Box


@dataclass(frozen=True)
class Redistribution:
    """The subdomains that a rank has afterwards, and the cells that it sends and receives for that.

    Its size does not grow with the number of ranks. Two ranks list the pieces from one to the other in the
    same order.

    Parameters
    ----------
    subdomains : tuple of int
        Subdomains of this rank afterwards, in its order.
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
    """Return the redistribution in which whole subdomains move.

    Parameters
    ----------
    decomposition : Decomposition
    subdomains : iterable of int
        Subdomains of this rank afterwards, in its order.
    leaving, arriving : mapping of int to int
        The rank that each subdomain goes to, or comes from.
    """

    def pieces(moves: Mapping[int, int]) -> tuple[Piece, ...]:
        return tuple(Piece(rank, n, decomposition.box(n)) for n, rank in sorted(moves.items()))

    return Redistribution(tuple(subdomains), pieces(leaving), pieces(arriving))
