"""Seven waves of ideal magnetohydrodynamics between two states.

P. Cargo and G. Gallice, Roe matrices for ideal MHD and systematic construction of Roe matrices for systems of
conservation laws, J. Comput. Phys. 136 (1997), 446. With the averages of this paper, the jump of the fluxes
is exactly a matrix times the jump of the conserved quantities.

Define X = |ΔB|² / (2 (√ρ_l + √ρ_r)²) and π = Δp + X Δρ. Then the jumps of density, velocity, field and π obey
the equations of small waves in an averaged gas. This gas has the averaged density, velocity and field. The
square of its speed of sound is a² = γ <p/ρ> + (γ-1)/2 <ρ> |Δv|² / (√ρ_l + √ρ_r)² + γ X, a sum of non-negative
terms. Therefore strengths and fluxes of the waves follow from jumps of primitive quantities.

The eigenvectors are normalised as in Roe and Balsara (SIAM J. Appl. Math. 56 (1996), 57). No expression is
singular if the tangential or the normal field vanishes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from halocline.lang.expression import Expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import sqrt, where
from halocline.lang.program import parameter
from halocline.physics.mhd_tvd.gas import Flux, Normal, ordered_sum


class WaveValues(NamedTuple):
    """One value for each wave: three waves against the normal, the entropy wave, three along the normal."""

    fast_down: Any
    alfven_down: Any
    slow_down: Any
    entropy: Any
    slow_up: Any
    alfven_up: Any
    fast_up: Any

    def map(self, function: Callable[..., Any], *operands: WaveValues) -> WaveValues:
        """Return the value of a function for each wave."""
        return WaveValues(*map(function, self, *operands))


OF_FAMILY = WaveValues("fast", "alfven", "slow", "entropy", "slow", "alfven", "fast")


# Maximum stress, relative to the pressure, that counts as a rounding error. In float32, it is one unit in the
# last place of the pressure. A larger value would remove weak fields, such as the loop in the case
# field-loop.
NOTHING = {"float64": 1e-14, "float32": 2.0**-23}


@dataclass(frozen=True)
class Waves:
    """Averages at a face, and the quantities that determine the eigenvectors.

    Parameters
    ----------
    rho, u, v, w, By, Bz, a : Expr
        Averaged state, and its speed of sound.
    fast, alfven, slow : Expr
        Speeds relative to the gas.
    share_fast, share_slow : Expr
        α_f and α_s: acoustic parts of a fast and a slow wave.
    along_y, along_z : Expr
        Components of β, the direction of the tangential field.
    towards : Expr
        Sign of the normal field.
    root : Expr
        √ρ.
    X : Expr
        |ΔB|² / (2 (√ρ_l + √ρ_r)²).
    """

    rho: Expr
    root: Expr
    u: Expr
    v: Expr
    w: Expr
    By: Expr
    Bz: Expr
    X: Expr
    a: Expr
    fast: Expr
    alfven: Expr
    slow: Expr
    share_fast: Expr
    share_slow: Expr
    along_y: Expr
    along_z: Expr
    towards: Expr

    @classmethod
    def between(cls, left: Normal, right: Normal, bn: Expr) -> Waves:
        """Return the waves between the states on both sides of a face."""
        gamma = parameter("gamma")
        root_l, root_r = sqrt(left.rho), sqrt(right.rho)
        total = ordered_sum(root_l, root_r)
        share = 1.0 / total
        part_l, part_r = root_l * share, root_r * share

        def mean(l: Expr, r: Expr) -> Expr:
            return ordered_sum(part_l * l, part_r * r)

        rho = root_l * root_r
        u, v, w = mean(left.u, right.u), mean(left.v, right.v), mean(left.w, right.w)
        # In the mean of the field, the value of each side has the weight of the other side.
        By, Bz = mean(right.By, left.By), mean(right.Bz, left.Bz)
        dBy, dBz = right.By - left.By, right.Bz - left.Bz
        X = 0.5 * (share * share) * ordered_sum(dBy * dBy, dBz * dBz)
        du, dv, dw = right.u - left.u, right.v - left.v, right.w - left.w
        kinetic_term = rho * (share * share) * ordered_sum(du * du, dv * dv, dw * dw)
        inverse = 1.0 / rho
        p_over_rho = inverse * ordered_sum(part_r * left.p, part_l * right.p)
        a2 = ordered_sum(gamma * (p_over_rho + X), 0.5 * (gamma - 1.0) * kinetic_term)
        y, z = _significant(By, Bz, NOTHING[a2.precision or "float64"] * rho * a2)
        across, square = bn * bn * inverse, ordered_sum(y * y, z * z)
        along = square * inverse
        # c_f² - c_s², without cancellation
        difference = a2 - across - along
        split = sqrt(ordered_sum(difference * difference, 4.0 * a2 * along))
        fast2 = 0.5 * ordered_sum(a2, across, along, split)
        a, root, fast = sqrt(a2), sqrt(rho), sqrt(fast2)
        alfven = magnitude(bn) / root
        slow = a * alfven / fast
        # α_f² and α_s² are (a² - c_s²) and (c_f² - a²), divided by c_f² - c_s². The larger one is computed
        # directly, and the smaller one from the product of both.
        larger = 0.5 * (split + magnitude(difference))
        smaller = a2 * along / larger
        scale = 1.0 / split
        is_split = split > 0.0
        larger_root, smaller_root = sqrt(larger * scale), sqrt(smaller * scale)
        is_acoustic = difference >= 0.0
        share_fast = where(is_split, where(is_acoustic, larger_root, smaller_root), 1.0)
        share_slow = where(is_split, where(is_acoustic, smaller_root, larger_root), 0.0)
        # If there is no tangential field, its direction is that of the jump of the field, or else the jump of
        # velocity.
        no_field, jump = square <= 0.0, X > 0.0
        y, z = where(no_field, where(jump, dBy, dv), y), where(no_field, where(jump, dBz, dw), z)
        length = sqrt(ordered_sum(y * y, z * z))
        has_direction, inverse_length = length > 0.0, 1.0 / length
        along_y = where(has_direction, y * inverse_length, 0.7071067811865476)
        along_z = where(has_direction, z * inverse_length, 0.7071067811865476)
        return cls(
            rho, root, u, v, w, By, Bz, X, a, fast, alfven, slow, share_fast, share_slow, along_y, along_z,
            where(bn >= 0.0, 1.0, -1.0),
        )  # fmt: skip

    @property
    def speeds(self) -> WaveValues:
        """Speeds of the waves, a_k."""
        u = self.u
        return WaveValues(
            u - self.fast, u - self.alfven, u - self.slow, u, u + self.slow, u + self.alfven, u + self.fast
        )

    def strengths(self, left: Normal, right: Normal) -> WaveValues:
        """Return the strengths of the waves, α_k = L_k · Δq (Equation A5)."""
        f, s, y, z = self.share_fast, self.share_slow, self.along_y, self.along_z
        d = Normal(*(r - l for l, r in zip(left, right, strict=True)))
        push = d.p + self.X * d.rho
        a2 = self.a * self.a
        half = 0.5 / a2
        turned = self.towards * ordered_sum(y * d.v, z * d.w)
        bent = self.a / self.root * ordered_sum(y * d.By, z * d.Bz)
        pushed = push / self.rho
        fast_even, fast_odd = ordered_sum(s * bent, f * pushed), f * self.fast * d.u - s * self.slow * turned
        slow_even, slow_odd = s * pushed - f * bent, ordered_sum(s * self.slow * d.u, f * self.fast * turned)
        twist_odd = y * d.w - z * d.v
        twist_even = self.towards / self.root * (z * d.By - y * d.Bz)
        return WaveValues(
            half * (fast_even - fast_odd),
            0.5 * (twist_even - twist_odd),
            half * (slow_even - slow_odd),
            d.rho - push / a2,
            half * (slow_even + slow_odd),
            0.5 * (twist_even + twist_odd),
            half * (fast_even + fast_odd),
        )

    def superpose(self, weights: WaveValues) -> Flux:
        """Return Σ_k weights_k R_k, in conserved quantities."""
        f, s, y, z = self.share_fast, self.share_slow, self.along_y, self.along_z
        gamma = parameter("gamma")
        fast_even, fast_odd = weights.fast_up + weights.fast_down, weights.fast_up - weights.fast_down
        slow_even, slow_odd = weights.slow_up + weights.slow_down, weights.slow_up - weights.slow_down
        twist_even, twist_odd = (
            weights.alfven_up + weights.alfven_down,
            weights.alfven_up - weights.alfven_down,
        )
        sound = self.rho * ordered_sum(f * fast_even, s * slow_even)
        rho, p = sound + weights.entropy, self.a * self.a * sound
        u = ordered_sum(f * self.fast * fast_odd, s * self.slow * slow_odd)
        turn = self.towards * (f * self.fast * slow_odd - s * self.slow * fast_odd)
        v, w = y * turn - z * twist_odd, ordered_sum(z * turn, y * twist_odd)
        bend = self.root * self.a * (s * fast_even - f * slow_even)
        twist = self.root * self.towards * twist_even
        By, Bz = ordered_sum(y * bend, z * twist), z * bend - y * twist
        motion = ordered_sum(self.u * self.u, self.v * self.v, self.w * self.w)
        worth = 0.5 * motion + (gamma - 2.0) / (gamma - 1.0) * self.X
        kinetic_change = self.rho * ordered_sum(self.u * u, self.v * v, self.w * w)
        E = ordered_sum(p / (gamma - 1.0), worth * rho, kinetic_change, self.By * By, self.Bz * Bz)
        return Flux(
            rho,
            ordered_sum(self.u * rho, self.rho * u),
            ordered_sum(self.v * rho, self.rho * v),
            ordered_sum(self.w * rho, self.rho * w),
            By,
            Bz,
            E,
        )


def _significant(y: Expr, z: Expr, threshold: Expr) -> tuple[Expr, Expr]:
    """Return the components of a field, with the smaller one set to 0 if their product is negligible.

    The product of the components is a stress. It is negligible if it is at most `threshold`.

    The scheme limits Alfvén waves, which rotate the field, separately from fast and slow waves. If rounding
    errors changed the direction of the field, they would mix these waves, and the error of a component would
    grow.
    """
    is_negligible, y_is_larger = magnitude(y * z) <= threshold, magnitude(y) >= magnitude(z)
    return where(is_negligible & ~y_is_larger, 0.0, y), where(is_negligible & y_is_larger, 0.0, z)


def viscosity(chi: Expr, epsilon: Expr) -> Expr:
    """Return Q(χ), the coefficient of numerical viscosity (Equation A9): |χ|, smoothed below 2ε."""
    size = magnitude(chi)
    rounded: Expr = where(size < 2.0 * epsilon, (0.25 / epsilon) * (size * size) + epsilon, size)
    return rounded
