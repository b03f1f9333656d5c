"""Published results beside measurements: papers declare them as REFERENCES, by the name of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from halocline.io.table import Table
from halocline.study.measurement import Measurement
from halocline.study.registry import declared
from halocline.study.reporting.report import Group


@dataclass(frozen=True)
class Reference:
    """Published results that the report of a study shows, each by a function of the measurements.

    Parameters
    ----------
    rows : callable
        Rows of the table of the study, below those of the measurements.
    note : callable
        Text below this table; "" for none.
    tables : callable
        Further tables.
    result : callable
        ``result(measurement)`` gives the published result of the same solve; None without one.
    """

    rows: Callable[[Group], Iterable[Sequence[str]]] = lambda group: ()
    note: Callable[[Group], str] = lambda group: ""
    tables: Callable[[Group], Iterable[Table]] = lambda group: ()
    result: Callable[[Measurement], dict[str, Any] | None] = lambda measurement: None


def references(study: str) -> list[Reference]:
    """Return the published results beside a study."""
    return [known[study] for known in declared("REFERENCES") if study in known]


def published_rows(study: str, group: Group) -> list[Sequence[str]]:
    """Return the published rows of the table of a study."""
    return [row for reference in references(study) for row in reference.rows(group)]


def with_notes(study: str, group: Group, note: str = "") -> str:
    """Return the note of the table of a study, with those of its published results on lines below."""
    return "\n".join(filter(None, [note, *(reference.note(group) for reference in references(study))]))
