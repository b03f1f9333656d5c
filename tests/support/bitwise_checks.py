"""Combinations of options whose results are compared bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bitwise_programs import PROBLEMS, three_axes
from halocline.errors import InputError

STRATEGIES = ("optimal", "bisection", "row", "morton", "1d-x", "1d-y", "2d")


def variations(ranks: int, ndim: int) -> Iterator[dict[str, Any]]:
    """Yield options with every strategy, and threads and patches in turn."""
    patches: list[Any] = [None, 4, (3, 5, 2)[:ndim], 1]
    for n, strategy in enumerate(STRATEGIES if ranks > 1 else STRATEGIES[:4]):
        yield {"decomposition": strategy, "threads": 1 + n % 2, "patch": patches[n % 4]}


def check_all(dtype: str, options_of: Callable[[int], Iterable[dict[str, Any]]], every: int = 1) -> None:
    """Check that each problem has the bits of one rank with one thread, with all options that fit it.

    With `every`, each problem runs with every second or third set of options only, and consecutive problems
    use different sets.
    """
    from mpi4py import MPI

    for number, problem in enumerate(PROBLEMS):
        results = {}
        for options in [*options_of(3 if problem is three_axes else 2)][number % every :: every]:
            try:
                results[f"{problem.__name__} {options}"] = problem(dtype, **options)
            except InputError as error:  # three ranks do not fit "2d", and some cuts are too thin
                if "decomposition" in str(error) or "subdomain" in str(error):
                    continue
                raise
        assert len(results) >= 4 / every
        # The reference runs last, so that its kernels come from the cache and no rank compiles again.
        reference = problem(dtype, communicator=MPI.COMM_SELF, threads=1)
        for label, result in results.items():
            assert result.checksums == reference.checksums, label
            assert result.numbers == reference.numbers, label


# Every transfer method, schedule, number of mailboxes and of subdomains; with and without overlap, and with
# changes between them; with read halos and with uniform halos.
WAYS: list[dict[str, Any]] = [
    {"methods": "mpi", "overlap": "auto", "patch": 4},
    {"methods": "self,mpi", "overlap": False, "threads": 2},
    {"methods": "rma,mpi", "mailboxes": 1, "schedule": "static", "threads": 2, "patch": 4},
    {"methods": "colocated,mpi", "schedule": "dynamic", "overlap": True, "threads": 2, "patch": 4},
    {"subdomains_per_rank": 2, "methods": "self,rma", "mailboxes": 3, "threads": 2},
    {"subdomains_per_rank": 2, "methods": "mpi", "patch": 5},
    {"subdomains_per_rank": 3, "decomposition": "1d-x", "threads": 2, "schedule": "static"},
    {"subdomains_per_rank": 2, "ranks_per_node": 1, "overlap": False},
    {"subdomains_per_rank": 2, "placement": "random", "threads": 2},
    {"halo": "uniform", "patch": 4},
    {"communication": "baseline", "threads": 2, "patch": 4},
    {"communication": "v1", "subdomains_per_rank": 2},
    {"communication": "v2", "decomposition": "3d"},
    {"communication": "overlap", "threads": 2, "patch": 4},
    {"packing": "none", "methods": "mpi", "overlap": True, "threads": 2, "patch": 3},
    {"halo": "uniform", "subdomains_per_rank": 2, "methods": "self,peer,rma", "decomposition": "1d-y"},
    {"subdomains_per_rank": 4, "ranks_per_node": 2, "methods": "self,peer,colocated,rma", "threads": 2},
]
