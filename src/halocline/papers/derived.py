"""Tables and figures of papers whose report has more than one value of each place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table, table_of
from halocline.papers.paper import Paper, Row
from halocline.study.reporting.quantities import wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.plan.machine import Machine

Entries = Mapping[str, Callable[[Any], str]]  # columns of a table by their heads


@dataclass(frozen=True)
class Derived(Paper):
    """Table or figure with further tables, which follow from the values of its places.

    Parameters
    ----------
    derive : callable
        ``derive(rows)`` yields these tables, for places with their computed and predicted values.
    """

    derive: Callable[[Sequence[Row]], Iterable[Table]] = lambda rows: ()

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the tables of published, computed and predicted values, then those that follow from them."""
        return [*super().tables(rows, machine), *self.derive(rows)]


@dataclass(frozen=True)
class Listing(Paper):
    """Table with a row for each place, with published values beside computed ones.

    Parameters
    ----------
    formula : callable
        ``formula(row)`` gives the computed values of a place by name.
    entries : mapping of str to callable
        Columns by their heads, each a function of the row of a place.
    left : int
        Number of the first columns that hold names.
    """

    entries: Entries = field(default_factory=dict)
    left: int = 1

    def places_of(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """Return the places, with their computed values by name."""
        rows = [(row.pop("computed", {}), row) for row in super().places_of(sizes, nodes)]
        return [{**row, **computed} for computed, row in rows]

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the table."""
        title = "Published and computed" if self.data.rows else "Computed here"
        cited = wrapped(*self._cited)
        return [table_of(title, rows, self.entries, left=self.left, note=cited, heading=self.title)]

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Return None: a listing has no figure."""
        return None
