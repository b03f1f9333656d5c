"""Predicted over published values of a paper's table."""

from __future__ import annotations

from collections.abc import Sequence

from halocline.study.registry import papers


def ratios(name: str, *, sizes: Sequence[int] | None = None, least: float = 0.0) -> list[float]:
    """Return the ratios of the places whose published value is `least` or more."""
    paper = papers()[name]
    assert paper.value is not None
    machine = paper.there(None)
    assert machine is not None
    places = [row for row in paper.places_of(sizes, None) if (row[paper.value] or 0) >= least]
    return [row["ratio"] for row in paper.predict(places, machine) if "ratio" in row]
