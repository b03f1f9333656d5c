"""The nests of a sweep plane by plane, so that stages need memory for a few planes and are still in a cache
where they are read.

All nests of a sweep with stages go through a patch together, each as many planes ahead as those that read
its stages need. A stage has a ring of planes. Measured: docs/performance.md.
"""

from __future__ import annotations

from dataclasses import replace

from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel


def planes(kernel: Kernel) -> Kernel:
    """How many planes each nest is ahead of the results, as few as can be. Along a single axis there are no
    planes, and without stages nothing is to be kept between nests."""
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    if kernel.ndim == 1 or not any(_stages(kernel, nest) for nest in nests):
        return kernel
    needed: dict[str, int] = {}  # how far ahead a stage is read
    made: list[ir.Nest] = []
    for nest in reversed(nests):
        ahead = max((needed.get(array, 0) for array in _stages(kernel, nest)), default=0)
        for array, offset in kernel.loads(ir.roots(nest.body)):
            needed[array] = max(needed.get(array, 0), ahead + offset[0])
        made.append(replace(nest, ahead=ahead))
    return replace(kernel, body=tuple(reversed(made)))


def _stages(kernel: Kernel, nest: ir.Nest) -> list[str]:
    """The stages that a nest stores."""
    return [s.array for s in nest.body if isinstance(s, ir.Store) and kernel.array[s.array].kind == "scratch"]


def rings(kernel: Kernel) -> dict[str, int]:
    """How many planes of each stage there are at a time, a power of two: from the oldest one that is read to
    that which is stored. 0: all of them."""
    nests = [s for s in kernel.body if isinstance(s, ir.Nest)]
    newest = {array: nest.ahead for nest in nests for array in _stages(kernel, nest)}
    oldest: dict[str, int] = {}
    for nest in nests:
        for array, offset in kernel.loads(ir.roots(nest.body)):
            if array in newest and nest.ahead is not None:
                oldest[array] = min(oldest.get(array, nest.ahead), nest.ahead + offset[0])
    return {
        array: 0 if ahead is None else _power_of_two(ahead - min(oldest.get(array, ahead), ahead) + 1)
        for array, ahead in newest.items()
    }


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def together(kernel: Kernel) -> Kernel:
    """All nests of a function that has rings of planes go through the patch together."""
    if not any(isinstance(s, ir.Allocate) and s.planes for s in kernel.body):
        return kernel
    nests = tuple(s for s in kernel.body if isinstance(s, ir.Nest))
    rest: ir.Body = tuple(s for s in kernel.body if not isinstance(s, ir.Nest))
    before = max(nest.extent[0][0] + (nest.ahead or 0) for nest in nests)
    after = max(nest.extent[0][1] - (nest.ahead or 0) for nest in nests)
    top = max(nest.extent[0][1] - (nest.ahead or 0) + nest.top[0] for nest in nests) - after
    return replace(kernel, body=(*rest, ir.Planes(nests, before, after, top)))
