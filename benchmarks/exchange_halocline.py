"""The halo exchange of Halocline for benchmarks/exchange.py and gpu_exchange.py, on the ranks of this job.

Prints seconds per exchange, and the bytes that a rank receives.
"""

from __future__ import annotations

import sys

from halocline.native import native
from halocline.plan.devices import DeviceChoice
from halocline.run.ranks.mpi import world
from halocline.study.measuring.exchange import measure


def main(axis: int, n: int, radius: int, fields: int, rounds: int, methods: str, device: str) -> None:
    """Time the exchange across the cut along one axis. No other axis is periodic."""
    choice = DeviceChoice.parse(device)
    devices = 1
    if choice.interface != "cpu":
        devices = len(
            choice.select_visible([available.platform for available in native().devices(choice.interface)])
        )
    parts = tuple(max(world().size, devices) if a == axis else 1 for a in range(3))
    result = measure(
        tuple(n * p for p in parts),
        radius=radius,
        fields=fields,
        corners=False,
        periodic=[a == axis for a in range(3)],
        repeats=rounds,
        threads=1,
        decomposition=parts,
        methods=methods,
        device=device,
    )
    if world().rank == 0:
        bytes_of = result["bytes_by_method"]
        if list(bytes_of) != [methods.partition(",")[0]]:
            raise SystemExit(f"{methods} was asked for, but the exchange went by {', '.join(bytes_of)}")
        print(result["seconds"], sum(bytes_of.values()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:6]), sys.argv[6], sys.argv[7] if sys.argv[7:] else "cpu")
