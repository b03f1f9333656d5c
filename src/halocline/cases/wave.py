"""Sound in a closed room: a standing wave between walls, by the leapfrog scheme.

The equations are dp/dt = -div v and dv/dt = -grad p. Pressure is stored in cells, and velocity on the faces
between cells. No air crosses the walls.

Source: Yee 1966, IEEE Transactions on Antennas and Propagation 14, 302 (scheme for electromagnetic fields).
"""

import math

import halocline as hc

steps = 100  # for measurements
shape = hc.cells(128, 128, also=[(128,), (64, 64, 64)])
courant = hc.setting(
    "courant", 0.5, "1", "time step, relative to the longest stable one", above=0.0, below=1.0
)

grid = hc.Grid(shape, extent=tuple(n / shape[0] for n in shape))
p = grid.field("p", boundary=hc.Derivative(0.0))
v = grid.vector("v", location="face")
waves = [math.pi / length for length in grid.extent]
frequency = math.sqrt(sum(k**2 for k in waves))
dt = courant / (shape[0] * math.sqrt(grid.ndim))
until = 0.875 * 2 * math.pi / frequency  # pressure changes fast at this time, so phase errors are detected

MOST_ERROR = 1.7  # maximum of error · n², with n cells along the shortest side
scheme_name = "leapfrog"
error_name = "maximum error of the pressure, relative to its amplitude"
key_diagnostics = ("largest",)
families = (
    hc.Family("Near the end of a period", 1, (32, 64, 128)),
    hc.Family("Near the end of a period", 2, (32, 64, 128)),
)


@hc.program
def step(p, v, dt):
    h = [grid.h(axis) for axis in range(grid.ndim)]
    v.set(v - dt * hc.Vector((p - hc.shift(p, a, -1)) / h[a] for a in range(grid.ndim)))
    p.set(p - dt * sum((hc.shift(f, a) - f) / h[a] for a, f in enumerate(v)))


def standing(x, along=None):
    """Return the standing wave: a product of one cosine per axis.

    Along the axis `along`, a sine replaces the cosine, for the derivative along this axis.
    """
    pairs = enumerate(zip(waves, x, strict=True))
    return math.prod(hc.sin(k * y) if axis == along else hc.cos(k * y) for axis, (k, y) in pairs)


def exact(time):
    """Return the exact pressure at a time, and the exact velocity half a step before this time."""
    fields = {p: math.cos(frequency * time) * standing(p.coordinates)}
    size = math.sin(frequency * (time - 0.5 * dt)) / frequency
    for axis, f in enumerate(v):
        fields[f] = size * waves[axis] * standing(f.coordinates, along=axis)
    return fields


def diagnostics():
    return {"total": hc.sum(p), "largest": hc.max(abs(p))}


def error(sim):
    return sim.evaluate(hc.max(abs(p - exact(sim.time)[p])))


def check(sim, record):
    lost = abs(record.series[-1]["total"] - record.series[0]["total"]) / grid.size
    about = "maximum difference of the pressure from the exact solution"
    return [
        hc.Check("error", error(sim), maximum=MOST_ERROR / min(shape) ** 2, about=about),
        hc.Check(
            "air conservation",
            lost,
            maximum=grid.rounding(1e-14),
            about="change of the total pressure, divided by the number of cells",
        ),
    ]


sim = hc.Simulation(grid, step, dt=dt)
for field, value in exact(0.0).items():
    sim[field] = value
sim.run(until=until)
