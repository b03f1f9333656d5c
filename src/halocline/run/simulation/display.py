"""Table of a simulation for notebooks, and its equations as formulas."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from halocline.lang import latex
from halocline.lang.display import halo_text, sizes
from halocline.lang.grid import Grid
from halocline.lang.program import Program, ProgramFunction, program_in
from halocline.lang.stepping import time_derivatives
from halocline.markup import facts_table
from halocline.words import amount, counted, duration


def simulation_table(sim: Any) -> str:
    """Return the table of a `Simulation` in HTML, without communication and without a measurement."""
    domain, (steps, seconds) = sim.domain, sim.last_run
    last_run = {}
    if steps and seconds:
        rate = f"{amount(sim.bytes_per_step * steps / seconds)}/s"
        last_run = {
            "last run": f"{counted(steps, 'step')} in {duration(seconds)}",
            "time per cell and step": duration(seconds / steps / sim.store.cells),
            "memory traffic": f"at least {rate}",
            "share of memory bandwidth": "" if sim.last_share is None else f"{sim.last_share:.0%}",
        }
    facts = {
        "grid": sizes(sim.grid.shape),
        "equations": sim.program.name,
        "differences": "" if sim.scheme is None else f"order {sim.order}",
        "parameters": ", ".join(f"{name} = {value:g}" for name, value in sim.parameters.items()),
        "time": f"{sim.time:.6g}, after {counted(sim.steps, 'step')}",
        "halo widths": _halos(sim),
        "memory of this rank": amount(sim.store.memory_bytes),
        "parallel": f"{counted(domain.comm.size, 'rank')}, {counted(domain.threads, 'thread')} per rank",
        "devices": ", ".join(map(str, domain.devices)),
        **last_run,
    }
    return facts_table(f"Simulation {sim.title}", facts)


def _halos(sim: Any) -> str:
    """Return the halo widths of the fields of the user, with one entry for equal widths."""
    names: dict[str, list[str]] = {}
    for info in sim.schedule.fields:
        field = sim.grid.fields.get(info.name)
        if field is not None and not sim.grid.is_work_field(field):
            names.setdefault(halo_text(info.halo), []).append(info.name)
    return "; ".join(f"{', '.join(fields)}: {halo}" for halo, fields in names.items())


def equations_of(
    grid: Grid,
    function: Callable[..., Any] | ProgramFunction,
    parameters: Collection[str],
    order: int,
    program: Program,
) -> latex.Equations:
    """Return the equations of a simulation: its time derivatives, or the statements of its program."""
    function = program_in(function) or function
    if isinstance(function, ProgramFunction):
        return latex.statements(program)
    return latex.time_derivatives(time_derivatives(grid, function, parameters, order))
