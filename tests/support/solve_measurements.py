"""Measurements of solves as studies record them."""

from __future__ import annotations

from halocline.study.reporting.report import Group, Report, report
from halocline.study.studies.strong import SOLVES


def measurement(n: int, ranks: int = 1, threads: int = 1, seconds: float = 1.0, **other: object) -> dict:
    """Return a measurement as `measure` returns it."""
    machine = {
        "host": "h", "system": "s", "cpu": "c <&>", "cores": 2, "hardware_threads": 2, "numa_nodes": 1,
        "simd_bits": 512, "memory_bytes": 10**10, "caches": [{"level": 1, "bytes": 49152, "shared_by": 1}],
        "compiler": "g++", "compiler_version": "12", "mpi_library": "m", "mpi_version": "v", "commit": None,
    }  # fmt: skip
    record = {
        "n": n, "dof": n * n, "iterations": 3 * n // 2, "converged": True, "error_max": 3.28 / (n + 1) ** 2,
        "seconds": seconds, "seconds_per_iteration": seconds / n, "residual_relative": 9e-7,
        "checksum": "0" * 32, "ranks": ranks, "threads": threads, "cores_or_devices": ranks * threads,
        "devices": [], "memory_bytes": 2**30,
        "bytes_per_iteration": 64.0 * n * n, "bandwidth_share": 0.5, "case": "poisson", "dim": 2,
        "method": "cg-fused", "rtol": 1e-6, "max_iterations": None, "decomposition": "optimal", "patch": None,
        "device": "cpu", "command": "halocline solve poisson", "started": "2020-01-01T00:00:00+00:00",
        "times": [seconds],
        "environment": {"OMP_PROC_BIND": "close", "OMP_PLACES": None}, "machine": machine,
    }  # fmt: skip
    return {**record, **other}


def strong(measurements: list[dict]) -> Report:
    """Return the report of the study of strong scaling for solves."""
    return report((SOLVES,), Group(measurements))
