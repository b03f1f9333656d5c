"""A sweep between the program and its kernels: what it reads, and its loop nests."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

from halocline.compile.footprint import Offset
from halocline.compile.ir import statements as ir
from halocline.compile.ir.kernel import Kernel
from halocline.compile.ir.pipeline import passed, run
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
    """A sweep as loop nests, with everything it reads.

    Parameters
    ----------
    staged : Kernel
        Before there are nests: stages that are kept, and results.
    kernel : Kernel
        The nests, in order.
    reads : dict of Field to Points
        The points read for one point of the sweep, through all stages.
    per_field : dict of Field to dict
        The offsets of each field that the new value of a field is made of.
    """

    staged: Kernel
    kernel: Kernel
    reads: dict[Field, Points]
    per_field: dict[Field, dict[Field, frozenset[Offset]]]

    def offsets(self, field: Field) -> frozenset[Offset]:
        """Where a field is read around a point of the sweep."""
        return frozenset(offset for offset, _ in self.reads.get(field, ()))


def build(sweep: SweepGraph, grid: Grid) -> SweepNests:
    """Choose the storage of each stage and lay out the nests of a sweep.

    Multiply-adds are chosen before stages are put inline, so that a value has the same bits wherever it is
    computed: in scratch, inline, or in the halo.

    Raises
    ------
    InputError
        The sweep reduces an expression of another grid. Programs check those that fields are set to.
    """
    for reduction in sweep.reductions:
        check_grid(reduction, grid, f"{sweep.origins[reduction]}: an expression")
    staged = run(passed("translate", translate(sweep, grid)), contract, inline)
    found = reach(staged)
    fields = grid.fields
    return SweepNests(
        staged,
        run(staged, partial(nests, needed=found.points)),
        {fields[name]: points for name, points in found.points.items() if name in fields},
        {
            fields[result.array]: {fields[name]: offsets for name, offsets in reads.items()}
            for result, reads in found.per_result
            if isinstance(result, ir.Store)
        },
    )


def in_halo(staged: Kernel, fields: Collection[str]) -> Kernel:
    """The kernel that computes some of a sweep's fields in the halo: every stage anew where it is read."""
    kernel = without(staged, {s.array for s in staged.body if isinstance(s, ir.Stage)})
    rooms: dict[tuple[bool, ...], ir.Body] = {}
    for statement in kernel.body:
        if isinstance(statement, ir.Store) and statement.array in fields:
            mine = staggering(kernel, statement)
            rooms[mine] = (*rooms.get(mine, ()), statement)
    none = ((0, 0),) * kernel.ndim
    body = tuple(ir.Nest(room, none, tuple(map(int, mine))) for mine, room in rooms.items())
    return passed(
        "in_halo", replace(kernel, body=body, comment=f"{staged.comment}, in the halo", beyond=True)
    )
