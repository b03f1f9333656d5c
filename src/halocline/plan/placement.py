"""Who sits where: which device of a node takes which of its subdomains."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.grid import chosen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

STRATEGIES = ("aware", "trivial", "random")
EXHAUSTIVE = 8  # devices, up to which all placements are tried: 40,320 of them


def place(flow: ArrayLike, distance: ArrayLike, *, strategy: str = "aware") -> tuple[int, ...]:
    """Which device takes each subdomain of a node.

    The quadratic assignment problem of Pearson et al. (2020), Section III.B: the bijection f that makes
    Σ_ij w_ij d_f(i)f(j) least, where w_ij is the flow from subdomain i to j and d_ab the distance from device
    a to b.

    Parameters
    ----------
    flow : array (n, n)
        Bytes that subdomain i sends to subdomain j in a step.
    distance : array (n, n)
        Seconds per byte from device a to device b: 1 / bandwidth.
    strategy : {"aware", "trivial", "random"}
        "aware" is the least cost: of all placements up to 8 devices, the best of two heuristics above
        (SciPy's 2-opt and fast approximate QAP, from several starts). "trivial" is the identity, "random" one
        that is drawn, the same each time.

    Returns
    -------
    tuple of int
        f: the device of each subdomain. Of equally good ones the first in lexical order, up to 8 devices.

    Raises
    ------
    InputError
        Matrices that are not square, differ in size, or hold negative or not finite numbers.
    """
    import numpy as np

    w, d = _matrix(flow, "flow"), _matrix(distance, "distance")
    if w.shape != d.shape:
        raise InputError(f"flow is among {len(w)} subdomains, but distance among {len(d)} devices")
    chosen("placement", strategy, STRATEGIES)
    apart = d[~np.eye(len(d), dtype=bool)]
    if strategy == "trivial" or (strategy == "aware" and (apart == apart[:1]).all()):
        return tuple(range(len(w)))  # equally far from each other, all placements are equally good
    if strategy == "random":
        return tuple(int(f) for f in np.random.default_rng(0).permutation(len(w)))
    return _exhaustive(w, d) if len(w) <= EXHAUSTIVE else _heuristic(w, d)


def placement_cost(flow: ArrayLike, distance: ArrayLike, devices: tuple[int, ...]) -> float:
    """Σ_ij w_ij d_f(i)f(j) of a placement f: seconds, where every message had the links to itself."""
    import numpy as np

    w, d = _matrix(flow, "flow"), _matrix(distance, "distance")
    f = np.asarray(devices)
    return float((w * d[np.ix_(f, f)]).sum())


def _matrix(given: Any, what: str) -> NDArray[np.float64]:
    import numpy as np

    made = np.asarray(given, dtype=np.float64)
    if made.ndim != 2 or made.shape[0] != made.shape[1]:
        raise InputError(f"{what} has shape {made.shape}; expected a square matrix")
    made = made.copy()
    np.fill_diagonal(made, 0.0)  # what stays within a subdomain crosses no link
    if not (np.isfinite(made).all() and (made >= 0).all()):
        raise InputError(f"{what} holds numbers that are negative or not finite")
    return made


def _exhaustive(w: NDArray[np.float64], d: NDArray[np.float64]) -> tuple[int, ...]:
    import numpy as np

    n = len(w)
    every = np.array(list(permutations(range(n))), dtype=np.intp).reshape(-1, n)
    costs = np.zeros(len(every))
    for i in range(n):
        for j in range(n):
            if w[i, j]:
                costs += w[i, j] * d[every[:, i], every[:, j]]
    # sums in another order differ in their last bits: those are equally good
    good = costs <= costs.min() + 1e-12 * costs.max()
    return tuple(int(f) for f in every[np.argmax(good)])


def _heuristic(w: NDArray[np.float64], d: NDArray[np.float64]) -> tuple[int, ...]:
    import numpy as np
    from scipy.optimize import quadratic_assignment

    best, least = tuple(range(len(w))), float((w * d).sum())
    for start in range(8):
        for method in ("2opt", "faq"):
            # drawn from numbers that are the same on every rank
            found = quadratic_assignment(w, d, method=method, options={"rng": np.random.default_rng(start)})
            if found.fun < least - 1e-12 * least:
                best, least = tuple(int(f) for f in found.col_ind), float(found.fun)
    return best
