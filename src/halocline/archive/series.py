"""A group of arrays that grow with time, of which readers see whole times only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive import arrays
from halocline.archive.arrays import ArraySpec
from halocline.archive.files import make_folder, read_json, remove_folder, write_json
from halocline.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT = 1
FACTS = "halocline"  # the attribute of the group that says what it holds
TIME, STEP = "time", "step"
ROWS = 1024  # times in a chunk of an array that has few numbers for each


@dataclass(frozen=True)
class Series:
    """What a group holds; one process makes it and lets readers see more of it.

    Parameters
    ----------
    path : path
    growing : mapping of str to ArraySpec
        Arrays whose first axis is time, without any time.
    fixed : mapping of str to (ArraySpec, array)
        Others, such as coordinates.
    attributes : mapping
        Of the group, for JSON. Groups with the same "contents" under `FACTS` hold the same.
    units : str, optional
        Of time.
    """

    path: Path
    growing: Mapping[str, ArraySpec]
    fixed: Mapping[str, tuple[ArraySpec, NDArray[Any]]]
    attributes: Mapping[str, Any]
    units: str | None = None

    def specs(self, count: int) -> dict[str, ArraySpec]:
        """The arrays that grow, time and step among them, with so many times."""
        known = {} if self.units is None else {"units": self.units}
        own = {
            TIME: ArraySpec((0,), (ROWS,), "float64", (TIME,), {"long_name": "simulated time", **known}),
            STEP: ArraySpec((0,), (ROWS,), "int64", (TIME,), {"long_name": "steps done"}),
        }
        every = {**own, **self.growing}
        return {name: replace(spec, shape=(count, *spec.shape[1:])) for name, spec in every.items()}

    def open(self, step: int, *, ours: bool, overwrite: bool) -> int:
        """Make the group, or go on with one that is there; how many times it holds then.

        Parameters
        ----------
        step : int
            What the group has of later steps is removed.
        ours : bool
            Whether to go on with one that is there.
        overwrite : bool
            Whether another one may be removed.

        Raises
        ------
        InputError
            There is something else.
        RunError
            Nothing can be written there.
        """
        made = (self.path / arrays.GROUP).is_file()
        if not made and self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise InputError(f"{self.path} is no store of Halocline: choose another path for the output")
        if made and ours and not overwrite:
            return self._cut(step)
        if made:
            self._check_removable(overwrite)
            remove_folder(self.path)
        make_folder(self.path)
        for name, spec in self.specs(0).items():
            arrays.create(self.path / name, spec)
        for name, (spec, values) in self.fixed.items():
            arrays.create(self.path / name, spec).write((0,) * values.ndim, values).result()
        self._show(0)
        return 0

    def _check_removable(self, overwrite: bool) -> None:
        if FACTS not in read_json(self.path / arrays.GROUP).get("attributes", {}):
            raise InputError(f"{self.path} is a store that Halocline did not make: choose another path")
        if not overwrite:
            raise InputError(
                f"{self.path} holds output of another run: choose another path, go on from that run's "
                "checkpoint, or let it be overwritten (overwrite=True, --overwrite)"
            )

    def _cut(self, step: int) -> int:
        """Keep what the group has up to a step."""
        known = read_json(self.path / arrays.GROUP).get("attributes", {}).get(FACTS, {})
        if known.get("format") != FORMAT or known.get("contents") != self.attributes[FACTS]["contents"]:
            raise InputError(
                f"{self.path} holds other output than this: choose another path, or let it be overwritten "
                "(overwrite=True, --overwrite)"
            )
        steps = arrays.read(self.path / STEP)
        count = int((steps.read((0,), steps.shape) <= step).sum())
        self._show(count)
        for name, spec in self.growing.items():
            for chunk in (self.path / name).glob("c.*"):
                if int(chunk.name.split(".")[1]) * spec.chunk[0] >= count:
                    chunk.unlink()
        return count

    def commit(self, first: int, columns: Mapping[str, NDArray[Any]]) -> None:
        """Let readers see more times, of which all else is on disk.

        Parameters
        ----------
        first : int
            How many there were before.
        columns : mapping of str to array
            The new times of time, step and other arrays of few numbers.
        """
        count = first + len(columns[TIME])
        specs, unsynced = self.specs(count), arrays.context(1, sync=False)  # few numbers, again and again
        for name, values in columns.items():
            array = arrays.attach(self.path / name, specs[name], unsynced)
            array.write((first,) + (0,) * (values.ndim - 1), values).result()
        self._show(count)

    def _show(self, count: int) -> None:
        """The metadata of so many times; that of the group, which readers open, comes last."""
        specs = self.specs(count)
        for name, spec in specs.items():
            write_json(self.path / name / arrays.GROUP, spec.metadata, sync=False)
        every = {**specs, **{name: spec for name, (spec, _) in self.fixed.items()}}
        consolidated = {
            "kind": "inline",
            "must_understand": False,
            "metadata": {name: spec.metadata for name, spec in every.items()},
        }
        facts = {**self.attributes, FACTS: {**self.attributes[FACTS], "format": FORMAT}}
        group = {"zarr_format": 3, "node_type": "group", "attributes": facts}
        write_json(self.path / arrays.GROUP, {**group, "consolidated_metadata": consolidated})


def columns(
    rows: Sequence[tuple[float, int, Sequence[float]]], widths: Mapping[str, tuple[int, str, int]]
) -> dict[str, NDArray[Any]]:
    """Rows of time, step and numbers as the columns that `Series.commit` takes.

    Parameters
    ----------
    rows : sequence of (time, step, numbers)
    widths : mapping of str to (int, str, int)
        The arrays that the numbers belong to, in order: how many of them, their dtype, and axes.
    """
    import numpy as np

    table = np.array([numbers for _, _, numbers in rows], dtype=np.float64).reshape(len(rows), -1)
    found: dict[str, NDArray[Any]] = {
        TIME: np.array([time for time, _, _ in rows], dtype=np.float64),
        STEP: np.array([step for _, step, _ in rows], dtype=np.int64),
    }
    at = 0
    for name, (width, dtype, ndim) in widths.items():
        own = table[:, at : at + width]
        found[name] = np.ascontiguousarray(own if ndim == 2 else own[:, 0], dtype=dtype)
        at += width
    return found
