"""Predictions of a paper's table, and predicted over published values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halocline.study.registry import papers


def predicted(
    name: str, *, sizes: Sequence[int] | None = None, least: float = 0.0, **where: Any
) -> list[dict[str, Any]]:
    """Return the predicted places with some values, one or several of each, whose published value is `least`
    or more."""
    known = {key: value if isinstance(value, tuple) else (value,) for key, value in where.items()}
    paper = papers()[name]
    machine = paper.there(None)
    assert machine is not None
    places = [
        row
        for row in paper.places_of(sizes, None)
        if all(row[key] in values for key, values in known.items())
        and (row.get(paper.compare or paper.value or "") or 0) >= least
    ]
    return paper.predict(places, machine)


def ratios(name: str, **options: Any) -> list[float]:
    """Return predicted over published values."""
    return [row["predicted_ratio"] for row in predicted(name, **options) if "predicted_ratio" in row]


def quotients(name: str, **where: Any) -> list[float]:
    """Return predicted over published numbers of the text."""
    paper = papers()[name]
    assert paper.quotients is not None
    return [value / published for _, published, value in paper.quotients(predicted(name, **where))]
