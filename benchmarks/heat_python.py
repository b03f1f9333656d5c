"""Explicit 3D heat steps in Triton, CuPy, torch and JAX, for gpu_heat.py.

    heat_python.py NAME N ORDER DTYPE DEVICE

The grid and the sides are those of gpu_heat.py. Triton, CuPy and torch fill a halo in each step, and JAX
rolls the array. The device is cuda:0 or another number, or cpu for tests. Before the measurements,
some steps on a small grid are compared with NumPy. Then the program prints "ready". For each input line, it
prints million cells per second. Without arguments, it prints the versions of the installed libraries as JSON.

The program does not need Halocline, since the libraries may be in another environment.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from heat_reference import FACTOR, centre, step, tolerance, weights

SMALL, SMALL_STEPS = 24, 4  # grid of the comparison with NumPy
SECONDS = 0.2  # of one measurement
CHUNK = 10  # steps of JAX in one call

Slices = tuple[slice, ...]


@dataclass
class Solver:
    """Heat equation in a library.

    Attributes
    ----------
    run : function
        Function of a number of steps, which returns after the last step is complete.
    get : function
        Function that returns the cells as a NumPy array.
    chunk : int
        The number of steps is a multiple of it.
    """

    run: Callable[[int], None]
    get: Callable[[], np.ndarray]
    chunk: int = 1


def padded(cells: np.ndarray, radius: int) -> np.ndarray:
    """Return the cells inside a halo that is NaN."""
    result = np.full([size + 2 * radius for size in cells.shape], np.nan, cells.dtype)
    result[radius:-radius, radius:-radius, radius:-radius] = cells
    return result


def halo_copies(n: int, radius: int) -> list[tuple[Slices, Slices]]:
    """Return pairs of halo and source slices for periodic sides. A star stencil reads no corners."""
    inside = slice(radius, n + radius)
    sides = (
        (slice(0, radius), slice(n, n + radius)),
        (slice(n + radius, n + 2 * radius), slice(radius, 2 * radius)),
    )

    def on_axis(part: slice, axis: int) -> Slices:
        return tuple(part if a == axis else inside for a in range(3))

    return [(on_axis(halo, axis), on_axis(source, axis)) for axis in range(3) for halo, source in sides]


def views(field: Any, n: int, radius: int) -> list[Any]:
    """Return views of the cells, and of their six neighbours at the distances 1 to radius."""

    def view(axis: int, shift: int) -> Any:
        starts = [radius + shift if a == axis else radius for a in range(3)]
        return field[tuple(slice(start, start + n) for start in starts)]

    neighbours = [view(axis, shift) for r in range(1, radius + 1) for axis in range(3) for shift in (-r, r)]
    return [view(0, 0), *neighbours]


# -- libraries ---------------------------------------------------------------------------------------


def solve_torch(cells: np.ndarray, order: int, device: str) -> Solver:
    """Return a solver with torch.compile: slices of a field with a halo."""
    import torch

    n, radius = cells.shape[0], order // 2
    pairs, centre_weight, side_weights = halo_copies(n, radius), centre(order), weights(order)

    def advance(field: Any, result: Any) -> None:
        for halo, source in pairs:
            field[halo] = field[source]
        cell, *neighbours = views(field, n, radius)
        laplacian = centre_weight * cell
        for r, weight in enumerate(side_weights):
            laplacian = laplacian + weight * sum(neighbours[6 * r + 1 : 6 * r + 6], start=neighbours[6 * r])
        views(result, n, radius)[0][...] = cell + FACTOR * laplacian

    torch._dynamo.reset()
    compiled = torch.compile(advance, dynamic=False)
    field = torch.as_tensor(padded(cells, radius), device=device)
    fields = [field, torch.full_like(field, float("nan"))]

    def run(steps: int) -> None:
        for _ in range(steps):
            compiled(fields[0], fields[1])
            fields.reverse()
        if device != "cpu":
            torch.cuda.synchronize(device)

    return Solver(run, lambda: views(fields[0], n, radius)[0].cpu().numpy())


def solve_jax(cells: np.ndarray, order: int, device: str) -> Solver:
    """Return a solver with jax.jit: rolled arrays, which have no halo."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    platform, _, number = device.partition(":")
    target = jax.devices(platform)[int(number or 0)]

    def advance(field: Any) -> Any:
        def body(_: int, values: Any) -> Any:
            return step(values, order, FACTOR, jnp.roll).astype(values.dtype)

        return jax.lax.fori_loop(0, CHUNK, body, field)

    compiled = jax.jit(advance, donate_argnums=0)
    fields = [jax.device_put(jnp.asarray(cells), target)]

    def run(steps: int) -> None:
        for _ in range(steps // CHUNK):
            fields[0] = compiled(fields[0])
        fields[0].block_until_ready()

    return Solver(run, lambda: np.asarray(fields[0]), CHUNK)


def solve_cupy(cells: np.ndarray, order: int, device: str) -> Solver:
    """Return a solver with a CuPy elementwise kernel over views of a field with a halo."""
    import cupy

    if device != "cpu":
        cupy.cuda.Device(int(device.partition(":")[2] or 0)).use()
    n, radius = cells.shape[0], order // 2
    names = [f"{axis}{side}{r}" for r in range(1, radius + 1) for axis in "xyz" for side in "mp"]
    sums = [
        f"(T){weight!r} * ({' + '.join(names[6 * r : 6 * r + 6])})" for r, weight in enumerate(weights(order))
    ]
    laplacian = " + ".join([f"(T)({centre(order)!r}) * cell", *sums])
    kernel = cupy.ElementwiseKernel(
        ", ".join(f"T {name}" for name in ["cell", *names]),
        "T result",
        f"result = cell + (T){FACTOR!r} * ({laplacian})",
        f"heat_{order}",
    )
    fields = [cupy.asarray(padded(cells, radius))]
    fields.append(cupy.full_like(fields[0], float("nan")))
    inputs = [views(field, n, radius) for field in fields]
    pairs = halo_copies(n, radius)

    def run(steps: int) -> None:
        for _ in range(steps):
            for halo, source in pairs:
                fields[0][halo] = fields[0][source]
            kernel(*inputs[0], inputs[1][0])
            fields.reverse()
            inputs.reverse()
        cupy.cuda.get_current_stream().synchronize()

    return Solver(run, lambda: cupy.asnumpy(inputs[0][0]))


def solve_triton(cells: np.ndarray, order: int, device: str) -> Solver:
    """Return a solver with a Triton kernel, with the fastest of some blocks."""
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    import torch
    from heat_triton import fill_halo, heat

    n, radius = cells.shape[0], order // 2
    padding = 128 // cells.itemsize  # rows begin at multiples of 128 bytes
    pitch = -(-n // 128) * 128 + 2 * padding
    cells_of_axis = slice(radius, radius + n)
    interior = (cells_of_axis, cells_of_axis, slice(padding, padding + n))
    array = np.full((n + 2 * radius, n + 2 * radius, pitch), np.nan, cells.dtype)
    array[interior] = cells
    fields = [torch.as_tensor(array, device=device)]
    fields.append(torch.full_like(fields[0], float("nan")))
    plane = pitch * (n + 2 * radius)
    first = radius * plane + radius * pitch + padding
    side_weights = [*weights(order), 0.0, 0.0, 0.0][:4]
    axes = ((1, pitch, plane), (pitch, 1, plane), (plane, 1, pitch))  # strides across and along a side

    def advance(block: tuple[int, int, int], steps: int) -> None:
        width, height, warps = block
        for _ in range(steps):
            for stride, along, across in axes:
                sides = (-(-n // 64), -(-n // 16), radius)
                fill_halo[sides](fields[0], n, first, stride, along, across, 64, 16)
            fields_and_sizes = (fields[0], fields[1], n, first, pitch, plane, FACTOR, centre(order))
            heat[(-(-n // width), -(-n // height), n)](
                *fields_and_sizes, *side_weights, radius, width, height, num_warps=warps
            )
            fields.reverse()
        if device != "cpu":
            torch.cuda.synchronize(device)

    blocks = [(64, 8, 4), (128, 4, 4), (128, 8, 8), (256, 4, 4), (64, 4, 2)] if n > SMALL else [(64, 8, 4)]

    def seconds(block: tuple[int, int, int]) -> float:
        advance(block, 2)
        times = []
        for _ in range(3):
            start_time = perf_counter()
            advance(block, 10)
            times.append(perf_counter() - start_time)
        return min(times)

    best = min(blocks, key=seconds) if len(blocks) > 1 else blocks[0]
    return Solver(lambda steps: advance(best, steps), lambda: fields[0][interior].cpu().numpy())


SOLVERS = {"triton": solve_triton, "cupy": solve_cupy, "torch": solve_torch, "jax": solve_jax}
NEEDED = {"triton": ("triton", "torch"), "cupy": ("cupy",), "torch": ("torch",), "jax": ("jax",)}


# -- the program -------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Return the versions of the installed libraries."""
    packages = importlib.metadata.packages_distributions()
    result = {}
    for name, modules in NEEDED.items():
        if all(importlib.util.find_spec(module) is not None for module in modules):
            result[name] = importlib.metadata.version(packages[name][0])  # such as cupy-cuda12x
    return result


def check(name: str, order: int, dtype: str, device: str) -> None:
    """Compare some steps of a library with NumPy.

    Raises
    ------
    SystemExit
        The results differ.
    """
    cells = np.random.default_rng(7).random((SMALL,) * 3).astype(dtype)
    solver = SOLVERS[name](cells, order, device)
    steps = -(-SMALL_STEPS // solver.chunk) * solver.chunk
    solver.run(steps)
    expected = cells.astype("float64")
    for _ in range(steps):
        expected = step(expected, order)
    difference = float(np.abs(solver.get() - expected).max())
    if not difference <= 10 * tolerance(dtype):
        raise SystemExit(
            f"{name}, {dtype}, order {order}: the result differs from NumPy's by {difference:.3g}"
        )


def main(name: str, n: int, order: int, dtype: str, device: str) -> None:
    """Check, prepare, and measure for each input line."""
    try:
        check(name, order, dtype, device)
        cells = np.random.default_rng(8).random((n,) * 3, np.dtype(dtype).type)
        solver = SOLVERS[name](cells, order, device)
        solver.run(solver.chunk)  # compiles
    except Exception as error:  # libraries have their own errors for missing devices and full memory
        reason = (str(error).strip() or "no message").splitlines()[0]
        raise SystemExit(f"{name}, {dtype}, order {order}: {type(error).__name__}: {reason}") from None
    start_time = perf_counter()
    solver.run(2 * solver.chunk)
    seconds = (perf_counter() - start_time) / 2
    steps = max(1, round(SECONDS / seconds)) * solver.chunk
    print("ready", flush=True)
    for _ in sys.stdin:
        start_time = perf_counter()
        solver.run(steps)
        print(n**3 * steps / (perf_counter() - start_time) / 1e6, flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        print(json.dumps(versions()))
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5])
