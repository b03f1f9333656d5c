"""Findings of `halocline doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from halocline.errors import RunError
from halocline.native import native


@dataclass(frozen=True)
class Finding:
    """Line of the report.

    Attributes
    ----------
    name : str
    state : {"found", "missing", "absent"}
        "absent" is what nothing needs.
    text : str
    advice : str
        What to do; "" where nothing is to be done.
    needed : bool
        Whether a solve in one process needs it.
    facts : mapping, optional
        More, for programs that read.
    """

    name: str
    state: str
    text: str
    advice: str = ""
    needed: bool = False
    facts: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def line(finding: Finding) -> str:
    """Return a finding as a line of the report, with its further lines below."""
    sign = {"found": "✓", "missing": "✗", "absent": "–"}[finding.state]
    text, *more = [*finding.text.splitlines(), *finding.advice.splitlines()]
    return "\n".join([f"{sign} {finding.name:17} {text}", *(f"{'':20}{line}" for line in more)])


def loads() -> bool:
    """Return whether native code can be loaded."""
    try:
        native()
    except RunError:
        return False
    return True


def first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def advised(error: Exception) -> tuple[str, str]:
    """Return problem and advice of an error, which its message separates by the last semicolon."""
    text, _, advice = first_line(error).rpartition("; ")
    return (text, advice) if text else (advice, "")
