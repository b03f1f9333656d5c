"""Checks of runs of the scheme, errors of waves, and results of runs as arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from halocline.lang.functions import abs as magnitude
from halocline.lang.grid import AXES, Field
from halocline.lang.reductions import sum as total
from halocline.physics.mhd_tvd.parameters import why_unbounded
from halocline.physics.mhd_tvd.simulation import MHDSimulation
from halocline.run.simulation.checks import Check

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROUND_OFF = 1e-13  # in float64

Exact = Callable[[float], Mapping[Field, Any]]


def general(sim: MHDSimulation, record: Any, *, periodic: bool = True) -> list[Check]:
    """Return the checks that hold for every run.

    They test that ∇·b is at the level of rounding errors, and that density and pressure at the end are above
    the floors. (The scheme applies floors only at the beginning of a step.) If all sides are periodic, they
    also test that mass, energy, momentum and magnetic flux are conserved.

    Parameters
    ----------
    sim : MHDSimulation
    record : Record
        Record of the run, with the diagnostics of the scheme.
    periodic : bool
        True if all sides are periodic.
    """
    after = record.series[-1]
    checks = [Check("steps", record.steps, minimum=1, about="number of steps of the run")]
    if "div_b" in after:
        about = "maximum |∇·b|, relative to |b|/Δx"
        checks.append(
            Check("div_b", _number(after["div_b"]), maximum=sim.grid.rounding(ROUND_OFF), about=about)
        )
    for name, floor in (("rho_min", "density_floor"), ("p_min", "pressure_floor")):
        about = "minimum at the end; the floor acts at the start of the next step"
        checks.append(Check(name, _number(after[name]), minimum=sim.numbers[floor], about=about))
    if periodic:
        raised = [name for name in ("density floor", "pressure floor") if record.events[name]["count"]]
        checks += conservation(record.series[0], after, raised, sim.grid.rounding(ROUND_OFF))
    return checks


def conservation(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    raised: Sequence[str] = (),
    bound: float = ROUND_OFF,
) -> list[Check]:
    """Return checks that mass, energy, momentum and magnetic flux are unchanged, relative to their scales.

    The scale of momentum is √(mass · energy), which is the momentum of gas that moves at its wave speed.
    Momentum fluxes are pressures, so the rounding errors of momentum are proportional to this scale even in
    gas at rest. Electric fields are proportional to the magnetic field, so the scale of magnetic flux is the
    root mean square of the field.

    Parameters
    ----------
    before, after : mapping
        Diagnostics at the start and at the end.
    raised : sequence of str
        Names of the floors that have acted. If there are any, the energy is not compared. If the density
        floor is among them, the mass is not compared either.
    bound : float
        Maximum change, relative to the scale.
    """
    mass, energy = _number(before["mass"]), _number(before["energy"])
    scales = {"mass": mass, "energy": energy}
    scales |= {f"momentum_{a}": math.sqrt(mass * energy) for a in AXES}
    scales |= {f"flux_{a}": math.sqrt(2.0 * _number(before["E_mag"])) for a in AXES}
    checks = []
    for name, scale in scales.items():
        if name in ("mass", "energy") and (gain := [f for f in raised if name == "energy" or "density" in f]):
            checks.append(Check.not_compared(f"{name} conservation", f"the {gain[0]} was active"))
            continue
        change = abs(_number(after[name]) - _number(before[name]))
        share = change / scale if scale else change  # without a field the scale of flux is 0
        checks.append(
            Check(
                f"{name} conservation",
                share,
                maximum=bound,
                about="change of the mean, relative to its scale",
            )
        )
    return checks


def wave_error(sim: MHDSimulation, exact: Exact, amplitude: float, bound: float, period: float) -> Check:
    """Return the check of the error of a wave.

    Parameters
    ----------
    bound : float
        Maximum error in the first period, multiplied by n², with n cells along the shorter side.
    period : float
        Period of the wave.
    """
    cells = min(sim.grid.shape)
    if reason := why_unbounded(sim.numbers):
        return Check.not_compared("error", reason)
    if amplitude <= sim.grid.rounding(ROUND_OFF):
        return Check.not_compared(
            "error", f"in {sim.grid.dtype}, rounding errors exceed a wave of amplitude {amplitude:g}"
        )
    # wave speeds on a grid are slightly wrong, so the phase error grows in proportion to time
    periods = max(1.0, sim.time / period)
    about = f"error of the wave, relative to its amplitude, with {cells} cells along the shorter side"
    return Check("error", error(sim, exact, amplitude), maximum=bound * periods / cells**2, about=about)


def error(sim: MHDSimulation, exact: Exact, amplitude: float) -> float:
    """Return the error of a wave, relative to its amplitude.

    Each field has a mean absolute difference from the exact solution. The error is the Euclidean norm of
    these differences. After a whole number of periods, the exact solution equals the initial state (Mendygral
    et al. 2017, Section 6.1).
    """
    differences = sim.evaluate(*(total(magnitude(f - e)) for f, e in exact(sim.time).items()))
    return float(math.hypot(*differences) / sim.grid.size / amplitude)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def primitives(sim: Any, gamma: float) -> dict[str, NDArray[np.float64]] | None:
    """Return the primitive quantities of cells by name, on the first rank; None on other ranks.

    The names are "rho", "p", and "v_x" to "B_z". All ranks call this function. `sim` holds the fields of an
    `IdealMHD`.
    """
    import numpy as np

    names = ("rho", "E", *(f"{v}_{a}" for v in "mb" for a in AXES))
    fields = {name: sim.gather(name) for name in names}
    if fields["rho"] is None:
        return None
    grid = sim.grid
    quantities = {"rho": fields["rho"]}
    for axis, a in enumerate(AXES):
        quantities[f"v_{a}"] = fields[f"m_{a}"] / fields["rho"]
        b = fields[f"b_{a}"]
        if axis < grid.ndim:
            above = np.roll(b, -1, axis)  # `take` removes the additional face between walls
            b = (0.5 * (b + above)).take(range(grid.shape[axis]), axis)
        quantities[f"B_{a}"] = b
    motion = fields["rho"] * sum(quantities[f"v_{a}"] ** 2 for a in AXES)
    field = sum(quantities[f"B_{a}"] ** 2 for a in AXES)
    quantities["p"] = (gamma - 1) * (fields["E"] - 0.5 * (motion + field))
    return quantities


def restricted(values: NDArray[np.float64], shape: Sequence[int]) -> NDArray[np.float64]:
    """Return means of `values` over blocks of cells, as an array of the shape `shape`.

    Along each axis, the length of the result must be a divisor of the length of `values`.
    """
    for axis, n in enumerate(shape):
        before, after = values.shape[:axis], values.shape[axis + 1 :]
        values = values.reshape(*before, n, values.shape[axis] // n, *after).mean(axis + 1)
    return values


def difference(values: NDArray[np.float64], reference: NDArray[np.float64]) -> float:
    """Return the relative L1 difference, Σ |a - b| / Σ |b|, after coarsening to the coarser of both grids."""
    import numpy as np

    coarse = [min(pair) for pair in zip(values.shape, reference.shape, strict=True)]
    a, b = restricted(values, coarse), restricted(reference, coarse)
    return float(np.abs(a - b).sum() / np.abs(b).sum())


def rotation_asymmetry(values: NDArray[np.float64]) -> float:
    """Return the maximum change of values by a rotation of 180 degrees, relative to the largest magnitude."""
    import numpy as np

    return float(np.abs(values - values[(slice(None, None, -1),) * values.ndim]).max() / np.abs(values).max())
