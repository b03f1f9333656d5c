"""Diffusion of heat in a periodic box, from a temperature wave along each axis.

Source: separation of variables.
"""

import math

import halocline as hc

steps = 100  # for measurements
shape = hc.cells(64, 64, 64, also=[(64,), (64, 64)])
kappa = hc.setting("kappa", 1.0, "length²/time", "thermal diffusivity", above=0.0)
dt = hc.setting("dt", 0.0, "time", "time step; 0: 0.1 h² / (kappa · number of axes)", minimum=0.0)

grid = hc.Grid(shape, extent=tuple(n / shape[0] for n in shape), periodic=True)
T = grid.field("T")
waves = [2 * math.pi / length for length in grid.extent]
decay = kappa * sum(k**2 for k in waves)
until = 1 / decay

MOST_ERROR = 4.0  # maximum of error · n², with n cells along the shortest side
error_name = "maximum error, relative to the amplitude"
key_diagnostics = ("largest",)
families = (
    hc.Family("Order 6 in space", 1, (8, 16, 32), order=6),
    hc.Family("Order 6 in space", 2, (8, 16, 32), order=6),
)


def heat(kappa):
    return {T: kappa * hc.laplacian(T)}


def exact(time):
    wave = math.prod(hc.sin(k * x) for k, x in zip(waves, T.coordinates, strict=True))
    return {T: math.exp(-decay * time) * wave}


def diagnostics():
    return {"total": hc.sum(T), "largest": hc.max(abs(T))}


def error(sim):
    solution = exact(sim.time)[T]
    difference, size = sim.evaluate(hc.max(abs(T - solution)), hc.max(abs(solution)))
    return difference / size


def check(sim, record):
    gain = abs(record.series[-1]["total"] - record.series[0]["total"]) / grid.size
    about = "maximum difference from the exact solution, relative to its maximum"
    return [
        hc.Check("error", error(sim), maximum=MOST_ERROR / min(shape) ** 2, about=about),
        hc.Check(
            "heat conservation",
            gain,
            maximum=grid.rounding(1e-14),
            about="change of the total heat, divided by the number of cells",
        ),
    ]


sim = hc.Simulation(
    grid,
    heat,
    parameters={"kappa": kappa},
    scheme=hc.RK3(),
    dt=dt or 0.1 / (shape[0] ** 2 * len(shape)) / kappa,
    order=6,
)
sim[T] = exact(0.0)[T]
sim.run(until=until)
