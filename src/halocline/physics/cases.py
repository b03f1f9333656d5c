"""All cases by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from halocline.lang.grid import unknown
from halocline.physics.case import Case

_HOMES = (
    "mhd.cases", "mhd.waves", "mhd.shock_tube", "mhd.turbulence", "mhd.convection", "mhd_tvd.linear_waves",
    "mhd_tvd.tubes", "mhd_tvd.vortices", "mhd_tvd.loops", "mhd_tvd.blasts", "mhd_tvd.alfven_waves",
    "cavity.cases", "heat", "wave", "poisson",
)  # fmt: skip


def cases() -> Mapping[str, Case]:
    """Every case by name, in the order in which they are listed."""
    found: dict[str, Case] = {}
    for home in _HOMES:
        found |= import_module(f"halocline.physics.{home}").CASES
    return found


def cases_that_converge() -> list[str]:
    """The names of those that have an exact solution to compare a run with, or numbers to extrapolate."""
    return [name for name, case in cases().items() if case.linear or case.error or case.extrapolated]


def case_named(name: str, also: Sequence[str] = (), listed: Sequence[str] | None = None) -> Case:
    """The case of that name; InputError for one that is unknown, with what a command takes: what is `listed`,
    by default all cases and what it takes `also`."""
    known = cases()
    if name not in known:
        raise unknown("case", name, [*also, *known] if listed is None else list(listed))
    return known[name]
