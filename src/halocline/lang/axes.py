"""Axes of a grid: names of axes, and arguments that have one value for each axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, TypeVar

from halocline.errors import InputError
from halocline.words import short_repr

T = TypeVar("T")

AXES = "xyz"


def axis_number(axis: Any, ndim: int = len(AXES)) -> int:
    """Return the index of an axis: 0, 1 or 2.

    Parameters
    ----------
    axis : int or str
        0, 1 or 2 as an integer of Python or NumPy, or "x", "y" or "z".
    ndim : int
        Number of axes that are accepted, beginning with axis 0.

    Raises
    ------
    InputError
        The axis is unknown; the message lists the accepted axes.
    """
    if isinstance(axis, str):
        if len(axis) == 1 and axis in AXES[:ndim]:
            return AXES.index(axis)
    else:
        number = whole_number(axis)
        if number is not None and 0 <= number < ndim:
            return number
    numbers, names = ", ".join(map(str, range(ndim))), ", ".join(map(repr, AXES[:ndim]))
    raise InputError(f"axis {short_repr(axis)} is unknown; expected {numbers} or {names}")


def per_axis(
    value: Any,
    ndim: int,
    label: str,
    read: Callable[[Any], T | None],
    expected: str,
    default: T | None = None,
) -> tuple[T, ...]:
    """Return one value for each axis.

    Parameters
    ----------
    value
        One value for all axes; a sequence or array with one value per axis; or a mapping from axes to values.
    ndim : int
        Number of axes.
    label : str
        Name of the argument, for messages.
    read : callable
        Function that converts one value. It returns None for a value that is not accepted.
    expected : str
        Values that `read` accepts, in words.
    default
        Value for axes that are missing in a mapping. If the default is None, a mapping must contain all axes.

    Raises
    ------
    InputError
        A wrong number of values, an unknown axis, or a value that `read` does not accept.
    """
    if isinstance(value, Mapping):
        values: list[Any] = [default] * ndim
        used_axes: set[int] = set()
        for axis, entry in value.items():
            try:
                number = axis_number(axis, ndim)
            except InputError as error:
                raise InputError(f"{label} {short_repr(value)}: {error}") from None
            if number in used_axes:
                raise InputError(f"{label} {short_repr(value)} names axis {AXES[number]} twice")
            used_axes.add(number)
            values[number] = entry
        if default is None and len(used_axes) < ndim:
            missing = next(AXES[axis] for axis in range(ndim) if axis not in used_axes)
            raise InputError(
                f"{label} {short_repr(value)} leaves out axis {missing}; expected {expected} for each axis"
            )
    elif is_sequence(value):
        values = list(value)
        if len(values) != ndim:
            raise InputError(
                f"{label} {short_repr(value)} has {len(values)} entries for a grid of {ndim} axes"
            )
    else:
        values = [value] * ndim
    result = []
    for axis, entry in enumerate(values):
        converted = None if entry is None else read(entry)
        if converted is None:
            raise InputError(
                f"{label} {short_repr(value)}: axis {AXES[axis]} has {short_repr(entry)}; expected "
                f"{expected}: one for all axes, one per axis, or a mapping by axis name"
            )
        result.append(converted)
    return tuple(result)


def axis_flags(value: Any, ndim: int, label: str) -> tuple[bool, ...]:
    """Return one flag for each axis.

    Parameters
    ----------
    value : bool, sequence or mapping of bool, or names of axes
        Names of axes are text ("x" or "xz") or a sequence (("x", "z")). The flag of a named axis is True, and
        the flag of any other axis is False.
    ndim : int
        Number of axes.
    label : str
        Name of the argument, for messages.

    Raises
    ------
    InputError
        The value has another type, such as a number or None; or it names an unknown axis, or an axis twice.
    """
    names = value if isinstance(value, str) else tuple(value) if is_sequence(value) else ()
    if names and all(isinstance(name, str) for name in names):
        try:
            numbers = [axis_number(name, ndim) for name in names]
        except InputError as error:
            raise InputError(f"{label} {short_repr(value)}: {error}, or True or False") from None
        if len(set(numbers)) != len(numbers):
            raise InputError(f"{label} {short_repr(value)} names an axis twice")
        return tuple(axis in numbers for axis in range(ndim))
    return per_axis(value, ndim, label, _flag, "True or False (or names of axes, such as 'x')", default=False)


def _flag(value: Any) -> bool | None:
    is_flag = isinstance(value, bool) or (
        getattr(getattr(value, "dtype", None), "kind", "") == "b" and value.shape == ()
    )
    return bool(value) if is_flag else None


def whole_number(value: Any) -> int | None:
    """Return a whole number as an int, or None for any other value, including bool."""
    if isinstance(value, bool) or getattr(value, "shape", ()) != ():
        return None
    if getattr(getattr(value, "dtype", None), "kind", "i") not in "iu":
        return None
    try:
        return index(value)
    except TypeError:
        return None


def is_sequence(value: Any) -> bool:
    """Return True for a sequence other than text, and for a one-dimensional array."""
    if isinstance(value, (str, bytes, bytearray)):
        return False
    return isinstance(value, Sequence) or len(getattr(value, "shape", None) or ()) == 1
