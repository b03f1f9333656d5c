"""Magnetohydrodynamics on one device: steps of all eight fields and terms, compared with copies.

The case is `mhd-benchmark`, that of Astaroth (Pekkilä et al., Parallel Computing 111, 2022): n^3 cells,
double precision, third-order Runge-Kutta, so that a step has three right-hand sides. The scheme
`rk3-previous` stores the previous state, as Astaroth does. Prints nanoseconds per cell and step, the speed-up
over the paper's V100 at order 6 (2.2 ns), and the share of the bound. The bound is the bytes that a step must
move, at the speed of one large copy, or of four concurrent copies, whichever is faster. The copies run within
the device's memory. Before that the checksum of a small grid is compared with that of the processor.
"""

from __future__ import annotations

import gc
from itertools import product
from typing import Any

from gpu import against_copies, arguments, copy_rate, fastest_copies, keep, label
from measure import numbers
from mhd import simulation

from halocline.problems.problem import Problem

SMALL = 24  # cells along each axis of the grid whose checksum is compared
PAPER = {6: 2.2}  # nanoseconds per cell and step, by the order of differences


def checksum(order: int, scheme: str, device: str, kernels: str = "auto") -> str:
    """Return the checksum of some steps on a small grid."""
    ready = Problem("mhd-benchmark", [SMALL], order=order, scheme=scheme)
    return str(ready.run(steps=3, device=device, kernels=kernels).record.checksum)


def main() -> None:
    """Measure and print."""
    options = arguments(
        __doc__ or "", n=256, orders="2,4,6,8", schemes="rk3,rk3-previous", kernels="auto", passes=5
    )
    device, n = options.devices[0], options.n
    name = label([device])
    copies = fastest_copies(device, options.copy)
    print(f"{name} {device.name}, copies {1e-9 / min(copies() for _ in range(5)):.0f} GB/s", flush=True)
    rows: list[dict[str, Any]] = []
    for order, scheme in product(numbers(options.orders), options.schemes.split(",")):
        expected = checksum(order, scheme, "cpu")
        actual = checksum(order, scheme, name, options.kernels)
        if actual != expected:
            raise SystemExit(f"order {order}, {scheme}: checksum {actual} on {name}, {expected} on cpu")
        sim = simulation(n, order, scheme, device=name, kernels=options.kernels)
        row = {"n": n, "order": order, "scheme": scheme, "kernels": options.kernels}
        row |= against_copies(sim, copies, options.passes, options.repeats)
        row |= {
            "ns_per_cell_step": 1e6 * row["ms"] / n**3,
            "bytes_per_cell_step": sim.bytes_per_step / n**3,
            "checksum": actual,
        }
        note = ""
        if order in PAPER:
            row["times_faster_than_the_paper"] = PAPER[order] / row["ns_per_cell_step"]
            note = f", {row['times_faster_than_the_paper']:.1f} times faster than the paper's V100"
        rows.append(row)
        print(
            f"{n}^3 order {order}, {scheme}: {row['ns_per_cell_step']:6.3f} ns a cell and step, "
            f"{row['share_of_bound']:4.0%} of the bound ({row['copy_gigabytes_per_second']:.0f} GB/s){note}"
            ", bits as on the processor",
            flush=True,
        )
        keep(options, "gpu_mhd", rows, copy_rate(rows))
        del sim
        gc.collect()  # frees the device memory of its fields


if __name__ == "__main__":
    main()
