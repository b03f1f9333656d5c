"""Finished runs as arrays, for checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from halocline.lang.grid import AXES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def primitives(sim: Any, gamma: float) -> dict[str, NDArray[np.float64]] | None:
    """Density "rho", pressure "p", and the components "v_x" to "B_z" of cells, on the first rank; None on
    others.

    All ranks call this. `sim` holds the fields of an `IdealMHD`.
    """
    import numpy as np

    names = ("rho", "E", *(f"{v}_{a}" for v in "mb" for a in AXES))
    fields = {name: sim.gather(name) for name in names}
    if fields["rho"] is None:
        return None
    grid = sim.grid
    found = {"rho": fields["rho"]}
    for axis, a in enumerate(AXES):
        found[f"v_{a}"] = fields[f"m_{a}"] / fields["rho"]
        b = fields[f"b_{a}"]
        if axis < grid.ndim:
            above = np.roll(b, -1, axis)  # between walls there is one face more, whose roll is left out
            b = (0.5 * (b + above)).take(range(grid.shape[axis]), axis)
        found[f"B_{a}"] = b
    motion = fields["rho"] * sum(found[f"v_{a}"] ** 2 for a in AXES)
    field = sum(found[f"B_{a}"] ** 2 for a in AXES)
    found["p"] = (gamma - 1) * (fields["E"] - 0.5 * (motion + field))
    return found


def restricted(values: NDArray[np.float64], shape: Sequence[int]) -> NDArray[np.float64]:
    """Means over blocks of cells, which reduce `values` to `shape`, a divisor of its shape."""
    for axis, n in enumerate(shape):
        before, after = values.shape[:axis], values.shape[axis + 1 :]
        values = values.reshape(*before, n, values.shape[axis] // n, *after).mean(axis + 1)
    return values


def difference(values: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """The relative L1 difference, Σ |a - b| / Σ |b|, on the coarser of both grids."""
    import numpy as np

    coarse = [min(pair) for pair in zip(values.shape, reference.shape, strict=True)]
    a, b = restricted(values, coarse), restricted(reference, coarse)
    return float(np.abs(a - b).sum() / np.abs(b).sum())


def turned(values: NDArray[np.float64]) -> float:
    """How far values are from those turned by half a turn about the middle of the grid, over the greatest."""
    import numpy as np

    return float(np.abs(values - values[(slice(None, None, -1),) * values.ndim]).max() / np.abs(values).max())
