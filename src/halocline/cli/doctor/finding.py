"""Findings of `halocline doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from halocline.errors import RunError
from halocline.native import native


@dataclass(frozen=True)
class Finding:
    """Finding on one part of the installation, shown as a line of the report.

    Attributes
    ----------
    name : str
        Name of the part.
    state : {"found", "missing", "absent"}
        State of the part. "absent" is a missing part that is not required.
    text : str
        Description of the part or problem.
    advice : str
        Advice to the user; "" if no action is necessary.
    is_required : bool
        True if a solve in one process needs the part.
    facts : mapping, optional
        Additional data for the JSON.
    """

    name: str
    state: str
    text: str
    advice: str = ""
    is_required: bool = False
    facts: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        data = {name: value for name, value in asdict(self).items() if value is not None}
        data["needed"] = data.pop("is_required")  # key of the JSON record
        return data


def line(finding: Finding) -> str:
    """Return a finding as text for the report. All lines but the first are indented."""
    sign = {"found": "✓", "missing": "✗", "absent": "–"}[finding.state]
    first, *further_lines = [*finding.text.splitlines(), *finding.advice.splitlines()]
    return "\n".join([f"{sign} {finding.name:17} {first}", *(f"{'':20}{line}" for line in further_lines)])


def native_code_loads() -> bool:
    """Return True if native code can be loaded."""
    try:
        native()
    except RunError:
        return False
    return True


def first_line(error: Exception) -> str:
    return str(error).splitlines()[0]


def problem_and_advice(error: Exception) -> tuple[str, str]:
    """Return the problem and the advice of an error. The advice is the last part of its message."""
    message = first_line(error).rstrip(".")
    end = max(message.rfind("; "), message.rfind(". "))
    return (message, "") if end < 0 else (message[:end], message[end + 2 :])
