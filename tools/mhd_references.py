"""Compute the converged solutions that serve as references for the cases of ideal magnetohydrodynamics.

.venv/bin/python tools/mhd_references.py [tubes|orszag-tang|rotor ...]

The tool runs on grids of four times the cells, and 8192 along tubes, with HLLD fluxes, another scheme than
the checked one. It writes means over cells into src/halocline/physics/mhd_tvd/data. This takes 20 minutes on
a core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from halocline.physics.mhd_tvd import tubes
from halocline.physics.mhd_tvd.checks import primitives, restricted
from halocline.problems.problem import Problem

DATA = Path(tubes.__file__).parent / "data"
TUBE, KEPT = 8192, 1024  # computed cells, and stored means
TUBES = ("rj2a", "rj4a", "brio-wu")
PLANES = {"orszag-tang": (768, 192), "rotor": (1600, 200)}
QUANTITIES = {  # quantities that are compared, or cut in a figure
    "orszag-tang": ("rho", "p"),
    "rotor": ("rho", "p", "B_x", "B_y"),
}


def tube(name: str) -> dict[str, np.ndarray]:
    """Return the profiles of a tube; each number is the mean of a few cells."""
    result = Problem(name, [TUBE], {"flux": "hlld"}, dim=1).run(threads=1)
    profile = tubes.profile(result.simulation)
    assert profile is not None
    x, values = profile
    values = {"x": x} | {quantity: values[quantity] for quantity in tubes.QUANTITIES}
    return {f"{name}/{key}": v.reshape(KEPT, -1).mean(1).astype(np.float32) for key, v in values.items()}


def plane(name: str) -> dict[str, np.ndarray]:
    """Return quantities of a problem in the plane, as means over squares of cells."""
    n, cells = PLANES[name]
    problem = Problem(name, [n, n], {"flux": "hlld"})
    state = primitives(problem.run(threads=1).simulation, problem.values["gamma"])
    assert state is not None
    return {q: restricted(state[q], (cells, cells)).astype(np.float32) for q in QUANTITIES[name]}


def main() -> None:
    """Compute the references that the command line names, or all."""
    DATA.mkdir(exist_ok=True)
    for target in sys.argv[1:] or ["tubes", *PLANES]:
        if target == "tubes":
            arrays = {k: v for name in TUBES for k, v in tube(name).items()}
        else:
            arrays = plane(target)
        np.savez_compressed(DATA / f"{target}.npz", **arrays)
        print(target, {key: v.shape for key, v in arrays.items()}, flush=True)


if __name__ == "__main__":
    main()
