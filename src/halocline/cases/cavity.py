"""Flow in a cube between a hot and a cold wall, driven by buoyancy, to its steady state.

Source: the buoyancy-driven cavity of Virginia Tech, MPI and OpenACC; Tric, Labrosse and Betrouni 2000, Int.
J. Heat Mass Transf. 43, 4043.
"""

from functools import partial

import halocline as hc
from halocline.physics import cavity
from halocline.physics.cavity.figures import figures_of

# published results for Pr = 0.71, by Rayleigh number: mean Nusselt number at the hot wall
KNOWN = {
    1e3: {"nusselt_hot": 1.0700},
    1e4: {"nusselt_hot": 2.0542},
    1e5: {"nusselt_hot": 4.3370},
    1e6: {"nusselt_hot": 8.6407},
}
SOURCE = "Tric, Labrosse and Betrouni 2000, Int. J. Heat Mass Transf. 43, 4043"

steps = 1_000_000
shape = hc.cells(40, 40, 40)
values = cavity.settings(rayleigh=1e5)
published = partial(cavity.published_of_air, KNOWN)
flow = cavity.Flow(shape, values, published)

scheme_name, key_diagnostics = flow.scheme_name, flow.key_diagnostics
ends, automatic = flow.ends, flow.automatic
start, diagnostics, check = flow.start, flow.diagnostics, flow.check
limit, advice, progress, findings = flow.limit, flow.advice, flow.progress, cavity.findings
figures = figures_of(flow)
families = (hc.Family("Steady state", 3, (19, 39, 79)),)
extrapolated = hc.Extrapolated(cavity.CONVERGING, published, SOURCE, cavity.noise)

sim = hc.Simulation(flow.grid, flow.program, parameters=flow.parameters)
start(sim)
sim.run(steps=steps)
