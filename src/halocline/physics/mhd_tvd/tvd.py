"""The modified flux of MHDTVD (Mendygral et al. 2017, Appendix A; Ryu and Jones 1995, ApJ 442, 228).

At each face the jump is cut into seven waves. Each moves as an upwind scheme has it, less what a limited
correction takes back, which makes the flux of second order in space and time where waves are smooth.
"""

from __future__ import annotations

from halocline.lang.expression import Expr
from halocline.lang.functions import where
from halocline.lang.grid import AXES
from halocline.lang.operators import shift
from halocline.lang.program import parameter, stage
from halocline.physics.mhd_tvd.gas import Flux, State, added, both, flux
from halocline.physics.mhd_tvd.waves import OF_FAMILY, Seven, Waves, sweby, viscosity


def mhdtvd(state: State, bn: Expr, axis: int, ratio: Expr, name: str) -> Flux:
    """Through the lower face of each cell, over a step of `ratio` = Δt/Δx (Equation A2).

    Parameters
    ----------
    state : State
        Of the cells.
    bn : Expr
        The field across the faces.
    axis : int
    ratio : Expr
    name : str
        Of the stages.
    """
    left, right = both(state, axis)
    waves = Waves.between(left, right, bn)
    epsilon = OF_FAMILY.each(lambda family: parameter(f"epsilon_{family}"))
    chi = waves.speeds.each(lambda a: ratio * a)
    alpha = waves.strengths(left, right)

    def correction(chi: Expr, alpha: Expr, epsilon: Expr) -> Expr:  # Equation A8
        return 0.5 * (viscosity(chi, epsilon) - chi * chi) * alpha

    tilde = chi.each(correction, alpha, epsilon)
    place = f"face-{AXES[axis]}"
    tilde = Seven(*stage(tuple(tilde), f"{name}_g", location=place, storage="patch"))

    def weight(chi: Expr, alpha: Expr, tilde: Expr, epsilon: Expr) -> Expr:  # Equations A4, A6, A7
        beta = parameter("limiter")
        below, above = sweby(tilde, shift(tilde, axis, -1), beta), sweby(shift(tilde, axis), tilde, beta)
        gamma = where(alpha == 0.0, 0.0, (above - below) / alpha)
        return viscosity(chi + gamma, epsilon) * alpha - (below + above)

    spread = waves.combined(chi.each(weight, alpha, tilde, epsilon))
    half = 0.5 / ratio
    pairs = zip(flux(left, bn), flux(right, bn), spread, strict=True)
    return Flux(*(0.5 * added(l, r) - half * s for l, r, s in pairs))
