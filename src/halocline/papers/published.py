"""Numbers of papers: data files with their source, place and units."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

FOLDER = files("halocline.papers").joinpath("data")


@dataclass(frozen=True)
class Published:
    """Table of a paper, or the numbers that its text states about a figure.

    Attributes
    ----------
    source : str
        Authors, title and year.
    place : str
        Table, section, page.
    machine, about, units : str
    rows : tuple of dict
        Entries by the names of the columns; None for an empty entry, numbers as int or float.
    """

    source: str
    place: str
    machine: str
    about: str
    units: str
    rows: tuple[dict[str, Any], ...]

    def values(self, column: str, **conditions: Any) -> tuple[Any, ...]:
        """Return the entries of a column in the rows that have the values `conditions`."""
        return tuple(
            row[column] for row in self.rows if all(row[name] == value for name, value in conditions.items())
        )


@cache
def published(name: str) -> Published:
    """Return the content of a data file by name, such as "umbc-4.1"."""
    lines = FOLDER.joinpath(f"{name}.csv").read_text().splitlines()
    facts = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return Published(**facts, rows=tuple({key: _value(text) for key, text in row.items()} for row in rows))


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None
