"""A weak sound wave, damped by viscosity, bulk viscosity and conduction as in linear theory.

Source: Landau and Lifshitz, Fluid Mechanics, Section 79.
"""

import math

import numpy as np

import halocline as hc
import halocline.physics.mhd as mhd

steps = 200
shape = hc.cells(64)
amplitude = hc.setting("amplitude", 1e-6, "1", "amplitude of the velocity, relative to the speed of sound")
waves = hc.setting("waves", 1, "1", "number of waves in the box of length 2π", minimum=1, whole=True)
physics = mhd.Physics(magnetic=False)
step_control = mhd.time_step_settings()
values = mhd.settings(physics, nu=0.01, zeta=0.02, K=0.02)

grid = hc.Grid(shape, extent=2 * math.pi, periodic=True)
gas = mhd.MHD(grid, physics)
dt, limit = mhd.stepping(gas, **step_control)
key_diagnostics = ("u_rms", "s_rms", "rho_min", "rho_max", "E_kin")
ends = ()


def sound_mode(values, k):
    """Return λ and the mode (ln ρ, u, s) of the sound wave exp(i k x + λ t) that travels towards larger x.

    λ and the mode, normalised to u = 1, are an eigenpair of the linearised equations. The gas at rest has
    ln ρ = ln ρ₀ and s = 0.
    """
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
        return complex(rates[upward]), (round_complex(lnrho / u), 1.0, round_complex(s / u))


def round_complex(number):
    """Return a complex number with both parts rounded to 13 significant digits.

    The last digits of NumPy's results depend on the processor, but the rounded number does not.
    """
    return complex(float(f"{number.real:.12e}"), float(f"{number.imag:.12e}"))


_, mode = sound_mode(values, waves)


def start(sim):
    size, phase = amplitude * values["cs0"], waves * grid.x
    lnrho, u, s = (
        size * (part.real * hc.cos(phase) - part.imag * hc.sin(phase)) for part in map(complex, mode)
    )
    for field in gas.fields:
        sim[field] = 0.0
    sim[gas.lnrho] = values["lnrho0"] + lnrho
    sim[gas.u[0]] = u
    sim[gas.s] = s


def diagnostics():
    return mhd.diagnostics(gas)


sim = hc.Simulation(
    grid,
    gas.equations,
    parameters=mhd.complete(physics, values),
    scheme=hc.RK3(),
    dt=dt,
    order=6,
    terms=gas.terms,
)
start(sim)
sim.run(steps=steps)
