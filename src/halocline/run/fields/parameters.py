"""The numbers that a run is given by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any
from weakref import WeakMethod

from halocline.errors import InputError
from halocline.lang.attributes import KnownAttributes
from halocline.lang.grid import GRID_SCALARS, unknown
from halocline.lang.values import as_name, as_real, by_name
from halocline.words import shown

RESERVED = ("t", "dt", "step", "until", "steps", *GRID_SCALARS)


class Parameters(KnownAttributes, MutableMapping[str, float]):
    """The parameters of a simulation or linear problem, by name; a new value holds from the next run on.

    Parameters
    ----------
    given : mapping of str to float
        The names cannot be more or fewer later.
    values : dict of str to float
        Where the numbers are kept.
    before_change : method
        Called before a number changes. Its object is not kept alive: it holds these parameters, and memory
        that is to be free as soon as nobody has it.
    """

    def __init__(
        self, given: Mapping[str, Any], values: dict[str, float], before_change: Callable[[], None]
    ) -> None:
        if not isinstance(given, Mapping):
            raise InputError(f'parameters is {shown(given)}; expected a mapping, such as {{"kappa": 0.1}}')
        given = by_name(given, "parameter")
        self._names = tuple(given)
        self._values, self._before_change = values, WeakMethod(before_change)
        values.update((name, _finite(name, value)) for name, value in given.items())

    def __repr__(self) -> str:
        return f"Parameters({dict(self)})"

    def _error_for(self, name: str) -> InputError:
        """Return the error for setting a parameter as an attribute."""
        return InputError(f'parameters.{name} cannot be set; expected an item: parameters["{name}"] = 0.2')

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, name: str) -> float:
        return self._values[self._known(name)]

    def __setitem__(self, name: str, value: float) -> None:
        name = self._known(name)
        number = _finite(name, value)
        before_change = self._before_change()
        if before_change is not None:
            before_change()
        self._values[name] = number

    def __delitem__(self, name: str) -> None:
        raise InputError(f"parameter {name!r} cannot be removed: the equations were compiled with it")

    def _known(self, name: str) -> str:
        known = as_name(name, "parameter name")
        if known not in self._names:
            raise unknown("parameter", name, sorted(self._names))
        return known


def _finite(name: str, value: Any) -> float:
    """A parameter as a float; InputError where its name or value cannot be."""
    if not name.isidentifier() or name in RESERVED:
        raise InputError(
            f"parameter name {name!r} cannot be used; choose an identifier other than " + ", ".join(RESERVED)
        )
    number = as_real(value)
    if number is None:
        raise InputError(
            f"parameter {name!r} is {shown(value)}; expected a number, which is real and not masked"
        )
    if not math.isfinite(number):
        raise InputError(f"parameter {name!r} is {number}; expected a finite number")
    return number
