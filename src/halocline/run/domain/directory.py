"""Directory of subdomains that have moved: the rank of each, stored in equal parts on all ranks.

A rank stores the homes of as many consecutive subdomains of the chain (see `halocline.plan.balance`) as all
other ranks, and sends them to ranks that ask.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from halocline.plan.balance import chain, shares
from halocline.plan.decompose import Decomposition
from halocline.run.ranks.communicator import Communicator

Home = tuple[int, int]  # a rank, and which of its subdomains it is


class Directory:
    """The homes of the subdomains of a decomposition. All ranks call its methods.

    Parameters
    ----------
    comm : Communicator
    decomposition : Decomposition
    """

    def __init__(self, comm: Communicator, decomposition: Decomposition) -> None:
        self.comm, self.decomposition = comm, decomposition
        self._chain = chain(decomposition)
        self._each = -(-decomposition.count // comm.size)  # subdomains that a rank keeps the homes of
        self._homes: dict[int, Home] = {}

    def place(self, number: int) -> int:
        """Return the place of a subdomain in the chain."""
        return self._chain.rank_of(self.decomposition.coordinates(number))

    def _by_keeper(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        found = defaultdict(list)
        for number in numbers:
            found[self.place(number) // self._each].append(number)
        return found

    def assign(self, weights: Mapping[int, float], ranks: Sequence[int]) -> dict[int, int]:
        """Return the rank that is to have each subdomain of this one, so that the weights are balanced.

        Parameters
        ----------
        weights : mapping of int to float
            Of the subdomains of this rank.
        ranks : sequence of int
            Ranks that are to have subdomains, in the order of the chain.
        """
        comm = self.comm
        asked = comm.sparse(
            {keeper: {n: weights[n] for n in mine} for keeper, mine in self._by_keeper(weights).items()}
        )
        known = {n: weight for each in asked.values() for n, weight in each.items()}
        order = sorted(known, key=self.place)
        own = [known[n] for n in order]
        before, total = comm.prefix(sum(own))
        new = dict(zip(order, shares(own, before, total, len(ranks)), strict=True))
        answers = {rank: {n: ranks[new[n]] for n in each} for rank, each in asked.items()}
        return {n: rank for each in comm.sparse(answers).values() for n, rank in each.items()}

    def register(self, subdomains: Sequence[int]) -> None:
        """Store that this rank has these subdomains, in this order."""
        local = {number: n for n, number in enumerate(subdomains)}
        told = self.comm.sparse(
            {keeper: {n: local[n] for n in mine} for keeper, mine in self._by_keeper(local).items()}
        )
        self._homes = {n: (rank, at) for rank, each in told.items() for n, at in each.items()}

    def find(self, numbers: Iterable[int]) -> dict[int, Home]:
        """Return the homes of subdomains; each rank may ask for others."""
        asked = self.comm.sparse(self._by_keeper(set(numbers)))
        answers = {rank: {n: self._homes[n] for n in each} for rank, each in asked.items()}
        return {n: home for each in self.comm.sparse(answers).values() for n, home in each.items()}
