"""Runs with I/O ranks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from halocline.run.ranks.launch import mpiexec
from hang import HANG

SUPPORT = Path(__file__).parents[1] / "support"


def run_on_ranks(
    ranks: int, io_ranks: int, script: str, *arguments: Path
) -> subprocess.CompletedProcess[str]:
    """Return the finished process of a script on several ranks, some of them I/O ranks."""
    return subprocess.run(
        [str(mpiexec()), "-n", str(ranks), sys.executable, "-c", script, str(SUPPORT), *map(str, arguments)],
        env={**os.environ, "HALOCLINE_IO_RANKS": str(io_ranks)},
        capture_output=True, text=True, timeout=HANG,
    )  # fmt: skip


WRITES = """
import sys; sys.path.insert(0, sys.argv[1])
import shutil
from stopped_runs import *
stores, folder, full = map(Path, sys.argv[2:])
sim = heat(shape=(64, 48))
T = sim.grid.fields["T"]

def outputs():
    return [hc.Output(stores / "T.zarr", every=hc.steps(3)), hc.Output(stores / "more.zarr", {"square": T * T,
            "most": hc.max(T)}, every=hc.steps(1))]

sim.run(steps=4, output=outputs(), checkpoint=hc.Checkpoint(folder, every=hc.steps(2)))
if full.is_dir() and sim.domain.comm.rank == 0:
    (full / "ballast").write_bytes(bytes(shutil.disk_usage(full).free - 4096))
sim.domain.comm.barrier()
sim.run(steps=8, output=outputs(), checkpoint=hc.Checkpoint(folder, every=hc.steps(2)))
"""
