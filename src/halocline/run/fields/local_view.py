"""Points of one rank as a NumPy array whose errors explain local and global indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.errors import InputError


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


def _plain(value: Any) -> Any:
    """Return a view as a plain array, and anything else unchanged."""
    return value.view(np.ndarray) if isinstance(value, LocalView) else value
