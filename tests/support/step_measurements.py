"""Measurements of steps in the format of studies."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

import preloaded
from halocline.cli.app import run
from halocline.errors import InputError


def halocline(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.halocline(*words, cwd=cwd)


def run_json(*words: str, cwd: Path) -> Any:
    """Return the JSON output of a command."""
    process = halocline(*words, "--json", "result.json", cwd=cwd)
    assert process.returncode == 0, process.stderr
    return json.loads((cwd / "result.json").read_text())


def step(**other: Any) -> dict[str, Any]:
    """Return a measurement of steps in the format of a study's file."""
    machine = {
        "host": "h", "system": "s", "cpu": "c", "cores": 2, "hardware_threads": 2, "numa_nodes": 1,
        "simd_bits": 512, "memory_bytes": 10**10, "caches": [], "compiler": "g++", "compiler_version": "12",
        "mpi_library": "m", "mpi_version": "v", "commit": None,
    }  # fmt: skip
    record = {
        "study": "strong", "case": "heat", "shape": [16, 16], "steps": 4, "order": 2, "scheme": "rk3",
        "decomposition": "optimal", "patch": None, "subdomains_per_rank": 1, "ranks_per_node": None,
        "methods": None, "mailboxes": 2, "schedule": "guided", "kernels": "auto", "overlap": "auto",
        "halo": "read", "packing": "all", "communication": None, "only": None, "warm_up": 2, "time": 0.1,
        "time_step": 0.1, "limiter": None, "seconds": 1.0, "flops_per_cell_step": 30.0,
        "bytes_per_cell_step": 40.0, "share_of_bound": None, "share_of_peak": None, "ssspnt": 1.0,
        "joules_per_cell_step": None, "joules_of": [], "checksum": "0" * 32, "error": None, "ranks": 1,
        "threads": 1, "nodes": 1, "devices": [], "settings": "", "device": "cpu", "command": "halocline",
        "started": "2020-01-01T00:00:00+00:00", "environment": {"OMP_PROC_BIND": None}, "n": 16,
        "machine": machine, "varied": {}, "base": {},
    } | other  # fmt: skip
    record.setdefault("cells", math.prod(record["shape"]))
    record.setdefault("cores_or_devices", record["ranks"] * record["threads"])
    record.setdefault("ns_per_cell_step", record["seconds"])
    record.setdefault("times", [record["seconds"]])
    return record


# -- every problem in every command --------------------------------------------------------------------------


def runs_of(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the number of runs that a study plans."""
    counts = []

    def count(*args: Any, **options: Any) -> Any:
        counts.append(len(next(runs for runs in args if isinstance(runs, list))))
        raise InputError("planned")

    with monkeypatch.context() as patched:
        for function in ("exchanges_by_order", "measure_runs"):  # the study of the exchange has no formula
            patched.setattr(f"halocline.study.engine.{function}", count)
        with pytest.raises(InputError, match="planned"):
            run(words)
    return counts[0]
