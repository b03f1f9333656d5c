"""The modified flux of MHDTVD (Mendygral et al. 2017, Appendix A; Ryu and Jones 1995, ApJ 442, 228).

At each face the jump is cut into seven waves. Each moves as an upwind scheme has it, less what a limited
correction takes back, which makes the flux of second order in space and time where waves are smooth.
"""

from __future__ import annotations

from collections.abc import Sequence

from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import where
from halocline.lang.grid import AXES
from halocline.lang.operators import shift
from halocline.lang.program import parameter, stage
from halocline.physics.mhd_tvd.gas import Flux, State, added, both, flux
from halocline.physics.mhd_tvd.limiters import Limiter, central
from halocline.physics.mhd_tvd.waves import OF_FAMILY, Seven, Waves, viscosity


def mhdtvd(state: State, bn: Expr, axis: int, ratio: Expr, name: str, limit: Limiter = central) -> Flux:
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
    limit : callable
        That of Equation A7; the paper's is `limiters.sweby`.
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
    form = waves.share_fast, waves.share_slow, waves.along_y, waves.along_z
    form = stage(form, f"{name}_form", location=place, storage="patch")

    def beside(by: int) -> Seven:
        """The corrections at the next face, of eigenvectors with the sense that they have here."""
        senses = _senses(form, [shift(part, axis, by) for part in form])
        return tilde.each(lambda g, s: where(s < 0.0, -shift(g, axis, by), shift(g, axis, by)), senses)

    def weight(  # Equations A4, A6, A7
        chi: Expr, alpha: Expr, tilde: Expr, below: Expr, above: Expr, epsilon: Expr
    ) -> Expr:
        beta = parameter("limiter")
        below, above = limit(tilde, below, beta), limit(tilde, above, beta)
        gamma = where(alpha == 0.0, 0.0, (above - below) / alpha)
        return viscosity(chi + gamma, epsilon) * alpha - (below + above)

    weights = chi.each(weight, alpha, tilde, beside(-1), beside(1), epsilon)
    spread = waves.combined(weights)
    half = 0.5 / ratio
    pairs = zip(flux(left, bn), flux(right, bn), spread, strict=True)
    return Flux(*(0.5 * added(l, r) - half * s for l, r, s in pairs))


def _senses(here: Sequence[Expr], there: Sequence[Expr]) -> Seven:
    """Below 0 where the eigenvectors of two faces point in opposite directions, since the field along the
    faces does.

    An eigenvector is known but for its sign, and the one that is used turns with the field along the face.
    Without this a wave of the same strength on both sides of a sheet of current would be limited to nothing.
    """
    (f, s, y, z), (f2, s2, y2, z2) = here, there
    turned = added(y * y2, z * z2)
    fast, slow = added(f * f2, s * s2 * turned), added(s * s2, f * f2 * turned)
    one = as_expr(1.0)
    return Seven(fast, turned, slow, one, slow, turned, fast)
