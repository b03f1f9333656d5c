"""Programs of magnetohydrodynamics, compared with mhd_reference.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import halocline as hc
import mhd_reference as reference
from halocline.lang.grid import AXES
from halocline.physics.mhd import MHD, Physics
from halocline.problems.problem import Problem

Array = NDArray[np.float64]

PARAMETERS = {
    "nu": 5e-3, "zeta": 3e-3, "eta": 7e-3, "K": 2e-2, "gamma": 5 / 3, "cp": 1.2, "cs0": 1.1, "lnrho0": 0.1,
    "lnT0": 0.3, "mu0": 1.3, "heating": 0.05, "tau_cool": 3.0, "T_cool": 0.9, "K_rho": -0.5, "K_T": 1.5,
    "nu3": 1e-5, "eta3": 2e-5, "D3": 3e-5, "chi3": 4e-5, "nu_shock": 0.8, "g_x": 0.1, "g_y": -0.2, "g_z": 0.3,
    "B_x": 0.4, "B_y": -0.7, "B_z": 1.1,
}  # fmt: skip


def name_of(field: hc.Field) -> str:
    """Return the name of a field in the reference."""
    return field.name.replace("_", "")


def reference_parameters(physics: Physics, order: int) -> reference.Parameters:
    """Return the parameters of the reference for these equations."""
    p = dict(PARAMETERS)
    powers = {"constant": (0.0, 0.0), "diffusivity": (1.0, 0.0), "power": (p["K_rho"], p["K_T"])}
    K_rho, K_T = powers[physics.conductivity]
    parameters = reference.Parameters(
        order=order, isothermal=not physics.entropy, magnetic=physics.magnetic, gamma=p["gamma"], c_p=p["cp"],
        c_s0=p["cs0"], lnrho0=p["lnrho0"], lnT0=p["lnT0"], mu0=p["mu0"], nu=p["nu"], zeta=p["zeta"],
        eta=p["eta"], K0=p["K"], K_rho=K_rho, K_T=K_T, heating=p["heating"], upwind=physics.upwind,
    )  # fmt: skip
    if physics.cooling:
        parameters = replace(parameters, tau_cool=p["tau_cool"], T_cool=p["T_cool"])
    if physics.gravity:
        parameters = replace(parameters, gravity=(p["g_x"], p["g_y"], p["g_z"]))
    if physics.imposed:
        parameters = replace(parameters, B_imposed=(p["B_x"], p["B_y"], p["B_z"]))
    if physics.hyperdiffusion:
        parameters = replace(parameters, nu3=p["nu3"], eta3=p["eta3"], D3=p["D3"], chi3=p["chi3"])
    return replace(parameters, nu_shock=p["nu_shock"]) if physics.shock else parameters


def box(shape: tuple[int, ...]) -> hc.Grid:
    """Return a grid with unequal spacings, which reveal exchanged axes."""
    return hc.Grid(shape, extent=tuple(0.1 * n * (1 + 0.3 * a) for a, n in enumerate(shape)), periodic=True)


def random_state(mhd: MHD, seed: int) -> dict[str, Array]:
    draw = np.random.default_rng(seed)
    return {name_of(f): draw.random(mhd.grid.shape) for f in mhd.fields}


def used_parameters(sim_parameters: dict[str, float], mhd: MHD) -> dict[str, float]:
    """Return the parameters that these equations read, so that no run warns of unused ones."""
    physics, names = mhd.physics, {"nu", "zeta", "cs0"}
    names |= {"eta", "mu0"} if physics.magnetic else set()
    names |= {"K", "gamma", "cp", "lnrho0", "lnT0", "heating"} if physics.entropy else set()
    names |= {"tau_cool", "T_cool"} if physics.cooling else set()
    names |= {"K_rho", "K_T"} if physics.conductivity == "power" else set()
    names |= {"nu3", "D3"} if physics.hyperdiffusion else set()
    names |= {"chi3"} if physics.hyperdiffusion and physics.entropy else set()
    names |= {"eta3"} if physics.hyperdiffusion and physics.magnetic else set()
    names |= {"nu_shock"} if physics.shock else set()
    names |= {f"g_{a}" for a in AXES} if physics.gravity else set()
    names |= {f"B_{a}" for a in AXES} if physics.imposed else set()
    return {name: value for name, value in sim_parameters.items() if name in names}


OPTIONS = Physics(
    conductivity="power", cooling=True, upwind=True, hyperdiffusion=True, shock=True, gravity=True,
    imposed=True,
)  # fmt: skip


def benchmark(**execution: Any) -> dict[str, str]:
    """Return the checksums of fields after two steps from the paper's random fields."""
    result = Problem("mhd-benchmark", (16, 14, 18), {"seed": 7}).run(steps=2, **execution)
    checksums = result.record.checksums
    assert checksums is not None
    return checksums


def with_options(shape: tuple[int, ...], order: int = 6, **execution: Any) -> dict[str, str]:
    """Return the checksums of fields after two steps with all options."""
    mhd = MHD(box(shape), OPTIONS)
    sim = hc.Simulation(
        mhd.grid, mhd.equations, parameters=used_parameters(PARAMETERS, mhd), scheme=hc.RK3(), dt=1e-3,
        order=order, **execution,
    )  # fmt: skip
    state = random_state(mhd, 9)
    for f in mhd.fields:
        sim[f] = state[name_of(f)]
    sim.run(steps=2)
    return {f.name: sim.checksum(f) for f in mhd.fields}


# Subdomains are at least as thick as the layers of the velocity that shock viscosity reads, with corners: 7
# at second order, 11 at sixth.
OPTION_WAYS: list[dict[str, Any]] = [
    {"decomposition": "bisection", "threads": 1, "patch": 7, "methods": "mpi", "overlap": False},
    {"decomposition": "1d-y", "threads": 2, "patch": 5, "overlap": True},
    {"subdomains_per_rank": 2, "threads": 2, "methods": "self,peer,rma,mpi", "schedule": "dynamic"},
    {"decomposition": "1d-x", "threads": 1, "halo": "uniform", "patch": 9},
]
