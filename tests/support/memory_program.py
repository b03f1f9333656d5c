"""Memory of ranks while they write and read: run as `mpiexec -n RANKS python memory_program.py FOLDER`.

The program prints the bytes of one field. It also prints the maximum growth of the memory of a rank for
output, checkpoints and reading.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halocline as hc


def memory(name: str) -> int:
    """Return a size of this process in bytes: VmRSS now, or VmHWM, the maximum since `forget`."""
    match = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


def reset_peak_memory() -> None:
    """Reset VmHWM."""
    Path("/proc/self/clear_refs").write_text("5")


def heat(n: int) -> hc.Simulation:
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.RK3(), dt=1e-9, threads=1)
    sim[T] = lambda x, y, z: x + y * z
    return sim


def peak_growth(sim: hc.Simulation, work: Callable[[], Any]) -> int:
    """Return the maximum growth of the memory of a rank during this work, in bytes."""
    sim.domain.comm.barrier()
    reset_peak_memory()
    before = memory("VmRSS")
    work()
    return max(sim.domain.comm.allgather(memory("VmHWM") - before))


def growth(n: int, folder: Path) -> list[int]:
    """Return the growth for output, for a checkpoint, for reading a field and for resuming."""
    sim = heat(n)
    sim.run(steps=1)
    output = hc.Output(folder / "T.zarr", every=hc.steps(1))
    return [
        peak_growth(sim, lambda: sim.run(steps=1, output=output)),
        peak_growth(sim, lambda: sim.run(steps=1, checkpoint=hc.Checkpoint(folder / "checkpoints"))),
        peak_growth(sim, lambda: sim.__setitem__("T", str(folder / "T.zarr" / "T"))),
        peak_growth(sim, lambda: sim.resume(folder / "checkpoints")),
    ]


if __name__ == "__main__":
    size = 256
    # loads libraries and their threads, so that the second call does not count them
    growth(16, Path(sys.argv[1]) / "small")
    hc.print(8 * size**3, *growth(size, Path(sys.argv[1]) / "large"))
