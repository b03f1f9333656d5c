"""Directory of moved subdomains, distributed equally over all ranks.

The home of a subdomain is its rank, and its index on this rank. Each rank stores the homes of an equal number
of consecutive subdomains of the chain (see `halocline.plan.balance`). Other ranks request these homes by
messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from halocline.plan.balance import chain, shares
from halocline.plan.decompose import Decomposition
from halocline.run.ranks.communicator import Communicator

Home = tuple[int, int]  # rank, and index of the subdomain on this rank


class Directory:
    """Homes of the subdomains of a decomposition. All methods except `place` are collective.

    Parameters
    ----------
    comm : Communicator
        Ranks that share the directory.
    decomposition : Decomposition
        Decomposition of the grid.
    """

    def __init__(self, comm: Communicator, decomposition: Decomposition) -> None:
        self.comm, self.decomposition = comm, decomposition
        self._chain = chain(decomposition)
        self._homes_per_rank = -(-decomposition.count // comm.size)  # number of homes that a rank stores
        self._homes: dict[int, Home] = {}

    def place(self, number: int) -> int:
        """Return the position of a subdomain in the chain."""
        return self._chain.rank_of(self.decomposition.coordinates(number))

    def _by_keeper(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        numbers_of_keeper = defaultdict(list)
        for number in numbers:
            numbers_of_keeper[self.place(number) // self._homes_per_rank].append(number)
        return numbers_of_keeper

    def assign(self, weights: Mapping[int, float], ranks: Sequence[int]) -> dict[int, int]:
        """Return the new rank of each subdomain of this rank, so that ranks have nearly equal weights.

        Parameters
        ----------
        weights : mapping of int to float
            Weights of the subdomains of this rank.
        ranks : sequence of int
            Ranks that hold subdomains afterwards, in the order of the chain.
        """
        comm = self.comm
        requests = comm.sparse(
            {keeper: {n: weights[n] for n in numbers} for keeper, numbers in self._by_keeper(weights).items()}
        )
        all_weights = {n: weight for message in requests.values() for n, weight in message.items()}
        order = sorted(all_weights, key=self.place)
        ordered_weights = [all_weights[n] for n in order]
        before, total = comm.prefix(sum(ordered_weights))
        new = dict(zip(order, shares(ordered_weights, before, total, len(ranks)), strict=True))
        answers = {rank: {n: ranks[new[n]] for n in message} for rank, message in requests.items()}
        return {n: rank for message in comm.sparse(answers).values() for n, rank in message.items()}

    def register(self, subdomains: Sequence[int]) -> None:
        """Store the homes of the subdomains of this rank; `subdomains` lists them in local order."""
        local = {number: n for n, number in enumerate(subdomains)}
        registrations = self.comm.sparse(
            {keeper: {n: local[n] for n in numbers} for keeper, numbers in self._by_keeper(local).items()}
        )
        self._homes = {
            n: (rank, index) for rank, indices in registrations.items() for n, index in indices.items()
        }

    def find(self, numbers: Iterable[int]) -> dict[int, Home]:
        """Return the homes of subdomains. The ranks may request different subdomains."""
        requests = self.comm.sparse(self._by_keeper(set(numbers)))
        answers = {rank: {n: self._homes[n] for n in message} for rank, message in requests.items()}
        return {n: home for message in self.comm.sparse(answers).values() for n, home in message.items()}
