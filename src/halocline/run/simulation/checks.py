"""Checks of a finished run. A check compares a number with its bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from halocline.deprecation import accept_earlier_argument, accept_earlier_names
from halocline.errors import InputError
from halocline.lang.values import as_name, as_number
from halocline.run.simulation.settings import RENAMED, record_of
from halocline.words import short_repr


@accept_earlier_names(RENAMED)
@dataclass(frozen=True)
class Check:
    """Comparison of a number from a finished run with bounds.

    Parameters
    ----------
    name : str
    value : float
    maximum, minimum : float, optional
        Inclusive bounds.
    about : str
        Description of the comparison.
    compared : bool
        False if the value is not compared, because there is no reference. In this case, `about` gives the
        reason; see `not_compared`.

    Raises
    ------
    InputError
        An argument has a wrong type.
    """

    name: str
    value: float
    maximum: float | None = None
    minimum: float | None = None
    about: str = ""
    compared: bool = True

    def __post_init__(self) -> None:
        as_name(self.name, "name of a check")
        as_name(self.about, f"check {self.name!r}: about")
        for attribute in ("value", "maximum", "minimum"):
            value = getattr(self, attribute)
            if value is not None or attribute == "value":
                object.__setattr__(self, attribute, as_number(value, f"check {self.name!r}: {attribute}"))
        if not isinstance(self.compared, bool):
            raise InputError(
                f"check {self.name!r}: compared is {short_repr(self.compared)}; expected True or False"
            )

    @classmethod
    @accept_earlier_argument("why", "reason")
    def not_compared(cls, name: str, reason: str) -> Check:
        """Return the check of a run without a reference. The check has no value, and passes."""
        return cls(name, math.nan, about=f"not compared: {reason}", compared=False)

    def facts(self) -> dict[str, Any]:
        """Return the check as data for a JSON record."""
        return record_of(self)

    @property
    def passed(self) -> bool:
        """True if the value is a number within the bounds, or is not compared."""
        if not self.compared:
            return True
        fits = not math.isnan(self.value)
        fits = fits and (self.maximum is None or self.value <= self.maximum)
        return bool(fits and (self.minimum is None or self.value >= self.minimum))

    @property
    def bound(self) -> str:
        """Bounds, as text."""
        if not self.compared:
            return "not compared"
        if self.minimum is not None and self.maximum is not None:
            return f"{self.minimum:g} to {self.maximum:g}"
        if self.maximum is not None:
            return f"at most {self.maximum:g}"
        return "a number" if self.minimum is None else f"at least {self.minimum:g}"
