"""Published results in the reports of studies. Papers declare these results by study in REFERENCES."""

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
    """Published results in the report of a study, as functions of the measurements.

    Parameters
    ----------
    rows : callable
        Function that returns rows of published results. A table shows these rows below the measured rows.
    note : callable
        Function that returns the note on the published results; an empty text for no note.
    tables : callable
        Function that returns additional tables.
    result : callable
        Function that returns the published result of the same solve as a measurement; None if there is none.
    """

    rows: Callable[[Group], Iterable[Sequence[str]]] = lambda group: ()
    note: Callable[[Group], str] = lambda group: ""
    tables: Callable[[Group], Iterable[Table]] = lambda group: ()
    result: Callable[[Measurement], dict[str, Any] | None] = lambda measurement: None


def references(study: str) -> list[Reference]:
    """Return the published results for a study."""
    return [
        references_by_study[study]
        for references_by_study in declared("REFERENCES")
        if study in references_by_study
    ]


def published_rows(study: str, group: Group) -> list[Sequence[str]]:
    """Return the published rows of the table of a study."""
    return [row for reference in references(study) for row in reference.rows(group)]


def with_notes(study: str, group: Group, note: str = "") -> str:
    """Return the note of the table of a study, followed by the notes of its published results."""
    return "\n".join(filter(None, [note, *(reference.note(group) for reference in references(study))]))
