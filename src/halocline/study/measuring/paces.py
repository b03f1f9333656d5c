"""What ranks measure of their host, for the model: each of its own, or together; run under mpiexec.

`python -m halocline.study.measuring.paces TASK` takes a task as JSON, and the first rank prints what came of
it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halocline.lang.grid import Grid
from halocline.lang.operators import laplacian
from halocline.lang.program import ProgramFunction, program, scalar
from halocline.lang.reductions import sum as total
from halocline.problems.problem import problem_of
from halocline.problems.step_bench import StepBench
from halocline.run.engine.prepared import PassTimer
from halocline.run.host.machine import last_level_cache
from halocline.run.measurements.peak import multiply_add_peak
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.mpi import world
from halocline.run.simulation.simulation import Simulation
from halocline.run.tuning.patches import in_turn
from halocline.solvers.schemes import Euler
from halocline.study.measuring.exchange import Bench

ROUNDS = 10  # of which the best counts: what disturbs makes them longer, never shorter
ROUND = 0.02  # seconds of one, about
SIDE, RADIUS = 128, 3  # of the large exchange: cells along an axis, layers


# -- sweeps of known bytes, operations and sums --------------------------------------------------------------


@program
def scaled(u: Any, v: Any) -> None:
    """16 bytes, an operation."""
    v.set(0.5 * u)


@program
def triad(u: Any, v: Any, w: Any) -> None:
    """24 bytes, two operations (McCalpin's)."""
    u.set(v + 0.5 * w)


@program
def inner(u: Any, v: Any) -> None:
    """16 bytes, a sum."""
    scalar("s").set(total(u * v))


@program
def updated(u: Any, v: Any) -> None:
    """24 bytes and a sum, as in conjugate gradients."""
    u.set(0.5 * u + 0.5 * v)
    scalar("s").set(total(u * u))


def steps(order: int) -> Callable[..., Any]:
    """Explicit diffusion: 16 bytes, and operations by the order and the axes."""

    def diffusion(u: Any) -> Any:
        return {u: laplacian(u, order=order)}

    return diffusion


# function of the time derivatives or program, fields, axes
KERNELS: dict[str, tuple[Any, str, int]] = {
    "scaled": (scaled, "uv", 2),
    "triad": (triad, "uvw", 2),
    "inner": (inner, "uv", 2),
    "updated": (updated, "uv", 2),
    "2D, order 2": (steps(2), "u", 2),
    "2D, order 4": (steps(4), "u", 2),
    "3D, order 2": (steps(2), "u", 3),
    "3D, order 4": (steps(4), "u", 3),
    "3D, order 8": (steps(8), "u", 3),
}


def kernel_timer(name: str, memory: float) -> tuple[StepBench, Grid]:
    """Return a timer of one of KERNELS on this rank alone, with about so many bytes of fields."""
    function, names, dim = KERNELS[name]
    explicit = not isinstance(function, ProgramFunction)
    fields = len(names) + explicit  # and a second buffer
    edge = max(16, round((memory / 8 / fields) ** (1 / dim)) // 16 * 16)
    grid = Grid((edge,) * dim, periodic=True)
    for field in names:
        grid.field(field)
    stepping: dict[str, Any] = {"scheme": Euler(), "dt": 1e-9} if explicit else {}
    sim = Simulation(grid, function, communicator=Communicator(), threads=1, **stepping)
    return StepBench(sim, sim.program), grid


def best(timers: Mapping[str, PassTimer], comm: Communicator) -> dict[str, float]:
    """Return the least seconds of a pass on the slowest rank, where all ranks run at once, in turn."""

    def together(timer: PassTimer) -> Callable[[], float]:
        timer.calibrate(ROUND)

        def once() -> float:
            comm.barrier()
            return max(comm.allgather(timer.run()))

        return once

    times = in_turn({name: together(timer) for name, timer in timers.items()}, ROUNDS)
    return {name: min(seconds) for name, seconds in times.items()}


def kernels(memory: float, comm: Communicator) -> list[dict[str, float]]:
    """Every rank runs each kernel by itself at the same time, with about so many bytes of fields."""
    timers = {name: kernel_timer(name, memory) for name in KERNELS}
    seconds = best({name: timer for name, (timer, _) in timers.items()}, comm)
    rows = []
    for name, (timer, grid) in timers.items():
        sweeps = list(timer.prepared.schedule.pass_sweeps())
        rows.append(
            {
                "seconds": seconds[name] / grid.size,  # of a cell
                "bytes": sum(sweep.bytes for sweep in sweeps),
                "flops": sum(sweep.flops for sweep in sweeps),
                "sums": sum(r.kind == "sum" for sweep in sweeps for r in sweep.reductions),
            }
        )
    return rows


# -- between ranks -------------------------------------------------------------------------------------------


def exchange(
    shape: Sequence[int], radius: int, method: str, comm: Communicator, wraps: bool
) -> PassTimer | None:
    """Return a timer of exchanges along the first axis; None where the method is not taken here."""
    bench = Bench(
        shape,
        radius=radius,
        fields=1,
        dtype="float64",
        corners=False,
        periodic=(wraps, *(False for _ in shape[1:])),
        communicator=comm,
        decomposition="1d-x",
        methods=method,
        threads=1,
    )
    return bench if method in bench.prepared.plan.transfers.methods else None


def tiny(comm: Communicator) -> PassTimer:
    """Return a timer of a sweep over sixteen cells a rank, with a sum over all ranks."""
    grid = Grid((16 * comm.size,))
    grid.field("u")

    @program
    def summed(u: Any) -> None:
        u.set(0.5 * u)
        scalar("s").set(total(u))

    sim = Simulation(grid, summed, communicator=comm, threads=1)
    return StepBench(sim, sim.program)


def between(comm: Communicator) -> dict[str, float | None]:
    """Return the seconds of small and large sweeps and exchanges; None for a method that is not taken."""
    alone, ranks = Communicator(), comm.size
    small, large = (16 * ranks, 16), (SIDE * ranks, SIDE, SIDE)
    timers: dict[str, PassTimer | None] = {
        "begin": exchange((16, 16), 1, "self", alone, False),
        "sum alone": tiny(alone),
        "copy": exchange(large[1:] + large[1:2], RADIUS, "self", alone, True),
    }
    if ranks > 1:
        timers |= {
            "sum": tiny(comm),
            "signal": exchange(small, 1, "colocated", comm, False),
            "message": exchange(small, 1, "mpi", comm, False),
            "large colocated": exchange(large, RADIUS, "colocated", comm, True),
            "large message": exchange(large, RADIUS, "mpi", comm, True),
        }
    times = best({name: timer for name, timer in timers.items() if timer is not None}, comm)
    return {name: times.get(name) for name in timers}


# -- tasks ---------------------------------------------------------------------------------------------------


def host(comm: Communicator) -> dict[str, Any]:
    """All that is to be known of so many ranks."""
    cache = last_level_cache()
    sizes = {"inside": cache / 6 / comm.size, "outside": 3.0 * cache}
    return {
        "cache": cache,
        "ranks": comm.size,
        "flops": multiply_add_peak(comm, 1),
        "kernels": {where: kernels(memory, comm) for where, memory in sizes.items()},
        "between": between(comm),
    }


def run(task: dict[str, Any], comm: Communicator) -> Any:
    """Do a task: "host", or a case that each rank runs by itself ("alone") or all together."""
    if task["do"] == "host":
        return host(comm)
    case, own = task["case"], Communicator() if task["alone"] else comm
    options = {name: case.get(name) for name in ("dim", "order", "scheme", "dtype", "method")}
    problem = problem_of(case["case"], [case["n"]], case.get("settings", ()), **options)
    return best({"case": problem.bench(communicator=own, threads=1)}, comm)["case"]


def main() -> None:
    """Do the task of the command line."""
    comm = world()
    made = run(json.loads(sys.argv[1]), comm)
    if comm.rank == 0:
        print(json.dumps(made))


if __name__ == "__main__":
    main()
