"""Cases of `make gpu-check`, each in a process of its own: gpu_cases.py CASE --device D.

A case prints one line of JSON: rows of a name, "passed", "failed" or "missing", and a note.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

import halocline as hc
from halocline.compile.compiler import compile_program
from halocline.compile.strategy import Strategy
from halocline.errors import HaloclineError
from halocline.native import native
from halocline.plan.devices import DeviceChoice
from halocline.plan.trace import OVERLAPPING, TraceEvent
from halocline.problems.files import case_names
from halocline.problems.problem import Problem
from halocline.run.devices.checked import VARIABLE, mark_checked
from halocline.run.devices.devices import compile_for
from halocline.run.domain.domain import Domain
from halocline.run.engine import prepare
from halocline.run.ranks.launch import environment, mpiexec
from halocline.run.ranks.library import launcher
from halocline.run.ranks.mpi import world
from halocline.run.tuning.kernels import strategies as tuned_strategies
from halocline.study.measuring import exchange, overlap
from halocline.study.measuring.exchange import busiest_rank_traffic
from halocline.words import counted

Row = tuple[str, str, str]
STEPS = 12
LARGE = "mhd-benchmark"  # its kernels need more registers than a thread has


def chosen(device: str) -> list[Any]:
    """Return the native devices that a text names."""
    choice = DeviceChoice.parse(device)
    result = native().devices(choice.interface)
    platforms = [native_device.platform for native_device in result]
    return [result[n] for n in choice.select_visible(platforms, native().why_no_devices(choice.interface))]


# -- problems ------------------------------------------------------------------------------------------------


def heat(shape: Sequence[int], order: int, dtype: str, scheme: Any, **execution: Any) -> str:
    """Return the checksum of heat after some steps."""
    grid = hc.Grid(shape, extent=tuple(n / shape[0] for n in shape), periodic=True)
    T = grid.field("T", dtype=dtype)
    sim = hc.Simulation(
        grid,
        lambda kappa: {T: kappa * hc.laplacian(T)},
        parameters={"kappa": 1.0},
        scheme=scheme,
        order=order,
        dt=0.1 / (shape[0] ** 2 * grid.ndim),
        **execution,
    )
    sim[T] = math.prod((hc.sin(2 * math.pi * x) for x in T.coordinates), start=hc.cos(6 * math.pi * grid.x))
    sim.run(steps=STEPS)
    return str(sim.checksum("T"))


def wave(n: int, dim: int, **execution: Any) -> str:
    """Return the checksum of pressure after some steps."""
    grid = hc.Grid((n,) * dim)
    p, v = grid.field("p", boundary=hc.Derivative(0.0)), grid.vector("v", location="face")

    @hc.program
    def step(dt: Any) -> None:
        v.set(v - dt * hc.grad(p))
        p.set(p - dt * hc.div(v))

    sim = hc.Simulation(grid, step, dt=0.3 / n, **execution)
    sim[p] = lambda *x: np.exp(-30 * sum((x_i - 0.4) ** 2 for x_i in x))
    sim.run(steps=STEPS)
    return str(sim.checksum(p))


def cg(n: int, dim: int, method: str, **execution: Any) -> tuple[str, tuple[str, ...]]:
    """Return iterations and checksum of a solution, and the transfer methods of the run."""
    grid = hc.Grid((n,) * dim, walls="node")
    u = grid.field("u", boundary=hc.Value(0))
    rhs = math.prod(hc.sin(math.pi * x) ** 2 for x in u.coordinates)
    problem = hc.LinearProblem(lambda v: -hc.laplacian(v), u, rhs, method=method, **execution)
    solution = problem.solve(rtol=1e-8)
    result = f"{solution.iterations} iterations, {solution.fields.checksum(u)}"
    return result, tuple(busiest_rank_traffic(problem.prepared)[1])


def problems(small: bool) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Return every compared problem, by name."""
    for dtype in ("float64",) if small else ("float64", "float32"):
        for order in (2,) if small else (2, 4, 6, 8):
            yield (
                f"heat 3D {dtype} order {order}",
                lambda device, o=order, t=dtype: heat((33, 20, 70), o, t, hc.Euler(), device=device),
            )
    if not small:
        yield "heat 1D RK3 order 6", lambda device: heat((1000,), 6, "float64", hc.RK3(), device=device)
        yield "heat 2D RK2 order 4", lambda device: heat((65, 130), 4, "float32", hc.RK2(), device=device)
        yield "heat 3D 96^3", lambda device: heat((96, 96, 96), 2, "float64", hc.Euler(), device=device)
        yield "wave 3D", lambda device: wave(30, 3, device=device)
    yield "wave 2D", lambda device: wave(50, 2, device=device)
    for method in ("cg-fused",) if small else ("cg-fused", "cg"):
        yield f"Poisson 2D {method}", lambda device, m=method: cg(65, 2, m, device=device)[0]
    if not small:
        yield "Poisson 3D cg-fused", lambda device: cg(24, 3, "cg-fused", device=device)[0]


