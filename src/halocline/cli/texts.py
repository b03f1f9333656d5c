"""What the text of an option means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halocline.cli.options import Execution, take
from halocline.errors import InputError
from halocline.ranges import POINTS, is_whole
from halocline.run.tuning.patches import BY_CACHES, TUNE


def cells_of(text: str | None) -> list[int] | None:
    """The numbers of cells that --n asks for."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f"--n {text}: expected whole numbers of cells from 1, such as 64 or 64,64,32")
    return [int(part) for part in parts]


def check_part(only: str, others: Mapping[str, object]) -> None:
    """Raise InputError where --only names no part of a step, or something stands beside it that takes a
    result: options with their values, None for those that are not given."""
    from halocline.problems.following import PARTS

    if only not in PARTS:
        raise InputError(f"--only {only}: expected {' or '.join(PARTS)}")
    for option, value in others.items():
        if value is not None:
            text = "" if value is True else f" {value}"
            raise InputError(
                f"{option}{text}: with --only {only} a fixed number of steps is timed, and the fields hold "
                f"nonsense; leave {option} out"
            )


def execution_of(values: dict[str, Any]) -> dict[str, Any]:
    """Remove the options of `Execution` from the values of all options, and return what they mean."""
    meaning = {"patch": patch_edges, "overlap": overlap_of}
    return {
        name: meaning[name](value) if name in meaning else value
        for name, value in take(Execution, values).items()
    }


def overlap_of(text: str) -> bool | str:
    """The choice that --overlap names."""
    if text not in ("auto", "on", "off"):
        raise InputError(f"--overlap {text}: expected auto, on or off")
    return text if text == "auto" else text == "on"


def patch_edges(text: str | None) -> list[int] | int | str | None:
    """The patch that --patch asks for."""
    if text is None or text in (TUNE, BY_CACHES):
        return text
    parts = text.split(",")
    if not all(map(is_whole, parts)):
        expected = f"expected whole numbers of cells, such as 64 or 32,256; or {TUNE}, or {BY_CACHES}"
        raise InputError(f"--patch {text}: {expected}")
    edges = [POINTS.check(f"--patch {text}: an edge", int(part)) for part in parts]
    return edges[0] if len(edges) == 1 else edges
