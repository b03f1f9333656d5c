"""The keys of the record of a solve."""

from __future__ import annotations

KEYS = [
    *("n", "dof", "iterations", "converged", "reason", "error_max", "seconds", "seconds_per_iteration"),
    *(
        "residual_relative",
        "true_residual_relative",
        "checksum",
        "ranks",
        "threads",
        "devices",
        "memory_bytes",
    ),
    *(
        "bytes_per_iteration",
        "bandwidth_share",
        "overlap",
        "overlap_why",
        "sweep_seconds_overlap",
        "sweep_seconds_no_overlap",
    ),
    *("written_bytes", "writing_seconds", "waiting_seconds", "io_ranks"),
]

ALL = [  # the keys of any case first
    *("case", "shape", "cells", "steps", "order", "scheme", "dtype", "decomposition", "patch"),
    *(
        "subdomains_per_rank",
        "balance",
        "ranks_active",
        "ranks_per_node",
        "placement",
        "methods",
        "mailboxes",
        "schedule",
        "kernels",
    ),
    *("overlap", "halo", "packing"),
    *("communication", "gpudirect", "only", "warm_up", "time", "time_step", "limiter", "seconds"),
    "ns_per_cell_step",
    *("ssspnt", "flops_per_cell_step", "bytes_per_cell_step", "share_of_bound", "share_of_peak"),
    *("joules_per_cell_step", "joules_of", "checksum", "checksums", "diagnostics", "series", "error"),
    *("events", "parameters", "ranks", "threads", "nodes", "ranks_of_node", "hosts", "parts", "methods_used"),
    *("cores_or_devices", "devices"),
    "memory_bytes",
    *("written_bytes", "writing_seconds", "waiting_seconds", "io_ranks", "balances"),
    *("n", "dof", "dim", "method", "rtol", "max_iterations", "iterations", "converged", "reason"),
    *("residual_relative", "true_residual_relative", "seconds_per_iteration", "bytes_per_iteration"),
    *("error_max", "bandwidth_share", "overlap_why", "sweep_seconds_overlap", "sweep_seconds_no_overlap"),
]
