"""Tables and figures of papers with more than one value per configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from halocline.io.table import Table, table_of
from halocline.papers.paper import Paper, Row
from halocline.study.reporting.quantities import wrap_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from halocline.plan.machine import Machine

# functions that return the text of a cell for the row of a configuration, by the heads of the columns
Entries = Mapping[str, Callable[[Any], str]]


@dataclass(frozen=True)
class Derived(Paper):
    """Table or figure with additional tables, which are derived from the values of its configurations.

    Parameters
    ----------
    derive : callable
        ``derive(rows)`` yields the additional tables. The argument is the list of configurations with their
        computed and predicted values.
    """

    derive: Callable[[Sequence[Row]], Iterable[Table]] = lambda rows: ()

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the tables of published, computed and predicted values, then the derived tables."""
        return [*super().tables(rows, machine), *self.derive(rows)]


@dataclass(frozen=True)
class Listing(Paper):
    """Table with one row for each configuration. A row contains published and computed values.

    Parameters
    ----------
    entries : mapping of str to callable
        Functions ``text(row)`` that return the cells of a column, by the head of the column.
    left : int
        Number of leading columns that contain names.
    """

    entries: Entries = field(default_factory=dict)
    left: int = 1

    def select_configurations(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """Return the configurations, with an entry for each computed value."""
        rows = [(row.pop("computed", {}), row) for row in super().select_configurations(sizes, nodes)]
        return [{**row, **computed} for computed, row in rows]

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return a list with the only table."""
        title = "Published and computed values" if self.data.rows else "Computed by Halocline"
        note = wrap_notes(*self._citation)
        return [table_of(title, rows, self.entries, left=self.left, note=note, heading=self.title)]

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Return None, because a listing has no figure."""
        return None
