"""Rows that a kernel wraps around the last axis itself."""

from __future__ import annotations

from halocline.compile.footprint import Footprint
from halocline.compile.halo import SweepHalo
from halocline.compile.ir import statements as ir
from halocline.compile.sweep import SweepNests
from halocline.lang.grid import Field, Grid


def wrapped(nests: SweepNests, halo: SweepHalo, grid: Grid) -> frozenset[Field]:
    """Fields whose rows the kernel itself may wrap around the last axis.

    A row's halo must be read from that row alone, from every row, and by nothing but this kernel. Rows whose
    ends are valid already are not wrapped again.
    """
    staged = any(isinstance(statement, ir.Stage) for statement in nests.staged.body)
    single = any(isinstance(s, ir.Nest) and s.cell is not None for s in nests.kernel.body)
    # the cuts at borders of blocks may come nearer to the ends of rows than `cut_patches` lets others
    cut = grid.blocks is not None
    if not grid.periodic[-1] or staged or single or halo.extended or cut:
        return frozenset()
    # ghosts may be formed, at corners or along walls, of what fields hold beyond the ends of rows
    by_ghosts = {
        f
        for fill in halo.fills
        for f, offsets in fill.reads.items()
        if fill.corners[-1] != (0, 0) or any(offset[-1] for offset in offsets)
    }

    def wraps(f: Field, footprint: Footprint) -> bool:
        along = [(o, place) for o, place in nests.reads.get(f, ()) if o[-1]]
        every = all(p or not own for _, place in along for p, own in zip(place, f.staggered, strict=True))
        alone = not any(d[-1] and any(d[:-1]) for d, _ in footprint)
        alone = alone and f not in by_ghosts and footprint <= Footprint.from_offsets(nests.offsets(f))
        return bool(along) and every and alone

    missing = {f for f, footprint in halo.exchange.items() if any(d[-1] for d, _ in footprint)}
    return frozenset(f for f, footprint in halo.reads.items() if f in missing and wraps(f, footprint))
