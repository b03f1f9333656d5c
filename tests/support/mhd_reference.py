"""Magnetohydrodynamics by high-order differences in NumPy, written from the printed equations alone.

The reference for the compiled solver uses no code of Halocline. Boxes are periodic, of one to three
dimensions; axis 0 is x, and along a missing axis all quantities are constant. Vectors keep three components.

Equations and terms are those of Pekkilä et al., "Scalable communication for high-order stencil computations
using CUDA-aware MPI" (Eqs. B.1-B.4, stencils of Eq. 14), with

    h = γ s/c_p + (γ - 1)(ln ρ - ln ρ₀), c_s² = c_s0² exp(h), ln T = ln T₀ + h.

A state is a dict of the fields "lnrho", "ux", "uy", "uz", "s", "Ax", "Ay", "Az"; arithmetic follows its
precision, so that `np.longdouble` gives a more accurate reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
State = dict[str, Array]

VELOCITY = ("ux", "uy", "uz")
POTENTIAL = ("Ax", "Ay", "Az")


# --- differences ---


def weights(offsets: Sequence[int], derivative: int) -> list[Fraction]:
    """Return the weights of the points x + offset·h in hᵈ times the d-th derivative at x.

    The weights are exact for polynomials. They solve the Vandermonde system Σ w_j o_jᵖ = d! δ_pd, p below the
    number of points, in exact arithmetic.
    """
    n = len(offsets)
    rows = [
        [Fraction(o) ** power for o in offsets] + [Fraction(math.factorial(power) * (power == derivative))]
        for power in range(n)
    ]
    for column in range(n):
        pivot = next(row for row in range(column, n) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(n):
            if row != column:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [row[-1] for row in rows]


@cache
def central(order: int, derivative: int) -> dict[int, Fraction]:
    """Return the weights by offset of the first or second derivative of an even order."""
    offsets = range(-(order // 2), order // 2 + 1)
    return dict(zip(offsets, weights(offsets, derivative), strict=True))


@cache
def compact(derivative: int) -> dict[int, Fraction]:
    """Return the weights by offset of an even derivative, of second order with the fewest points."""
    offsets = range(-(derivative // 2), derivative // 2 + 1)
    return dict(zip(offsets, weights(offsets, derivative), strict=True))


def number(value: Fraction | float, like: Array) -> Any:
    """Return the value in an array's precision; a fraction is rounded once."""
    real = like.dtype.type
    if isinstance(value, Fraction):
        return real(value.numerator) / real(value.denominator)
    return real(value)


def at(f: Array, offset: int, axis: int) -> Array:
    """Return the values that are `offset` cells further up the axis."""
    return np.roll(f, -offset, axis)


