"""Runs with random moves of subdomains, compared with runs without."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import halocline as hc
from loops import some

STEPS = 10
SHAPES = {1: (96,), 2: (40, 36), 3: (16, 20, 18)}


def simulation(seed: int, **execution: Any) -> hc.Simulation:
    """Return a random program with fields in cells and on faces, stages, second buffers and a reduction.

    The next step reads the reduction. Walls, inactive blocks and a variable time step are random.
    """
    draw = Random(seed)
    axes = draw.choice([1, 2, 2, 3])
    periodic = tuple(draw.random() < 0.5 for _ in range(axes))
    options: dict[str, Any] = {}
    if axes == 2 and draw.random() < 0.5:
        mask = [[True] * 4 for _ in range(4)]
        mask[draw.randrange(4)][draw.randrange(4)] = False
        options["active"] = mask
    dtype = draw.choice(["float64", "float64", "float32"])
    grid = hc.Grid(SHAPES[axes], periodic=periodic, dtype=dtype, **options)
    u = grid.field("u", boundary=None if all(periodic) else hc.Value(0.25))
    v = grid.field("v", boundary=None if all(periodic) else hc.Symmetric())
    place = f"face-{'xyz'[axes - 1]}"
    f = grid.field("f", location=place, boundary=None if all(periodic) else hc.Value(0.5))

    @hc.program
    def step(u: Any, v: Any, f: Any) -> None:
        fast = hc.scalar("fast")
        fast.set(hc.max(abs(u)))
        curved = hc.stage(hc.laplacian(u), "curved", storage="patch")
        v.set(v + 1e-4 * (curved + 0.1 * hc.to(f, "cell")) / (1.0 + fast))
        u.set(u + 1e-3 * v)
        f.set(f + 1e-4 * hc.to(hc.laplacian(v), place))

    sim = hc.Simulation(grid, step, **execution)
    for n, field in enumerate((u, v, f)):
        sim[field] = _wave(n + 2.0, axes)
    return sim


def _wave(k: float, axes: int) -> Any:
    waves = {
        1: lambda x: hc.cos(k * x),
        2: lambda x, y: hc.cos(k * x + (k + 1.0) * y),
        3: lambda x, y, z: hc.cos(k * x + (k + 1.0) * y + (k + 2.0) * z),
    }
    return waves[axes]


def run(sim: hc.Simulation, seed: int, folder: Path | None = None) -> int:
    """Run some steps with balances of random work between them, and return the number of moved subdomains.

    A balance may use fewer or more ranks than the one before. With a folder, the run writes a checkpoint
    after one step and resumes from it.
    """
    ranks, x, draw = sim.domain.comm.size, sim.grid.x, Random(seed)
    saved, move_count = draw.randrange(STEPS), 0
    for step in range(STEPS):
        checkpoint = None if folder is None or step != saved else hc.Checkpoint(folder)
        sim.run(steps=1, checkpoint=checkpoint)
        if checkpoint is not None:
            sim.resume(checkpoint.path)
        if draw.random() < 0.6:
            edge, active = draw.random(), draw.choice([None, draw.randint(1, ranks)])
            some_cells = hc.where(x < edge, 1.0, 0.0)
            work = draw.choice([None, 1.0, 1.0 + 30.0 * some_cells, some_cells])
            move_count += sim.balance(work=work, ranks_active=active).moved_count
    return move_count


def checksums(sim: hc.Simulation) -> tuple[str, ...]:
    """Return the checksums of the fields u, v and f."""
    return tuple(sim.checksum(name) for name in "uvf")


SETS = ("mpi", "self,peer,mpi", "colocated,mpi", "rma,mpi", None)


def check_bits(seeds: range, folder: Path | None = None, **execution: Any) -> None:
    """Compare runs with random balances, drawn identically on all ranks, with serial runs without."""
    from mpi4py import MPI

    move_count = 0
    for seed in some(seeds):
        draw = Random(seed)
        subdomains_per_rank = draw.randint(2, 5)
        options = {"threads": draw.choice([1, 2]), "methods": draw.choice(SETS), **execution}
        if options.get("device"):
            options |= {"threads": None, "methods": draw.choice(["mpi", "self,peer,mpi"])}
        serial = simulation(seed, communicator=MPI.COMM_SELF, threads=1)
        serial.run(steps=STEPS)
        sim = simulation(seed, subdomains_per_rank=subdomains_per_rank, **options)
        move_count += run(sim, seed, None if folder is None else folder / str(seed))
        assert checksums(sim) == checksums(serial), f"seed {seed}"
        assert sim.values["fast"] == serial.values["fast"]
    assert move_count > 0 or MPI.COMM_WORLD.size == 1
