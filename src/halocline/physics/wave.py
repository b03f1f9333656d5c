"""Sound in a closed room: dp/dt = -div v, dv/dt = -grad p, no air crosses the walls.

Pressure in the cells, velocity on the faces between them, leapfrog in time (K. S. Yee, IEEE Transactions on
Antennas and Propagation 14 (1966), for another pair of fields).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from halocline.lang.boundary import Derivative
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import abs as magnitude
from halocline.lang.functions import cos, sin
from halocline.lang.grid import Field, Grid, Vector
from halocline.lang.operators import shift
from halocline.lang.program import Program, Scalar, loop, program
from halocline.lang.reductions import max as largest
from halocline.lang.reductions import sum as total
from halocline.physics.case import Case, Check, Checked, Family, Parameter, Setup
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


def _case(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    grid = Grid(shape, extent=tuple(n / shape[0] for n in shape))
    made = Wave(grid, grid.field("p", boundary=Derivative(0.0)), grid.vector("v", location="face"))
    waves = [math.pi / length for length in grid.extent]
    turning = math.sqrt(sum(k**2 for k in waves))  # radians a unit of time
    dt = float(values["courant"]) / (shape[0] * math.sqrt(grid.ndim))

    def exact(time: float) -> dict[Field, Expr]:
        """Of the velocity half a step before, where leapfrog has it."""
        found = {made.p: as_expr(math.cos(turning * time) * _standing(waves, made.p.coordinates))}
        size = math.sin(turning * (time - 0.5 * dt)) / turning
        for axis, f in enumerate(made.v):
            found[f] = as_expr(size * waves[axis] * _standing(waves, f.coordinates, along=axis))
        return found

    return Setup(
        grid,
        program(made.step),
        {},
        dt,
        exact(0.0),
        diagnostics=lambda: {"total": total(made.p), "largest": largest(magnitude(made.p))},
        shown=("largest",),
        scheme_name="leapfrog",
        until=PERIODS * 2 * math.pi / turning,
        exact=exact,
    )


def _standing(waves: Sequence[float], x: Sequence[Any], along: int | None = None) -> Any:
    """Cosines between the walls; along one axis a sine, as their slope has there."""
    pairs = enumerate(zip(waves, x, strict=True))
    return math.prod(sin(k * y) if axis == along else cos(k * y) for axis, (k, y) in pairs)


def _error(done: Checked) -> float:
    """The greatest difference of the pressure from the exact solution, whose amplitude is 1."""
    assert done.setup.exact is not None
    p, there = next(iter(done.setup.exact(done.time).items()))
    return float(done.simulation.evaluate(largest(magnitude(p - there))))


def _check(done: Checked) -> list[Check]:
    """How far the wave is from the standing one, and that no air is lost."""
    about = "greatest difference of the pressure from the exact solution"
    lost = abs(done.series[-1]["total"] - done.series[0]["total"]) / done.setup.grid.size
    return [
        Check("error", _error(done), most=ERROR / min(done.shape) ** 2, about=about),
        Check("air lost", lost, most=1e-14, about="over the cells of the room"),
    ]


PERIODS = 0.875  # where the pressure changes fast, so that a wave that is late shows
ERROR = 1.7  # over the square of the cells along the shortest side

CASES: Mapping[str, Case] = {
    "wave": Case(
        about="Sound in a closed room: a standing wave between its walls, by leapfrog.",
        origin="Yee 1966, IEEE Transactions on Antennas and Propagation 14, 302, for another pair of fields",
        shape=(128, 128),
        shapes={1: (128,), 3: (64, 64, 64)},
        steps=100,
        end="seven eighths of a period",
        parameters={
            "courant": Parameter(
                0.5, "1", "the time step over the longest that is stable", above=0.0, below=1.0
            )
        },
        make=_case,
        order=2,
        check=_check,
        error=_error,
        error_name="greatest error of the pressure over its amplitude",
        families=(
            Family("Near the end of a period", 1, (32, 64, 128)),
            Family("Near the end of a period", 2, (32, 64, 128)),
        ),
    ),
}