@dataclass(frozen=True)
class Differences:
    """Derivatives on a periodic box; differences are formed first, so that a constant gives exactly zero."""

    spacing: tuple[float, ...]
    order: int

    def _along(self, f: Array, axis: int, derivative: int, stencil: dict[int, Fraction]) -> Array:
        result = np.zeros_like(f)
        if axis >= f.ndim:
            return result
        for offset, weight in stencil.items():
            if offset and weight:
                result += number(weight, f) * (at(f, offset, axis) - f)
        return result / number(self.spacing[axis], f) ** derivative

    def first(self, f: Array, axis: int) -> Array:
        return self._along(f, axis, 1, central(self.order, 1))

    def second(self, f: Array, axis: int) -> Array:
        return self._along(f, axis, 2, central(self.order, 2))

    def even(self, f: Array, axis: int, derivative: int) -> Array:
        """Return a high even derivative by its compact stencil of second order."""
        return self._along(f, axis, derivative, compact(derivative))

    def mixed(self, f: Array, i: int, j: int) -> Array:
        """Return ∂_i ∂_j f, i ≠ j, from the plane's two diagonals, with weights of the second derivative."""
        result = np.zeros_like(f)
        if max(i, j) >= f.ndim:
            return result
        for k, weight in central(self.order, 2).items():
            if k > 0:
                up, down = at(f, k, i), at(f, -k, i)
                result += number(weight, f) * (
                    (at(up, k, j) - at(up, -k, j)) - (at(down, k, j) - at(down, -k, j))
                )
        return result / (4 * number(self.spacing[i], f) * number(self.spacing[j], f))

    def gradient(self, f: Array) -> Array:
        """Return ∂_i f; for a vector [i, j] is ∂_j f_i."""
        if f.ndim > len(self.spacing):
            return np.stack([self.gradient(component) for component in f])
        return np.stack([self.first(f, axis) for axis in range(3)])

    def laplacian(self, f: Array) -> Array:
        if f.ndim > len(self.spacing):
            return np.stack([self.laplacian(component) for component in f])
        return self.second(f, 0) + self.second(f, 1) + self.second(f, 2)

    def gradient_of_divergence(self, v: Array) -> Array:
        """Return Σ_j ∂_i ∂_j v_j."""
        return np.stack(
            [
                sum(self.second(v[j], j) if i == j else self.mixed(v[j], i, j) for j in range(3))
                for i in range(3)
            ]
        )

    def sixth(self, f: Array) -> Array:
        """Return Σ_i ∂⁶f/∂x_i⁶ with seven points per axis, independent of the order of other derivatives."""
        if f.ndim > len(self.spacing):
            return np.stack([self.sixth(component) for component in f])
        return self.even(f, 0, 6) + self.even(f, 1, 6) + self.even(f, 2, 6)

    def upwinding(self, f: Array, u: Array) -> Array:
        """Return the term that, added to -u·∇f, shifts its stencil upwind by one point, at one order less.

        The coefficient is (k/2)! (k/2 - 1)!/k!, 1/60 at order k = 6. Its sign alternates with k/2: ∂²f and
        ∂⁶f damp with a plus, ∂⁴f and ∂⁸f with a minus.
        """
        k, half = self.order, self.order // 2
        size = Fraction(math.factorial(half) * math.factorial(half - 1), math.factorial(k))
        result = np.zeros_like(f)
        for axis in range(f.ndim):
            h = number(self.spacing[axis], f)
            result += np.abs(u[axis]) * h ** (k - 1) * self.even(f, axis, k)
        return number(size * (-1) ** (half + 1), f) * result


def dot(a: Array, b: Array) -> Array:
    return (a * b).sum(axis=0)


def curl(gradient: Array) -> Array:
    """Return the curl of a vector from its gradient."""
    return np.stack(
        [gradient[(i + 2) % 3, (i + 1) % 3] - gradient[(i + 1) % 3, (i + 2) % 3] for i in range(3)]
    )


def cross(a: Array, b: Array) -> Array:
    return np.stack([a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)])


# --- equations ---


@dataclass(frozen=True)
class Parameters:
    """Coefficients and options; a coefficient of zero removes its term."""

    order: int = 6
    isothermal: bool = False  # no s: c_s0 everywhere
    magnetic: bool = True
    gamma: float = 5 / 3
    c_p: float = 1.0
    c_s0: float = 1.0
    lnrho0: float = 0.0
    lnT0: float = 0.0
    mu0: float = 1.0
    B_imposed: tuple[float, float, float] = (0.0, 0.0, 0.0)  # uniform, added to the field of A
    nu: float = 0.0  # kinematic viscosity
    zeta: float = 0.0  # bulk viscosity
    eta: float = 0.0  # resistivity
    K0: float = 0.0  # conductivity K0 (ρ/ρ₀)^K_rho (T/T₀)^K_T
    K_rho: float = 0.0
    K_T: float = 0.0
    heating: float = 0.0
    tau_cool: float | None = None  # None: no cooling
    T_cool: float = 1.0
    gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    forcing: Array | None = None  # three components, like the velocity
    upwind: bool = False  # advection of ln ρ and s at one order less
    nu3: float = 0.0  # hyperdiffusion of u, A, ln ρ and s
    eta3: float = 0.0
    D3: float = 0.0
    chi3: float = 0.0
    nu_shock: float = 0.0

    @property
    def fields(self) -> tuple[str, ...]:
        return (
            ("lnrho", *VELOCITY) + (() if self.isothermal else ("s",)) + (POTENTIAL if self.magnetic else ())
        )


