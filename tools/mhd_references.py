"""Converged solutions that the cases of ideal magnetohydrodynamics are checked against.

.venv/bin/python tools/mhd_references.py [tubes|orszag-tang|rotor ...]

Runs on grids of four times the cells, and 8192 along tubes, with fluxes of HLLD, another scheme than the one
that is checked; writes means over cells into src/halocline/physics/mhd_tvd/data. Takes 20 minutes on a core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from halocline.physics.mhd_tvd import tubes
from halocline.physics.mhd_tvd.checks import primitives, restricted
from halocline.problems.problem import Problem

DATA = Path(tubes.__file__).parent / "data"
TUBE, KEPT = 8192, 1024  # cells that are computed, and means that are kept
TUBES = ("rj2a", "rj4a", "brio-wu")
PLANES = {"orszag-tang": (768, 192), "rotor": (1600, 200)}
QUANTITIES = {  # that are compared, or cut in a figure
    "orszag-tang": ("rho", "p"),
    "rotor": ("rho", "p", "B_x", "B_y"),
}


def tube(name: str) -> dict[str, np.ndarray]:
    """The profiles of a tube, of which each number is the mean of a few cells."""
    result = Problem(name, [TUBE], {"flux": "hlld"}, dim=1).run(threads=1)
    found = tubes.profile(result.simulation)
    assert found is not None
    x, values = found
    values = {"x": x} | {quantity: values[quantity] for quantity in tubes.QUANTITIES}
    return {f"{name}/{key}": v.reshape(KEPT, -1).mean(1).astype(np.float32) for key, v in values.items()}


def plane(name: str) -> dict[str, np.ndarray]:
    """Quantities of a problem in the plane, as means over squares of cells."""
    n, kept = PLANES[name]
    problem = Problem(name, [n, n], {"flux": "hlld"})
    state = primitives(problem.run(threads=1).simulation, problem.values["gamma"])
    assert state is not None
    return {q: restricted(state[q], (kept, kept)).astype(np.float32) for q in QUANTITIES[name]}


def main() -> None:
    """Compute what is named, or all."""
    DATA.mkdir(exist_ok=True)
    for what in sys.argv[1:] or ["tubes", *PLANES]:
        if what == "tubes":  # noqa: SIM108 - two sources of one file
            kept = {k: v for name in TUBES for k, v in tube(name).items()}
        else:
            kept = plane(what)
        np.savez_compressed(DATA / f"{what}.npz", **kept)
        print(what, {key: v.shape for key, v in kept.items()}, flush=True)


if __name__ == "__main__":
    main()
