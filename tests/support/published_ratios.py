"""Predictions of a paper's table, and predicted over published values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from halocline.study.registry import papers


def predicted(
    name: str, *, sizes: Sequence[int] | None = None, least: float = 0.0, **selection: Any
) -> list[dict[str, Any]]:
    """Return the predicted places with selected values, and with published values of at least `least`.

    The selection has one or several values per key.
    """
    known = {key: value if isinstance(value, tuple) else (value,) for key, value in selection.items()}
    paper = papers()[name]
    machine = paper.prediction_machine(None)
    assert machine is not None
    places = [
        row
        for row in paper.select_configurations(sizes, None)
        if all(row[key] in values for key, values in known.items())
        and (row.get(paper.compared_key or paper.value_key or "") or 0) >= least
    ]
    return paper.predict(places, machine)


def ratios(name: str, **options: Any) -> list[float]:
    """Return the ratios of predicted to published values."""
    return [row["predicted_ratio"] for row in predicted(name, **options) if "predicted_ratio" in row]


def quotients(name: str, **selection: Any) -> list[float]:
    """Return the ratios of predicted to published numbers of the text."""
    paper = papers()[name]
    assert paper.quotients is not None
    return [value / published for _, published, value in paper.quotients(predicted(name, **selection))]
