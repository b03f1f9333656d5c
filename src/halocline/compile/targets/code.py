"""What a target makes of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from halocline.compile.ir.kernel import Kernel
from halocline.compile.printers.spelling import Names
from halocline.compile.schedule import DeviceKernel

# Stands in the text of kernels for their name, until it is known whether they have been written before.
NAME = "@"


@dataclass(frozen=True)
class Code:
    """The text of a kernel, with NAME where its name is to stand; for devices the kernels in its place."""

    text: str
    kernels: tuple[DeviceKernel, ...] = ()


class Target(Protocol):
    """What writes kernels for one kind of machine."""

    wraps: bool  # whether kernels wrap rows around themselves

    def ordered(self, kernel: Kernel) -> Kernel:
        """The nests of a sweep in the order in which they go through a patch."""
        ...

    def sweep(self, kernel: Kernel, names: Names, streamed: frozenset[str]) -> Code:
        """The nests of a sweep; `streamed` arrays need not pass through the cache."""
        ...

    def halo(self, kernel: Kernel, names: Names) -> Code:
        """The nests that compute some fields of a sweep in the halo."""
        ...

    def wall(self, layers: Sequence[Kernel], names: Names, axis: int, side: int, comment: str) -> Code:
        """The ghosts beyond a wall, layer by layer outward; `axis` of generated code."""
        ...
