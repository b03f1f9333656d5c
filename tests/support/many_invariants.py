"""A program with many values that are equal in all cells, some of which change at each step."""

from __future__ import annotations

from typing import Any

import numpy as np

import halocline as hc

COUNT = 100  # more than fit into the registers of a thread


def weighted_steps(device: str, **execution: Any) -> list[str]:
    """Return the checksums of a field after two runs in which the weights depend on time."""
    grid = hc.Grid((12, 10, 8), periodic=True)
    u = grid.field("u")

    def change(t: Any, late: Any) -> dict[hc.Field, Any]:
        total: Any = u[1, 0, 0]
        for n in range(COUNT):
            total = hc.sqrt(abs(total)) * hc.exp(-t * (late + n))
        return {u: total}

    sim = hc.Simulation(
        grid, change, scheme=hc.RK3(), dt=0.01, parameters={"late": 0.5}, device=device, **execution
    )
    sim[u] = np.random.default_rng(3).uniform(1.0, 2.0, size=grid.shape)
    checksums = []
    for steps in (3, 2):
        sim.run(steps=steps)
        checksums.append(sim.checksum(u))
    return checksums


FEW = 60  # weights of a sweep: more than the limit of registers, and few enough for constant memory
CONSTANT = 2  # sweeps of `constant_steps` whose weights do not change during a run


def weighted(value: Any, scalar: Any) -> Any:
    """Return a value with `FEW` weights that depend on a scalar."""
    for n in range(FEW):
        value = hc.sqrt(abs(value)) * (scalar + n)
    return value


@hc.program
def _weighted_step(u: Any, v: Any, late: Any, step: Any) -> None:
    u.set(1e-3 * step + weighted(u[1, 0, 0], late))  # the step changes, but stays in a register
    with hc.every(2):
        v.set(weighted(u[0, 1, 0] + v, late + 1))
    largest = hc.max(u)
    v.set(weighted(u[0, 0, 1] * v, largest))


def constant_simulation(device: str, late: float = 0.5, **execution: Any) -> hc.Simulation:
    """Return a simulation with sweeps whose weights are constant, and a sweep whose weights change."""
    grid = hc.Grid((12, 10, 8), periodic=True)
    u, v = grid.field("u"), grid.field("v")
    sim = hc.Simulation(grid, _weighted_step, parameters={"late": late}, device=device, **execution)
    sim[u] = np.random.default_rng(3).uniform(1.0, 2.0, size=grid.shape)
    sim[v] = 1.0
    return sim


def constant_steps(device: str, **execution: Any) -> list[str]:
    """Return checksums after runs that pause, and between which the user changes the weights.

    A second simulation with other weights runs in turn.
    """
    sims = [constant_simulation(device, late, **execution) for late in (0.5, 3.0)]
    if sims[0].domain.devices:
        assert sims[0].schedule.device is not None
        assert len(sims[0].schedule.device.constants) == CONSTANT
    checksums: list[str] = []

    def note(sim: hc.Simulation) -> None:
        checksums.append(sim.checksum("u"))

    for steps, late in ((3, 0.5), (2, 0.75), (4, 0.75)):
        for number, sim in enumerate(sims):
            sim.parameters["late"] = late + 2 * number
            sim.run(steps=steps, every="2 steps", callback=note)
            checksums += [sim.checksum("u"), sim.checksum("v")]
    return checksums
