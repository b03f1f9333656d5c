"""Conversion of user values to real numbers and arrays of real numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halocline.errors import InputError
from halocline.words import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

REAL_KINDS = "biuf"  # kinds of NumPy dtypes


def as_real(value: Any) -> float | None:
    """Return a real number as a float, or None for any other value.

    Numbers of Python, scalars of NumPy and arrays without axes are accepted. Text, complex numbers, masked
    values and integers beyond the range of float64 are not.
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

    It is `as_real` for coordinates, times and tolerances.
    """
    is_flag = isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"
    return None if is_flag else as_real(value)


def identifier(value: Any, what: str, example: str) -> str:
    """Return a name that Python accepts as an identifier.

    Raises
    ------
    InputError
        The value is another one. `what` is its name in the message.
    """
    if not isinstance(value, str) or not value.isidentifier():
        raise InputError(f"{what} {shown(value)} is not an identifier such as {example}")
    return value


def real_array(value: Any, what: str) -> NDArray[Any]:
    """Return values as an array of real numbers.

    Parameters
    ----------
    value
        An array, or anything that NumPy makes an array of.
    what : str
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
            f"{what} a masked array with {masked} masked values; expected a number at each point: fill them, "
            "as in array.filled(0.0)"
        )
    if value is None:
        raise InputError(f"{what} None; expected real numbers: a function needs a return statement")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"{what} no array ({error}); expected real numbers") from None
    if array.dtype.kind not in REAL_KINDS:
        advice = ": take .real, .imag or abs()" if array.dtype.kind == "c" else ""
        raise InputError(f"{what} an array of dtype {array.dtype}; expected real numbers{advice}")
    return array


def _masked(value: Any) -> int:
    """Return the number of masked values of an array, or of a list of arrays."""
    if isinstance(value, (list, tuple)):
        return sum(map(_masked, value))
    if not hasattr(value, "mask"):
        return 0
    import numpy as np

    return int(np.ma.getmaskarray(value).sum()) if isinstance(value, np.ma.MaskedArray) else 0
