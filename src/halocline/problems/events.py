"""What the program of a case counted, in the summary of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from halocline.words import counted


def lines(events: Mapping[str, Mapping[str, Any]], steps: int) -> list[str]:
    """The lines of a summary: one for each event that happened, or one for all that did not."""
    happened = {name: each for name, each in events.items() if each["count"]}
    if events and not happened:
        return [f"{'events':13} none: {', '.join(events)}"]
    return [f"{name:13} {_told(each, steps)}" for name, each in happened.items()]


def _told(each: Mapping[str, Any], steps: int) -> str:
    text = (
        f"acted on {counted(each['count'], 'cell')} in {counted(steps, 'step')} ({each['share']:.2g} of all)"
    )
    if each["first_cell"] is None or each["first_step"] is None:
        return text
    return f"{text}, first at cell {tuple(each['first_cell'])} in step {each['first_step']}"
