"""Output stores with arrays that grow with time; readers find only output times with complete data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halocline.archive import arrays
from halocline.archive.arrays import ArraySpec
from halocline.archive.files import clear_folder, has_file, is_free, sync, write_json
from halocline.archive.reader import (
    FACTS,
    KIND,
    RESTORE,
    STEP,
    TIME,
    Store,
    array_info,
    check_chunks,
    damaged,
    difference,
    facts,
    open_array,
)
from halocline.errors import InputError, RunError

SYNCS = 16  # maximum number of files that are synced at the same time
FORMAT = 1
ROWS = 1024  # maximum number of output times in a chunk
CHUNK = 8 << 20  # maximum size of a chunk with more than two output times, in bytes


class Series:
    """Store on disk that one process creates and extends.

    Parameters
    ----------
    path : path
    growing : mapping of str to ArraySpec
        Arrays that grow along their first axis (time or step), with initial length 0 of this axis. Arrays
        with several output times per chunk are called columns; `commit` writes the values of columns.
    fixed : mapping of str to (ArraySpec, array)
        Other arrays, such as coordinates.
    described : mapping
        Further facts in JSON form. A run continues an existing store only if the facts and arrays in that
        store agree with the facts and arrays of the run.
    run : str
        Identifier of the run that writes the store; only this run continues it.
    attributes : mapping
        Attributes of the group in JSON form.
    axis : {"time", "step"}
        Dimension along which the arrays grow.
    time_units : str, optional
    """

    def __init__(
        self,
        path: Path,
        growing: Mapping[str, ArraySpec],
        fixed: Mapping[str, tuple[ArraySpec, NDArray[Any]]],
        described: Mapping[str, Any],
        *,
        run: str,
        attributes: Mapping[str, Any],
        axis: str,
        time_units: str | None,
    ) -> None:
        self.path, self.run, self.fixed, self.attributes = path, run, fixed, dict(attributes)
        contents = {
            **described,
            "arrays": {name: spec.metadata for name, spec in growing.items()},
            "coordinates": {name: [float(v).hex() for v in line] for name, (_, line) in fixed.items()},
        }
        self._facts: dict[str, Any] = {
            "kind": KIND,
            "format": FORMAT,
            "run": run,
            "contents": json.loads(json.dumps(contents)),  # in the form that readers receive
            "parts": [],
        }
        time_axes = {STEP: ArraySpec((0,), (ROWS,), "int64", (axis,), {"long_name": "steps done"})}
        if axis == TIME:
            units = {} if time_units is None else {"units": time_units}
            time_axes[TIME] = ArraySpec(
                (0,), (ROWS,), "float64", (TIME,), {"long_name": "simulated time", **units}
            )
        self._growing = {**time_axes, **growing}
        self._continued: Store | None = None  # store that this run continues, as `check` read it

    def specs(self, count: int) -> dict[str, ArraySpec]:
        """Return the specifications of growing arrays, including time and step, for `count` output times."""
        return {name: replace(spec, shape=(count, *spec.shape[1:])) for name, spec in self._growing.items()}

    def _all(self, count: int) -> dict[str, ArraySpec]:
        """Return the specifications of all arrays, for `count` output times."""
        return {**self.specs(count), **{name: spec for name, (spec, _) in self.fixed.items()}}

    def check(self, *, overwrite: bool, before: tuple[int, int] = (0, 0)) -> bool:
        """Return whether this run continues the store at the path, without changing the store.

        Parameters
        ----------
        overwrite : bool
            True if output of another run may be removed.
        before : (int, int)
            A step, and the number of output times that the store must contain up to this step.

        Raises
        ------
        InputError
            The path contains other data than output of this run, or the store is damaged.
        """
        path, self._continued = self.path, None
        if not has_file(path, arrays.GROUP):
            if not is_free(path):
                raise InputError(f"{path} is not a store of Halocline. Choose another path for the output.")
            return False
        recorded_facts = facts(path)
        if not recorded_facts:
            raise InputError(f"{path} is a store of another program. Choose another path.")
        if recorded_facts.get("kind") != KIND:
            raise InputError(f"{path} is a checkpoint. Choose another path for the output.")
        is_same_run = recorded_facts.get("run") == self.run
        if (
            is_same_run
            and recorded_facts.get("contents") == self._facts["contents"]
            and recorded_facts.get("format") == FORMAT
        ):
            self._continued = Store(path)
            self._check_facts(self._continued)
            self._check_rows(self._continued, *before)
            return True
        if not overwrite:
            content = "other output of this run" if is_same_run else "output of another run"
            raise InputError(
                f"{path} holds {content}. Choose another path, restart from the checkpoint of that run, "
                "or overwrite the store (overwrite=True, --overwrite)."
            )
        return False

    def _check_facts(self, store: Store) -> None:
        """Raise InputError if the metadata of the store lacks facts that a continued run reads."""
        file, parts = self.path / arrays.GROUP, store.facts.get("parts")
        if not isinstance(store.attributes.get("history"), str):
            raise damaged(file, "it has no history")
        if not (isinstance(parts, list) and parts and all(isinstance(part, dict) for part in parts)):
            raise damaged(file, "it has no list of the parts of the run")
        if not all(type(part.get("step")) is int and isinstance(part.get("owner"), str) for part in parts):
            raise damaged(file, "a part of the run has no step or owner")

    def _check_rows(self, store: Store, step: int, count: int) -> None:
        """Raise InputError if the rows before a restart differ from the rows that the run wrote.

        Parameters
        ----------
        store : Store
        step : int
            Step of the restart, which is the last step of the rows that remain.
        count : int
            Number of rows up to that step when the checkpoint was written.
        """
        row_count = 0
        if store.arrays:  # if there are no arrays, the process that created the store died early
            visible_count = store.arrays[STEP].times if STEP in store.arrays else 0  # published times
            group, expected = self.path / arrays.GROUP, self._all(visible_count)
            if {*store.arrays} != {*expected}:
                raise damaged(
                    group, f"it has arrays {', '.join(store.arrays)}; expected {', '.join(expected)}"
                )
            for name, spec in expected.items():
                if (mismatch := difference(store.arrays[name].metadata, spec.metadata)) is not None:
                    key, value, expected_text = mismatch
                    raise damaged(group, f"array {name!r} has {key} {value}; expected {expected_text}")
            row_count = self._count(store, step)
        if row_count < count:
            raise InputError(
                f"{self.path} contains {row_count} output times up to step {step}, but the checkpoint "
                f"expects {count}. A run from an older checkpoint has removed the missing times. "
                "Restart from an older checkpoint, or choose another path."
            )
        for name, info in store.arrays.items():
            array = open_array(self.path, info, complete=True, rows=(0, row_count))
            if name in self.fixed:
                line = self.fixed[name][1]
                if array.read((0,) * line.ndim, line.shape).tobytes() != line.tobytes():
                    raise InputError(
                        f"{self.path / name} is damaged: its coordinates differ from those of the grid. "
                        f"{RESTORE}"
                    )
            elif row_count % (rows := info.chunk[0]):  # the next commit rewrites these rows
                space = info.shape[1:]
                array.read((row_count // rows * rows, *(0 for _ in space)), (row_count, *space))

    def open(self, step: int, note: Mapping[str, Any]) -> int:
        """Create the store in an existing folder or continue it, and return its number of output times.

        A call of `check` must precede this call.

        Parameters
        ----------
        step : int
            Last step of the rows that remain; rows of later steps are removed.
        note : mapping
            Facts about the steps that follow, in JSON form.

        Raises
        ------
        RunError
            The store cannot be written.
        """
        store, part = self._continued, {"step": step, **note}
        if store is None or not store.arrays:
            self._facts["parts"] = [part]
            self._show(0, {})  # identifies the run if this process dies before the arrays exist
            clear_folder(self.path, arrays.GROUP)
            arrays.create_all(self.path, self.specs(0), self.fixed)
            self._show(0)
            return 0
        history, self.attributes = self.attributes["history"], store.attributes
        parts = [earlier for earlier in store.facts["parts"] if earlier["step"] < step]
        if not parts or {**parts[-1], "step": step} != part:
            parts.append(part)
            self.attributes["history"] += f"\n{history}"
        self._facts["parts"] = parts
        count = self._count(store, step)
        self._show(
            count, self._all(count)
        )  # the group first, because it must not list more times than the arrays have
        self._show(count)
        for name, spec in self._growing.items():
            for file, number in self._chunks(name):
                if number * spec.chunk[0] >= count:
                    file.unlink(missing_ok=True)
        return count

    def _count(self, store: Store, step: int) -> int:
        """Return the number of published output times up to a step."""
        steps = store.steps
        if steps is None or not steps.size:
            return 0
        rising = np.concatenate(([True], steps[1:] > steps[:-1]))
        return int(np.cumprod(rising & (steps <= step)).sum())

    def commit(self, first: int, rows: NDArray[Any]) -> None:
        """Publish further output times to readers.

        The values of all arrays except columns must already be on disk.

        Parameters
        ----------
        first : int
            Number of published output times before the call.
        rows : array (times, 2 + numbers)
            Time, step, and the values of the columns in order.

        Raises
        ------
        RunError
            The times cannot be written.
        """
        count, column = first + len(rows), 2
        unsynced = arrays.context(1, sync=False)  # the run often rewrites these small chunks
        columns = {name: spec for name, spec in self.specs(count).items() if spec.chunk[0] > 1}
        for name, spec in columns.items():
            self._check_before(first, name, spec)
        for name, spec in columns.items():
            if name in (TIME, STEP):
                values = rows[:, (TIME, STEP).index(name)]
            else:
                values = rows[:, column : column + spec.row_size].reshape(len(rows), *spec.shape[1:])
                column += spec.row_size
            values = np.ascontiguousarray(arrays.narrowed(values, spec.dtype)[0])
            array = arrays.attach(self.path / name, spec, unsynced)
            array.put((first,) + (0,) * (values.ndim - 1), values)
        self._show(count)

    def _check_before(self, first: int, name: str, spec: ArraySpec) -> None:
        """Raise RunError if the chunk that contains row `first` is lost.

        A new chunk would have the fill value in its earlier rows.
        """
        if first % spec.chunk[0]:
            info = array_info(self.path / name / arrays.GROUP, name, spec.metadata)
            try:
                check_chunks(self.path, info, (first - 1, first))
            except InputError as error:
                raise RunError(f"{error}, or choose another path") from None

    def sync(self, first: int) -> None:
        """Wait until the published rows are on disk, so that they survive a machine failure.

        Parameters
        ----------
        first : int
            Number of rows that earlier calls synced.

        Raises
        ------
        RunError
            The disk reports an error.
        """
        written: list[Path] = []
        for name, spec in self._growing.items():
            written.append(self.path / name / arrays.GROUP)
            if (
                spec.chunk[0] > 1
            ):  # `commit` does not sync the chunks of columns; other chunks are synced when written
                chunks = self._chunks(name)
                written += [file for file, number in chunks if (number + 1) * spec.chunk[0] > first]
        with ThreadPoolExecutor(SYNCS) as pool:  # the file system can combine simultaneous syncs
            list(pool.map(sync, written))
        for name in self._growing:
            sync(self.path / name)

    def _chunks(self, name: str) -> Iterator[tuple[Path, int]]:
        """Yield each chunk file of an array, and its number along the first axis."""
        for file in (self.path / name).glob("c.*"):
            number = file.name.split(".")[1]
            if number.isdecimal():
                yield file, int(number)

    def _show(self, count: int, specs: Mapping[str, ArraySpec] | None = None) -> None:
        """Write the metadata of the arrays for `count` output times, and then the group metadata.

        Readers open the group metadata, so this file is written last. If `specs` is given, the function
        writes only the group metadata.
        """
        if specs is None:
            for name, spec in self.specs(count).items():
                write_json(self.path / name / arrays.GROUP, spec.metadata, synced=False)
            specs = self._all(count)
        group = arrays.group_metadata({**self.attributes, FACTS: self._facts}, specs)
        write_json(self.path / arrays.GROUP, group)


def rows_of(width: int, itemsize: int) -> int:
    """Return the number of output times in a chunk of an array.

    Parameters
    ----------
    width : int
        Number of elements at each output time.
    itemsize : int
        Size of an element, in bytes.
    """
    return max(2, min(ROWS, CHUNK // (width * itemsize)))


def last_owner(store_facts: Mapping[str, Any]) -> str:
    """Return the name of the output that wrote the last part of a store; empty if it is unknown.

    Parameters
    ----------
    store_facts : mapping
        Result of `halocline.archive.reader.facts`.
    """
    try:
        return str(store_facts["parts"][-1]["owner"])
    except (KeyError, IndexError, TypeError):
        return ""
