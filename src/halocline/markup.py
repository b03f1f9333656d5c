"""Tables in HTML, as which notebooks show grids, fields, simulations and results."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

CELL = ' style="text-align: left"'


def facts_table(title: str, facts: Mapping[str, str]) -> str:
    """Return a table with one fact per row in HTML. Facts with empty text are omitted.

    Parameters
    ----------
    title : str
    facts : mapping of str to str
        Text of each fact by its name. Both may contain text of the user, which is escaped.
    """
    rows = "".join(
        f"<tr><th{CELL}>{escape(name)}</th><td{CELL}>{escape(text)}</td></tr>"
        for name, text in facts.items()
        if text
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table></div>"
