"""Problems on CUDA devices against the CPU's bits, on every rank that devices/test_cuda_runs.py starts.

Its argument is a task in JSON; rank 0 prints what came of it in JSON. The environment is that of
cuda_standin.py.
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

# -- what goes wrong on purpose ----------------------------------------------------------------------


def claims() -> None:
    """MPI says that it takes memory of devices, as it does where that is the host's."""
    gpu_aware.claimed = lambda library: True


def wrong_bytes(rank: int) -> None:
    """Rank 1 sends other bytes than it should."""
    claims()
    right = gpu_aware._pattern
    if rank == 1:
        gpu_aware._pattern = lambda of, size: right(of, size) ^ (of == 1 and size > 64)


def silent(rank: int) -> None:
    """Rank 1 sends nothing."""
    claims()
    gpu_aware.SECONDS = 0.3
    if rank == 1:
        gpu_aware._round = lambda *arguments: ""


def other_memory(rank: int) -> None:
    """Rank 1 has other bytes in its memory than others expect there, as if they saw another device's."""
    right = links._pattern
    if rank == 1:
        links._pattern = lambda of, number: right(of, number) ^ (of == 1)


# -- the task ----------------------------------------------------------------------------------------


def held() -> int:
    """Pieces of memory that this process has of the stand-in's devices, and maps of other processes'."""
    import ctypes

    counts = (ctypes.c_size_t * 5)()
    ctypes.CDLL("libcuda.so.1").halocline_standin_held(counts)
    return counts[0]


def main(task: dict[str, Any]) -> None:
    rank = int(os.environ.get("PMI_RANK", "0"))
    if task.get("own device"):
        os.environ["CUDA_VISIBLE_DEVICES"] = str(rank)
    if fault := task.get("fault"):
        {"claims": lambda _: claims(), "wrong bytes": wrong_bytes, "silent": silent,
         "other memory": other_memory}[fault](rank)  # fmt: skip
    from mpi4py import MPI

    taken: set[str] = set()
    build = prepared.build_device_engine

    def recorded(store: Any, schedule: Any, plan: Any, *rest: Any) -> Any:
        for own in plan.subdomains:
            for sweep in own.sweeps:
                taken.update(m.method for m in (*sweep.sends, *sweep.receives))
                taken.update(plan.transfers.method(own.number, c.subdomain) for c in sweep.copies)
        return build(store, schedule, plan, *rest)

    prepared.build_device_engine = recorded
    problems = {problem.__name__: problem for problem in bitwise_programs.PROBLEMS}
    tried, memory = 0, []
    for name in task["problems"]:
        for dtype in task["dtypes"]:
            wanted = problems[name](dtype, communicator=MPI.COMM_SELF, threads=1)
            for way in task["ways"]:
                try:
                    found = problems[name](dtype, **way)
                except InputError as error:  # not every cut is thick enough
                    if "decomposition" in str(error) or "subdomain" in str(error):
                        continue
                    raise
                assert found == wanted, (name, dtype, way)
                tried += 1
                del found
                gc.collect()
                MPI.COMM_WORLD.barrier()
                memory.append(held())
    everything = MPI.COMM_WORLD.gather((taken, memory))
    if everything is not None:
        methods = sorted(set().union(*(one for one, _ in everything)))
        print(json.dumps({"methods": methods, "tried": tried, "held": [own for _, own in everything]}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
