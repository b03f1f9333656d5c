"""Equations of magnetohydrodynamics of an ideal gas, term by term.

Sources: Equations B.1 to B.4 of J. Pekkilä, M. S. Väisälä, M. J. Käpylä, M. Rheinhardt and O. Lappi, Scalable
communication for high-order stencil computations using CUDA-aware MPI, Parallel Computing 111 (2022), 102904.
All other terms follow the Pencil Code (The Pencil Code Collaboration, J. Open Source Softw. 6 (2021), 2807).

Shock viscosity is proportional to `shock_profile`, which is large where the flow converges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

from halocline.errors import InputError
from halocline.lang.boundary import BoundaryCondition
from halocline.lang.expression import Expr, Operand, as_expr
from halocline.lang.functions import exp, maximum, minimum
from halocline.lang.grid import AXES, Field, Grid, Vector, pad
from halocline.lang.operators import (
    cross,
    curl,
    div,
    grad,
    grad_div,
    hyperdiffusion,
    laplacian,
    shift,
    traceless_strain,
    upwinding,
)
from halocline.lang.program import stage
from halocline.lang.reductions import dot
from halocline.physics.mhd.parameters import Physics, parameter

Terms = dict[Field, dict[str, Expr]]


WALLS = ("lnrho", "u", "s", "A")  # fields that can have boundary conditions
# labels of the equations, for explanations
LABELS = {
    "lnrho": "lnrho: continuity equation",
    **dict.fromkeys((f"u_{axis}" for axis in AXES), "u: momentum equation"),
    "s": "s: entropy equation",
    **dict.fromkeys((f"A_{axis}" for axis in AXES), "A: induction equation"),
}


class MHD:
    """Fields ln ρ, u, s and A on a grid, and their time derivatives.

    Parameters
    ----------
    grid : Grid
        Grid of one to three axes. Vectors have three components on all grids.
    physics : Physics, optional
        Choice of the equations; ``Physics()`` by default.
    boundary : mapping of str to boundary condition, optional
        Conditions at walls by field, "lnrho", "u", "s" or "A", in the form that `Grid.field` accepts. A field
        that is not read beyond walls needs no entry.

    Raises
    ------
    InputError
        `boundary` contains an unknown field.

    Attributes
    ----------
    lnrho : Field
        Logarithm of the density.
    u : Vector
        Velocity.
    s : Field or None
        Specific entropy; None for an isothermal gas.
    A : Vector or None
        Vector potential of the magnetic field, B = ∇ × A; None without a magnetic field.
    """

    def __init__(
        self,
        grid: Grid,
        physics: Physics | None = None,
        *,
        boundary: Mapping[str, BoundaryCondition | Mapping[str, BoundaryCondition] | Any] | None = None,
    ) -> None:
        self.grid, self.physics = grid, physics or Physics()
        walls = boundary or {}
        for name in walls:
            if name not in WALLS:
                raise InputError(f"boundary has {name!r}; expected names of fields: {', '.join(WALLS)}")
        self.lnrho = grid.field("lnrho", boundary=walls.get("lnrho"))
        self.u = grid.vector("u", components=3, boundary=walls.get("u"))
        self.s = grid.field("s", boundary=walls.get("s")) if self.physics.entropy else None
        self.A = grid.vector("A", components=3, boundary=walls.get("A")) if self.physics.magnetic else None

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, in the order of the paper: ln ρ, u, s, A."""
        return (self.lnrho, *self.u, *([] if self.s is None else [self.s]), *(self.A or ()))

    @property
    def gas(self) -> Gas:
        """Temperature, speed of sound and further properties of the gas, for expressions of the user."""
        return Gas(self.lnrho, self.s)

    def equations(
        self,
        forcing: Vector | None = None,
        *,
        heat_gain: Operand | None = None,
        heat_loss: Operand | None = None,
    ) -> dict[Field, Expr]:
        """Return the time derivative of each field, for `halocline.Simulation`.

        See `terms` for the parameters.
        """
        terms_of_field = self.terms(forcing, heat_gain=heat_gain, heat_loss=heat_loss)
        return {f: sum(terms.values(), as_expr(0.0)) for f, terms in terms_of_field.items()}

    equations.labels = LABELS  # type: ignore[attr-defined]

    def terms(
        self,
        forcing: Vector | None = None,
        *,
        heat_gain: Operand | None = None,
        heat_loss: Operand | None = None,
    ) -> Terms:
        """Return the terms of each time derivative by name. Their sum is the derivative.

        Parameters
        ----------
        forcing : Vector, optional
            Acceleration.
        heat_gain, heat_loss : expression, optional
            H and C of Eq. B.3: heat gain and heat loss per unit volume and unit time, in addition to the
            parameter "heating" and Newtonian cooling.

        Raises
        ------
        InputError
            An isothermal gas has a heat gain or a heat loss.
        """
        heat_terms = {"heat gain": (1.0, heat_gain), "heat loss": (-1.0, heat_loss)}
        for name, (_, value) in heat_terms.items():
            if self.s is None and value is not None:
                raise InputError(
                    f"{name} requires an entropy equation, but the gas is isothermal; expected "
                    "Physics(entropy=True)"
                )
        lnrho, u, s, A, physics = self.lnrho, self.u, self.s, self.A, self.physics
        nu, zeta = parameter("nu"), parameter("zeta")
        terms_of_field: Terms = {f: {} for f in self.fields}

        def add(name: str, to: Field | Vector, value: Any) -> None:
            if isinstance(to, Field):
                terms_of_field[to][name] = value
            else:
                for f, component in zip(to, pad(value, 3), strict=True):
                    terms_of_field[f][name] = component

        grad_lnrho, S, gas = grad(lnrho), traceless_strain(u), self.gas

        # Eq. B.1
        add("advection", lnrho, -dot(u, grad_lnrho))
        add("compression", lnrho, -div(u))

        # Eq. B.2
        add("advection", u, Vector(-dot(u, grad(component)) for component in u))
        add("pressure", u, -gas.cs2 * gas.grad_enthalpy)
        stress = laplacian(u) + (1.0 / 3.0) * grad_div(u) + 2.0 * Vector(dot(row, grad_lnrho) for row in S)
        add("viscosity", u, nu * stress)
        add("bulk viscosity", u, zeta * grad_div(u))

        # Eq. B.4
        if A is not None:
            B, j, eta = self.field(), self.current(), parameter("eta")
            add("lorentz", u, gas.volume * cross(j, B))
            add("induction", A, cross(u, B))
            add("resistivity", A, eta * laplacian(A))

        # Eq. B.3, divided by ρ T
        if s is not None:
            inverse_T, cv = 1.0 / gas.T, gas.cp / gas.gamma
            add("advection", s, -dot(u, grad(s)))
            add("heating", s, parameter("heating") * gas.volume * inverse_T)
            for name, (sign, value) in heat_terms.items():
                if value is not None:
                    add(name, s, sign * as_expr(value) * gas.volume * inverse_T)
            if physics.cooling:
                rate = cv / parameter("tau_cool")
                add("cooling", s, rate * (parameter("T_cool") * inverse_T - 1.0))
            add("conduction", s, gas.conduction(physics.conductivity))
            if A is not None:
                add("ohmic heating", s, eta * parameter("mu0") * dot(j, j) * gas.volume * inverse_T)
            add("viscous heating", s, 2.0 * nu * squared(S) * inverse_T)
            add("bulk heating", s, zeta * div(u) ** 2 * inverse_T)

        if physics.gravity:
            add("gravity", u, Vector(parameter(f"g_{axis}") for axis in AXES))
        if forcing is not None:
            add("forcing", u, forcing)
        if physics.upwind:
            for f in (lnrho, s):
                if f is not None:
                    add("upwinding", f, upwinding(f, u))
        if physics.hyperdiffusion:
            for g, coefficient in ((lnrho, "D3"), (u, "nu3"), (s, "chi3"), (A, "eta3")):
                if g is not None:
                    add("hyperdiffusion", g, parameter(coefficient) * hyperdiffusion(g))
        if physics.shock:
            zeta_s = parameter("nu_shock") * shock_profile(u)
            push = grad_div(u) + div(u) * grad_lnrho
            add("shock viscosity", u, zeta_s * push + div(u) * grad(zeta_s))
            if s is not None:
                add("shock heating", s, zeta_s * div(u) ** 2 * inverse_T)
        return terms_of_field

    def field(self) -> Vector:
        """Return B = ∇ × A plus the imposed field."""
        assert self.A is not None
        imposed = Vector(parameter(f"B_{axis}") for axis in AXES) if self.physics.imposed else Vector()
        return curl(self.A) + imposed

    def current(self) -> Vector:
        """Return j = (∇(∇·A) - ∇²A) / μ₀."""
        assert self.A is not None
        return Vector((grad_div(self.A) - laplacian(self.A)) * (1.0 / parameter("mu0")))


