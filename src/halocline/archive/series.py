"""A group of arrays that grow with time, of which readers see whole times only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.archive import arrays
from halocline.archive.arrays import ArraySpec
from halocline.archive.files import (
    clear_folder,
    has_file,
    is_free,
    read_object,
    sync_file,
    sync_folder,
    write_json,
)
from halocline.archive.integrity import (
    RESTORE,
    STEP,
    TIME,
    array_info,
    damaged,
    damaged_chunk,
    difference,
    open_array,
)
from halocline.errors import InputError, RunError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SYNCS = 16  # files that are synced at once
FORMAT, KIND = 1, "output"
FACTS = "halocline"  # the attribute of the group that says what it holds
ROWS = 1024  # times in a chunk of an array that has few numbers for each
CHUNK = 8 << 20  # largest chunk of several times, in bytes; two times may exceed it


@dataclass(frozen=True)
class SeriesSpec:
    """What a group holds: groups with the same contents hold the same.

    Parameters
    ----------
    growing : mapping of str to ArraySpec
        Arrays whose first axis is time, or steps, without any.
    fixed : mapping of str to (ArraySpec, array)
        Others, such as coordinates.
    described : mapping
        What else must be the same, for JSON.
    """

    growing: Mapping[str, ArraySpec]
    fixed: Mapping[str, tuple[ArraySpec, NDArray[Any]]]
    described: Mapping[str, Any]

    def identity(self) -> dict[str, Any]:
        """All of it, as JSON gives it back."""
        arrays = {name: spec.metadata for name, spec in self.growing.items()}
        fixed = {name: [float(v).hex() for v in values] for name, (_, values) in self.fixed.items()}
        whole = {**self.described, "arrays": arrays, "coordinates": fixed}
        found: dict[str, Any] = json.loads(json.dumps(whole))
        return found


class Series:
    """A group of arrays on disk, which one process makes and lets readers see more of.

    Parameters
    ----------
    path : path
    spec : SeriesSpec
    run : str
        Which run writes it; only that one goes on with it.
    attributes : mapping
        Of the group, for JSON; what is true of these steps only stands in `note`.
    axis : {"time", "step"}
        What arrays grow with.
    time_units : str, optional
    """

    def __init__(
        self,
        path: Path,
        spec: SeriesSpec,
        run: str,
        attributes: Mapping[str, Any],
        *,
        axis: str = TIME,
        time_units: str | None = None,
    ) -> None:
        self.path, self.spec, self.run, self.axis, self.time_units = path, spec, run, axis, time_units
        self.attributes = dict(attributes)
        self._facts: dict[str, Any] = {
            "kind": KIND,
            "format": FORMAT,
            "run": run,
            "contents": spec.identity(),
            "parts": [],
        }

    def specs(self, count: int) -> dict[str, ArraySpec]:
        """The arrays that grow, time and step among them, with a number of times."""
        known = {} if self.time_units is None else {"units": self.time_units}
        own = {STEP: ArraySpec((0,), (ROWS,), "int64", (self.axis,), {"long_name": "steps done"})}
        if self.axis == TIME:
            own[TIME] = ArraySpec((0,), (ROWS,), "float64", (TIME,), {"long_name": "simulated time", **known})
        every = {**own, **self.spec.growing}
        return {name: replace(spec, shape=(count, *spec.shape[1:])) for name, spec in every.items()}

    def _all(self, count: int) -> dict[str, ArraySpec]:
        """Return the specifications of all arrays, with a number of times."""
        return {**self.specs(count), **{name: spec for name, (spec, _) in self.spec.fixed.items()}}

    def check(self, *, overwrite: bool, before: tuple[int, int] = (0, 0)) -> bool:
        """Return whether this run continues the group that is there; nothing is changed.

        Parameters
        ----------
        overwrite : bool
            Whether output of another run may be removed.
        before : (int, int)
            A step, and the number of times up to this step that the group must have.

        Raises
        ------
        InputError
            The path holds something else, or the group is damaged.
        """
        path = self.path
        if not has_file(path, arrays.GROUP):
            if not is_free(path):
                raise InputError(f"{path} is no store of Halocline: choose another path for the output")
            return False
        known = facts(path)
        if not known:
            raise InputError(f"{path} is a store that Halocline did not make: choose another path")
        if known.get("kind") != KIND:
            raise InputError(f"{path} is a checkpoint: choose another path for the output")
        same = known.get("run") == self.run
        if same and known.get("contents") == self._facts["contents"] and known.get("format") == FORMAT:
            group = read_object(path / arrays.GROUP)
            self._check_facts(group)
            self._check_rows(group, *before)
            return True
        if not overwrite:
            what = "other output of this run" if same else "output of another run"
            raise InputError(
                f"{path} holds {what}: choose another path, go on from that run's checkpoint, or let it be "
                "overwritten (overwrite=True, --overwrite)"
            )
        return False

    def _check_facts(self, group: Mapping[str, Any]) -> None:
        """Raise InputError where the metadata of the group lacks facts that a continued run reads."""
        file, attributes = self.path / arrays.GROUP, group["attributes"]
        parts = attributes[FACTS].get("parts")
        if not isinstance(attributes.get("history"), str):
            raise damaged(file, "it has no history")
        if not (isinstance(parts, list) and parts and all(isinstance(part, dict) for part in parts)):
            raise damaged(file, "it has no list of the parts of the run")
        if not all(type(part.get("step")) is int and isinstance(part.get("owner"), str) for part in parts):
            raise damaged(file, "a part of the run has no step or owner")

    def _check_rows(self, metadata: Mapping[str, Any], step: int, count: int) -> None:
        """Raise InputError where the rows up to a restart are not those that the run wrote.

        Parameters
        ----------
        metadata : mapping
            Metadata of the group.
        step : int
            Last step of the rows that are kept.
        count : int
            Number of rows up to that step when the checkpoint was written.
        """
        shown = self._shown(metadata)
        if shown is None:  # the process that made the group died early
            if count:
                raise self._lost(0, step, count)
            return
        group = self.path / arrays.GROUP
        group_arrays = metadata["consolidated_metadata"]["metadata"]
        infos = {name: array_info(group, name, spec.metadata) for name, spec in self._all(shown).items()}
        if {*group_arrays} != {*infos}:
            raise damaged(group, f"it has arrays {', '.join(group_arrays)}; expected {', '.join(infos)}")
        for name, info in infos.items():
            if (mismatch := difference(group_arrays[name], info.metadata)) is not None:
                key, value, expected = mismatch
                raise damaged(group, f"it says {key} {value} of array {name!r}; expected {expected}")
        row_count = self._count(step, shown)
        if row_count < count:
            raise self._lost(row_count, step, count)
        for name, info in infos.items():
            array = open_array(self.path, info, complete=True, rows=(0, row_count))
            if name in self.spec.fixed:
                line = self.spec.fixed[name][1]
                if array.read((0,) * line.ndim, line.shape).tobytes() != line.tobytes():
                    raise InputError(
                        f"{self.path / name} is damaged: its coordinates are not those of the grid; {RESTORE}"
                    )
            elif row_count % (rows := info.chunk[0]):  # the next commit rewrites these rows
                array.read(
                    (row_count // rows * rows, *(0 for _ in info.shape[1:])), (row_count, *info.shape[1:])
                )

    def _lost(self, row_count: int, step: int, count: int) -> InputError:
        """Return the error for rows that the checkpoint counts and the group lacks."""
        return InputError(
            f"{self.path} has {row_count} times up to step {step}, but it had {count} when the checkpoint "
            "was written: a run that restarted from an older checkpoint has removed them. Restart from an "
            "older checkpoint, or choose another path"
        )

    def open(self, step: int, note: Mapping[str, Any], *, is_continued: bool) -> int:
        """Make the group in a folder that is there, or go on with it; how many times it holds then.

        Parameters
        ----------
        step : int
            What the group has of later steps is removed.
        note : mapping
            Of the steps to come, for JSON.
        is_continued : bool
            Result of `check`.

        Raises
        ------
        RunError
            Nothing can be written there.
        """
        if is_continued:
            return self._cut(step, note)
        self._facts["parts"] = [{"step": step, **note}]
        self._show(0, {})  # whose it is, should this process die before all is there
        clear_folder(self.path, arrays.GROUP)
        arrays.create_all(self.path, self.specs(0), self.spec.fixed)
        self._show(0)
        return 0

    def _cut(self, step: int, note: Mapping[str, Any]) -> int:
        """Keep what the group has up to a step."""
        group = read_object(self.path / arrays.GROUP)
        before = group["attributes"]
        parts = [each for each in before[FACTS]["parts"] if each["step"] < step]
        if not parts or {**parts[-1], "step": step} != {"step": step, **note}:
            parts.append({"step": step, **note})
            before["history"] += f"\n{self.attributes['history']}"
        self._facts["parts"] = parts
        self.attributes = before
        shown = self._shown(group)
        if shown is None:  # the process that made it died early
            return self.open(step, note, is_continued=False)
        count = self._count(step, shown)
        self._show(count, self._all(count))  # the group first: no reader sees more times than arrays have
        self._show(count)
        for name, spec in self.specs(0).items():
            for file, number in self._chunks(name):
                if number * spec.chunk[0] >= count:
                    file.unlink(missing_ok=True)
        return count

    def _shown(self, group: Mapping[str, Any]) -> int | None:
        """Return the number of times that readers see; None where the arrays were never made."""
        try:
            found = group["consolidated_metadata"]["metadata"]
            return int(found[STEP]["shape"][0]) if STEP in found else None
        except (KeyError, IndexError, TypeError, ValueError):
            raise InputError(
                f"{self.path / arrays.GROUP} is damaged: its consolidated metadata cannot be read; choose "
                "another path"
            ) from None

    def _count(self, step: int, shown: int) -> int:
        """Return the number of times up to a step, of those that readers see."""
        import numpy as np

        if not shown:
            return 0
        info = array_info(self.path / arrays.GROUP, STEP, self.specs(shown)[STEP].metadata)
        steps = open_array(self.path, info, complete=True).read((0,), (shown,))
        rising = np.concatenate(([True], steps[1:] > steps[:-1]))
        return int(np.cumprod(rising & (steps <= step)).sum())

    def commit(self, first: int, columns: Mapping[str, NDArray[Any]]) -> None:
        """Let readers see more times, of which all else is on disk.

        Parameters
        ----------
        first : int
            How many there were before.
        columns : mapping of str to array
            The new times of time, step and other arrays of few numbers.

        Raises
        ------
        RunError
            They cannot be written.
        """
        count = first + len(columns[self.axis])
        specs, unsynced = self.specs(count), arrays.context(1, sync=False)  # few numbers, again and again
        for name in columns:
            self._check_before(first, name, specs[name])
        for name, values in columns.items():
            array = arrays.attach(self.path / name, specs[name], unsynced)
            array.put((first,) + (0,) * (values.ndim - 1), values)
        self._show(count)

    def _check_before(self, first: int, name: str, spec: ArraySpec) -> None:
        """Raise RunError where the chunk that holds row `first` is lost.

        Writing the chunk anew would fill its earlier rows with the fill value.
        """
        rows = spec.chunk[0]
        if first % rows:
            info = array_info(self.path / name / arrays.GROUP, name, spec.metadata)
            numbers = [first // rows, *(0 for _ in spec.shape[1:])]
            try:
                if not has_file(self.path, f"{name}/{info.chunk_file(numbers)}"):
                    raise damaged_chunk(self.path / name, info, numbers, (first, *spec.shape[1:]), "missing")
            except InputError as error:
                raise RunError(f"{error}, or choose another path") from None

    def sync(self, first: int) -> None:
        """Wait until the rows that readers see are on disk, also if the machine fails.

        Parameters
        ----------
        first : int
            Number of rows that were synced before.

        Raises
        ------
        RunError
            The disk reports an error.
        """
        written: list[Path] = []
        for name, spec in self.specs(0).items():
            written.append(self.path / name / arrays.GROUP)
            if spec.chunk[0] > 1:  # `commit` writes its chunks; other chunks were synced when written
                chunks = self._chunks(name)
                written += [file for file, number in chunks if (number + 1) * spec.chunk[0] > first]
        with ThreadPoolExecutor(SYNCS) as pool:  # a journal commits the files of several threads at once
            list(pool.map(sync_file, written))
        for name in self.specs(0):
            sync_folder(self.path / name)

    def _chunks(self, name: str) -> Iterator[tuple[Path, int]]:
        """Yield the chunk files of an array, each with its number along the first axis."""
        for file in (self.path / name).glob("c.*"):
            number = file.name.split(".")[1]
            if number.isdecimal():
                yield file, int(number)

    def _show(self, count: int, specs: Mapping[str, ArraySpec] | None = None) -> None:
        """Write the metadata of a number of times; that of the group, which readers open, comes last."""
        if specs is None:
            for name, spec in self.specs(count).items():
                write_json(self.path / name / arrays.GROUP, spec.metadata, sync=False)
            specs = self._all(count)
        group = arrays.group_metadata({**self.attributes, FACTS: self._facts}, specs)
        write_json(self.path / arrays.GROUP, group)


def rows_of(width: int, itemsize: int) -> int:
    """Return the number of times in a chunk of an array.

    Parameters
    ----------
    width : int
        Numbers for each time.
    itemsize : int
        Bytes of a number.
    """
    return max(2, min(ROWS, CHUNK // (width * itemsize)))


def facts(path: Path) -> dict[str, Any]:
    """What Halocline has noted of a group; empty where it did not make it.

    Raises
    ------
    InputError
        There is no group.
    """
    attributes = read_object(path / arrays.GROUP).get("attributes")
    found = attributes.get(FACTS) if isinstance(attributes, dict) else None
    return found if isinstance(found, dict) else {}


def last_owner(known: Mapping[str, Any]) -> str:
    """Return the name of the output that wrote the last part of a group; empty if it is unknown.

    Parameters
    ----------
    known : mapping
        Result of `facts`.
    """
    try:
        return str(known["parts"][-1]["owner"])
    except (KeyError, IndexError, TypeError):
        return ""


def columns(
    rows: Sequence[tuple[float, int, Sequence[float]]], specs: Mapping[str, ArraySpec], axis: str = TIME
) -> dict[str, NDArray[Any]]:
    """Return rows of time, step and numbers as the columns that `Series.commit` takes.

    Parameters
    ----------
    rows : sequence of (time, step, numbers)
    specs : mapping of str to ArraySpec
        Arrays of the numbers, in the order of the numbers.
    axis : {"time", "step"}
        Dimension that the arrays grow along.
    """
    import numpy as np

    table = np.array([numbers for _, _, numbers in rows], dtype=np.float64).reshape(len(rows), -1)
    result: dict[str, NDArray[Any]] = {STEP: np.array([step for _, step, _ in rows], dtype=np.int64)}
    if axis == TIME:
        result[TIME] = np.array([time for time, _, _ in rows], dtype=np.float64)
    at = 0
    for name, spec in specs.items():
        block = table[:, at : at + spec.row_size].reshape(len(rows), *spec.shape[1:])
        result[name] = np.ascontiguousarray(arrays.narrowed(block, spec.dtype)[0])
        at += spec.row_size
    return result
