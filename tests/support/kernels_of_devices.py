"""Device kernels with many values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from halocline.compile import compiler
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Nest, Statement, flat
from halocline.compile.passes.threads import threads
from halocline.compile.strategy import SHARED_BYTES, Splits, Strategy, block_splits
from halocline.compile.targets import device
from halocline.compile.targets.splits import splits_of
from halocline.run.engine import prepare

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
