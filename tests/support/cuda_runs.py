"""Runs of cuda_ranks.py on several ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cuda_standin
from halocline.run.ranks import launch
from hang import HANG

SUPPORT = Path(__file__).resolve().parents[1] / "support"
QUICK = ["heat", "gray_scott"]

# The default is the first method that applies.
WAYS: dict[str, dict[str, Any]] = {
    "default": {"device": "cuda"},
    "mpi": {"device": "cuda", "methods": "mpi"},
    "one device": {"device": "cuda:0"},
    "several": {"device": "cuda", "subdomains_per_rank": 2, "decomposition": "1d-x"},
    "no self": {"device": "cuda", "methods": "peer,colocated", "halo": "uniform", "patch": 4},
    "no peer": {"device": "cuda", "methods": "colocated", "subdomains_per_rank": 2, "overlap": False},
    "pretended nodes": {"device": "cuda", "ranks_per_node": 1},
}


def run(
    ranks: int,
    ways: Sequence[str | dict[str, Any]],
    problems: Sequence[str] = QUICK,
    dtypes: Sequence[str] = ("float64",),
    devices: int = 2,
    fault: str = "",
    own_device: bool = False,
    **settings: object,
) -> tuple[dict[str, Any], str]:
    """Return the results of problems on the given number of ranks, and the standard error of the ranks."""
    task = {
        "problems": problems,
        "dtypes": dtypes,
        "ways": [WAYS[way] if isinstance(way, str) else way for way in ways],
        "fault": fault,
        "own device": own_device,
    }
    environment = launch.environment() | cuda_standin.environment(devices, **settings)
    environment |= {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(SUPPORT), environment.get("PYTHONPATH", "")])
    command = [str(launch.mpiexec()), "-n", str(ranks), sys.executable, str(SUPPORT / "cuda_ranks.py")]
    process = subprocess.run(
        [*command, json.dumps(task)], env=environment, capture_output=True, text=True, timeout=HANG
    )
    assert process.returncode == 0, process.stdout + process.stderr
    results: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    assert results["tried"] >= len(problems) * len(dtypes)
    return results, process.stderr


def notices(errors: str, method: str) -> list[str]:
    return [line for line in errors.splitlines() if f"transfer method {method} is not used" in line]
