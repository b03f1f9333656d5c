"""Incompressible buoyancy-driven flow by artificial compressibility.

`Results` contains expressions for the Nusselt numbers and velocities of a cavity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.boundary import Derivative, Extrapolate, Value
from halocline.lang.clock import shorten_step
from halocline.lang.expression import Expr, as_expr, binary, index
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import maximum, minimum, sqrt, where
from halocline.lang.grid import AXES, Field, Grid, Vector
from halocline.lang.operators import derivative, difference, inner, second, shift
from halocline.lang.origin import framework_origin
from halocline.lang.program import Scalar, assign, every, label_statements, parameter, scalar, scalars, stop
from halocline.lang.reductions import max as greatest
from halocline.lang.reductions import min as least
from halocline.lang.reductions import norm, value
from halocline.lang.reductions import sum as total

STEADY = "steady"  # reason for the end of a run
RUNS_AWAY = "the velocity exceeds three times the free-fall velocity over the height"
LIMITS = ("advection", "diffusion", "artificial sound")
EQUATIONS = {"p": "continuity", "V": "momentum", "T": "energy"}
REACH = 2  # points on each side that the damping of the pressure reads


class Cavity:
    """Fields of a cavity, and their changes in an iteration.

    The walls x = 0 and x = L have fixed temperatures. The other walls are adiabatic. The velocity is 0 on all
    walls. All points of the grid lie inside the cavity, and the walls are at nodes. The last axis is
    vertical.

    Attributes
    ----------
    p, T : Field
        Pressure without the hydrostatic pressure, and temperature.
    V : Vector
        Velocity, with one component for each axis.

    Raises
    ------
    InputError
        Too few points for the fourth difference of the pressure.
    """

    def __init__(self, grid: Grid) -> None:
        least = REACH + 2  # three points determine the pressure on a wall, which is read two points away
        for axis, n in enumerate(grid.shape):
            if n < least:
                raise InputError(
                    f"axis {AXES[axis]} has {n} points between its walls; expected at least {least}, "
                    "because the damping of the pressure reads five adjacent points"
                )
        self.grid = grid
        self.p = grid.field("p", boundary=Extrapolate(3))
        self.V = grid.vector("V", boundary=Value(0.0))
        hot, cold = Value(parameter("T_hot")), Value(parameter("T_cold"))
        self.T = grid.field("T", boundary={"x-": hot, "x+": cold, "other": Derivative(0.0)})

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields of the scheme, in storage order."""
        return self.p, *self.V, self.T

    def centre(self) -> tuple[int, ...]:
        """Return the index of the middle point. If the middle is between two points, it is the lower one."""
        return tuple((n - 1) // 2 for n in self.grid.shape)

    def beta2(self, V: Sequence[Field]) -> Expr:
        """Return β², the squared artificial speed of sound, at each point: V², but at least r V_ref²."""
        return maximum(inner(V, V), parameter("beta2_min"))

    def rates(self, p: Field, V: Vector, T: Field) -> dict[Field, Expr]:
        """Return the rates of change of all fields (Equations 1 to 3 of the paper).

        ∂p/∂t = -β² ρ ∇·V - C Σ λ_i Δx_i³ ∂⁴p/∂x_i⁴. λ_i = |V_i| + β is an upper bound of the speed of
        artificial sound along an axis, (|V_i| + √(V_i² + 4 β²)) / 2. Therefore ε_i = C λ_i Δx_i³ / β²
        vanishes as Δx³. The error due to ε_i vanishes faster than the error of second-order differences.

        The parabola through the first three points inside determines the pressure on a wall and beyond it.
        With this extrapolation, the damping is 0 at the first point. At the second point, the damping is the
        third difference of the first four points.
        """
        beta2, up = self.beta2(V), self.grid.ndim - 1
        sound, divergence, damping = sqrt(beta2), as_expr(0.0), as_expr(0.0)
        for axis in range(self.grid.ndim):
            divergence = divergence + self._slope(V[axis], axis)
            speed = (magnitude(V[axis]) + sound) * (0.5 / self.spacing(axis))
            damping = damping + speed * difference(p, axis, 2 * REACH)
        damping = damping * (2.0 * parameter("damping"))
        lift = parameter("buoyancy") * (T - parameter("T_mean"))
        changes: dict[Field, Expr] = {p: -(beta2 * (parameter("rho") * divergence) + damping)}
        for axis, v in enumerate(V):
            changes[v] = self._transport_rate(v, parameter("nu"), V)
            changes[v] = changes[v] - self._slope(p, axis) * (1.0 / parameter("rho"))
            if axis == up:
                changes[v] = changes[v] + lift
        changes[T] = self._transport_rate(T, parameter("alpha"), V)
        return changes

    def spacing(self, axis: int) -> Expr:
        """Return Δx along an axis: on a stretched axis, half the distance between the two adjacent points."""
        if self.grid.maps[axis] is None:
            return self.grid.h(axis)
        x = self.T.coordinates[axis]
        return as_expr(0.5 * (shift(x, axis) - shift(x, axis, -1)))

    def _slope(self, f: Field, axis: int) -> Expr:
        """Return the derivative along an axis.

        For even spacing, this formula needs only the constant 0.5 / Δx in the whole iteration. The operator
        `derivative` needs more constants. A constant that is not kept in a register is loaded again at each
        point, and loads limit the speed of an iteration.
        """
        if self.grid.maps[axis] is not None:
            return derivative(f, axis)
        return as_expr((shift(f, axis) - shift(f, axis, -1)) * (0.5 / self.grid.h(axis)))

    def _transport_rate(self, f: Field, kappa: Expr, V: Vector) -> Expr:
        """Return the rate of change by diffusion and advection, κ Δf - V·∇f.

        Along an axis of even spacing, diffusion and advection together give one weight for each of the two
        adjacent values. All quantities with the same diffusivity share these weights. This needs half as many
        operations as separate derivatives.
        """
        total, centre = as_expr(0.0), as_expr(0.0)
        for axis in range(self.grid.ndim):
            if self.grid.maps[axis] is not None:
                total = total + (kappa * second(f, axis) - V[axis] * derivative(f, axis))
                continue
            spread = kappa / (self.grid.h(axis) * self.grid.h(axis))
            drift = V[axis] * (0.5 / self.grid.h(axis))
            total = total + ((spread - drift) * shift(f, axis) + (spread + drift) * shift(f, axis, -1))
            centre = centre - 2.0 * spread
        return total + centre * f

    def time_step(self, stages: int, speed2: Expr) -> tuple[Expr, Expr]:
        """Return the largest stable step times the Courant number, and the index in `LIMITS` of its limit.

        `speed2` is the maximum of V². A step of several stages has the stability limits of a forward Euler
        step, except for diffusion; see `stable_steps`.
        """
        nu, alpha = parameter("nu"), parameter("alpha")
        least, most = minimum(nu, alpha), maximum(nu, alpha)
        beta2 = maximum(speed2, parameter("beta2_min"))
        steps = stable_steps(least, most, nu, speed2, beta2, parameter("squares"), stages)
        shortest, limiter = steps[1], as_expr(1.0)
        for number in (0, 2):
            shorter = ~(steps[number] >= shortest)  # NaN stays
            limiter, shortest = (
                where(shorter, float(number), limiter),
                where(shorter, steps[number], shortest),
            )
        return parameter("courant") * shortest, limiter

    def iterate(self, t: Any, stages: int, watch: int) -> None:
        """Add the statements of an iteration to the program.

        Every `watch` iterations, the program computes the residuals and ends the run if the flow is steady.
        Each iteration then does a step with `stages` stages. Its time step is the stable one for the
        velocities before the previous step. Therefore an iteration of one stage needs only one sweep.
        """
        dt, dt_next, limiter, limiter_next = scalars("dt dt_next limiter limiter_next")
        time = shorten_step(trace.current("the cavity"), t, dt, dt_next)
        limiter.set(limiter_next)
        with every(watch):
            self._record_residuals()
        speed2 = scalar("speed2")
        with label_statements("speed2: largest squared velocity"):
            speed2.set(greatest(inner(self.V, self.V)))
        if stages == 1:
            rates = self.rates(self.p, self.V, self.T)
            self._finish_iteration({f: f + dt * rates[f] for f in self.fields})
        else:
            self._legendre(dt.expr, stages)
        allowed, named = self.time_step(stages, speed2.expr)
        dt_next.set(allowed)
        limiter_next.set(named)
        t.set(time)
        stop(~(speed2 <= parameter("speed2_most")), RUNS_AWAY)

    def _legendre(self, dt: Expr, stages: int) -> None:
        """Add a step of several stages Y_1, Y_2, ... to the program. Y_j is stored in place of Y_{j-2}.

        Y_1 = Y_0 + w dt F(Y_0), Y_j = μ Y_{j-1} + ν Y_{j-2} + μ w dt F(Y_{j-1}), with μ = (2j - 1) / j,
        ν = (1 - j) / j and w = 2 / (s² + s). This is the first-order Runge-Kutta-Legendre scheme (Meyer,
        Balsara and Aslam 2014, J. Comput. Phys. 257, 594, Section 2).
        """
        main_fields, fields = (self.p, self.V, self.T), self.fields
        copies = tuple(f.like(f"{f.name}_last") for f in fields)
        copy_fields = copies[0], Vector(copies[1:-1]), copies[-1]
        width = 2.0 / (stages * stages + stages)
        slopes = self.rates(*main_fields)
        first = {f: f + width * dt * slopes[f] for f in fields}
        if stages % 2:
            _assign(first | dict(zip(copies, (f.expr for f in fields), strict=True)))
        else:
            _assign(dict(zip(copies, first.values(), strict=True)))
        current, last = (main_fields, copy_fields) if stages % 2 else (copy_fields, main_fields)
        mu, nu, step = scalars("mu_stage nu_stage dt_stage")
        for j in range(2, stages + 1):
            mu.set((2 * j - 1) / j)
            nu.set((1 - j) / j)
            step.set((2 * j - 1) / j * width * dt)
            slopes = self.rates(*current)
            changed = {
                old: mu * f + nu * old + step * slopes[f]
                for f, old in zip(
                    (current[0], *current[1], current[2]), (last[0], *last[1], last[2]), strict=True
                )
            }
            self._finish_iteration(changed) if j == stages else _assign(changed)
            current, last = last, current

    def _finish_iteration(self, changed: dict[Field, Expr]) -> None:
        """Add the last assignment of an iteration to the program.

        The same sweep subtracts a constant from the pressure: the pressure at the centre before this
        assignment. Therefore this shift of the pressure needs no additional sweep.
        """
        lift = scalar("p_centre")
        changed[self.p] = changed[self.p] - lift
        at_centre = value(changed[self.p], at=self.centre())
        _assign(changed)
        with label_statements("p_centre: pressure at the centre"):
            lift.set(at_centre)

    def _record_residuals(self) -> None:
        """Add the residual of each equation to the program: rms of its rate, divided by a typical rate."""
        rates, points = self.rates(self.p, self.V, self.T), math.sqrt(self.grid.size)
        # With central differences, a small divergence of the velocity remains. This divergence makes p rise
        # uniformly, and the shift removes the rise.
        rise = scalar("p_rise")
        with label_statements("p_rise: rate of change of the pressure at the centre"):
            rise.set(value(rates[self.p], at=self.centre()))
        rates[self.p] = rates[self.p] - rise
        worst = as_expr(0.0)
        for residual, field in zip(self.residuals(), self.fields, strict=True):
            with label_statements(f"residual of {field.name}"):
                residual.set(norm(rates[field]) / (points * parameter(f"usual_{field.name[0]}")))
            worst = maximum(worst, residual.expr)
        stop(worst <= parameter("tolerance"), STEADY)

    def residuals(self) -> tuple[Scalar, ...]:
        """Return the residuals of the equations of all fields, as scalars of the program."""
        return tuple(Scalar(f"residual_{f.name}") for f in self.fields)


def _assign(changed: dict[Field, Expr]) -> None:
    """Add the assignments of fields to the program, labelled with their equations."""
    kinds = {f: f.name[0] for f in changed}
    labels = {f: framework_origin(f"{kind}: {EQUATIONS[kind]} equation") for f, kind in kinds.items()}
    with trace.current("the cavity").label_statements(labels):
        assign(changed)


def stable_steps(
    min_diffusivity: Any, max_diffusivity: Any, nu: Any, speed2: Any, beta2: Any, squares: Any, stages: int
) -> tuple[Any, Any, Any]:
    """Return the longest stable steps for each of `LIMITS`, as expressions or numbers.

    With central differences for advection, forward steps of up to 2 κ / V² are stable, where κ is the smaller
    of ν and α. Diffusion allows forward steps of up to 1 / (2 κ Σ 1/Δx²), where κ is the larger of ν and α.
    Steps of several stages can be `gain` times longer. In waves of artificial sound, the velocity diffuses,
    but the pressure does not; see `sound_step`.

    Parameters
    ----------
    min_diffusivity, max_diffusivity, nu
        Minimum and maximum of ν and α, and ν.
    speed2, beta2, squares
        V², β² and Σ 1/Δx².
    stages : int
    """
    advection = 2.0 * min_diffusivity / speed2
    diffusion = 0.5 * gain(stages) / (max_diffusivity * squares)
    return advection, diffusion, sound_step(nu, speed2, beta2)


def sound_step(nu: Any, speed2: Any, beta2: Any) -> Any:
    """Return the longest stable forward step for waves of artificial sound.

    The waves travel along a flow of speed u, and only the velocity diffuses. For waves that are long compared
    with the spacing, the step is 4 ν / (s (u + s)) with s = √(u² + 4 β²). In a fluid at rest, the step is
    ν / β².
    """
    s = (speed2 + 4.0 * beta2) ** 0.5
    return 4.0 * nu / (s * (speed2**0.5 + s))


def gain(stages: int) -> float:
    """Return the longest stable step for diffusion with several stages, divided by that of a forward step.

    The stages are those of the first-order Runge-Kutta-Legendre scheme (Meyer, Balsara and Aslam 2014, J.
    Comput. Phys. 257, 594, Section 2).
    """
    return (stages * stages + stages) / 2


class Results:
    """Expressions for the quantities of the flow that publications report.

    The unit of length is the distance L between the hot and the cold wall. The unit of velocity is α / L. The
    unit of heat flux is the conductive flux of the fluid at rest.
    """

    def __init__(self, cavity: Cavity) -> None:
        self.cavity, self.grid = cavity, cavity.grid

    def numbers(self) -> dict[str, Expr]:
        """Return the results by name.

        - nusselt_hot: mean heat flux through the hot wall
        - nusselt_mid: mean heat flux through the mid-plane between the hot and the cold wall
        - u_max, v_max: maximum horizontal velocity on the mid-plane in x, and maximum vertical velocity on
          the mid-plane in the vertical axis
        - nusselt_max, nusselt_min: extrema of the heat flux at the hot wall, in 2D only
        """
        grid, L, alpha = self.grid, self.grid.extent[0], parameter("alpha")
        up = grid.ndim - 1
        wall, rest = self.at_wall(), math.inf
        on_wall = self._at_index(0, 0)
        results = {
            "nusselt_hot": total(where(on_wall, wall * self._integration_weight(range(1, grid.ndim)), 0.0)),
            "nusselt_mid": self.halfway(),
            "u_max": greatest(self._peak_values(self._midplane_value(0, self.cavity.V[0]), 0)) * (L / alpha),
            "v_max": greatest(self._peak_values(self._midplane_value(up, self.cavity.V[up]), up))
            * (L / alpha),
        }
        if grid.ndim == 2:
            results["nusselt_max"] = greatest(where(on_wall, wall, -rest))
            results["nusselt_min"] = least(where(on_wall, wall, rest))
        return results

    def at_wall(self) -> Expr:
        """Return the heat flux through the hot wall, stored at the points next to this wall.

        A cubic polynomial interpolates the temperature on the wall and at the first three points. The flux is
        minus the slope of this polynomial at the wall. For even spacing, this is (11 T_w - 18 T_1 + 9 T_2 - 2
        T_3) / 6Δx.

        The formula is of third order. In a thin boundary layer, a second-order formula would have a larger
        error than the computed flow.
        """
        T = self.cavity.T.expr
        a = self._wall_distance(0)
        b, c = shift(a, 0), shift(a, 0, 2)
        scale = self.grid.extent[0] / (parameter("T_hot") - parameter("T_cold"))

        def weight(node: Expr, one: Expr, other: Expr) -> Expr:
            return one * other / (node * (one - node) * (other - node))

        wall = (1.0 / a + 1.0 / b + 1.0 / c) * parameter("T_hot")
        inside = weight(a, b, c) * T + weight(b, a, c) * shift(T, 0) + weight(c, a, b) * shift(T, 0, 2)
        return as_expr((wall - inside) * scale)

    def halfway(self) -> Expr:
        """Return the mean heat flux through the mid-plane between the hot and the cold wall.

        At the edges of this plane, on the other walls, the advective flux is 0, and the normal derivative of
        the conductive flux is 0.
        """
        T, u, axes = self.cavity.T, self.cavity.V[0], range(1, self.grid.ndim)
        even = as_expr(1.0)
        for axis in axes:
            even = even * (self.cavity.spacing(axis) / self.grid.extent[axis])
        carried = u * (T - parameter("T_mean")) / parameter("alpha") * even
        conducted = derivative(T, 0) * self._integration_weight(axes)
        scale = self.grid.extent[0] / (parameter("T_hot") - parameter("T_cold"))
        return total(self._midplane_weight(0) * (carried - conducted) * scale)

    def _wall_distance(self, axis: int) -> Expr:
        """Return the distance of each point from the lower wall of an axis."""
        return as_expr(self.cavity.T.coordinates[axis] - self.grid.origin[axis])

    def _at_index(self, axis: int, place: float) -> Expr:
        """Return a condition that holds at points whose index along an axis is `place`."""
        return binary("eq", index(self.grid, axis), place)

    def _at_index_from_end(self, axis: int, before: float) -> Expr:
        """Return a condition that holds where the index along an axis is the last index minus `before`."""
        return binary("eq", index(self.grid, axis) + before, self.grid.cells(axis) - 1.0)

    def _midplane_weight(self, axis: int) -> Expr:
        """Return the weight of each point in a sum over the mid-plane of an axis, otherwise 0.

        The weight is 1 if the points lie on the plane, and ½ if the plane lies between two points.
        """
        offset = index(self.grid, axis) * 2.0 - (self.grid.cells(axis) - 1.0)
        inside = (offset <= 1.0) & (offset >= -1.0)
        share: Expr = where(inside, where(binary("eq", offset, 0.0), 1.0, 0.5), 0.0)
        return share

    def _midplane_value(self, axis: int, f: Expr | float) -> Expr:
        """Return a quantity interpolated to the mid-plane of an axis, and 0 at all other points."""
        offset = index(self.grid, axis) * 2.0 - (self.grid.cells(axis) - 1.0)
        values = as_expr(f)
        middle = where(binary("eq", offset, 0.0), values, 0.5 * (values + shift(values, axis)))
        on_plane: Expr = where(binary("eq", offset, 0.0) | binary("eq", offset, -1.0), middle, 0.0)
        return on_plane

    def _peak_values(self, f: Expr, across: int) -> Expr:
        """Return a quantity on the plane normal to axis `across`, with interpolated values at its peaks.

        A point is a peak along an axis of the plane if its value is not below the values of both neighbours.
        At a peak, the value is replaced by the maximum of the parabola through these three points.

        The true maximum can lie between points. Without interpolation, the computed maximum would converge
        irregularly.
        """
        peak = f
        for axis in range(self.grid.ndim):
            if axis != across:
                before, after = shift(f, axis, -1), shift(f, axis)
                bend = 2.0 * f - (before + after)
                inside = (f >= before) & (f >= after) & (bend > 0.0)
                rise = (after - before) * (after - before) / (8.0 * where(inside, bend, 1.0))
                peak = peak + where(inside, rise, 0.0)
        return peak

    def _integration_weight(self, axes: Sequence[int]) -> Expr:
        """Return the weight of each point in the mean from wall to wall along axes (trapezoidal rule).

        The value on a wall follows from the condition of zero flux through the wall. A parabola with zero
        slope at the wall, through two points at distances a and b, has the value (b² q_1 - a² q_2) / (b² -
        a²) there. For even spacing, this is (4 q_1 - q_2) / 3.
        """
        share = as_expr(1.0)
        for axis in axes:
            below = self._wall_distance(axis)
            above = self.grid.extent[axis] - below
            width = self.cavity.spacing(axis)
            # `first` is read at the first point from a wall, and `second` at the second point
            for away, outward, is_first, is_second in (
                (below, -1, self._at_index(axis, 0.0), self._at_index(axis, 1.0)),
                (above, 1, self._at_index_from_end(axis, 0.0), self._at_index_from_end(axis, 1.0)),
            ):
                further, closer = shift(away, axis, -outward), shift(away, axis, outward)
                first = 0.5 * away * further * further / (further * further - away * away)
                second = 0.5 * closer * closer * closer / (away * away - closer * closer)
                width = width + where(is_first, first, where(is_second, -second, 0.0))
            share = share * (width / self.grid.extent[axis])
        return share
