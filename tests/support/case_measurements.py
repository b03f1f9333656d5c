"""Measurements of cases in the format of studies."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import preloaded
from halocline.plan.traffic import Traffic
from halocline.study.reporting.report import Contents, Group, Report, report
from halocline.study.reporting.theory import StepExchanges, Theory
from halocline.study.studies.parts import PARTS


def halocline(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return preloaded.halocline(*line.split(), cwd=cwd, env={**os.environ, "COLUMNS": "120"})


def measurement(ns: float, ranks: int = 1, threads: int = 1, **other: Any) -> dict[str, Any]:
    """Return a measurement of the benchmark on 256³ cells, for a time in ns per cell and step."""
    n = other.pop("n", 256)
    shape = other.pop("shape", [n] * 3)
    cells = shape[0] * shape[1] * shape[2]
    record = {
        "case": "mhd-benchmark", "n": n, "shape": shape, "cells": cells, "steps": 10, "warm_up": 2,
        "order": 6, "scheme": "rk3", "halo": "read", "only": None, "seconds": 8e-9 * ns * cells,
        "ns_per_cell_step": ns, "flops_per_cell_step": 2441.0, "bytes_per_cell_step": 704.0,
        "share_of_bound": 0.25,
        "share_of_peak": 0.2, "joules_per_cell_step": None, "joules_of": [], "ssspnt": None,
        "checksum": "0" * 32,
        "checksums": {}, "diagnostics": {"u_rms": 1.0}, "series": [], "parameters": {"nu": 1.0},
        "ranks": ranks, "threads": threads, "cores_or_devices": ranks * threads,
        "devices": [], "memory_bytes": 2**30, "device": "cpu",
        "decomposition": "optimal", "patch": None, "settings": "nu=1", "command": "halocline run",
        "started": "2020-01-01T00:00:00+00:00", "times": [1.0],
        "environment": {"OMP_PROC_BIND": None, "OMP_PLACES": None},
        "machine": {
            "host": "h", "system": "s", "cpu": "c", "cores": 2, "hardware_threads": 2, "numa_nodes": 1,
            "simd_bits": 512, "memory_bytes": 10**10, "caches": [], "compiler": "g++",
            "compiler_version": "12", "mpi_library": "m", "mpi_version": "v", "commit": None,
        },
    }  # fmt: skip
    return {**record, **other}


def sides(bytes_of_a_cell: int = 8) -> StepExchanges:
    """Return the exchange of one layer of one number on each side of a box."""
    return StepExchanges(
        Traffic(
            tuple(
                (tuple(sign if a == axis else 0 for a in range(3)), bytes_of_a_cell)
                for axis in range(3)
                for sign in (-1, 1)
            ),
            ((1, 1),) * 3,
        ),
        (1, 1, 1),
        (True, True, True),
    )


def report_of(contents: Contents, measurements: list[dict[str, Any]], theory: Theory | None = None) -> Report:
    """Return the report of a part of a study."""
    return report((contents,), Group(measurements, theory))


# -- tables --------------------------------------------------------------------------------------------


def strong() -> list[dict[str, Any]]:
    """Return measurements of strong scaling, for two sizes."""
    return [
        measurement(8.0),
        measurement(5.0, ranks=2),
        measurement(4.0, threads=2),
        measurement(8.0, n=512),
        measurement(4.4, ranks=2, n=512),
    ]


def parts_of(ranks: int, *times: float) -> list[dict[str, Any]]:
    """Return the parts of a step: whole, compute, exchange, with all edges, with corners, synchronisation."""
    kinds = PARTS.values()
    return [measurement(t, ranks=ranks, only=o, halo=h) for t, (o, h) in zip(times, kinds, strict=True)]


def weak() -> list[dict[str, Any]]:
    """Return measurements of weak scaling."""
    return [
        measurement(8.0, n=64),
        measurement(5.0, 2, n=64, shape=[128, 64, 64]),
        measurement(2.5, 4, n=64, shape=[128, 128, 64]),
    ]