def shock_viscosity(divergence: Array, spacing: Sequence[float], nu_shock: float) -> Array:
    """Return ζ_s: the convergence, spread to five neighbours along each axis and smoothed."""
    zeta = np.maximum(0, -divergence)
    for axis in range(zeta.ndim):
        zeta = np.maximum.reduce([at(zeta, offset, axis) for offset in range(-2, 3)])
    for axis in range(zeta.ndim):
        zeta = sum(math.comb(6, 3 + offset) * at(zeta, offset, axis) for offset in range(-3, 4)) / 64
    return number(nu_shock, zeta) * number(min(spacing), zeta) ** 2 * zeta


def thermal(state: State, p: Parameters) -> tuple[Array, Array]:
    """Return the exponent h of an ideal gas, and its temperature."""
    lnrho = state["lnrho"]
    gamma = number(p.gamma, lnrho)
    h = gamma * state["s"] / number(p.c_p, lnrho) + (gamma - 1) * (lnrho - number(p.lnrho0, lnrho))
    return h, np.exp(number(p.lnT0, lnrho) + h)


def magnetic_field(d: Differences, A: Array, p: Parameters) -> Array:
    """Return B = ∇ × A + B_imposed."""
    imposed = np.array([number(component, A) for component in p.B_imposed])
    return curl(d.gradient(A)) + imposed.reshape(3, *[1] * (A.ndim - 1))


def checked(state: State, spacing: Sequence[float], p: Parameters) -> Differences:
    """Return the differences for a state, after checks that state, box and options fit together."""
    if p.order < 2 or p.order % 2:
        raise ValueError(f"order: expected an even number of at least 2, got {p.order}")
    if set(state) != set(p.fields):
        raise ValueError(f"state: expected the fields {sorted(p.fields)}, got {sorted(state)}")
    shapes = {field: value.shape for field, value in state.items()}
    if len(set(shapes.values())) != 1 or not 1 <= len(spacing) <= 3 or len(shapes["lnrho"]) != len(spacing):
        raise ValueError(
            f"state: expected arrays of one shape and a spacing per axis, got {shapes}, {spacing}"
        )
    return Differences(tuple(spacing), p.order)


