"""Explicit heat steps on one device compared with copies within its memory and with other programs, in turn.

n^3 cells, forward Euler, differences of some orders (order 2 reads 7 points). Prints milliseconds per pass,
million cells per second, and the share of the bound. The bound is 16 bytes per cell (8 in float32) at the
speed of one large copy, or of four concurrent copies, whichever is faster. Before that the checksum of a
small grid is compared with that of the processor.

Other programs compute the same steps on the same grid of a CUDA device (--peers). Their times are printed
and recorded with the ratio to the time of Halocline. The hand-written kernels in peers/heat_device.cu are
"naive", "queue", "cp.async" and "tma". NVRTC compiles them for the device. The kernel "naive" has one thread
per cell, and "queue" streams along the slowest axis with a register queue. The other two also have tiles of
planes in shared memory, which cp.async (sm_80) or TMA (sm_90) copies. Each of the four has some shapes of
thread blocks and tiles, of which the fastest one is measured. The libraries are "triton", "cupy" (an
elementwise kernel), "torch" (torch.compile) and "jax" (jax.jit). If they are installed, they run in separate
processes.

All programs pay for periodic sides, as Halocline does. In each step, the hand-written kernels and Triton fill
a halo by extra kernels, and CuPy and torch fill it by copies of slices. JAX rolls arrays without a halo. The
time of the hand-written fill alone is printed too.

On a small grid, the naive kernel is compared with Halocline, and the libraries with NumPy. On the measured
grid, the bits of the other hand-written kernels are compared with those of the naive kernel.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cuda_launch import CudaError
from gpu import Copies, against_copies, arguments, copy_rate, fastest_copies, keep, label
from heat_device import VARIANTS, HandWritten, why_not
from heat_python import SOLVERS
from heat_reference import tolerance
from measure import Competitor, competitor, numbers

import halocline as hc
from halocline.errors import CompileError

SMALL = 40  # cells along each axis of the grid whose results are compared
STEPS = 10  # steps on this grid
PEERS = (*VARIANTS, *SOLVERS)
LIBRARIES = Path(__file__).parent / "heat_python.py"
FILL = "halo fill"  # name of the fill alone


def simulation(n: int, order: int, dtype: str, device: str, kernels: str = "auto") -> Any:
    """Return heat in a box of n^3 cells."""
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T", dtype=dtype)
    sim = hc.Simulation(
        grid,
        lambda kappa: {T: kappa * hc.laplacian(T)},
        parameters={"kappa": 1.0},
        scheme=hc.Euler(),
        order=order,
        dt=0.1 / (3 * n**2),
        device=device,
        kernels=kernels,
    )
    waves = math.prod(hc.sin(2 * math.pi * x) for x in T.coordinates)
    sim[T] = 0.5 * hc.cos(6 * math.pi * grid.x) * waves
    return sim


def checksum(order: int, dtype: str, device: str, kernels: str = "auto") -> str:
    """Return the checksum of some steps on a small grid."""
    sim = simulation(SMALL, order, dtype, device, kernels)
    sim.run(steps=STEPS)
    return str(sim.checksum("T"))


# -- other programs ----------------------------------------------------------------------------------


def selected(text: str) -> list[str]:
    """Return the names of the programs that an option selects."""
    if text in ("all", "none"):
        return list(PEERS) if text == "all" else []
    names = text.split(",")
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise SystemExit(
            f"--peers {text}: {unknown[0]!r} is not known. Select all, none, or some of {','.join(PEERS)}"
        )
    return [name for name in PEERS if name in names]


def missing(names: Sequence[str], device: Any, installed: dict[str, str]) -> dict[str, str]:
    """Return the programs that cannot run, and the reasons.

    Parameters
    ----------
    names : sequence of str
    device : native Device
    installed : dict of str to str
        Versions of the installed libraries.
    """
    reasons = {}
    for name in names:
        if device.interface != "cuda":
            reasons[name] = f"needs a CUDA device, not {device.interface}"
        elif name in VARIANTS:
            reasons[name] = why_not(name, device.architecture)
        elif name not in installed:
            reasons[name] = "not installed"
    return {name: reason for name, reason in reasons.items() if reason}


def library_versions(python: str) -> dict[str, str]:
    """Return the versions of the libraries that are installed for a Python."""
    try:
        done = subprocess.run([python, str(LIBRARIES)], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"--peer-python {python}: {error}") from None
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def compare_naive(device: Any, order: int, dtype: str, kernels: str) -> None:
    """Compare the naive kernel with Halocline on a small grid."""
    sim = simulation(SMALL, order, dtype, label([device]), kernels)
    program = HandWritten(device.index, device.architecture, SMALL, order, dtype)
    program.set(sim.gather("T"))
    sim.run(steps=STEPS)
    program.run(program.naive, STEPS)
    difference = float(np.abs(program.get() - sim.gather("T")).max())
    if not difference <= STEPS * tolerance(dtype):
        raise SystemExit(
            f"{dtype}, order {order}: the naive kernel differs from Halocline by {difference:.3g}"
        )


def hand_written(
    names: Sequence[str], device: Any, n: int, order: int, dtype: str
) -> Iterator[tuple[str, str, Callable[[int], float]]]:
    """Yield the name, the shape and the function of each hand-written kernel, and of the fill of the halo."""
    try:
        programs = HandWritten(device.index, device.architecture, n, order, dtype)
    except (CudaError, CompileError) as error:
        print(f"hand-written kernels do not run: {error}", flush=True)
        return
    for name in names:
        try:
            best = programs.best(name)
        except CudaError as error:
            print(f"{name}: {error}", flush=True)
            continue
        yield name, str(best.program.shape), lambda steps, best=best: programs.run(best, steps)
    yield FILL, "", programs.run_fill


def of_process(process: Competitor, cells: int) -> Callable[[int], float]:
    """Return a function for the seconds of one step; the process selects the number of steps."""
    return lambda steps: process() * cells / 1e6


@contextlib.contextmanager
def peers_of(
    names: Sequence[str], device: Any, n: int, order: int, dtype: str, python: str
) -> Iterator[tuple[dict[str, Callable[[int], float]], dict[str, str]]]:
    """Prepare programs, which end with the block.

    Yields
    ------
    functions : dict of str to function
        Functions of a number of steps, which return the seconds of one step.
    shapes : dict of str to str
        Shapes of the thread blocks of hand-written kernels.
    """
    functions: dict[str, Callable[[int], float]] = {}
    shapes: dict[str, str] = {}
    variants = [name for name in names if name in VARIANTS]
    with contextlib.ExitStack() as stack:
        if variants:
            for name, shape, function in hand_written(variants, device, n, order, dtype):
                functions[name], shapes[name] = function, shape
        for name in names:
            if name in VARIANTS:
                continue
            command = (python, LIBRARIES, name, n, order, dtype, f"cuda:{device.index}")
            try:
                functions[name] = of_process(stack.enter_context(competitor(*command)), n**3)
            except SystemExit:
                print(f"{name}: does not run, see the message above", flush=True)
        yield functions, shapes


# -- the benchmark -----------------------------------------------------------------------------------


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__ or "",
        n=512,
        orders="2,4,6,8",
        dtypes="float64,float32",
        kernels="auto",
        passes=50,
        peers="all",
        peer_python="",
    )
    device = options.devices[0]
    name, n = label([device]), options.n
    python = options.peer_python or sys.executable
    names = selected(options.peers)
    installed = library_versions(python) if set(names) & set(SOLVERS) else {}
    reasons = missing(names, device, installed)
    for peer, reason in reasons.items():
        print(f"{peer}: {reason}")
    names = [peer for peer in names if peer not in reasons]
    libraries = {peer: installed[peer] for peer in names if peer in installed}
    copies: Copies = fastest_copies(device, options.copy)
    print(f"{name} {device.name}, copies {1e-9 / min(copies() for _ in range(5)):.0f} GB/s", flush=True)
    rows: list[dict[str, Any]] = []
    for dtype in options.dtypes.split(","):
        for order in numbers(options.orders):
            expected = checksum(order, dtype, "cpu")
            actual = checksum(order, dtype, name, options.kernels)
            if actual != expected:
                raise SystemExit(f"{dtype}, order {order}: checksum {actual} on {name}, {expected} on cpu")
            if set(names) & set(VARIANTS):
                compare_naive(device, order, dtype, options.kernels)
            sim = simulation(n, order, dtype, name, options.kernels)
            row = {"n": n, "dtype": dtype, "order": order, "kernels": options.kernels}
            with peers_of(names, device, n, order, dtype, python) as (peers, shapes):
                row |= against_copies(sim, copies, options.passes, options.repeats, peers)
            for peer, shape in shapes.items():
                row["peers"][peer]["shape"] = shape
            row |= {
                "million_cells_per_second": n**3 / row["ms"] / 1e3,
                "bytes_per_cell": sim.bytes_per_step / n**3,
                "checksum": actual,
            }
            rows.append(row)
            print(
                f"{n}^3 {dtype} order {order}: {row['ms']:8.3f} ms a pass, "
                f"{row['million_cells_per_second']:8.0f} million cells/s, {row['share_of_bound']:4.0%} of "
                f"the bound ({row['copy_gigabytes_per_second']:.0f} GB/s), bits as on the processor",
                flush=True,
            )
            for peer, result in row["peers"].items():
                shape = f" ({result['shape']})" if result.get("shape") else ""
                print(
                    f"  {peer:9} {result['ms']:8.3f} ms, {result['ratio']:6.2f} of Halocline's time{shape}",
                    flush=True,
                )
            keep(options, "gpu_heat", rows, copy_rate(rows), libraries=libraries)
            del sim, peers
            gc.collect()  # frees the device memory of its fields


if __name__ == "__main__":
    main()
