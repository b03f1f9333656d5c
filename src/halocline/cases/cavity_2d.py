"""Flow in a square between a hot and a cold wall, driven by buoyancy, to its steady state.

Source: the buoyancy-driven cavity of Virginia Tech, MPI and OpenACC; de Vahl Davis 1983, Int. J. Numer.
Methods Fluids 3, 249.
"""

from functools import partial

import halocline as hc
from halocline.physics import cavity
from halocline.physics.cavity.figures import figures_of

# published results for Pr = 0.71, by Rayleigh number: mean Nusselt number at the hot wall, and maximum
# velocities on the mid-planes
KNOWN = {
    1e3: {"nusselt_hot": 1.117, "u_max": 3.649, "v_max": 3.697},
    1e4: {"nusselt_hot": 2.238, "u_max": 16.178, "v_max": 19.617},
    1e5: {"nusselt_hot": 4.509, "u_max": 34.73, "v_max": 68.59},
    1e6: {"nusselt_hot": 8.817, "u_max": 64.63, "v_max": 219.36},
}
SOURCE = "de Vahl Davis 1983, Int. J. Numer. Methods Fluids 3, 249"

steps = 1_000_000
shape = hc.cells(64, 64)
values = cavity.settings(rayleigh=1e5)
published = partial(cavity.published_of_air, KNOWN)
flow = cavity.Flow(shape, values, published)

scheme_name, key_diagnostics = flow.scheme_name, flow.key_diagnostics
ends, automatic = flow.ends, flow.automatic
start, diagnostics, check = flow.start, flow.diagnostics, flow.check
limit, advice, progress, findings = flow.limit, flow.advice, flow.progress, cavity.findings
figures = figures_of(flow)
families = (hc.Family("Steady state", 2, (31, 63, 127)),)
extrapolated = hc.Extrapolated(cavity.CONVERGING, published, SOURCE, cavity.noise)

sim = hc.Simulation(flow.grid, flow.program, parameters=flow.parameters)
start(sim)
sim.run(steps=steps)