def terms(state: State, spacing: Sequence[float], p: Parameters) -> dict[str, dict[str, Array]]:
    """Return the right-hand side of every field by terms; a field's terms add up to its time derivative.

    Optional terms (upwinding, hyperdiffusion, shock viscosity and its heating, cooling) are present only with
    their option, all other terms always.
    """
    d = checked(state, spacing, p)
    lnrho, u = state["lnrho"], np.stack([state[name] for name in VELOCITY])
    gamma, c_p, c_s0, mu0, nu, zeta, eta = (
        number(value, lnrho) for value in (p.gamma, p.c_p, p.c_s0, p.mu0, p.nu, p.zeta, p.eta)
    )
    rho = np.exp(lnrho)
    grad_lnrho, grad_u = d.gradient(lnrho), d.gradient(u)
    div_u = grad_u[0, 0] + grad_u[1, 1] + grad_u[2, 2]
    grad_div_u = d.gradient_of_divergence(u)
    shear = (grad_u + np.swapaxes(grad_u, 0, 1)) / 2
    for i in range(3):
        shear[i, i] -= div_u / 3
    zeta_s = shock_viscosity(div_u, spacing, p.nu_shock) if p.nu_shock else None

    of_lnrho = {"advection": -dot(u, grad_lnrho), "compression": -div_u}
    if p.upwind:
        of_lnrho["upwinding"] = d.upwinding(lnrho, u)
    if p.D3:
        of_lnrho["hyperdiffusion"] = number(p.D3, lnrho) * d.sixth(lnrho)

    of_u = {"advection": -np.stack([dot(u, grad_u[i]) for i in range(3)])}
    if p.isothermal:
        of_u["pressure"] = -(c_s0**2) * grad_lnrho
    else:
        h, T = thermal(state, p)
        grad_s = d.gradient(state["s"])
        of_u["pressure"] = -(c_s0**2) * np.exp(h) * (grad_s / c_p + grad_lnrho)
    if p.magnetic:
        A = np.stack([state[name] for name in POTENTIAL])
        lap_A = d.laplacian(A)
        B = magnetic_field(d, A, p)
        j = (d.gradient_of_divergence(A) - lap_A) / mu0
        of_u["lorentz"] = cross(j, B) / rho
    strain = np.stack([dot(shear[i], grad_lnrho) for i in range(3)])
    of_u["viscosity"] = nu * (d.laplacian(u) + grad_div_u / 3 + 2 * strain)
    of_u["bulk viscosity"] = zeta * grad_div_u
    of_u["gravity"] = np.stack([np.full_like(lnrho, g) for g in p.gravity])
    of_u["forcing"] = np.zeros_like(u) if p.forcing is None else np.asarray(p.forcing, u.dtype)
    if p.nu3:
        of_u["hyperdiffusion"] = number(p.nu3, lnrho) * d.sixth(u)
    if zeta_s is not None:
        of_u["shock viscosity"] = zeta_s * (grad_div_u + div_u * grad_lnrho) + div_u * d.gradient(zeta_s)

    result = {"lnrho": of_lnrho}
    result |= {name: {term: value[i] for term, value in of_u.items()} for i, name in enumerate(VELOCITY)}

    if not p.isothermal:
        s = state["s"]
        a, b = number(p.K_rho, lnrho), number(p.K_T, lnrho)
        # only the variables of the temperature are differentiated, not the temperature itself
        grad_lnT = gamma * grad_s / c_p + (gamma - 1) * grad_lnrho
        lap_lnT = gamma * d.laplacian(s) / c_p + (gamma - 1) * d.laplacian(lnrho)
        grad_lnK = a * grad_lnrho + b * grad_lnT
        K = number(p.K0, lnrho) * np.exp(a * (lnrho - number(p.lnrho0, lnrho)) + b * h)
        heat = {"heating": np.full_like(lnrho, p.heating)}
        if p.tau_cool is not None:
            excess = T - number(p.T_cool, lnrho)
            heat["cooling"] = -rho * (c_p / gamma) * excess / number(p.tau_cool, lnrho)
        heat["conduction"] = K * T * (lap_lnT + dot(grad_lnT, grad_lnT) + dot(grad_lnK, grad_lnT))
        if p.magnetic:
            heat["ohmic heating"] = eta * mu0 * dot(j, j)
        heat["viscous heating"] = 2 * rho * nu * (shear * shear).sum(axis=(0, 1))
        heat["bulk heating"] = zeta * rho * div_u**2
        if zeta_s is not None:
            heat["shock heating"] = zeta_s * rho * div_u**2
        of_s = {"advection": -dot(u, grad_s)} | {term: value / (rho * T) for term, value in heat.items()}
        if p.upwind:
            of_s["upwinding"] = d.upwinding(s, u)
        if p.chi3:
            of_s["hyperdiffusion"] = number(p.chi3, lnrho) * d.sixth(s)
        result["s"] = of_s

    if p.magnetic:
        of_A = {"induction": cross(u, B), "resistivity": eta * lap_A}
        if p.eta3:
            of_A["hyperdiffusion"] = number(p.eta3, lnrho) * d.sixth(A)
        result |= {name: {term: v[i] for term, v in of_A.items()} for i, name in enumerate(POTENTIAL)}
    return result


def time_derivative(state: State, spacing: Sequence[float], p: Parameters) -> State:
    """Return the sum of each field's terms."""
    return {field: sum(of_field.values()) for field, of_field in terms(state, spacing, p).items()}


# --- steps ---

