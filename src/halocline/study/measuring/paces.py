"""Measurements of this host for the model, in a parallel run of several ranks.

Ranks run `python -m halocline.study.measuring.paces TASK`, where TASK is JSON. The first rank prints the
result.
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
from halocline.run.tuning.patches import run_in_turn
from halocline.solvers.schemes import Euler
from halocline.study.measuring.exchange import Bench

ROUNDS = 10  # number of rounds, of which the fastest counts, because disturbances only lengthen a round
ROUND_SECONDS = 0.02  # approximate duration of a round
SIDE, RADIUS = 128, 3  # number of cells along each axis of a rank, and of halo layers, in the large exchange


# -- sweeps with known numbers of bytes, operations and sums -------------------------------------------------


@program
def scaled(u: Any, v: Any) -> None:
    """Scale a field, with 16 bytes and one operation per cell."""
    v.set(0.5 * u)


@program
def triad(u: Any, v: Any, w: Any) -> None:
    """Compute McCalpin's triad, with 24 bytes and two operations per cell."""
    u.set(v + 0.5 * w)


@program
def inner(u: Any, v: Any) -> None:
    """Compute an inner product, with 16 bytes and one summand per cell."""
    scalar("s").set(total(u * v))


@program
def updated(u: Any, v: Any) -> None:
    """Update a field and sum its squares, with 24 bytes and one summand per cell."""
    u.set(0.5 * u + 0.5 * v)
    scalar("s").set(total(u * u))


def steps(order: int) -> Callable[..., Any]:
    """Return the equation of diffusion, which needs 16 bytes per cell in an explicit step."""

    def diffusion(u: Any) -> Any:
        return {u: laplacian(u, order=order)}

    return diffusion


# kernels by name: program or function of the time derivatives, names of the fields, number of axes
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
    """Return the timer and the grid of a kernel on one rank, with about `memory` bytes of fields."""
    function, names, dim = KERNELS[name]
    is_explicit = not isinstance(function, ProgramFunction)
    fields = len(names) + is_explicit  # an explicit step needs a second buffer
    edge = max(16, round((memory / 8 / fields) ** (1 / dim)) // 16 * 16)
    grid = Grid((edge,) * dim, periodic=True)
    for field in names:
        grid.field(field)
    stepping: dict[str, Any] = {"scheme": Euler(), "dt": 1e-9} if is_explicit else {}
    sim = Simulation(grid, function, communicator=Communicator(), threads=1, **stepping)
    return StepBench(sim, sim.program), grid


def best_times(timers: Mapping[str, PassTimer], comm: Communicator) -> dict[str, float]:
    """Return, for each timer, the minimum over all rounds of the time per pass on the slowest rank (s).

    The timers run in turn, each on all ranks at the same time.
    """

    def run_on_all_ranks(timer: PassTimer) -> Callable[[], float]:
        timer.calibrate(ROUND_SECONDS)

        def slowest_time() -> float:
            comm.barrier()
            return max(comm.allgather(timer.run()))

        return slowest_time

    times = run_in_turn({name: run_on_all_ranks(timer) for name, timer in timers.items()}, ROUNDS)
    return {name: min(seconds) for name, seconds in times.items()}


def kernels(memory: float, comm: Communicator) -> list[dict[str, float]]:
    """Return the time and the work per cell of each kernel, with about `memory` bytes of fields.

    All ranks run a kernel at the same time, but do not communicate.
    """
    timers = {name: kernel_timer(name, memory) for name in KERNELS}
    seconds = best_times({name: timer for name, (timer, _) in timers.items()}, comm)
    rows = []
    for name, (timer, grid) in timers.items():
        sweeps = list(timer.prepared.schedule.pass_sweeps())
        rows.append(
            {
                "seconds": seconds[name] / grid.size,  # per cell
                "bytes": sum(sweep.bytes for sweep in sweeps),
                "flops": sum(sweep.flops for sweep in sweeps),
                "sums": sum(r.kind == "sum" for sweep in sweeps for r in sweep.reductions),
            }
        )
    return rows


# -- communication -------------------------------------------------------------------------------------------


def exchange_timer(
    shape: Sequence[int], radius: int, method: str, comm: Communicator, is_periodic: bool
) -> PassTimer | None:
    """Return a timer of exchanges along the first axis; None if the method is unavailable."""
    bench = Bench(
        shape,
        radius=radius,
        fields=1,
        dtype="float64",
        corners=False,
        periodic=(is_periodic, *(False for _ in shape[1:])),
        communicator=comm,
        decomposition="1d-x",
        methods=method,
        threads=1,
    )
    return bench if method in bench.prepared.plan.transfers.methods else None


def reduction_timer(comm: Communicator) -> PassTimer:
    """Return a timer of a sweep over 16 cells per rank, with a sum over all ranks."""
    grid = Grid((16 * comm.size,))
    grid.field("u")

    @program
    def summed(u: Any) -> None:
        u.set(0.5 * u)
        scalar("s").set(total(u))

    sim = Simulation(grid, summed, communicator=comm, threads=1)
    return StepBench(sim, sim.program)


def communication_times(comm: Communicator) -> dict[str, float | None]:
    """Return the times of exchanges and reductions, in seconds; None for an unavailable transfer method."""
    self_comm, ranks = Communicator(), comm.size
    small, large = (16 * ranks, 16), (SIDE * ranks, SIDE, SIDE)
    timers: dict[str, PassTimer | None] = {
        "begin": exchange_timer((16, 16), 1, "self", self_comm, False),
        "sum alone": reduction_timer(self_comm),
        "copy": exchange_timer(large[1:] + large[1:2], RADIUS, "self", self_comm, True),
    }
    if ranks > 1:
        timers |= {
            "sum": reduction_timer(comm),
            "signal": exchange_timer(small, 1, "colocated", comm, False),
            "message": exchange_timer(small, 1, "mpi", comm, False),
            "large colocated": exchange_timer(large, RADIUS, "colocated", comm, True),
            "large message": exchange_timer(large, RADIUS, "mpi", comm, True),
        }
    times = best_times({name: timer for name, timer in timers.items() if timer is not None}, comm)
    return {name: times.get(name) for name in timers}


# -- tasks ---------------------------------------------------------------------------------------------------


def measure_host(comm: Communicator) -> dict[str, Any]:
    """Return all measurements of this host on the ranks of a communicator."""
    cache = last_level_cache()
    sizes = {"inside": cache / 6 / comm.size, "outside": 3.0 * cache}
    return {
        "cache": cache,
        "ranks": comm.size,
        "flops": multiply_add_peak(comm, 1),
        "kernels": {cache_state: kernels(memory, comm) for cache_state, memory in sizes.items()},
        "between": communication_times(comm),
    }


def run(task: dict[str, Any], comm: Communicator) -> Any:
    """Return the result of a task.

    The task "host" returns all measurements of this host. The task "case" returns the time of a pass of a
    case. If the entry "alone" is true, every rank runs its own copy of the case. Otherwise, all ranks run the
    case together.
    """
    if task["do"] == "host":
        return measure_host(comm)
    case, task_comm = task["case"], Communicator() if task["alone"] else comm
    options = {name: case.get(name) for name in ("dim", "order", "scheme", "dtype", "method")}
    problem = problem_of(case["case"], [case["n"]], case.get("settings", ()), **options)
    return best_times({"case": problem.bench(communicator=task_comm, threads=1)}, comm)["case"]


def main() -> None:
    """Run the task of the command line, and print its result."""
    comm = world()
    result = run(json.loads(sys.argv[1]), comm)
    if comm.rank == 0:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
