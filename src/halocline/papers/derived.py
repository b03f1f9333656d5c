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

Entries = Mapping[str, Callable[[Any], str]]  # columns of a table by their heads


@dataclass(frozen=True)
class Derived(Paper):
    """Table or figure with further tables that follow from the values of its configurations.

    Parameters
    ----------
    derive : callable
        ``derive(rows)`` yields these tables, for configurations with their computed and predicted values.
    """

    derive: Callable[[Sequence[Row]], Iterable[Table]] = lambda rows: ()

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the tables of published, computed and predicted values, then the derived tables."""
        return [*super().tables(rows, machine), *self.derive(rows)]


@dataclass(frozen=True)
class Listing(Paper):
    """Table with one row per configuration, which contains published and computed values.

    Parameters
    ----------
    entries : mapping of str to callable
        Columns by their heads, as functions of the row of a configuration.
    left : int
        Number of leading columns that contain names.
    """

    entries: Entries = field(default_factory=dict)
    left: int = 1

    def select_configurations(self, sizes: Iterable[int] | None, nodes: Iterable[int] | None) -> list[Row]:
        """Return the configurations, with their computed values by name."""
        rows = [(row.pop("computed", {}), row) for row in super().select_configurations(sizes, nodes)]
        return [{**row, **computed} for computed, row in rows]

    def tables(self, rows: Sequence[Row], machine: Machine | None) -> list[Table]:
        """Return the table."""
        title = "Published and computed" if self.data.rows else "Computed here"
        cited = wrap_notes(*self._citation)
        return [table_of(title, rows, self.entries, left=self.left, note=cited, heading=self.title)]

    def draw(self, rows: Sequence[Row]) -> Figure | None:
        """Return None: a listing has no figure."""
        return None
