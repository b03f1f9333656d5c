"""Waves along one axis, which linear theory describes completely."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from halocline.lang.functions import cos, sin
from halocline.lang.grid import Field, Grid
from halocline.physics.case import Case, Parameter, Setup
from halocline.physics.mhd import parameters
from halocline.physics.mhd.diagnostics import diagnostics
from halocline.physics.mhd.equations import MHD
from halocline.physics.mhd.physics import Physics
from halocline.physics.mhd.timestep import COURANT, stepping

BOX = 2 * math.pi

WAVES = Parameter(1, "1", "waves in the box, whose length is 2π", least=1, whole=True)

ALFVEN = Physics(entropy=False, imposed=True)
SOUND = Physics(magnetic=False)


def _alfven(shape: tuple[int, ...], values: Mapping[str, float]) -> Setup:
    """b = a B_x (0, cos kx, -sin kx) and u = -b / √(μ₀ ρ) travel along x at the Alfvén speed.

    |b| is uniform, so that no pressure is called up however great a is, and with ν = η all of it decays as
    exp(-ν k² t).
    """
    grid = Grid(shape, extent=BOX, periodic=True)
    mhd = MHD(grid, ALFVEN)
    assert mhd.A is not None
    k, b = values["waves"], values["amplitude"] * values["B_x"]
    u = values["amplitude"] * values["B_x"] / math.sqrt(values["mu0"])
    phase = k * grid.x
    start: dict[Field, Any] = dict.fromkeys(mhd.fields, 0.0)
    start |= {mhd.u[1]: -u * cos(phase), mhd.u[2]: u * sin(phase)}
    # B_y = -∂A_z/∂x, B_z = ∂A_y/∂x
    start |= {mhd.A[1]: b / k * cos(phase), mhd.A[2]: -b / k * sin(phase)}
    return Setup(
        grid=grid,
        equations=mhd.equations,
        parameters=parameters.complete(mhd.physics, values),
        start=start,
        diagnostics=lambda: diagnostics(mhd),
        terms=mhd.terms,
        shown=("u_rms", "B_rms", "E_kin", "E_mag", "current_helicity"),
        **stepping(mhd, values),
    )


def sound_mode(values: Mapping[str, float], k: float) -> tuple[complex, tuple[complex, complex, complex]]:
    """The sound wave exp(i k x + λ t) that travels upward along x: λ, and (ln ρ, u, s) for u = 1.

    An eigenvector of the equations made linear about a gas at rest with ln ρ = ln ρ₀ and s = 0.
    """
    import numpy as np

    gamma, cp, cs2 = values["gamma"], values["cp"], values["cs0"] ** 2
    damping = (4 / 3 * values["nu"] + values["zeta"]) * k**2
    heat = values["K"] * math.exp(-values["lnrho0"]) * k**2
    matrix = np.array(
        [
            [0, -1j * k, 0],
            [-1j * k * cs2, -damping, -1j * k * cs2 / cp],
            [-heat * (gamma - 1), 0, -heat * gamma / cp],
        ]
    )
    with np.errstate(all="raise", under="ignore"):
        rates, modes = np.linalg.eig(matrix)
        upward = int(np.argmin(rates.imag))
        lnrho, u, s = modes[:, upward]
        return complex(rates[upward]), (complex(lnrho / u), 1.0, complex(s / u))


def _sound(shape: tuple[int, ...], values: Mapping[str, float]) -> Setup:
    grid = Grid(shape, extent=BOX, periodic=True)
    mhd = MHD(grid, SOUND)
    assert mhd.s is not None
    k = values["waves"]
    _, mode = sound_mode(values, k)
    size, phase = values["amplitude"] * values["cs0"], k * grid.x
    wave = [size * (part.real * cos(phase) - part.imag * sin(phase)) for part in map(complex, mode)]
    start: dict[Field, Any] = dict.fromkeys(mhd.fields, 0.0)
    start |= {mhd.lnrho: values["lnrho0"] + wave[0], mhd.u[0]: wave[1], mhd.s: wave[2]}
    return Setup(
        grid=grid,
        equations=mhd.equations,
        parameters=parameters.complete(mhd.physics, values),
        start=start,
        diagnostics=lambda: diagnostics(mhd),
        terms=mhd.terms,
        shown=("u_rms", "s_rms", "rho_min", "rho_max", "E_kin"),
        **stepping(mhd, values),
    )


CASES: Mapping[str, Case] = {
    "alfven-decay": Case(
        about="A circularly polarised Alfvén wave in a viscous, resistive gas: decays as exp(-ν k² t).",
        origin="an exact solution of the equations where nu = eta (Alfvén 1942, Nature 150, 405)",
        shape=(64,),
        steps=200,
        parameters={
            "amplitude": Parameter(0.1, "1", "of the wave's field over the imposed one"),
            "waves": WAVES,
            **COURANT,
            **parameters.of(ALFVEN, nu=0.02, eta=0.02, B_x=1.0),
        },
        make=_alfven,
    ),
    "sound-wave": Case(
        about="A weak sound wave, damped by viscosity, bulk viscosity and conduction as linear theory says.",
        origin="Landau and Lifshitz, Fluid Mechanics, Section 79",
        shape=(64,),
        steps=200,
        parameters={
            "amplitude": Parameter(1e-6, "1", "of the velocity over the speed of sound"),
            "waves": WAVES,
            **COURANT,
            **parameters.of(SOUND, nu=0.01, zeta=0.02, K=0.02),
        },
        make=_sound,
    ),
}
