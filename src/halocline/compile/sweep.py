"""Sweeps as loop nests, with all their reads."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from halocline.compile.footprint import Offset
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.pipeline import complete_pass, run
from halocline.compile.lower import SweepGraph
from halocline.compile.passes.contract import contract
from halocline.compile.passes.inline import inline, without
from halocline.compile.passes.nests import nests
from halocline.compile.passes.reach import Points, reach, staggering
from halocline.compile.translate import translate
from halocline.lang.expression import check_grid
from halocline.lang.grid import Field, Grid


@dataclass(frozen=True)
class SweepNests:
    """Loop nests of a sweep, with all its reads.

    Parameters
    ----------
    staged : Kernel
        Kernel without nests: stages that are stored, and results.
    kernel : Kernel
        Nests, in order.
    reads : dict of Field to Points
        Points that the sweep reads for one grid point, through all stages.
    per_field : dict of Field to dict
        For each field that the sweep assigns: the fields and offsets on which the new value depends.
    """

    staged: Kernel
    kernel: Kernel
    reads: dict[Field, Points]
    per_field: dict[Field, dict[Field, frozenset[Offset]]]

    def offsets(self, field: Field) -> frozenset[Offset]:
        """Return the offsets at which the sweep reads a field."""
        return frozenset(offset for offset, _ in self.reads.get(field, ()))


def build(sweep: SweepGraph, grid: Grid) -> SweepNests:
    """Return the loop nests of a sweep; choose the storage of each stage.

    Multiply-adds are chosen before stages are inlined. The bits of a value are therefore the same whether the
    value is stored in scratch memory, computed inline or computed in the halo.

    Raises
    ------
    InputError
        The sweep reduces an expression of another grid. Assigned expressions are checked earlier, by
        `Program`.
    """
    for reduction in sweep.reductions:
        check_grid(reduction, grid, f"{sweep.origins[reduction]}: an expression")
    staged = run(complete_pass("translate", translate(sweep, grid)), contract, inline)
    accesses = reach(staged)
    fields = grid.fields
    return SweepNests(
        staged,
        run(staged, partial(nests, read_points=accesses.points)),
        {fields[name]: points for name, points in accesses.points.items() if name in fields},
        {
            fields[result.array]: {fields[name]: offsets for name, offsets in reads.items()}
            for result, reads in accesses.per_result
            if isinstance(result, ir.Store)
        },
    )


def in_halo(staged: Kernel, fields: Collection[str]) -> Kernel:
    """Return the kernel that computes some fields of a sweep in the halo, with all stages inlined."""
    kernel = without(staged, {s.array for s in staged.body if isinstance(s, ir.Stage)})
    stores: dict[tuple[bool, ...], ir.Body] = {}
    for statement in kernel.body:
        if isinstance(statement, ir.Store) and statement.array in fields:
            staggered = staggering(kernel, statement)
            stores[staggered] = (*stores.get(staggered, ()), statement)
    no_extent = ((0, 0),) * kernel.ndim
    body = tuple(ir.Nest(group, no_extent, tuple(map(int, staggered))) for staggered, group in stores.items())
    return complete_pass(
        "in_halo", replace(kernel, body=body, comment=f"{staged.comment}, in the halo", beyond=True)
    )
