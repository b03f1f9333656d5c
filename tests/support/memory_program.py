"""What ranks hold while they write and read: run as `mpiexec -n RANKS python memory_program.py FOLDER`.

Prints the bytes of one field, and by how much the memory of the rank that grew most has grown over what it
had before, for output, checkpoints and reading.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halocline as hc


def memory(name: str) -> int:
    """Bytes of this process, as the kernel has them: VmRSS now, VmHWM at most since `forget`."""
    found = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def forget() -> None:
    """Let VmHWM begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def heat(n: int) -> hc.Simulation:
    grid = hc.Grid((n, n, n), periodic=True)
    T = grid.field("T")
    sim = hc.Simulation(grid, lambda T: {T: hc.laplacian(T)}, scheme=hc.RK3(), dt=1e-9, threads=1)
    sim[T] = lambda x, y, z: x + y * z
    return sim


def grown(sim: hc.Simulation, work: Callable[[], Any]) -> int:
    """By how much the memory of a rank has grown at most during this work."""
    sim.domain.comm.barrier()
    forget()
    before = memory("VmRSS")
    work()
    return max(sim.domain.comm.allgather(memory("VmHWM") - before))


def growth(n: int, folder: Path) -> list[int]:
    """Of output, of a checkpoint, of reading a field, of resuming."""
    sim = heat(n)
    sim.run(steps=1)
    output = hc.Output(folder / "T.zarr", every=hc.steps(1))
    return [
        grown(sim, lambda: sim.run(steps=1, output=output)),
        grown(sim, lambda: sim.run(steps=1, checkpoint=hc.Checkpoint(folder / "checkpoints"))),
        grown(sim, lambda: sim.__setitem__("T", str(folder / "T.zarr" / "T"))),
        grown(sim, lambda: sim.resume(folder / "checkpoints")),
    ]


if __name__ == "__main__":
    size = 256
    growth(16, Path(sys.argv[1]) / "small")  # what is loaded once, the library underneath with its threads
    hc.print(8 * size**3, *growth(size, Path(sys.argv[1]) / "large"))
