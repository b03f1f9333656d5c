"""Fluxes between two states of magnetised gas, from approximate solutions of their Riemann problem.

The arguments of a solver are the states on both sides of a face and the normal field. In a mirrored problem,
the sides are exchanged, and `u` and `bn` change sign. The flux of the mirrored problem is bit-for-bit the
mirror image of the original flux. For this purpose, `symmetric_sum` adds the terms of the left and the right
side, and pairs of products within one side. Otherwise a compiler could fuse one of two products into a
multiply-add, and the choice of the product would depend on names in the formula.

The modified flux of MHDTVD is that of Mendygral et al. 2017, Appendix A, and Ryu and Jones 1995, ApJ 442,
228. At each face, the jump is decomposed into seven waves. Each wave has an upwind flux, reduced by a limited
correction. For smooth waves, the corrected flux is of second order in space and time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from halocline.lang.dtype import rounding
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import maximum, minimum, sqrt, symmetric_sum, where
from halocline.lang.grid import AXES
from halocline.lang.operators import shift
from halocline.lang.program import parameter, stage
from halocline.physics.mhd_tvd.gas import Flux, Normal, State, conserved, face_states, fast, flux, ordered_sum
from halocline.physics.mhd_tvd.reconstruct import Limiter, central
from halocline.physics.mhd_tvd.waves import OF_FAMILY, Waves, WaveValues, viscosity

# Fraction of bn², in float64. If a denominator of HLLD is not larger than this fraction, a fast wave is as
# slow as the Alfvén wave behind it. Then the tangential velocity and field do not change across the fast
# wave.
NONE = 1e-12


def hll(left: Normal, right: Normal, bn: Expr) -> Flux:
    """Return the flux with one state between the two fastest waves.

    Source: Mendygral et al. 2017, Equations A10 to A12. In the printed formula, both fluxes have the same
    sign. Here, the flux of the right side has the opposite sign. Otherwise two equal states would not give
    the flux of this state.
    """
    waves = Waves.between(left, right, bn)
    # upward and downward speed of the waves, both ≥ 0
    up = maximum(waves.u + waves.fast, right.u + fast(right, bn), 0.0)
    down = -minimum(waves.u - waves.fast, left.u - fast(left, bn), 0.0)
    share = 1.0 / (up + down)
    of_left, of_right, spread = up * share, down * share, (up * down) * share

    def mixed(F_l: Expr, F_r: Expr, q_l: Expr, q_r: Expr) -> Expr:
        mean: Expr = symmetric_sum(of_left * F_l, of_right * F_r)
        difference: Expr = symmetric_sum(q_r, -q_l)
        return mean - spread * difference

    fluxes, held = (flux(left, bn), flux(right, bn)), (conserved(left, bn), conserved(right, bn))
    return Flux(*map(mixed, *fluxes, *held))


def roe(left: Normal, right: Normal, bn: Expr) -> Flux:
    """Return the flux with seven waves in an averaged gas (Cargo and Gallice 1997; see `waves`).

    The numerical viscosity of a wave of speed a is Q(a/c) c instead of |a|. Q is the function of Mendygral
    et al. 2017, Equation A9, and c is the fast speed of the averaged gas. Therefore waves slower than 2 ε c
    are damped as if their speed were at least ε c (Harten, J. Comput. Phys. 49 (1983), 357). Without this
    damping, a transonic rarefaction could remain a jump, which violates the entropy condition.

    ε is the parameter "epsilon_fast", "epsilon_alfven", "epsilon_slow" or "epsilon_entropy" of the wave
    family. For ε = 0, the numerical viscosity is |a|.
    """
    waves = Waves.between(left, right, bn)
    epsilon = OF_FAMILY.map(lambda family: parameter(f"epsilon_{family}"))
    inverse = 1.0 / waves.fast
    size = waves.speeds.map(lambda a, epsilon: viscosity(a * inverse, epsilon), epsilon)
    spread = waves.superpose(size.map(lambda size, alpha: size * alpha, waves.strengths(left, right)))
    half = 0.5 * waves.fast
    sides = zip(flux(left, bn), flux(right, bn), spread, strict=True)
    return Flux(*(0.5 * symmetric_sum(F_l, F_r) - half * s for F_l, F_r, s in sides))


def hlld(left: Normal, right: Normal, bn: Expr) -> Flux:
    """Return the flux with four states between five waves: two fast, two Alfvén and one contact.

    Source: T. Miyoshi and K. Kusano, J. Comput. Phys. 208 (2005), 315. The states satisfy the jump conditions
    if F(U) uses the total pressure between the fast waves. Therefore the flux is computed once, from the
    state at the face. If a contact is at rest on the face, the states of both sides give the same bits.
    """
    square, towards = bn * bn, where(bn >= 0.0, 1.0, -1.0)

    # fast waves, and the velocity and total pressure between them (Equations 67, 38 and 41)
    speed = maximum(fast(left, bn), fast(right, bn))
    slowest, fastest = minimum(left.u, right.u) - speed, maximum(left.u, right.u) + speed
    relative_l, relative_r = left.u - slowest, fastest - right.u  # speeds of the gas relative to the waves
    mass_flux_l, mass_flux_r = left.rho * relative_l, right.rho * relative_r
    total_l, total_r = _total(left, square), _total(right, square)
    share = 1.0 / symmetric_sum(mass_flux_l, mass_flux_r)
    u = share * (
        symmetric_sum(mass_flux_l * left.u, mass_flux_r * right.u) + symmetric_sum(total_l, -total_r)
    )
    crossed = symmetric_sum(mass_flux_r * total_l, mass_flux_l * total_r)
    total = share * symmetric_sum(crossed, (mass_flux_l * mass_flux_r) * (left.u - right.u))

    # states behind the fast waves (Equations 43 to 47): v and B change by multiples of the tangential field
    depth_l, depth_r = u - slowest, fastest - u
    inverse = 1.0 / (depth_l * depth_r)
    inverse_l, inverse_r = depth_r * inverse, depth_l * inverse
    rho_l, rho_r = mass_flux_l * inverse_l, mass_flux_r * inverse_r
    denominator_l, denominator_r = mass_flux_l * depth_l - square, mass_flux_r * depth_r - square
    none = rounding(NONE, square.precision) * square
    is_degenerate_l, is_degenerate_r = denominator_l <= none, denominator_r <= none
    denominator_l, denominator_r = (
        where(is_degenerate_l, 1.0, denominator_l),
        where(is_degenerate_r, 1.0, denominator_r),
    )
    inverse = 1.0 / (denominator_l * denominator_r)
    turn_l = where(is_degenerate_l, 0.0, (left.u - u) * (denominator_r * inverse))
    turn_r = where(is_degenerate_r, 0.0, (u - right.u) * (denominator_l * inverse))
    bent_l, bent_r = 1.0 + mass_flux_l * turn_l, 1.0 + mass_flux_r * turn_r
    lift_l, lift_r = bn * turn_l, bn * turn_r
    root_l, root_r = sqrt(rho_l), sqrt(rho_r)
    share = 1.0 / symmetric_sum(root_l, root_r)
    part_l, part_r, signed_share = root_l * share, root_r * share, towards * share

    def along(v_l: Expr, v_r: Expr, B_l: Expr, B_r: Expr) -> tuple[tuple[Expr, Expr, Expr], ...]:
        """Return the components of velocity and field along a tangential axis.

        The results are the values behind the left fast wave, behind the right fast wave, and between the
        Alfvén waves (Equations 59 to 62).
        """
        v_l, v_r = v_l + lift_l * B_l, v_r - lift_r * B_r
        B_l, B_r = bent_l * B_l, bent_r * B_r
        v = symmetric_sum(part_l * v_l, part_r * v_r) + signed_share * symmetric_sum(B_r, -B_l)
        B = symmetric_sum(part_l * B_r, part_r * B_l) + (root_l * root_r) * (signed_share * (v_r - v_l))
        return (v_l, v_r, v), (B_l, B_r, B)

    of_v, of_By = along(left.v, right.v, left.By, right.By)
    of_w, of_Bz = along(left.w, right.w, left.Bz, right.Bz)

    # state at the face: left or right state, or the state behind its fast wave, or behind its Alfvén wave
    from_left = u > 0.0
    outward = where(from_left, -1.0, 1.0)

    def of_side(l: Expr, r: Expr) -> Any:
        return where(from_left, l, r)

    side = Normal(*map(of_side, left, right))
    root, rho = of_side(root_l, root_r), of_side(rho_l, rho_r)
    outside = (slowest >= 0.0) | (fastest <= 0.0)
    behind = magnitude(u) * root < magnitude(bn)
    v, By, w, Bz = (of_side(l, r) for l, r, _ in (of_v, of_By, of_w, of_Bz))
    inner_v, inner_By, inner_w, inner_Bz = (middle for _, _, middle in (of_v, of_By, of_w, of_Bz))

    # v·B along the face; and energy (Equations 48 and 63)
    vB_side = symmetric_sum(side.v * side.By, side.w * side.Bz)
    vB_fast, vB_alfven = symmetric_sum(v * By, w * Bz), symmetric_sum(inner_v * inner_By, inner_w * inner_Bz)
    side_total, side_E = of_side(total_l, total_r), conserved(side, bn).E
    work = symmetric_sum(total * u, -(side_total * side.u)) + bn * (vB_side - vB_fast)
    E = of_side(inverse_l, inverse_r) * symmetric_sum(
        of_side(relative_l, relative_r) * side_E, outward * work
    )
    inner_E = E + outward * (towards * root) * (vB_fast - vB_alfven)

    def select(first: Expr, second: Expr, third: Expr) -> Any:
        return where(outside, first, where(behind, third, second))

    v, By = select(side.v, v, inner_v), select(side.By, By, inner_By)
    w, Bz = select(side.w, w, inner_w), select(side.Bz, Bz, inner_Bz)
    E, vB = select(side_E, E, inner_E), select(vB_side, vB_fast, vB_alfven)
    rho, u, total = (where(outside, a, b) for a, b in ((side.rho, rho), (side.u, u), (side_total, total)))
    mass = rho * u
    return Flux(
        mass,
        mass * u + total,
        symmetric_sum(mass * v, -(bn * By)),
        symmetric_sum(mass * w, -(bn * Bz)),
        symmetric_sum(By * u, -(bn * v)),
        symmetric_sum(Bz * u, -(bn * w)),
        symmetric_sum((E + total) * u, -(bn * vB)),
    )


def _total(w: Normal, square: Expr) -> Expr:
    """Return the pressure of gas and magnetic field, minus the tension `square` along the normal."""
    along: Expr = symmetric_sum(w.By * w.By, w.Bz * w.Bz)
    return w.p + 0.5 * (along - square)


RIEMANN: dict[str, Callable[[Normal, Normal, Expr], Flux]] = {"hll": hll, "hlld": hlld, "roe": roe}


def mhdtvd(state: State, bn: Expr, axis: int, ratio: Expr, name: str, limit: Limiter = central) -> Flux:
    """Return the flux of MHDTVD through the lower face of each cell (Equation A2).

    Parameters
    ----------
    state : State
        State of the cells.
    bn : Expr
        Magnetic field across the faces.
    axis : int
        Axis across which the faces lie.
    ratio : Expr
        Δt/Δx of the step.
    name : str
        Prefix of the names of the stages.
    limit : callable
        Limiter of Equation A7; that of the paper is `reconstruct.sweby`.
    """
    left, right = face_states(state, axis)
    waves = Waves.between(left, right, bn)
    epsilon = OF_FAMILY.map(lambda family: parameter(f"epsilon_{family}"))
    chi = waves.speeds.map(lambda a: ratio * a)
    alpha = waves.strengths(left, right)

    def correction(chi: Expr, alpha: Expr, epsilon: Expr) -> Expr:  # Equation A8
        return 0.5 * (viscosity(chi, epsilon) - chi * chi) * alpha

    tilde = chi.map(correction, alpha, epsilon)
    place = f"face-{AXES[axis]}"
    tilde = WaveValues(*stage(tuple(tilde), f"{name}_g", location=place, storage="patch"))
    form = waves.share_fast, waves.share_slow, waves.along_y, waves.along_z
    form = stage(form, f"{name}_form", location=place, storage="patch")

    def beside(by: int) -> WaveValues:
        """Return the corrections at a neighbouring face, with the signs of the eigenvectors at this face."""
        senses = _orientation(form, [shift(part, axis, by) for part in form])
        return tilde.map(lambda g, s: where(s < 0.0, -shift(g, axis, by), shift(g, axis, by)), senses)

    def weight(  # Equations A4, A6, A7
        chi: Expr, alpha: Expr, tilde: Expr, below: Expr, above: Expr, epsilon: Expr
    ) -> Expr:
        beta = parameter("limiter")
        below, above = limit(tilde, below, beta), limit(tilde, above, beta)
        gamma = where(alpha == 0.0, 0.0, (above - below) / alpha)
        return viscosity(chi + gamma, epsilon) * alpha - (below + above)

    weights = chi.map(weight, alpha, tilde, beside(-1), beside(1), epsilon)
    spread = waves.superpose(weights)
    half = 0.5 / ratio
    pairs = zip(flux(left, bn), flux(right, bn), spread, strict=True)
    return Flux(*(0.5 * ordered_sum(l, r) - half * s for l, r, s in pairs))


def _orientation(first: Sequence[Expr], second: Sequence[Expr]) -> WaveValues:
    """Return one value for each wave, negative if its eigenvectors at two faces have opposite directions.

    The sign of an eigenvector is arbitrary. Here, it follows the direction of the tangential field. On both
    sides of a current sheet, these directions are opposite. If the signs were not matched, the limiter would
    reduce a wave with the same strength on both sides to zero.
    """
    (f, s, y, z), (f2, s2, y2, z2) = first, second
    turned = ordered_sum(y * y2, z * z2)
    fast, slow = ordered_sum(f * f2, s * s2 * turned), ordered_sum(s * s2, f * f2 * turned)
    one = as_expr(1.0)
    return WaveValues(fast, turned, slow, one, slow, turned, fast)
