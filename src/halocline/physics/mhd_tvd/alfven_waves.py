"""A circularly polarised Alfvén wave, an exact solution of any amplitude (Mendygral et al. 2017, Section
6.9)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from halocline.io.figure import Curve, Figure, Lines
from halocline.lang.expression import Expr, as_expr
from halocline.lang.functions import cos, sin
from halocline.lang.grid import Field, Grid
from halocline.physics.case import Case, Check, Checked, Family, Parameter, Setup
from halocline.physics.mhd_tvd import drawn, parameters, setup
from halocline.physics.mhd_tvd.oblique import Direction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# boxes that hold one wave, and its direction, by their number of axes
EXTENTS = {1: (1.0,), 2: (math.sqrt(5), math.sqrt(5) / 2), 3: (3.0, 1.5, 1.5)}
ERROR = 100.0  # over the square of the cells along the shorter side
SCATTER = 1e-13  # what rounding leaves between cells that are alike, over the mean field
PERIOD = "After one period"  # the panel on the left of Figure 23
ALONG = {1: (1.0,), 2: (1.0, 2.0), 3: (1.0, 2.0, 2.0)}


def _wave(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    axes, k, size = len(shape), 2 * math.pi, values["amplitude"]
    extent = EXTENTS[axes]
    grid = Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
    mhd, along = parameters.solver(grid, values), Direction.of(*ALONG[axes])
    s = along.along(grid.coordinates())
    # velocity and field of one sign: the wave travels against the mean field, with 1 through the gas
    speed = 1.0 + float(values["v"])

    def exact(time: float) -> dict[Field, Expr]:
        gone = 0.0 - speed * time

        def y(s: Any) -> Any:
            return size * sin(k * (s - gone))

        def z(s: Any) -> Any:
            return size * cos(k * (s - gone))

        b = along.field(grid, (1.0, 0.0, 0.0), [y, z], [lambda s: -z(s) / k, lambda s: y(s) / k])
        v = along.turned((0.0 - values["v"], y(s), z(s)))
        return setup.start(mhd, 1.0, v, 0.1, b)

    return setup.ready(mhd, values, exact(0.0), until=1.0 / speed, exact=exact)


def _check(done: Checked) -> list[Check]:
    """The error, and whether cells of the same phase are alike."""
    found = [*setup.general(done), setup.wave_error(done, ERROR)]
    wave, size = profile(done), done.values["amplitude"]
    if wave is not None:
        off = scatter(done.shape, wave[1]) / size
        about = "greatest spread of B₂ among cells of the same phase, over the amplitude"
        found.append(Check("scatter", off, most=SCATTER / size, about=about))
    return found


def profile(done: Checked) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Of every cell the coordinate along the wave, and the component of the field across it that lies in the
    plane; on the first rank, None on others.

    All ranks call this.
    """
    import numpy as np

    grid, along, known = done.setup.grid, Direction.of(*ALONG[len(done.shape)]), done.setup.derived()
    across = sum((e * known[f"B_{a}"] for e, a in zip(along.e1, "xyz", strict=True) if e), start=as_expr(0.0))
    values = done.simulation.gather(across)
    if values is None:
        return None
    places = np.meshgrid(*grid.positions(), indexing="ij")
    return np.tensordot(along.n[: grid.ndim], places, 1), values


def scatter(shape: Sequence[int], values: NDArray[np.float64]) -> float:
    """The greatest range of values among cells of the same phase.

    The grid and the start look the same from all of these, so that only rounding tells them apart.
    """
    import numpy as np

    # each axis holds one period: the phase of a cell is the sum of its indices over the cells of their axes
    parts = math.lcm(*shape)
    steps = [np.arange(n) * (parts // n) for n in shape]
    phase = sum(np.meshgrid(*steps, indexing="ij")) % parts
    least, most = np.full(parts, np.inf), np.full(parts, -np.inf)
    np.minimum.at(least, phase, values)
    np.maximum.at(most, phase, values)
    return float((most - least).max())


def _wave_front(done: Checked) -> Figure | None:
    """The field across the wave of every cell, and that of the exact solution (Figure 23, right)."""
    import numpy as np

    found, size, k = profile(done), done.values["amplitude"], 2 * math.pi
    if found is None:
        return None
    s, values = (each.ravel() for each in found)
    end = float(np.ceil(2 * np.abs(s).max())) / 2
    x = np.linspace(-end, end, 401)
    exact = size * np.sin(k * (x + (1.0 + done.values["v"]) * done.time))
    curves = [
        Curve(s, values, f"each of {drawn.cells(done)}", points=True),
        Curve(x, exact, "exact solution"),
    ]
    return Figure([Lines(curves, "$B_2$", "$x_1$, along the wave", (-end, end))], columns=1)


CASES: Mapping[str, Case] = {
    "cp-alfven": Case(
        about="Ideal MHD: a circularly polarised Alfvén wave that travels through a periodic box, obliquely.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.9; Tóth 2000, J. Comput. Phys. 161, 605",
        shape=(64, 32),
        shapes={1: (64,), 3: (64, 32, 32)},
        steps=None,
        until=1.0,
        end="one period of the wave: 1 / (1 + v)",
        parameters={
            "amplitude": Parameter(0.1, "1", "of velocity and field", above=0.0, origin="Tóth 2000"),
            "v": Parameter(0.0, "length/time", "velocity of the gas along the wave", above=-1.0),
            **parameters.of(),
        },
        make=_wave,
        check=_check,
        error=setup.error,
        error_name="L1 error over amplitude",
        families=(Family(PERIOD, 2, (32, 64, 128)), Family(PERIOD, 3, (32, 64))),
        figures={"wave": _wave_front},
        order=2,
    ),
}
