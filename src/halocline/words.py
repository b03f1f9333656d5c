"""Formatting of numbers, lists and values as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from reprlib import Repr
from typing import Any

# Characters that control a terminal: control characters except line feed and tab, bidirectional marks, line
# separators, and undecodable bytes of file names.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""Return text for a terminal, with escapes such as ``\x1b`` instead of control characters.

    Line feeds and tabs are unchanged; `one_line` replaces them too.
    """
    return _CONTROL.sub(_escape, text)


def one_line(text: str) -> str:
    r"""Return text for one line of a terminal, with escapes for all control characters, including ``\n``."""
    return re.sub(r"[\n\t]", _escape, printable(text))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


_SHORT = Repr()
_SHORT.maxlong, _SHORT.maxstring, _SHORT.maxother = 60, 120, 160  # characters


def short_repr(value: Any) -> str:
    """Return the representation of a value for a message, shortened if it is long."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # an int with more digits than Python prints
        size = f" of {value.bit_length():,} bits" if isinstance(value, int) else ""
        return f"<{type(value).__name__}{size}>"


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the suggestion " (did you mean 'name'?)", or an empty string if no known name is similar."""
    close = get_close_matches(name, list(known), n=1) if isinstance(name, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 rank", "2 ranks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def joined(*parts: str | None) -> str:
    """Return the non-empty parts, separated by commas."""
    return ", ".join(filter(None, parts))


def method(order: int | None, scheme: str | None, dtype: str | None = None) -> str:
    """Return order, scheme and precision in words, without None and float64: "order 6, rk3, float32"."""
    precision = None if dtype == "float64" else dtype
    return joined(None if order is None else f"order {order}", scheme, precision)


def clock(seconds: float) -> str:
    """Return a duration as HH:MM:SS, rounded as in the tables of UMBC HPCF-2018-10."""
    whole = int(seconds + 0.5)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def in_seconds(seconds: float) -> str:
    """Return a duration in seconds as text.

    From one second on, the text has two decimals, as in the tables of UMBC HPCF-2018-10. Shorter durations
    have three significant digits.
    """
    return f"{seconds:,.2f}" if seconds >= 1 else f"{Decimal(f'{seconds:.2e}'):f}"


def gigabytes(size: float) -> str:
    """Return a number of bytes in GB of 1024³ bytes."""
    value = size / 2**30
    if 0 < value < 0.001:
        return "< 0.001"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def amount(size: float) -> str:
    """Return a number of bytes with a suitable unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(size) < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.3g} {unit}"


def duration(seconds: float) -> str:
    """Return a duration with a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            break
    return f"{seconds / scale:.3g} {unit}"


def validation_message(problem: Mapping[str, Any]) -> str:
    """Return the key, requirement and value of an entry of `pydantic.ValidationError.errors()`."""
    place = ".".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    value = f", but it is {short_repr(problem['input'])}" if message.startswith("Input should") else ""
    return f"{place}: {message}{value}" if place else f"{message}{value}"
