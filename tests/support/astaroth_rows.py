"""Rows and tables of the figures of Pekkilä et al. 2022."""

from __future__ import annotations

from typing import Any

from halocline.study.registry import papers


def rows_of(name: str, *, predicted: bool = False, **conditions: Any) -> list[dict[str, Any]]:
    study = papers()[name]
    rows = [
        row
        for row in study.select_configurations(None, None)
        if all(row[key] in values for key, values in conditions.items())
    ]
    return study.predict(rows, study.prediction_machine(None)) if predicted else rows  # type: ignore[no-any-return]


def table(name: str, title: str, rows: list[dict[str, Any]]) -> Any:
    (result,) = [table for table in papers()[name].tables(rows, None) if table.title.startswith(title)]
    return result
