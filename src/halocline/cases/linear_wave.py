"""Ideal MHD: a weak wave of one family that travels once through a periodic box.

Source: Mendygral et al. 2017, ApJS 228, 23, Section 6.1; Gardiner and Stone 2008, J. Comput. Phys. 227, 4123.
"""

import math
from functools import partial
from typing import NamedTuple

import halocline as hc
from halocline.physics import mhd_tvd
from halocline.physics.mhd_tvd import checks
from halocline.physics.mhd_tvd.parameters import PAPER
from halocline.physics.mhd_tvd.setup import Direction

MAGNETIC = ("fast", "alfven", "slow", "entropy")
HYDRODYNAMIC = ("sound", "shear_y", "shear_z", "entropy_hydro")
CARRIED = ("entropy", "shear_y", "shear_z", "entropy_hydro")  # Waves that are at rest in the moving gas.
ERROR = 40.0  # Maximum of error · n², with n cells along the shorter side; measured: 10 to 32.

shape = hc.cells(256, also=[(64, 32, 32)])
kind = hc.setting(
    "wave",
    "fast",
    "1",
    "family of the wave; the last four belong to a gas without magnetic field",
    words=MAGNETIC + HYDRODYNAMIC,
)
direction = hc.setting(
    "direction", 1, "1", "1: along the wave vector, -1: against it; only 1 for waves that move with the gas",
    minimum=-1, maximum=1, whole=True,
)  # fmt: skip
amplitude = hc.setting("amplitude", 1e-6, "1", "amplitude of the wave", above=0.0, origin=PAPER)
values = mhd_tvd.settings()

if direction == 0:
    raise hc.InputError("direction is 0; expected 1 (along the wave vector) or -1 (against it)")
if direction < 0 and kind in CARRIED:
    raise hc.InputError(
        f"direction is -1, but wave {kind} moves with the gas, along the wave vector; expected 1"
    )


class Wave(NamedTuple):
    """Background and small perturbation, each (ρ, u, v, w, B_y, B_z, p), with normal field and wave speed."""

    background: tuple[float, ...]
    across: float
    mode: tuple[float, ...]
    speed: float


def wave(kind, upward, gamma):
    """Return a wave in gas with ρ = 1 and P = 3/5, with B = (1, √2, 1/2) or without magnetic field.

    The gas has v_x = 1 for shear and entropy waves. For all other waves, it is at rest. (The paper states the
    opposite, but a shear wave in gas at rest would not move.) The eigenvectors are those of Roe and Balsara
    1996. Their density component is ρ α_f for fast waves and ρ α_s for slow waves.
    """
    rho, p, u = 1.0, 0.6, 1.0 if kind in CARRIED else 0.0
    across, By, Bz = (1.0, math.sqrt(2.0), 0.5) if kind in MAGNETIC else (0.0, 0.0, 0.0)
    background = (rho, u, 0.0, 0.0, By, Bz, p)
    sign = 1.0 if upward else -1.0
    carried_modes = {
        "entropy": (1.0, 0, 0, 0, 0, 0, 0), "entropy_hydro": (1.0, 0, 0, 0, 0, 0, 0),
        "shear_y": (0, 0, 1.0, 0, 0, 0, 0), "shear_z": (0, 0, 0, 1.0, 0, 0, 0),
    }  # fmt: skip
    if kind in carried_modes:
        return Wave(background, across, carried_modes[kind], u)
    a2, root = gamma * p / rho, math.sqrt(rho)
    a = math.sqrt(a2)
    if kind == "sound":
        return Wave(background, across, (rho, sign * a, 0, 0, 0, 0, rho * a2), a)
    along = math.hypot(By, Bz)
    y, z, alfven = By / along, Bz / along, across / root
    if kind == "alfven":
        return Wave(background, across, (0, 0, -sign * z, sign * y, root * z, -root * y, 0), alfven)
    total = a2 + (across**2 + along**2) / rho
    split = math.sqrt(total**2 - 4 * a2 * alfven**2)
    fast, slow = math.sqrt((total + split) / 2), math.sqrt((total - split) / 2)
    f, s = math.sqrt((a2 - slow**2) / split), math.sqrt((fast**2 - a2) / split)
    if kind == "fast":
        turn, bend = -sign * s * slow, root * a * s
        mode = (rho * f, sign * f * fast, turn * y, turn * z, bend * y, bend * z, rho * a2 * f)
        return Wave(background, across, mode, fast)
    turn, bend = sign * f * fast, -root * a * f
    mode = (rho * s, sign * s * slow, turn * y, turn * z, bend * y, bend * z, rho * a2 * s)
    return Wave(background, across, mode, slow)


# periodic box with one wave: (1), or (3, 3/2, 3/2) with n = (1/3, 2/3, 2/3)
extent = (1.0,) if len(shape) == 1 else (3.0, 1.5, 1.5)
grid = hc.Grid(shape, extent=extent, origin=tuple(-e / 2 for e in extent), periodic=True)
along = Direction.of(1.0) if len(shape) == 1 else Direction.of(1.0, 2.0, 2.0)
gas = mhd_tvd.IdealMHD(grid, flux=values.pop("flux"), limiting=values.pop("limiting"))
initial_wave = wave(kind, direction > 0, values["gamma"])
until = 1.0 / initial_wave.speed

scheme_name = gas.scheme_name
key_diagnostics = ("rho_min", "p_min", "E_mag", *(["div_b"] if len(shape) > 1 else []))
error_name = "L1 error, relative to the amplitude"
families = tuple(  # the panels of Figure 13
    hc.Family(title, dim, sizes, tuple({"wave": kind} for kind in kinds))
    for title, dim, sizes, kinds in (
        ("Hydrodynamic modes in 1D", 1, (64, 128, 256), HYDRODYNAMIC),
        ("MHD modes in 1D", 1, (64, 128, 256), MAGNETIC),
        ("MHD modes in 3D", 3, (32, 64), MAGNETIC),
    )
)


def exact(time):
    k, s = 2 * math.pi, along.along(grid.coordinates())
    distance = (-initial_wave.speed if direction < 0 else initial_wave.speed) * time

    def value_at(q, r, s):
        return q + amplitude * r * hc.cos(k * (s - distance))

    def integral(_, r, s):
        return amplitude * r / k * hc.sin(k * (s - distance))

    modes = list(zip(initial_wave.background, initial_wave.mode, strict=True))
    rho, u, v, w, By, Bz, p = (partial(value_at, *mode) for mode in modes)
    b = along.field(
        grid,
        (initial_wave.across, *initial_wave.background[4:6]),
        [By, Bz],
        [partial(integral, *mode) for mode in modes[4:6]],
    )
    return mhd_tvd.conserved(gas, rho(s), along.rotate((u(s), v(s), w(s))), p(s), b)


def diagnostics():
    return mhd_tvd.diagnostics(gas)


def pictures():
    return mhd_tvd.derived(gas)


def error(sim):
    return checks.error(sim, exact, amplitude)


def check(sim, record):
    return [
        *checks.general(sim, record),
        checks.wave_error(sim, exact, amplitude, ERROR, until),
    ]


sim = mhd_tvd.MHDSimulation(gas, **values)
for field, value in exact(0.0).items():
    sim[field] = value
sim.run(until=until)
