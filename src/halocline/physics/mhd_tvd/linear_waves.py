"""Waves so weak that they only travel (Mendygral et al. 2017, Section 6.1)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from halocline.errors import InputError
from halocline.lang.expression import Expr
from halocline.lang.functions import cos, sin
from halocline.lang.grid import Field, Grid
from halocline.physics.case import Case, Check, Checked, Family, Parameter, Setup
from halocline.physics.mhd_tvd import parameters, setup
from halocline.physics.mhd_tvd.oblique import Direction

MAGNETIC = ("fast", "alfven", "slow", "entropy")
HYDRODYNAMIC = ("sound", "shear_y", "shear_z", "entropy_hydro")
WAVES = MAGNETIC + HYDRODYNAMIC
CARRIED = ("entropy", "shear_y", "shear_z", "entropy_hydro")  # at rest in the gas, which moves instead
PAPER = parameters.PAPER
ERROR = 40.0  # over the square of the cells along the shorter side; measured: 10 to 32, by wave and flux


@dataclass(frozen=True)
class Wave:
    """A background with a small perturbation, (ρ, u, v, w, B_y, B_z, p) each, and how fast it travels."""

    background: tuple[float, ...]
    across: float
    mode: tuple[float, ...]
    speed: float


def wave(kind: str, upward: bool, gamma: float) -> Wave:
    """A wave of ρ = 1, P = 3/5, with B = (1, √2, 1/2) or without field.

    Shear and entropy waves ride on v_x = 1; others travel through gas at rest. (The paper's sentence has the
    two exchanged: a shear wave at rest would not move.) Modes are those of Roe and Balsara 1996, with ρ α_f,
    ρ α_s as the density of fast and slow waves.
    """
    rho, p, u = 1.0, 0.6, 1.0 if kind in CARRIED else 0.0
    across, By, Bz = (1.0, math.sqrt(2.0), 0.5) if kind in MAGNETIC else (0.0, 0.0, 0.0)
    background = (rho, u, 0.0, 0.0, By, Bz, p)
    sign = 1.0 if upward else -1.0
    still = {
        "entropy": (1.0, 0, 0, 0, 0, 0, 0), "entropy_hydro": (1.0, 0, 0, 0, 0, 0, 0),
        "shear_y": (0, 0, 1.0, 0, 0, 0, 0), "shear_z": (0, 0, 0, 1.0, 0, 0, 0),
    }  # fmt: skip
    if kind in still:
        return Wave(background, across, still[kind], u)
    a2, root = gamma * p / rho, math.sqrt(rho)
    a = math.sqrt(a2)
    if kind == "sound":
        return Wave(background, across, (rho, sign * a, 0, 0, 0, 0, rho * a2), a)
    along = math.hypot(By, Bz)
    y, z, alfven = By / along, Bz / along, across / root
    if kind == "alfven":
        return Wave(background, across, (0, 0, -sign * z, sign * y, root * z, -root * y, 0), alfven)
    total = a2 + (across**2 + along**2) / rho
    apart = math.sqrt(total**2 - 4 * a2 * alfven**2)
    fast, slow = math.sqrt((total + apart) / 2), math.sqrt((total - apart) / 2)
    f, s = math.sqrt((a2 - slow**2) / apart), math.sqrt((fast**2 - a2) / apart)
    if kind == "fast":
        turn, bend = -sign * s * slow, root * a * s
        mode = (rho * f, sign * f * fast, turn * y, turn * z, bend * y, bend * z, rho * a2 * f)
        return Wave(background, across, mode, fast)
    turn, bend = sign * f * fast, -root * a * f
    mode = (rho * s, sign * s * slow, turn * y, turn * z, bend * y, bend * z, rho * a2 * s)
    return Wave(background, across, mode, slow)


def _box(shape: tuple[int, ...]) -> tuple[Grid, Direction]:
    """A periodic box that holds one wave: (1), or (3, 3/2, 3/2) with n = (1/3, 2/3, 2/3)."""
    if len(shape) == 1:
        return Grid(shape, extent=1.0, origin=-0.5, periodic=True), Direction.of(1.0)
    extent = (3.0, 1.5, 1.5)
    grid = Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
    return grid, Direction.of(1.0, 2.0, 2.0)


def _backward(values: Mapping[str, Any]) -> bool:
    """Whether the wave travels against the wave vector.

    Raises
    ------
    InputError
        No direction, or one that the wave cannot have.
    """
    direction, kind = values["direction"], values["wave"]
    if direction == 0:
        raise InputError("direction is 0; expected 1, along the wave vector, or -1, against it")
    if direction < 0 and kind in CARRIED:
        raise InputError(
            f"direction is -1, but wave {kind} is carried by gas that moves along the wave vector: expected 1"
        )
    return bool(direction < 0)


def _make(shape: tuple[int, ...], values: Mapping[str, Any]) -> Setup:
    backward, (grid, along) = _backward(values), _box(shape)
    mhd = parameters.solver(grid, values)
    own, size = wave(values["wave"], not backward, values["gamma"]), values["amplitude"]
    modes = list(zip(own.background, own.mode, strict=True))
    k, s = 2 * math.pi, along.along(grid.coordinates())

    def exact(time: float) -> dict[Field, Expr]:
        gone = (-own.speed if backward else own.speed) * time

        def here(q: float, r: float, s: Any) -> Any:
            return q + size * r * cos(k * (s - gone))

        def integral(_: float, r: float, s: Any) -> Any:
            return size * r / k * sin(k * (s - gone))

        rho, u, v, w, By, Bz, p = (partial(here, *each) for each in modes)
        b = along.field(
            grid,
            (own.across, *own.background[4:6]),
            [By, Bz],
            [partial(integral, *each) for each in modes[4:6]],
        )
        return setup.start(mhd, rho(s), along.turned((u(s), v(s), w(s))), p(s), b)

    return setup.ready(mhd, values, exact(0.0), until=1.0 / own.speed, exact=exact)


def _check(done: Checked) -> list[Check]:
    """The error, which the cells along a wave length set."""
    return [*setup.general(done), setup.wave_error(done, ERROR)]


# the panels of Figure 13
FAMILIES = tuple(
    Family(title, dim, sizes, tuple({"wave": kind} for kind in kinds))
    for title, dim, sizes, kinds in (
        ("Hydrodynamic modes in 1D", 1, (64, 128, 256), HYDRODYNAMIC),
        ("MHD modes in 1D", 1, (64, 128, 256), MAGNETIC),
        ("MHD modes in 3D", 3, (32, 64), MAGNETIC),
    )
)

CASES: Mapping[str, Case] = {
    "linear-wave": Case(
        about="Ideal MHD: a weak wave of one family that travels once through a periodic box.",
        origin="Mendygral et al. 2017, ApJS 228, 23, Section 6.1; Gardiner and Stone 2008, "
        "J. Comput. Phys. 227, 4123",
        shape=(256,),
        shapes={3: (64, 32, 32)},
        steps=None,
        until=0.5,
        end="one period of the fast wave; other waves have other periods",
        parameters={
            "wave": Parameter(
                "fast", "1", "which; the last four are those of a gas without field", words=WAVES
            ),
            "direction": Parameter(
                1,
                "1",
                "along the wave vector, 1, or against it, -1; carried waves: 1",
                least=-1,
                most=1,
                whole=True,
            ),
            "amplitude": Parameter(1e-6, "1", "of the wave", above=0.0, origin=PAPER),
            **parameters.of(),
        },
        make=_make,
        check=_check,
        error=setup.error,
        error_name="L1 error over amplitude",
        families=FAMILIES,
        order=2,
    ),
}
