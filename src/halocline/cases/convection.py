"""A gas heated from below between walls of fixed temperature, in which convection rolls grow or decay.

In the layer at rest, 0 < z < 1, heat is conducted. T decreases linearly with z, and ρ is proportional to T^m.
The units are the depth of the layer, the density in the middle, and the acceleration of gravity.
Gravity acts along the last axis. The walls lie across this axis and are stress-free.

Source: polytropic layers: Gough, Moore, Spiegel and Toomre 1976, ApJ 206, 536; Hurlburt, Toomre and Massaguer
1984, ApJ 282, 557.
"""

import math

import halocline as hc
import halocline.physics.mhd as mhd
from halocline.lang.boundary import Ghost
from halocline.physics.mhd.parameters import ALL

WIDTH = 2 * math.sqrt(2)  # width of the first unstable rolls, in depths of the layer (Rayleigh 1916)
AXES = "xyz"

steps = 1000
shape = hc.cells(64, 64, 32, also=[(64, 32)])
rayleigh = hc.setting("rayleigh", 1e4, "1", "Rayleigh number in the middle of the layer", above=0.0)
prandtl = hc.setting("prandtl", 1.0, "1", "Prandtl number in the middle of the layer", above=0.0)
index = hc.setting("index", 1.0, "1", "polytropic index of the layer at rest", above=-1.0)
contrast = hc.setting(
    "contrast",
    1.0,
    "1",
    "temperature difference over the layer, relative to the temperature at the top",
    above=0.0,
)
width = hc.setting(
    "width", WIDTH, "depth of the layer", "width of the box along each periodic axis", above=0.0
)
amplitude = hc.setting("amplitude", 1e-3, "length/time", "maximum initial velocity of the even rolls")
seed = hc.setting(
    "seed", 0, "1", "seed of the random part of the initial velocity", minimum=0, maximum=10**9, whole=True
)
gamma, cp = hc.setting("gamma", ALL["gamma"]), hc.setting("cp", ALL["cp"])
step_control = mhd.time_step_settings()

# the layer at rest
if index >= 1 / (gamma - 1):
    raise hc.InputError(f"index is {index:g}; expected a number below 1 / (gamma - 1) = {1 / (gamma - 1):g}")
fall = gamma / ((gamma - 1) * cp * (index + 1))  # decrease of T over the depth
top = fall / contrast
bottom = top + fall
middle = (top + bottom) / 2
cs0 = math.sqrt((gamma - 1) * cp * middle)  # speed of sound in the middle
# -ds/dz / c_p in the middle; Ra = g d⁴ (-ds/dz / c_p) / (ν χ), Pr = ν / χ, χ = K / (ρ c_p)
steepness = fall / middle * (1 - index * (gamma - 1)) / gamma
nu = math.sqrt(steepness / rayleigh * prandtl)
K = cp * nu / prandtl

up = len(shape) - 1
vertical = AXES[up]
wide = tuple(width if n > 1 else width / shape[0] for n in shape[:up])
grid = hc.Grid(shape, extent=(*wide, 1.0), periodic=[axis != up for axis in range(len(shape))])
density = hc.Extrapolate(4)


def fixed_temperature(name):
    """Return the boundary condition of the entropy at a wall with a fixed temperature.

    The ghost values of T minus the wall temperature are antisymmetric about the wall, as for a linear
    profile. The ghost values of ln ρ come from the boundary condition of ln ρ. The entropy is computed from
    both.
    """

    def entropy(s, layer):
        lnrho = s.at.field.grid.fields["lnrho"]
        gamma, cp = hc.parameter("gamma"), hc.parameter("cp")
        lnT0, lnrho0 = hc.parameter("lnT0"), hc.parameter("lnrho0")
        inside = hc.exp(lnT0 + gamma / cp * s[layer] + (gamma - 1.0) * (s.of(lnrho)[layer] - lnrho0))
        lnT = hc.log(2.0 * hc.parameter(name) - inside)
        beyond = density.ghost(Ghost(lnrho, s.at.axis, s.at.side, layer))
        return cp / gamma * (lnT - lnT0 - (gamma - 1.0) * (beyond - lnrho0))

    return hc.BoundaryKernel(entropy)


physics = mhd.Physics(magnetic=False, gravity=True)
gas = mhd.MHD(
    grid,
    physics,
    boundary={
        "lnrho": density,
        "u": [hc.Antisymmetric() if axis == up else hc.Symmetric() for axis in range(3)],
        "s": {f"{vertical}-": fixed_temperature("T_bottom"), f"{vertical}+": fixed_temperature("T_top")},
    },
)
dt, limit = mhd.stepping(gas, **step_control)
values = {"gamma": gamma, "cp": cp, "nu": nu, "K": K, "cs0": cs0, "lnrho0": 0.0, "zeta": 0.0, "heating": 0.0}
values |= {f"g_{axis}": -1.0 if axis == vertical else 0.0 for axis in AXES}
key_diagnostics = ("u_rms", "u_max", "mass", "E_kin", "E_th", "T_min", "T_max")
ends = ()


def start(sim):
    x, z = grid.x, grid.coordinates()[up]
    warmth = hc.log((bottom + (top - bottom) * z) / middle)  # ln T minus its value in the middle
    pattern = hc.cos(2 * math.pi / width * x) + (hc.random(seed, 0, grid.cell_number()) - 0.5)
    for field in gas.fields:
        sim[field] = 0.0
    sim[gas.lnrho] = index * warmth
    sim[gas.s] = cp / gamma * (1 - index * (gamma - 1)) * warmth
    sim[gas.u[up]] = amplitude * hc.sin(math.pi * z) * pattern


def diagnostics():
    return mhd.diagnostics(gas)


sim = hc.Simulation(
    grid,
    gas.equations,
    parameters=mhd.complete(physics, values) | {"T_bottom": bottom, "T_top": top},
    scheme=hc.RK3(),
    dt=dt,
    order=6,
    terms=gas.terms,
)
# The linear profile of the temperature must be positive in all ghost cells beyond the cold wall.
most = shape[up] / ((sim.order - 1) / 2)  # the last ghost cell centre is radius - 1/2 cells beyond the wall
if contrast >= most:
    raise hc.InputError(
        f"contrast is {contrast:g}; expected a number below {most:g} with {shape[up]} cells between the "
        f"walls and order {sim.order}. For larger values the temperature beyond the cold wall is negative: "
        "use more cells or a smaller contrast."
    )
start(sim)
sim.run(steps=steps)
