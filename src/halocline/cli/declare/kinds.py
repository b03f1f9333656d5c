"""How the text of an option is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from halocline.errors import InputError
from halocline.ranges import Range, is_whole
from halocline.run.output.every import Every


@dataclass(frozen=True)
class Kind:
    """What an option takes.

    Attributes
    ----------
    type : type
        Of its value.
    read : callable, optional
        Makes the value of a text and the metavar of the option; raises typer.BadParameter. By default typer
        makes it.
    """

    type: Any
    read: Callable[[Any, str], Any] | None = None


FLAG, TEXT, TEXTS, NUMBER, PATH = Kind(bool), Kind(str), Kind(list[str]), Kind(float), Kind(Path)


def one_of(*values: str) -> Kind:
    """One of some words or numbers."""

    def read(given: Any, metavar: str) -> Any:
        if str(given) not in values:
            raise typer.BadParameter(f"{given}; expected {' or '.join(values)}")
        return int(given) if is_whole(str(given)) else given

    return Kind(str, read)


def whole(numbers: Range) -> Kind:
    """One whole number of a range."""

    def read(given: Any, metavar: str) -> int:
        number = int(given) if is_whole(str(given)) else given
        try:
            return numbers.check("", number)
        except InputError:
            raise typer.BadParameter(f"{given}; expected {numbers}") from None

    return Kind(int, read)


def step_interval(numbers: Range) -> Kind:
    """One whole number of steps, also with the unit: "5" or "5 steps"."""

    def read(given: Any, metavar: str) -> int:
        try:
            interval = Every.parse("", given if "step" in str(given) else f"{given} steps")
            return numbers.check("", interval.steps)
        except InputError:
            raise typer.BadParameter(f"{given}; expected {numbers}, or a text such as '5 steps'") from None

    return Kind(int, read)


def _place(kind: type) -> Kind:
    def read(given: Any, metavar: str) -> Any:
        if not str(given) or "\0" in str(given):
            raise typer.BadParameter(f"it is empty; expected the name of a {metavar.lower()}")
        return kind(given)

    return Kind(kind, read)


def _positive(given: Any, metavar: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise typer.BadParameter(f"{given}; expected a positive number")
    return number


def _time(given: Any, metavar: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise typer.BadParameter(f"{given}; expected a finite time, 0 or more")
    return number


POSITIVE = Kind(float, _positive)
TIME = Kind(float, _time)
PLACE = _place(Path)  # the name of a file or folder, not empty
PLACE_OR_DASH = _place(str)  # the same as a text, where - is one too
