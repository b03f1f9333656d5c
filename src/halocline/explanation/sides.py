"""Sides, edges and corners in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from halocline.compile.footprint import Direction
from halocline.lang.grid import AXES


def side(direction: Direction) -> str:
    """A direction in words: "x-" is the lower side of axis x, "x-y+" an edge."""
    return "".join(AXES[a] + ("-" if d < 0 else "+") for a, d in enumerate(direction) if d)


def in_order(direction: Direction) -> tuple[Any, ...]:
    """Sorts sides before edges before corners, axis by axis."""
    return (sum(map(abs, direction)), [-abs(d) for d in direction], direction)


def sides(directions: Iterable[Direction]) -> tuple[str, ...]:
    return tuple(side(d) for d in sorted(directions, key=in_order))