def squared(S: Sequence[Vector]) -> Expr:
    """Return S_ij S_ij of a symmetric tensor."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = S
    return as_expr(xx**2 + yy**2 + zz**2 + 2.0 * (xy**2 + xz**2 + yz**2))


class Gas:
    """Properties of the ideal gas that follow from ln ρ and s.

    c_s² = c_s0² exp(γ s / c_p + (γ - 1) (ln ρ - ln ρ₀)), and T / T₀ = c_s² / c_s0².

    Attributes
    ----------
    volume : Expr
        Specific volume, 1 / ρ.
    cs2 : Expr
        Square of the speed of sound.
    T : Expr
        Temperature; only of a gas with entropy.
    grad_enthalpy : Vector
        ∇(s / c_p + ln ρ). The acceleration by pressure is -c_s² times this vector.
    """

    def __init__(self, lnrho: Field, s: Field | None) -> None:
        self.lnrho, self.s = lnrho, s
        self.volume = exp(-lnrho)
        if s is None:
            self.cs2 = parameter("cs0") ** 2
            self.grad_enthalpy = grad(lnrho)
            return
        self.gamma, self.cp = parameter("gamma"), parameter("cp")
        # ln(T / T₀) = ln(c_s² / c_s0²)
        self.warmth = self.gamma / self.cp * s + (self.gamma - 1.0) * (lnrho - parameter("lnrho0"))
        T_ratio = exp(self.warmth)
        self.cs2 = parameter("cs0") ** 2 * T_ratio
        self.T = exp(parameter("lnT0")) * T_ratio
        self.grad_enthalpy = (1.0 / self.cp) * grad(s) + grad(lnrho)

    def _of_lnT(self, operator: Any) -> Any:
        """Return the result of a linear operator on ln T.

        The operator is applied to s and ln ρ, so the kernel takes no differences of T.
        """
        return self.gamma / self.cp * operator(self.s) + (self.gamma - 1.0) * operator(self.lnrho)

    def per_mass(self, conductivity: str) -> Expr:
        """Return K / ρ."""
        K, lnrho0 = parameter("K"), parameter("lnrho0")
        if conductivity == "constant":
            return K * self.volume
        if conductivity == "diffusivity":
            return K / exp(lnrho0)
        power = parameter("K_rho") * (self.lnrho - lnrho0) + parameter("K_T") * self.warmth
        return K * exp(power) * self.volume

    def diffusivity(self, conductivity: str) -> Expr:
        """Return the diffusivity of heat at constant volume, K / (ρ c_v)."""
        return self.gamma / self.cp * self.per_mass(conductivity)

    def conduction(self, conductivity: str) -> Expr:
        """Return ∇·(K ∇T) / (ρ T) = K / ρ [∇² ln T + ∇ ln T · (∇ ln T + ∇ ln K)]."""
        grad_lnT = self._of_lnT(grad)
        flux = grad_lnT
        if conductivity == "diffusivity":
            flux = flux + grad(self.lnrho)
        elif conductivity == "power":
            flux = flux + parameter("K_rho") * grad(self.lnrho) + parameter("K_T") * grad_lnT
        return as_expr(self.per_mass(conductivity) * (self._of_lnT(laplacian) + dot(grad_lnT, flux)))


REACH = 2  # Cells on each side of a cell that the maximum of the convergence includes.
WIDTH = 3  # Cells on each side of a cell that the average includes.


def shock_profile(u: Vector) -> Expr:
    """Return ⟨max(-∇·u)₊⟩ min(h)², the smoothed local maximum of the convergence.

    The maximum is taken over five adjacent cells along each axis. The average has the binomial weights
    (1, 6, 15, 20, 15, 6, 1) / 64 along each axis.

    The definition is that of the Pencil Code, in which the bulk viscosity is ν_shock times this profile.
    """
    grid = u[0].grid
    axes = range(grid.ndim)
    profile = stage(maximum(-div(u), 0.0), "convergence")
    for axis in axes:
        profile = stage(maximum(*(shift(profile, axis, by) for by in range(-REACH, REACH + 1))))
    weights = [comb(2 * WIDTH, k) / 4**WIDTH for k in range(2 * WIDTH + 1)]
    for axis in axes:
        parts = [w * shift(profile, axis, by) for by, w in enumerate(weights, -WIDTH)]
        profile = stage(sum(parts[1:], parts[0]))
    h = grid.h(0)
    for axis in axes[1:]:
        h = minimum(h, grid.h(axis))
    return as_expr(profile * (h * h))