def limited(shape: Sequence[int], **execution: Any) -> str:
    """Return the checksum of an upwind step with a slope as a stage, so that kernels have a stage."""
    grid = hc.Grid(shape, periodic=True)
    u = grid.field("u")

    def step(u: Any) -> None:
        left = u - u[0, 0, -1]
        slope = hc.stage(left * left[0, 0, 1] / (0.5 + abs(left)), "slope", storage="patch")
        u.set(u - 0.2 * (left + slope - slope[0, 0, -1]))

    sim = hc.Simulation(grid, hc.program(step), **execution)
    sim[u] = np.random.default_rng(3).uniform(0.5, 1.5, grid.shape)
    for _ in range(STEPS):
        sim.run()
    return str(sim.checksum(u))


def case(name: str, n: int, **execution: Any) -> str:
    """Return the checksum of all fields of a case after some steps, and its diagnostics."""
    record = Problem(name, [n]).run(steps=4, **execution).record
    numbers = [repr(number) for number in (record.time, *(record.diagnostics or {}).values())]
    return f"{record.checksum}, {' '.join(numbers)}"


# -- cases ---------------------------------------------------------------------------------------------------


def devices(options: argparse.Namespace) -> Iterator[Row]:
    """Report the devices."""
    for device in chosen(options.device):
        facts = [device.name, device.architecture, f"{device.memory / 1e9:.1f} GB", f"driver {device.driver}"]
        facts += ["records graphs"] * device.captures + ["shared between processes"] * device.shares
        yield f"{device.interface}:{device.index}", "passed", ", ".join(filter(None, facts))


def kernels(options: argparse.Namespace) -> Iterator[Row]:
    """Compare the bits of every problem with those of the processor."""
    for name, run in problems(options.small):
        yield compared(name, lambda run=run: (run("cpu"), run(options.device)))


def share_of(names: Sequence[str], share: str) -> Sequence[str]:
    """Return the names of one share: "0/3" is the first of three."""
    number_of_share, shares = map(int, share.split("/"))
    return names[number_of_share::shares]


def physics(options: argparse.Namespace) -> Iterator[Row]:
    """Compare the bits of every case of `halocline cases`, or of a share of them, with the processor's."""
    for name in share_of(case_names(), options.share) if not options.small else ["alfven-decay"]:
        n = 16 if len(Problem(name).default_cells()) == 3 else 48
        yield compared(
            f"{name} {n}",
            lambda name=name, n=n: (case(name, n), case(name, n, device=options.device)),
        )


def strategies(options: argparse.Namespace) -> Iterator[Row]:
    """Compare the bits of kernels with each strategy that a user can select.

    Results of measurements are not stored, so that each run measures.
    """
    shape = (20, 24, 70)
    runs: dict[str, Callable[..., str]] = {
        "heat 3D order 6": lambda **options: heat(shape, 6, "float64", hc.RK3(), **options),
        "stages": lambda **options: limited(shape, **options),
    }
    if not options.small:
        runs["mhd-benchmark 16"] = lambda **options: case("mhd-benchmark", 16, **options)
    for name, run in runs.items():
        expected = run(device="cpu")
        for kernels in ("direct",) if options.small else ("direct", "planes"):
            yield compared(
                f"{name}, {kernels}",
                lambda run=run, kernels=kernels, expected=expected: (
                    expected,
                    run(device=options.device, kernels=kernels),
                ),
            )
    if options.small:
        return
    with tempfile.TemporaryDirectory() as cache:
        os.environ["HALOCLINE_CACHE"] = cache
        for name in list(runs)[:2]:  # strategies that compile fast: a measurement compiles many
            yield compared(
                f"{name}, tune",
                lambda run=runs[name]: (run(device="cpu"), run(device=options.device, kernels="tune")),
            )


