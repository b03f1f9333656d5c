"""Placement of the subdomains of a node on its devices."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.grid import checked_choice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

STRATEGIES = ("aware", "trivial", "random")
EXHAUSTIVE = 8  # maximum number of devices for a search of all placements: 40,320 of them


def place(flow: ArrayLike, distance: ArrayLike, *, strategy: str = "aware") -> tuple[int, ...]:
    """Return the device of each subdomain of a node.

    The function solves the quadratic assignment problem of Pearson et al. (2020), Section III.B. The
    bijection f minimises Σ_ij w_ij d_f(i)f(j). Here, w_ij is the flow from subdomain i to j, and d_ab is the
    distance from device a to b.

    Parameters
    ----------
    flow : array (n, n)
        Bytes that subdomain i sends to subdomain j in a step.
    distance : array (n, n)
        Seconds per byte from device a to device b: 1 / bandwidth.
    strategy : {"aware", "trivial", "random"}
        "aware" minimises the cost. Up to 8 devices, it tests all placements. For more devices, it takes the
        best result of two heuristics (SciPy's 2-opt and fast approximate QAP, from several starts). "trivial"
        is the identity. "random" is a pseudo-random placement with a fixed seed.

    Returns
    -------
    tuple of int
        Device of each subdomain (f). With up to 8 devices, the result of "aware" is the first of equally good
        placements in lexical order.

    Raises
    ------
    InputError
        The matrices are not square, differ in size, or contain negative or non-finite numbers.
    """
    import numpy as np

    w, d = _matrix(flow, "flow"), _matrix(distance, "distance")
    if w.shape != d.shape:
        raise InputError(
            f"matrix flow is for {len(w)} subdomains, but matrix distance is for {len(d)} devices; "
            "expected equal numbers"
        )
    checked_choice("placement", strategy, STRATEGIES)
    distances = d[~np.eye(len(d), dtype=bool)]
    if strategy == "trivial" or (strategy == "aware" and (distances == distances[:1]).all()):
        return tuple(range(len(w)))  # all distances are equal, and therefore all placements are equally good
    if strategy == "random":
        return tuple(int(f) for f in np.random.default_rng(0).permutation(len(w)))
    return _exhaustive(w, d) if len(w) <= EXHAUSTIVE else _heuristic(w, d)


def placement_cost(flow: ArrayLike, distance: ArrayLike, devices: tuple[int, ...]) -> float:
    """Return the cost Σ_ij w_ij d_f(i)f(j) of a placement f, in seconds, for links without contention."""
    import numpy as np

    w, d = _matrix(flow, "flow"), _matrix(distance, "distance")
    f = np.asarray(devices)
    return float((w * d[np.ix_(f, f)]).sum())


def _matrix(values: Any, name: str) -> NDArray[np.float64]:
    import numpy as np

    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{name} has shape {matrix.shape}; expected a square matrix")
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0.0)  # messages within a subdomain cross no link
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise InputError(f"{name} contains numbers that are negative or not finite")
    return matrix


def _exhaustive(w: NDArray[np.float64], d: NDArray[np.float64]) -> tuple[int, ...]:
    import numpy as np

    n = len(w)
    placements = np.array(list(permutations(range(n))), dtype=np.intp).reshape(-1, n)
    costs = np.zeros(len(placements))
    for i in range(n):
        for j in range(n):
            if w[i, j]:
                costs += w[i, j] * d[placements[:, i], placements[:, j]]
    # rounding depends on the order of the sums, so costs within rounding errors count as equal
    is_best = costs <= costs.min() + 1e-12 * costs.max()
    return tuple(int(f) for f in placements[np.argmax(is_best)])


def _heuristic(w: NDArray[np.float64], d: NDArray[np.float64]) -> tuple[int, ...]:
    import numpy as np
    from scipy.optimize import quadratic_assignment

    best, least = tuple(range(len(w))), float((w * d).sum())
    for start in range(8):
        for method in ("2opt", "faq"):
            # the seed is the same on every rank
            result = quadratic_assignment(w, d, method=method, options={"rng": np.random.default_rng(start)})
            if result.fun < least - 1e-12 * least:
                best, least = tuple(int(f) for f in result.col_ind), float(result.fun)
    return best
