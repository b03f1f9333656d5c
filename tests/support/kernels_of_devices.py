"""Device kernels with many values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from halocline.compile import compiler
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Nest, Statement, flat
from halocline.compile.passes.threads import threads
from halocline.compile.strategy import SHARED_BYTES, Splits, Strategy, block_splits
from halocline.compile.targets import device
from halocline.compile.targets.splits import splits_of
from halocline.run.devices.devices import compile_for
from halocline.run.engine import prepare, prepared
from runs_on_devices import BOTH

MANY = 100


def device_kernel(kernel: Kernel, reads: str = "direct") -> Kernel:
    """Return a kernel that is distributed over device threads."""
    return threads(kernel, block_splits(kernel.ndim), reads, SHARED_BYTES)


def statements(kernel: Kernel, *kinds: type[Statement]) -> list[Statement]:
    """Return the statements of a kernel that have some kinds."""
    return [s for s in flat(kernel.body) if isinstance(s, kinds)]


def use_splits(changes: pytest.MonkeyPatch, reads: str, rows: int, cells: int) -> None:
    """Compile all kernels for devices with several cells per thread, where a thread can compute them."""

    def splits(kernel: Kernel, nests: Sequence[Nest], strategy: Strategy) -> tuple[Splits, str]:
        if not strategy.splits:
            strategy = replace(strategy, splits=block_splits(kernel.ndim, (8, 4), rows=rows, cells=cells))
        return splits_of(kernel, nests, strategy)

    changes.setattr(device, "splits_of", splits)
    changes.setattr(compiler, "_schedules", {})  # compiled with other splits
    changes.setattr(prepare, "Strategy", lambda *_: Strategy(reads))


@pytest.fixture
def sources(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives the source of each program that is compiled for a device."""
    result: list[str] = []

    def load(place: Any, source: str) -> Any:
        result.append(source)
        return compile_for(place, source)

    monkeypatch.setattr(prepared, "compile_for", load)
    return result


WAYS: list[dict[str, Any]] = [
    {"device": "opencl:0"},
    {"device": "opencl:0", "patch": 7},
    {"device": "opencl:0", "subdomains_per_rank": 2},
    {"device": BOTH},
]
