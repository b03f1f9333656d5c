"""Published numbers of papers, from data files with their source, position in the paper and units."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

FOLDER = files("halocline.papers").joinpath("data")


@dataclass(frozen=True)
class Published:
    """Published table, or the numbers that the text of a paper states about a figure.

    Attributes
    ----------
    source : str
        Authors, title and year.
    place : str
        Number of the table or figure, section, and page if known.
    machine : str
        Machine of the measurements.
    about : str
        Sentences on the varied and constant quantities, and on the method of measurement.
    units : str
        Units of the columns.
    rows : tuple of dict
        Entries by the names of the columns. An empty entry is None, and a number is an int or a float.
    """

    source: str
    place: str
    machine: str
    about: str
    units: str
    rows: tuple[dict[str, Any], ...]

    def values(self, column: str, **conditions: Any) -> tuple[Any, ...]:
        """Return the entries of a column, from the rows whose other entries equal `conditions`."""
        return tuple(
            row[column] for row in self.rows if all(row[name] == value for name, value in conditions.items())
        )


@cache
def published(name: str) -> Published:
    """Return the content of the data file with this name, such as "umbc-4.1"."""
    lines = FOLDER.joinpath(f"{name}.csv").read_text().splitlines()
    facts = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return Published(**facts, rows=tuple({key: _value(text) for key, text in row.items()} for row in rows))


def _value(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text or None
