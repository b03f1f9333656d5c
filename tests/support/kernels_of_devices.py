"""Device kernels with many values."""

from __future__ import annotations

from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.statements import Statement, flat
from halocline.compile.passes.threads import threads
from halocline.compile.strategy import SHARED_BYTES, block_splits

MANY = 100


def device_kernel(kernel: Kernel, reads: str = "direct") -> Kernel:
    """Return a kernel that is distributed over device threads."""
    return threads(kernel, block_splits(kernel.ndim), reads, SHARED_BYTES)


def statements(kernel: Kernel, *kinds: type[Statement]) -> list[Statement]:
    """Return the statements of a kernel that have some kinds."""
    return [s for s in flat(kernel.body) if isinstance(s, kinds)]
