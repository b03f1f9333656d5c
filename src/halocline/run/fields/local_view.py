"""Points of one rank as a NumPy array whose errors explain local and global indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError
from halocline.lang.grid import AXES, Field


class LocalIndexError(InputError, IndexError):
    """An index that no point of this rank has."""


class LocalView(np.ndarray):
    """View of the points of a field that belong to one rank.

    Slices, elements and results of arithmetic are plain arrays.

    Attributes
    ----------
    index_advice : str
        Explanation of an index that is out of range.
    write_advice : str
        Explanation of an assignment to a view that cannot be written.
    """

    index_advice = "the index is out of range"
    write_advice = "the array cannot be written"

    @classmethod
    def of(cls, values: NDArray[Any], index_advice: str, write_advice: str) -> LocalView:
        """Return a view of an array with its advice."""
        view = values.view(cls)
        view.index_advice, view.write_advice = index_advice, write_advice
        return view

    def __getitem__(self, key: Any) -> Any:
        try:
            return self.view(np.ndarray)[key]
        except IndexError as error:
            raise LocalIndexError(f"{error}: {self.index_advice}") from None

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise InputError(self.write_advice)
        try:
            self.view(np.ndarray)[key] = value
        except IndexError as error:
            raise LocalIndexError(f"{error}: {self.index_advice}") from None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", ())
        for array in out:
            if isinstance(array, LocalView) and not array.flags.writeable:
                raise InputError(array.write_advice)
        if out:
            options["out"] = tuple(map(_plain, out))
        result = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return out[0] if len(out) == 1 else result  # `view += 1` leaves the same view


def index_advice(field: Field, rank: int, first: Sequence[int], shape: Sequence[int]) -> str:
    """Return the explanation of an index that is out of range.

    Parameters
    ----------
    field : Field
    rank : int
    first : sequence of int
        Global index of the first point of the view.
    shape : sequence of int
        Number of points of the view along each axis.
    """
    ends = zip(AXES, first, shape, strict=False)
    ranges = ", ".join(f"{axis} {start} to {start + count - 1}" for axis, start, count in ends)
    return (
        f"this array holds {tuple(shape)} points of rank {rank}, of {field.points} of field {field.name!r}; "
        f"its local indices begin at 0, and its global indices are {ranges}. Read one point of the whole "
        f"field by sim.evaluate(hc.value({field.name}, at=({', '.join('ijk'[: len(shape)])}))), or all "
        f"points on the first rank by sim.gather({field.name})"
    )


def write_advice(name: str, reason: str) -> str:
    """Return the explanation of an assignment to a view of field `name` that cannot be written."""
    return (
        f"field {name!r} {reason}, and this array is a copy that cannot be written: set the whole field, "
        f"sim[{name}] = values, an array of the shape of the whole field, an expression or a function of the "
        "coordinates"
    )


def _plain(value: Any) -> Any:
    """Return a view as a plain array, and anything else unchanged."""
    return value.view(np.ndarray) if isinstance(value, LocalView) else value
