"""Conversion of user values to names, real numbers, and arrays of real numbers."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.lang.axes import is_sequence
from halocline.words import short_repr

if TYPE_CHECKING:
    from numpy.typing import NDArray

REAL_KINDS = "biuf"  # kinds of NumPy dtypes


def as_name(value: Any, label: str) -> str:
    """Return a name in the normal form of Python identifiers, NFKC: "\u00b5" becomes "\u03bc".

    Parameters
    ----------
    value
        Name from the user.
    label : str
        Kind of the name, for the message.

    Raises
    ------
    InputError
        The name is not text.
    """
    if not isinstance(value, str):
        raise InputError(f"{label} is {short_repr(value)}; expected text")
    return str(value) if value.isascii() else unicodedata.normalize("NFKC", value)


def by_name(mapping: Mapping[str, Any], label: str) -> dict[str, Any]:
    """Return a mapping with names as keys; see `as_name`.

    Raises
    ------
    InputError
        Two keys give the same name.
    """
    values: dict[str, Any] = {}
    for key, value in mapping.items():
        name = as_name(key, label)
        if name in values:
            raise InputError(
                f"{label} {name!r} is given twice, in different Unicode forms. Leave one of them out."
            )
        values[name] = value
    return values


def plain(value: Any) -> Any:
    """Return scalars and arrays of NumPy as Python numbers and lists, and any other value unchanged.

    Lists, tuples and mappings are converted entry by entry. The conversion is exact: ``np.float32(0.1)``
    becomes 0.10000000149011612.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.generic, numpy.ndarray)):
        return value.tolist()
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return {plain(k): plain(v) for k, v in value.items()} if type(value) is dict else value


def json_value(value: Any) -> Any:
    """Return the JSON form of a value that json does not support; for `default` of `json.dumps`.

    Raises
    ------
    TypeError
        The value is neither a scalar or array of NumPy nor a path.
    """
    converted = fspath(value) if isinstance(value, PathLike) else plain(value)
    if converted is value:
        raise TypeError(f"{value!r} of type {type(value).__name__} is not JSON data")
    return converted


def as_real(value: Any) -> float | None:
    """Return a real number as a float, or None for any other value.

    Numbers of Python, scalars of NumPy and zero-dimensional arrays are accepted. Text, complex numbers,
    masked values and integers beyond the range of float64 are rejected.
    """
    if not isinstance(value, (float, int)):
        if isinstance(value, (str, bytes, bytearray)) or getattr(value, "shape", ()) != ():
            return None
        if getattr(getattr(value, "dtype", None), "kind", "f") not in REAL_KINDS or _masked(value):
            return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def as_quantity(value: Any) -> float | None:
    """Return a real number as a float, or None for any other value, including bool.

    Coordinates, times and tolerances use this function instead of `as_real`.
    """
    is_flag = isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"
    return None if is_flag else as_real(value)


def as_number(value: Any, label: str) -> float:
    """Return a real number as a float.

    Raises
    ------
    InputError
        The value is not a real number, or is a bool. `label` names the value in the message.
    """
    number = as_quantity(value)
    if number is None:
        raise InputError(f"{label} is {short_repr(value)}; expected a number")
    return number


def as_texts(value: Any, label: str) -> tuple[str, ...]:
    """Return a sequence of strings as a tuple.

    Raises
    ------
    InputError
        The value is not a sequence, or has an entry other than text. `label` names the value in the message.
    """
    if not is_sequence(value) or not all(isinstance(text, str) for text in value):
        raise InputError(f"{label} is {short_repr(value)}; expected strings, such as ('u', 'v')")
    return tuple(value)


def identifier(value: Any, label: str, example: str) -> str:
    """Return a name that is a Python identifier, in the form of `as_name`.

    Raises
    ------
    InputError
        The value is not an identifier. `label` names the value in the message.
    """
    if not isinstance(value, str) or not value.isidentifier():
        raise InputError(f"{label} {short_repr(value)} is not an identifier such as {example}")
    return as_name(value, label)


def real_array(value: Any, subject: str) -> NDArray[Any]:
    """Return values as an array of real numbers.

    Parameters
    ----------
    value
        An array, or an object that NumPy converts to an array.
    subject : str
        Subject of the message, such as "field 'u' is given".

    Raises
    ------
    InputError
        The values are masked, complex, text or objects, or rows have different lengths.
    """
    import numpy as np

    masked = _masked(value)
    if masked:
        raise InputError(
            f"{subject} a masked array with {masked} masked values; expected a number at each point. Fill "
            "them, as in array.filled(0.0)."
        )
    if value is None:
        raise InputError(f"{subject} None; expected real numbers: a function needs a return statement")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{subject} no array ({error}); expected real numbers") from None
    if array.dtype.kind not in REAL_KINDS:
        advice = ": take .real, .imag or abs()" if array.dtype.kind == "c" else ""
        raise InputError(f"{subject} an array of dtype {array.dtype}; expected real numbers{advice}")
    return array


def _masked(value: Any) -> int:
    """Return the number of masked values of an array, or of a list of arrays."""
    if isinstance(value, (list, tuple)):
        return sum(map(_masked, value))
    if not hasattr(value, "mask"):
        return 0
    import numpy as np

    return int(np.ma.getmaskarray(value).sum()) if isinstance(value, np.ma.MaskedArray) else 0