TWO_REGISTERS = {  # w = α w + Δt F(f), f = f + β w
    "euler": ([Fraction(0)], [Fraction(1)]),
    "rk2": ([Fraction(0), Fraction(-1, 2)], [Fraction(1, 2), Fraction(1)]),  # midpoint
    "rk3": (  # Williamson (1980), J. Comput. Phys. 35, 48
        [Fraction(0), Fraction(-5, 9), Fraction(-153, 128)],
        [Fraction(1, 3), Fraction(15, 16), Fraction(8, 15)],
    ),
}
SCHEMES = (*TWO_REGISTERS, "rk4", "ssp-rk3")


def step(state: State, rhs: Callable[[State], State], dt: float, scheme: str = "rk3") -> State:
    """Return the state after one step; rhs returns the time derivative of every field."""

    def advance(f: State, by: float | Fraction, along: State) -> State:
        return {name: f[name] + number(by, f[name]) * along[name] for name in f}

    def mean(f: State, share: Fraction, g: State) -> State:
        """Return the mean of two states, in which the second has the weight `share`."""
        return {n: number(1 - share, f[n]) * f[n] + number(share, f[n]) * g[n] for n in f}

    if scheme in TWO_REGISTERS:
        f, w = state, {name: np.zeros_like(value) for name, value in state.items()}
        for alpha, beta in zip(*TWO_REGISTERS[scheme], strict=True):
            change = rhs(f)
            w = {n: number(alpha, w[n]) * w[n] + number(dt, w[n]) * change[n] for n in f}
            f = advance(f, beta, w)
        return f
    if scheme == "rk4":
        k1 = rhs(state)
        k2 = rhs(advance(state, dt / 2, k1))
        k3 = rhs(advance(state, dt / 2, k2))
        k4 = rhs(advance(state, dt, k3))
        return advance(state, dt, {n: (k1[n] + 2 * k2[n] + 2 * k3[n] + k4[n]) / 6 for n in state})
    if scheme == "ssp-rk3":  # Shu and Osher (1988), J. Comput. Phys. 77, 439
        f = advance(state, dt, rhs(state))
        f = mean(state, Fraction(1, 4), advance(f, dt, rhs(f)))
        return mean(state, Fraction(2, 3), advance(f, dt, rhs(f)))
    raise ValueError(f"scheme: expected one of {', '.join(SCHEMES)}, got {scheme!r}")


# --- diagnostics ---


def diagnostics(state: State, spacing: Sequence[float], p: Parameters) -> dict[str, float]:
    """Return means over the box, and extrema; the mass is an integral over the existing axes."""
    d = checked(state, spacing, p)
    u, rho = np.stack([state[name] for name in VELOCITY]), np.exp(state["lnrho"])
    series = {"u": np.sqrt(dot(u, u)), "rho": rho} | {name: state[name] for name in VELOCITY}
    results = {
        "kinetic energy": np.mean(rho * dot(u, u) / 2),
        "mass": np.sum(rho) * math.prod(spacing),
        "kinetic helicity": np.mean(dot(u, curl(d.gradient(u)))),
    }
    if not p.isothermal:
        series["s"] = state["s"]
        results["thermal energy"] = np.mean(rho * (p.c_p / p.gamma) * thermal(state, p)[1])
    if p.magnetic:
        A = np.stack([state[name] for name in POTENTIAL])
        B = magnetic_field(d, A, p)
        j = (d.gradient_of_divergence(A) - d.laplacian(A)) / p.mu0
        results["magnetic energy"] = np.mean(dot(B, B) / (2 * p.mu0))
        results["max |div B|"] = np.max(np.abs(sum(d.first(B[i], i) for i in range(3))))
        results["magnetic helicity"] = np.mean(dot(A, B))
        results["current helicity"] = np.mean(dot(j, B))
    for name, values in series.items():
        results[f"{name} rms"] = np.sqrt(np.mean(values**2))
        results[f"{name} min"], results[f"{name} max"] = np.min(values), np.max(values)
    return {name: float(value) for name, value in results.items()}
