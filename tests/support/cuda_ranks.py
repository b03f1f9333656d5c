"""Problems on CUDA devices, compared with the CPU's bits, on every rank of devices/test_cuda_runs.py.

The argument is a task in JSON; rank 0 prints the results in JSON. The environment is that of cuda_standin.py.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

import bitwise_programs
from halocline.errors import InputError
from halocline.run.devices import gpu_aware, links
from halocline.run.engine import prepared

# -- injected faults ---------------------------------------------------------------------------------


def claim_gpu_aware() -> None:
    """Make MPI claim that it accepts device memory, as it does if device memory is host memory."""
    gpu_aware.claimed = lambda library: True


def wrong_bytes(rank: int) -> None:
    """Make rank 1 send wrong bytes."""
    claim_gpu_aware()
    right = gpu_aware._pattern
    if rank == 1:
        gpu_aware._pattern = lambda of, size: right(of, size) ^ (of == 1 and size > 64)


def suppress_messages(rank: int) -> None:
    """Make rank 1 send nothing."""
    claim_gpu_aware()
    gpu_aware.SECONDS = 0.3
    if rank == 1:
        gpu_aware._round = lambda *arguments: ""


def other_memory(rank: int) -> None:
    """Make rank 1 hold unexpected bytes in its memory, as if other ranks saw another device's memory."""
    right = links._pattern
    if rank == 1:
        links._pattern = lambda of, number: right(of, number) ^ (of == 1)


# -- the task ----------------------------------------------------------------------------------------


def allocation_counts() -> int:
    """Return the number of this process's allocations on stand-in devices, and of mapped ones of others."""
    import ctypes

    counts = (ctypes.c_size_t * 5)()
    ctypes.CDLL("libcuda.so.1").halocline_standin_held(counts)
    return counts[0]


def main(task: dict[str, Any]) -> None:
    rank = int(os.environ.get("PMI_RANK", "0"))
    if task.get("own device"):
        os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)
    if fault := task.get("fault"):
        {"claims": lambda _: claim_gpu_aware(), "wrong bytes": wrong_bytes, "silent": suppress_messages,
         "other memory": other_memory}[fault](rank)  # fmt: skip
    from mpi4py import MPI

    methods_used: set[str] = set()
    build = prepared.build_device_engine

    def recorded(store: Any, schedule: Any, plan: Any, *rest: Any) -> Any:
        for subdomain in plan.subdomains:
            for sweep in subdomain.sweeps:
                methods_used.update(m.method for m in (*sweep.sends, *sweep.receives))
                methods_used.update(
                    plan.transfers.method(subdomain.number, c.subdomain) for c in sweep.copies
                )
        return build(store, schedule, plan, *rest)

    prepared.build_device_engine = recorded
    problems = {problem.__name__: problem for problem in bitwise_programs.PROBLEMS}
    run_count, memory = 0, []
    for name in task["problems"]:
        for dtype in task["dtypes"]:
            reference = problems[name](dtype, communicator=MPI.COMM_SELF, threads=1)
            for way in task["ways"]:
                try:
                    result = problems[name](dtype, **way)
                except InputError as error:  # some cuts are too thin
                    if "decomposition" in str(error) or "subdomain" in str(error):
                        continue
                    raise
                assert result == reference, (name, dtype, way)
                run_count += 1
                del result
                gc.collect()
                MPI.COMM_WORLD.barrier()
                memory.append(allocation_counts())
    everything = MPI.COMM_WORLD.gather((methods_used, memory))
    if everything is not None:
        methods = sorted(set().union(*(names for names, _ in everything)))
        print(
            json.dumps({"methods": methods, "tried": run_count, "held": [counts for _, counts in everything]})
        )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
