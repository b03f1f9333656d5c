"""Check that subdomains are thick enough for the reads of a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from halocline.compile.schedule import Schedule
from halocline.errors import InputError
from halocline.lang.axes import AXES
from halocline.plan.decompose import Decomposition


@dataclass(frozen=True)
class Need:
    """Minimum thickness of a subdomain: `cells` along `axis` for `field`, for the reason `reason`."""

    field: int
    axis: int
    cells: int
    reason: str


def least_thickness(schedule: Schedule) -> tuple[int, ...]:
    """Return the minimum number of cells of a subdomain along each axis that is cut or periodic."""
    needs = list(_needs(schedule))
    return tuple(
        max((need.cells for need in needs if need.axis == axis), default=1) for axis in range(schedule.ndim)
    )


def check_fit(schedule: Schedule, decomposition: Decomposition) -> None:
    """Raise InputError if a subdomain is too thin for the schedule, or a probed point is inactive.

    All ranks raise the same error. A neighbour sends only cells that it owns. Therefore its subdomain must be
    at least as thick as the halo. A boundary condition reads cells that its subdomain owns.
    """
    for sweep in schedule.sweeps():
        for cell in (reduction.cell for reduction in sweep.reductions):
            if cell is not None and schedule.blocks is not None and not schedule.blocks.is_active(cell):
                raise InputError(
                    f"the value at {cell} is requested, but this cell lies in an inactive block without "
                    "values"
                )
    if decomposition.ndim != schedule.ndim or decomposition.periodic != schedule.periodic:
        raise InputError(
            f"a decomposition of shape {decomposition.shape}, periodic {decomposition.periodic}, does not "
            f"match a program with {schedule.ndim} axes, periodic {schedule.periodic}"
        )
    for need in _needs(schedule):
        axis, field = need.axis, schedule.fields[need.field]
        cells, parts = decomposition.shape[axis], decomposition.parts[axis]
        alone = parts == 1
        if alone and not decomposition.periodic[axis] and need.reason == HALO:
            continue  # no exchange along this axis
        thickness = cells // parts + (alone and not decomposition.periodic[axis] and field.staggered[axis])
        if thickness >= need.cells:
            continue
        name = AXES[axis]
        most_parts = cells // need.cells
        advice = f"at most {most_parts} subdomains fit along axis {name}"
        raise InputError(
            f"field {field.name!r} {need.reason} {need.cells} cells along axis {name}, but "
            f"{cells} cells in {parts} subdomain{'' if alone else 's'} leave {thickness}: "
            f"{advice if most_parts else f'axis {name} needs at least {need.cells} cells'}"
        )


HALO = "has a halo of"
REACH = "has a boundary condition that reads"


def _needs(schedule: Schedule) -> Iterator[Need]:
    """Yield the thickness that halo layers of sweeps and the reads of boundary conditions require."""
    for sweep in schedule.sweeps():
        for field, footprint in (*sweep.reads.items(), *sweep.exchange.items()):
            for axis, layers in enumerate(footprint.layers(schedule.ndim)):
                yield Need(field, axis, max(layers), HALO)
        if sweep.halo_kernel is not None:
            for axis, layers in enumerate(sweep.halo_extent.layers(schedule.ndim)):
                yield Need(sweep.operands[0], axis, max(layers), HALO)
    for sweep in schedule.sweeps():
        for fill in sweep.fills:
            yield Need(fill.field, fill.axis, fill.reach, REACH)
