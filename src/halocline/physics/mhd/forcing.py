"""Random forcing by a plane wave whose direction, phase and polarisation are random in each step.

Sources: A. Brandenburg, The inverse cascade and nonlinear alpha-effect in simulations of isotropic helical
hydromagnetic turbulence, Astrophys. J. 550 (2001), 824. N. E. L. Haugen, A. Brandenburg and W. Dobler,
Simulations of nonhelical hydromagnetic turbulence, Phys. Rev. E 70 (2004), 016308.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.expression import Expr, Operand, as_expr, round_to
from halocline.lang.functions import cos, lookup, random, sin, sqrt
from halocline.lang.grid import Grid, Vector
from halocline.lang.operators import cross
from halocline.lang.reductions import dot

# indices of the random numbers of a step
WAVE, PHASE, HEIGHT, LONGITUDE = range(4)

MOST_VECTORS = 100_000  # the program contains a table of the wave vectors


@dataclass(frozen=True)
class Forcing:
    """Forcing f = Re{N f_k exp(i k·x + i φ)}, delta-correlated in time.

    The amplitude is N = f₀ c_s √(|k| c_s / δt). The polarisation is f_k = (v - i σ v × k̂) / √(1 + σ²), with
    v = k × e / |k × e|.

    The wave vector k, the direction e and the phase φ are drawn at random for each step and are constant
    during the step. A whole number of waves fits into the box along each axis, and kmin <= |k| < kmax.

    The helicity f·∇×f has the sign of σ. For σ = 1, ∇×f = k f. For σ = 0, the helicity vanishes.

    Parameters
    ----------
    kmin, kmax : float
        Bounds of |k|, in units of the smallest wave number of the longest side of the box.
    """

    kmin: float
    kmax: float

    def vectors(self, grid: Grid) -> tuple[tuple[float, ...], ...]:
        """Return the wave vectors between `kmin` and `kmax`, for a box that is periodic along all axes.

        Raises
        ------
        InputError
            `kmax` exceeds the Nyquist limit of the grid, or no wave vector has kmin <= |k| < kmax. Also if
            the box of wave vectors up to `kmax` has more than `MOST_VECTORS` entries.
        """
        least = 2 * math.pi / max(grid.extent)
        steps = [2 * math.pi / length for length in grid.extent]
        resolved = min(n * k / 2 for n, k in zip(grid.shape, steps, strict=True)) / least
        if not self.kmax <= resolved:
            raise InputError(
                f"kmax is {self.kmax:g}; expected at most {resolved:g}, the Nyquist limit of this grid: use "
                "more cells or a smaller kmax"
            )
        reach = [range(-int(self.kmax * least / k), int(self.kmax * least / k) + 1) for k in steps]
        if (count := math.prod(map(len, reach))) > MOST_VECTORS:
            raise InputError(
                f"kmax is {self.kmax:g}, which gives {count:,} wave vectors; expected at most "
                f"{MOST_VECTORS:,}"
            )
        vectors = []
        for numbers in product(*reach):
            k = tuple(n * step for n, step in zip(numbers, steps, strict=True))
            if self.kmin <= math.hypot(*k) / least < self.kmax and any(numbers):
                vectors.append((*k, *(0.0,) * (3 - grid.ndim)))
        if not vectors:
            raise InputError(
                f"no wave vector of the box has {self.kmin:g} <= |k| < {self.kmax:g}, in units of "
                f"{least:g}: choose a smaller kmin or a larger kmax"
            )
        return tuple(vectors)

    def __call__(
        self, grid: Grid, *, seed: Operand, step: Operand, dt: Operand, strength: Operand, speed: Operand,
        helicity: Operand,
    ) -> Vector:  # fmt: skip
        """Return the acceleration in one step, as part of a program.

        Parameters
        ----------
        grid : Grid
        seed, step, dt : scalar
            Seed of the random numbers, number of the step, and time step.
        strength, speed, helicity : scalar
            f₀, c_s, σ.
        """
        vectors = self.vectors(grid)
        draw = [_stored_scalar(random(seed, step, number)) for number in range(4)]
        vector_index = draw[WAVE] * float(len(vectors))
        k = Vector(
            _stored_scalar(lookup(components, vector_index)) for components in zip(*vectors, strict=True)
        )
        length = _stored_scalar(sqrt(dot(k, k)))
        height, longitude = 2.0 * draw[HEIGHT] - 1.0, 2 * math.pi * draw[LONGITUDE]
        radius = sqrt(1.0 - height * height)
        v = cross(k, (radius * cos(longitude), radius * sin(longitude), height))
        v = Vector(v) / _stored_scalar(sqrt(dot(v, v)))
        twist = Vector(cross(k, v)) * (as_expr(helicity) / length)
        size = strength * speed * sqrt(length * speed / dt) / sqrt(1.0 + as_expr(helicity) ** 2)
        along = [_stored_scalar(size * c) for c in v]
        across = [_stored_scalar(size * c) for c in twist]
        phase = sum((k[a] * x for a, x in enumerate(grid.coordinates())), 2 * math.pi * draw[PHASE])
        c, s = (round_to(wave, grid.dtype) for wave in (cos(phase), sin(phase)))
        return Vector(a * c - b * s for a, b in zip(along, across, strict=True))


def _stored_scalar(value: Expr) -> Expr:
    """Store a value in a new scalar of the program and return the scalar.

    Without the scalar, every cell would compute the value again.
    """
    stored = trace.current("a random forcing").unnamed_scalar("forcing")
    stored.set(value)
    return stored.expr
