"""Explicit heat steps on one device compared with copies within its memory, in turn.

n^3 cells, forward Euler, differences of some orders (order 2 reads 7 points). Prints milliseconds per pass,
million cells per second, and the share of the bound. The bound is 16 bytes per cell (8 in float32) at the
speed of one large copy, or of four concurrent copies, whichever is faster. Before that the checksum of a
small grid is compared with that of the processor.
"""

from __future__ import annotations

import gc
import math
from typing import Any

from gpu import Copies, against_copies, arguments, copy_rate, fastest_copies, keep, label
from measure import numbers

import halocline as hc

SMALL = 40  # cells along each axis of the grid whose checksum is compared


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
    sim.run(steps=10)
    return str(sim.checksum("T"))


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__ or "", n=512, orders="2,4,6,8", dtypes="float64,float32", kernels="auto", passes=50
    )
    device = options.devices[0]
    name, n = label([device]), options.n
    copies: Copies = fastest_copies(device, options.copy)
    print(f"{name} {device.name}, copies {1e-9 / min(copies() for _ in range(5)):.0f} GB/s", flush=True)
    rows: list[dict[str, Any]] = []
    for dtype in options.dtypes.split(","):
        for order in numbers(options.orders):
            expected = checksum(order, dtype, "cpu")
            actual = checksum(order, dtype, name, options.kernels)
            if actual != expected:
                raise SystemExit(f"{dtype}, order {order}: checksum {actual} on {name}, {expected} on cpu")
            sim = simulation(n, order, dtype, name, options.kernels)
            row = {"n": n, "dtype": dtype, "order": order, "kernels": options.kernels}
            row |= against_copies(sim, copies, options.passes, options.repeats)
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
            keep(options, "gpu_heat", rows, copy_rate(rows))
            del sim
            gc.collect()  # frees the device memory of its fields


if __name__ == "__main__":
    main()
