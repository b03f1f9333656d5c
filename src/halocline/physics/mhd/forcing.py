"""Random forcing: a plane wave whose direction, phase and polarisation are drawn anew for each step.

A. Brandenburg, The inverse cascade and nonlinear alpha-effect in simulations of isotropic helical
hydromagnetic turbulence, Astrophys. J. 550 (2001), 824; N. E. L. Haugen, A. Brandenburg and W. Dobler,
Simulations of nonhelical hydromagnetic turbulence, Phys. Rev. E 70 (2004), 016308.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from halocline.errors import InputError
from halocline.lang import trace
from halocline.lang.expression import Expr, Operand, as_expr, rounded
from halocline.lang.functions import cos, lookup, random, sin, sqrt
from halocline.lang.grid import Grid, Vector
from halocline.lang.operators import cross
from halocline.lang.reductions import dot

# which number of a step is drawn for what
WAVE, PHASE, HEIGHT, LONGITUDE = range(4)

MOST_VECTORS = 100_000  # a table of those of the shell is part of the program


@dataclass(frozen=True)
class Forcing:
    """f = Re{N f_k exp(i k·x + i φ)} with N = f₀ c_s √(|k| c_s / δt), delta-correlated in time.

    f_k = (v - i σ v × k̂) / √(1 + σ²) with v = k × e / |k × e|: k is one of the wave vectors of the box with
    kmin <= |k| < kmax, e any direction, φ any phase, all drawn for each step and the same during it. The
    helicity f·∇×f is σ-signed: ∇×f = k f for σ = 1; none for σ = 0.

    Parameters
    ----------
    kmin, kmax : float
        In units of the least wave number of the longest side of the box.
    """

    kmin: float
    kmax: float

    def vectors(self, grid: Grid) -> tuple[tuple[float, ...], ...]:
        """The wave vectors, as those of a box that is periodic along all axes.

        Raises
        ------
        InputError
            There is none; or some that the grid does not resolve, or very many.
        """
        least = 2 * math.pi / max(grid.extent)
        steps = [2 * math.pi / length for length in grid.extent]
        resolved = min(n * k / 2 for n, k in zip(grid.shape, steps, strict=True)) / least
        if not self.kmax <= resolved:
            raise InputError(
                f"kmax is {self.kmax:g}; expected at most {resolved:g}, half a wave a cell of this grid: "
                "take more cells or a smaller kmax"
            )
        reach = [range(-int(self.kmax * least / k), int(self.kmax * least / k) + 1) for k in steps]
        if (count := math.prod(map(len, reach))) > MOST_VECTORS:
            raise InputError(
                f"kmax is {self.kmax:g}: a box of {count:,} wave vectors; expected at most {MOST_VECTORS:,}"
            )
        found = []
        for numbers in product(*reach):
            k = tuple(n * step for n, step in zip(numbers, steps, strict=True))
            if self.kmin <= math.hypot(*k) / least < self.kmax and any(numbers):
                found.append((*k, *(0.0,) * (3 - grid.ndim)))
        if not found:
            raise InputError(
                f"no wave vector of the box is {self.kmin:g} <= |k| < {self.kmax:g} long, in units of "
                f"{least:g}: let kmin or kmax leave room for one"
            )
        return tuple(found)

    def __call__(
        self, grid: Grid, *, seed: Operand, step: Operand, dt: Operand, strength: Operand, speed: Operand,
        helicity: Operand,
    ) -> Vector:  # fmt: skip
        """The acceleration in the step that is numbered `step`, as part of a program.

        Parameters
        ----------
        grid : Grid
        seed, step, dt : scalar
        strength, speed, helicity : scalar
            f₀, c_s, σ.
        """
        vectors = self.vectors(grid)
        draw = [_kept(random(seed, step, number)) for number in range(4)]
        chosen = draw[WAVE] * float(len(vectors))
        k = Vector(_kept(lookup(components, chosen)) for components in zip(*vectors, strict=True))
        length = _kept(sqrt(dot(k, k)))
        height, longitude = 2.0 * draw[HEIGHT] - 1.0, 2 * math.pi * draw[LONGITUDE]
        ring = sqrt(1.0 - height * height)
        v = cross(k, (ring * cos(longitude), ring * sin(longitude), height))
        v = Vector(v) / _kept(sqrt(dot(v, v)))
        twist = Vector(cross(k, v)) * (as_expr(helicity) / length)
        size = strength * speed * sqrt(length * speed / dt) / sqrt(1.0 + as_expr(helicity) ** 2)
        along = [_kept(size * c) for c in v]
        across = [_kept(size * c) for c in twist]
        phase = sum((k[a] * x for a, x in enumerate(grid.coordinates())), 2 * math.pi * draw[PHASE])
        c, s = (rounded(wave, grid.dtype) for wave in (cos(phase), sin(phase)))
        return Vector(a * c - b * s for a, b in zip(along, across, strict=True))


def _kept(value: Expr) -> Expr:
    """A scalar of the program with that value, computed once and not at every cell."""
    kept = trace.current("a random forcing").hidden("forcing")
    kept.set(value)
    return kept.expr