def copies(options: argparse.Namespace) -> Iterator[Row]:
    """Compare the bits of kernels with asynchronous copies, also on devices that have not been checked.

    The strategies are those of `--kernels tune`, with one and several cells per thread.
    """
    os.environ[VARIABLE] = "1"
    runs: dict[str, tuple[int, Callable[..., str]]] = {
        **{
            f"heat 3D order {order}, {dtype}": (
                3,
                lambda order=order, dtype=dtype, **settings: heat(
                    (40, 37, 150), order, dtype, hc.Euler(), **settings
                ),
            )
            for order in (2, 6)
            for dtype in ("float64", "float32")
        },
        "wave": (2, lambda **settings: wave(70, 2, **settings)),
        "cg-fused": (2, lambda **settings: cg(65, 2, "cg-fused", **settings)[0]),
        "stages": (3, lambda **settings: limited((20, 24, 70), **settings)),
    }
    for name, (ndim, run) in runs.items():
        expected = run(device="cpu")
        for strategy in tuned_strategies(ndim, staged=False):
            if strategy.reads == "planes":
                prepare.Strategy = lambda *_, strategy=strategy: strategy  # type: ignore[assignment, misc]
                yield compared(
                    f"{name}, {strategy}",
                    lambda run=run, expected=expected: (
                        expected,
                        run(device=options.device, kernels="planes"),
                    ),
                )


def checked(options: argparse.Namespace) -> Iterator[Row]:
    """Record that all checks of a device have passed."""
    device = chosen(options.device)[0]
    mark_checked(device)
    yield "all", "passed", f"{device.name}, driver {device.driver}"


def graphs(options: argparse.Namespace) -> Iterator[Row]:
    """Check that steps on one device are launched as graphs."""
    name, device = "steps in graphs", chosen(options.device)[0]
    bench = overlap.heat((32, 32, 64), device=f"{device.interface}:{device.index}")
    bench.passes = 100
    bench.run()
    launches = bench.prepared.engine.run()["graph_launches"]
    if device.captures:
        yield name, "passed" if launches else "failed", f"{launches} launches for {bench.passes} steps"
    else:
        yield name, "missing", f"{options.device} records none"


def trace(options: argparse.Namespace) -> Iterator[Row]:
    """Check that commands of one queue do not overlap, by the times of the device."""
    rows: list[Row] = []

    def check(domain: Domain) -> None:
        lanes: dict[int, list[TraceEvent]] = {}
        for event in domain.timeline.all:
            if event.kind not in OVERLAPPING:
                lanes.setdefault(event.lane, []).append(event)
        overlap_seconds = 0.0  # seconds by which an event ends after the next one begins
        for events in lanes.values():
            events.sort(key=lambda event: event.begin)
            overlap_seconds = max(
                [overlap_seconds, *(one.end - other.begin for one, other in pairwise(events))]
            )
        count = sum(map(len, lanes.values()))
        note = (
            f"{count} events of {counted(len(lanes), 'lane')}, apart but for {1e6 * overlap_seconds:.3g} µs"
        )
        rows.append(("trace", "passed" if overlap_seconds < 1e-6 and count else "failed", note))

    with tempfile.TemporaryDirectory() as folder:
        settings = {"device": options.device, "subdomains_per_rank": 2, "trace": f"{folder}/trace.json"}
        exchange.measure((24, 24, 24), repeats=1, fields=1, on_trace=check, **settings)
    yield from rows


def reach(options: argparse.Namespace) -> Iterator[Row]:
    """Report the path of halos between each two devices of a process."""
    result = chosen(options.device)
    pairs = [(a, b) for a in result for b in result if a is not b]
    for a, b in pairs:
        path = "read directly" if b.reaches(a) else "through a copy between the devices"
        yield f"{a.interface}:{a.index} to {b.interface}:{b.index}", "passed", path
    if not pairs:
        yield "from device to device", "missing", f"there is one device, {result[0].name}"


def compared(name: str, run: Callable[[], tuple[str, str]]) -> Row:
    """Compare two runs; a failure of either is reported."""
    try:
        expected, actual = run()
    except (HaloclineError, RuntimeError, MemoryError) as error:
        return name, "failed", f"{type(error).__name__}: {str(error).splitlines()[0]}"
    if actual != expected:
        return name, "failed", f"{actual}, but {expected} on the processor"
    return name, "passed", actual


def reductions(options: argparse.Namespace) -> Iterator[Row]:
    """Compare sums of numbers of very different sizes and signs, which elsewhere depend on the order."""
    for dtype in ("float64", "float32"):
        results = []
        for device in ("cpu", options.device):
            grid = hc.Grid((40, 50, 60), periodic=True)
            a, b = grid.field("a", dtype=dtype), grid.field("b", dtype=dtype)
            sim = hc.Simulation(
                grid, lambda a, b: {a: 0.0 * hc.laplacian(b)}, scheme=hc.Euler(), dt=1.0, device=device
            )
            numbers = np.random.default_rng(7)
            shape = grid.shape
            for field in (a, b):
                scale = np.exp2(numbers.integers(-40, 40, shape))
                sim[field] = (numbers.standard_normal(shape) * scale).astype(dtype)
            result = sim.evaluate(hc.sum(a), hc.sum(a * b), hc.min(a), hc.max(b), hc.sum(hc.abs(a - b)))
            results.append(" ".join(number.hex() for number in result))
        yield compared(f"sums, minima and maxima of {dtype}", lambda result=tuple(results): result)


