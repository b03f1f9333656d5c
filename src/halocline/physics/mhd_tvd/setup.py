"""What the cases of the scheme have in common: how they start, and what is checked of all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.callables import arguments_taken
from halocline.lang.expression import Expr, Operand, as_expr, index
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import where
from halocline.lang.grid import AXES, Field, Grid, Vector
from halocline.lang.operators import shift
from halocline.lang.program import parameter, program
from halocline.lang.reductions import first
from halocline.lang.reductions import sum as total
from halocline.physics.case import Check, Checked, Setup, cell_at
from halocline.physics.mhd_tvd.diagnostics import derived, diagnostics
from halocline.physics.mhd_tvd.gas import energy
from halocline.physics.mhd_tvd.parameters import courant_number, events, of_program, why_unbounded
from halocline.physics.mhd_tvd.scheme import IdealMHD
from halocline.physics.mhd_tvd.transport import at_cells

ROUND_OFF = 1e-13


def centred(grid: Grid, staggered: Sequence[bool] | None = None) -> tuple[Expr, ...]:
    """Coordinates about the middle of the grid: those of mirror images differ in their sign alone, in all
    bits, as those from an origin do not."""
    places = staggered or (False,) * grid.ndim
    ends = [(0.0 if face else 0.5) - n / 2 for n, face in zip(grid.shape, places, strict=True)]
    return tuple((index(grid, a) + end) * grid.h(a) for a, end in enumerate(ends))


def curl(
    grid: Grid,
    potential: Callable[..., Sequence[Operand]],
    coordinates: Callable[[Grid, Sequence[bool]], Sequence[Expr]] = Grid.coordinates,
) -> Vector:
    """The field on faces of a vector potential on edges, so that ∇·b is 0 but for rounding.

    ``potential(x, ...)`` gives its three components from as many coordinates as the grid has axes. Where the
    result has a component along an axis that the grid lacks, it lies in cells.
    """
    axes = grid.ndim
    arguments_taken(
        potential, "the vector potential", (axes,), f"as many coordinates as the grid has axes, {axes}"
    )
    A = []
    for component in range(3):
        edge = [axis != component for axis in range(axes)]
        A.append(as_expr(trace.call(potential, *coordinates(grid, edge))[component]))
    found = []
    for a in range(3):
        y, z = (a + 1) % 3, (a + 2) % 3
        b = as_expr(0.0)
        if y < axes:
            b = b + (shift(A[z], y) - A[z]) / grid.h(y)
        if z < axes:
            b = b - (shift(A[y], z) - A[y]) / grid.h(z)
        found.append(b)
    return Vector(found)


def start(
    mhd: IdealMHD, rho: Operand, v: Sequence[Operand], p: Operand, b: Sequence[Operand]
) -> dict[Field, Expr]:
    """The fields of a state: density, velocity and pressure of cells, the field as `IdealMHD.b` has it."""
    faces = Vector(as_expr(c) for c in b)
    rho, p, v = as_expr(rho), as_expr(p), Vector(as_expr(c) for c in v)
    B = at_cells(faces, mhd.axes)
    found = {mhd.rho: rho, mhd.E: energy(rho, v, B, p)}
    found |= {m: rho * c for m, c in zip(mhd.m, v, strict=True)}
    return found | dict(zip(mhd.b, faces, strict=True))


def ready(
    mhd: IdealMHD,
    values: Mapping[str, Any],
    at_start: Mapping[Field, Any],
    shown: Sequence[str] = (),
    until: float | None = None,
    exact: Callable[[float], Mapping[Field, Any]] | None = None,
) -> Setup:
    """A case that starts so."""
    given = of_program(values) | {"courant": courant_number(values, mhd.axes)}

    @program
    def step(dt: Any, step: Any) -> None:
        mhd.step(dt, step)

    return Setup(
        grid=mhd.grid,
        equations=step,
        parameters=given,
        dt=lambda: mhd.time_step(parameter("courant")),
        start=at_start,
        diagnostics=lambda: diagnostics(mhd),
        shown=tuple(shown) or ("rho_min", "p_min", "E_mag", *(["div_b"] if mhd.axes > 1 else [])),
        time_step="delayed",
        scheme_name=f"{values['flux']}, CTU + CT" if mhd.axes > 1 else str(values["flux"]),
        events=events(values),
        derived=lambda: derived(mhd),
        check_start=lambda sim: physical(sim, mhd),
        until=until,
        exact=exact,
    )


def physical(sim: Any, mhd: IdealMHD) -> None:
    """Raise InputError where density or pressure of the start is not positive, with cell and value."""
    w = mhd.state()
    for name, quantity in (("density", w.rho), ("pressure", w.p)):
        number = sim.evaluate(first(~(quantity > 0.0)))
        if math.isfinite(number):
            cell = tuple(cell_at(number, mhd.grid.shape))
            value = sim.evaluate(total(where(mhd.grid.cell_number() == number, quantity, 0.0)))
            raise InputError(
                f"{name} at the start is {value:g} at cell {cell}; expected positive values everywhere"
            )


def general(done: Checked, *, periodic: bool = True) -> list[Check]:
    """What holds for every run: ∇·b at round-off; density and pressure at the end, where no floor has acted
    yet; and, between periodic sides, mass, energy, momentum and flux as they were."""
    after = done.series[-1]
    found = [Check("steps", done.steps, least=1, about="the run moved")]
    if "div_b" in after:
        about = "greatest |∇·b| over |b|/Δx"
        found.append(Check("div_b", _number(after["div_b"]), most=ROUND_OFF, about=about))
    for name, floor in (("rho_min", "density_floor"), ("p_min", "pressure_floor")):
        about = "least value at the end; the floor acts when the next step begins"
        found.append(Check(name, _number(after[name]), least=done.values[floor], about=about))
    if periodic:
        raised = [name for name in ("density floor", "pressure floor") if done.events[name]["count"]]
        found += kept(done.series[0], after, raised)
    return found


def kept(before: Mapping[str, Any], after: Mapping[str, Any], raised: Sequence[str] = ()) -> list[Check]:
    """Whether mass, energy, momentum and flux are what they were, each on a scale of its own.

    Energy is not compared where floors have `raised` the density or pressure, nor mass where the density.

    Fluxes of momentum are pressures, so that rounding is that of √(mass · energy), the momentum of gas that
    moves as fast as its waves, also where gas is at rest. Electric fields grow with the field: its scale is
    its own root mean square.
    """
    mass, energy = _number(before["mass"]), _number(before["energy"])
    scales = {"mass": mass, "energy": energy}
    scales |= {f"momentum_{a}": math.sqrt(mass * energy) for a in AXES}
    scales |= {f"flux_{a}": math.sqrt(2.0 * _number(before["E_mag"])) for a in AXES}
    found = []
    for name, scale in scales.items():
        if name in ("mass", "energy") and (gain := [f for f in raised if name == "energy" or "density" in f]):
            found.append(Check.not_compared(f"{name} kept", f"the {gain[0]} has acted"))
            continue
        change = abs(_number(after[name]) - _number(before[name]))
        share = change / scale if scale else change  # without any field no change is small
        found.append(Check(f"{name} kept", share, most=ROUND_OFF, about="change of the mean, over its scale"))
    return found


def wave_error(done: Checked, most: float) -> Check:
    """The check of the error of a wave; `most` is what it may be times the square of the cells along the
    shorter side, in the first period."""
    cells, period = min(done.shape), done.setup.until
    assert period is not None
    if why := why_unbounded(done.values):
        return Check.not_compared("error", why)
    # waves travel at slightly wrong speeds on a grid: their error of phase grows in proportion to time
    periods = max(1.0, done.time / period)
    about = f"error of the wave over its amplitude, with {cells} cells along its shorter side"
    return Check("error", error(done), most=most * periods / cells**2, about=about)


def error(done: Checked) -> float:
    """The error of a wave over its amplitude: the norm of the mean differences of all fields from the exact
    solution. After whole periods that is the start (Mendygral et al. 2017, Section 6.1)."""
    assert done.setup.exact is not None
    exact, size = done.setup.exact(done.time), done.setup.grid.size
    apart = done.simulation.evaluate(*(total(magnitude(f - e)) for f, e in exact.items()))
    return float(math.hypot(*apart) / size / done.values["amplitude"])


def _number(value: float | None) -> float:
    return math.nan if value is None else value
