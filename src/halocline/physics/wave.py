"""Sound in a closed room: dp/dt = -div v, dv/dt = -grad p, no air crosses the walls.

Pressure in the cells, velocity on the faces between them, leapfrog in time (K. S. Yee, IEEE Transactions on
Antennas and Propagation 14 (1966), for another pair of fields).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from halocline.lang.boundary import Derivative
from halocline.lang.grid import Field, Grid, Vector
from halocline.lang.operators import shift
from halocline.lang.program import Program, Scalar, loop, program
from halocline.physics.heat import check_size


@dataclass(frozen=True)
class Wave:
    """The equations on n cells an axis of the unit cube."""

    grid: Grid
    p: Field
    v: Vector

    @classmethod
    def on(cls, n: int, dim: int = 2) -> Wave:
        """The problem with n cells along each of `dim` axes.

        Raises
        ------
        InputError
            `n` is below one, or `dim` is none of 1, 2, 3.
        """
        check_size(n, dim)
        grid = Grid((n,) * dim)
        return cls(grid, grid.field("p", boundary=Derivative(0.0)), grid.vector("v", location="face"))

    def step(self, p: Any, v: Any, dt: Any) -> None:
        """A step, as `halocline.Simulation` takes it after `halocline.program`."""
        h = [self.grid.h(axis) for axis in range(self.grid.ndim)]
        v.set(v - dt * Vector((p - shift(p, a, -1)) / h[a] for a in range(self.grid.ndim)))
        p.set(p - dt * sum((shift(f, a) - f) / h[a] for a, f in enumerate(v)))

    def program(self) -> Program:
        """Steps: what is compiled, without any memory or rank."""

        @program
        def wave(p: Field, v: Vector, dt: Scalar, steps: Scalar) -> None:
            with loop(limit=steps):
                self.step(p, v, dt)

        return wave.trace(self.p, self.v, Scalar("dt"), Scalar("steps"))