def memory(options: argparse.Namespace) -> Iterator[Row]:
    """Check that a grid that does not fit gives one clear error."""
    device = chosen(options.device)[0]
    n = int((device.memory / 8) ** (1 / 3)) + 64
    name = f"a grid of {n}^3, which does not fit"
    try:
        heat((n, n, n), 2, "float64", hc.Euler(), device=options.device)
        yield name, "failed", "no error"
    except hc.RunError as error:
        yield name, "passed", str(error).splitlines()[0]


def ranks(options: argparse.Namespace) -> Iterator[Row]:
    """Run heat and conjugate gradients on the ranks that run this program, and report the methods."""
    settings = {"device": options.device, "subdomains_per_rank": options.each}
    settings["methods"] = options.methods
    result, methods = cg(65, 2, "cg-fused", **settings)
    bits = [heat((33, 20, 70), 2, "float64", hc.Euler(), **settings), wave(50, 2, **settings), result]
    yield " ".join(bits), "passed", ",".join(methods)


def resources(options: argparse.Namespace) -> Iterator[Row]:
    """Report registers and spills of kernels; a spill is a failure if the device has enough registers."""
    device = chosen(options.device)[0]
    programs: dict[str, Problem] = {}
    for order in (2,) if options.small else (2, 4, 6, 8):
        programs[f"heat order {order}"] = Problem("heat", [64] * 3, scheme="euler", order=order)
    if not options.small:
        programs["wave"] = Problem("wave", [64] * 3)
        programs["cg-fused"] = Problem("poisson", [64] * 2)
        programs[LARGE] = Problem("mhd-benchmark", [16])
    for name, problem in programs.items():
        schedule = compile_program(problem.program, problem.grid, device=Strategy())
        module = compile_for(device, schedule.device.source)
        registers_of_kernels, spills = [], 0
        for kernel in dict.fromkeys(
            k.name for kernels_of_sweep in schedule.device.kernels.values() for k in kernels_of_sweep
        ):
            registers, spilled = module.registers(kernel), module.spilled(kernel)
            spills += spilled
            if registers or spilled:
                registers_of_kernels.append(
                    f"{kernel} {registers}" + (f" (spills {spilled} bytes)" if spilled else "")
                )
        if not registers_of_kernels:
            yield name, "missing", f"{options.device} does not tell registers"
        else:
            spoilt = spills and name != LARGE
            yield name, "failed" if spoilt else "passed", f"registers: {', '.join(registers_of_kernels)}"


def short(options: argparse.Namespace) -> Iterator[Row]:
    """Run heat and conjugate gradients for a short time, under a tool that observes them."""
    yield "heat", "passed", heat((20, 20, 40), 2, "float64", hc.Euler(), device=options.device)
    yield "cg-fused", "passed", cg(33, 2, "cg-fused", device=options.device)[0]


CASES = {
    function.__name__: function
    for function in (
        *(
            devices,
            reach,
            graphs,
            trace,
            kernels,
            physics,
            strategies,
            copies,
            checked,
            reductions,
            memory,
            ranks,
            resources,
            short,
        ),
    )
}


def main() -> int:
    """Run the case of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ranks", type=int, help="start so many, for the case of this name")
    parser.add_argument("--methods", help="of `ranks`")
    parser.add_argument("--each", type=int, default=1, help="subdomains of a device, in `ranks`")
    parser.add_argument("--share", default="0/1", help="of the cases of `physics`: which of how many shares")
    parser.add_argument("--small", action="store_true", help="few kernels, where they compile slowly")
    options = parser.parse_args()
    if options.ranks and launcher() is None:
        try:
            command = [str(mpiexec()), "-n", str(options.ranks), sys.executable, *sys.argv]
        except HaloclineError as error:
            print(json.dumps([("ranks", "missing", str(error).splitlines()[0])]))
            return 0
        os.execve(command[0], command, environment())
    try:
        rows = list(CASES[options.case](options))
    except HaloclineError as error:
        rows = [(options.case, "failed", str(error).splitlines()[0])]
    if options.case != "ranks" or world().rank == 0:
        print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
