"""Numbers from the literature, which studies print beside their own: data files with paper and table."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

FOLDER = files("halocline.study").joinpath("published")


@dataclass(frozen=True)
class Published:
    """A table of a paper, or what it says of a figure.

    Attributes
    ----------
    source : str
        Authors, title and year.
    place : str
        Table, section, page.
    machine, about, units : str
    rows : tuple of dict
        By the names of the columns; None for an empty field, numbers as int or float.
    """

    source: str
    place: str
    machine: str
    about: str
    units: str
    rows: tuple[dict[str, Any], ...]

    def values(self, column: str, **where: Any) -> tuple[Any, ...]:
        """The entries of a column in rows with these values."""
        return tuple(
            row[column] for row in self.rows if all(row[name] == value for name, value in where.items())
        )


@cache
def published(name: str) -> Published:
    """The data file of a name such as "umbc-4.1"."""
    lines = FOLDER.joinpath(f"{name}.csv").read_text().splitlines()
    said = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return Published(**said, rows=tuple({key: _value(text) for key, text in row.items()} for row in rows))


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text or None


# as tables name them
POISSON = "UMBC HPCF-2018-10, Table 3.1"
ASTAROTH = "Pekkilä et al. 2022, Section 5"
MHD_CASE, MHD_ORDER = "mhd-benchmark", 6


def poisson_convergence() -> dict[int, dict[str, Any]]:
    """The published convergence study, by N."""
    return {row["n"]: row for row in published("umbc-3.1").rows}
