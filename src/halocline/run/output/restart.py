"""Checkpoints on disk, and the restart of a session from a checkpoint."""

from __future__ import annotations

import contextlib
import difflib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from operator import add, sub
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from halocline.archive import arrays
from halocline.archive.files import is_file, read_object
from halocline.archive.reader import Store
from halocline.archive.reader import facts as facts_of
from halocline.errors import InputError
from halocline.lang import equations
from halocline.lang.blocks import Blocks
from halocline.lang.clock import CONSTANT_STEP, STATE
from halocline.lang.grid import Field, Grid
from halocline.plan.box import Box
from halocline.plan.chunks import ChunkGrid, Index
from halocline.run.fields.session import Session
from halocline.run.memory.contents import checksum
from halocline.run.memory.store import FieldStore
from halocline.run.output.output import PREFIX
from halocline.words import validation_message

FORMAT, KIND = 1, "checkpoint"  # format of the facts; readers reject other formats
POINTER = "newest.json"
DIGEST = "digest"  # key of the hash of the other facts
_FOLDER = re.compile(r"step-(\d+)-[0-9a-f]{8}")


class Saved:
    """Checkpoint on disk. The facts are read immediately, the fields on request.

    Parameters
    ----------
    folder : path

    Raises
    ------
    InputError
        The folder is not a checkpoint, or this version cannot read the checkpoint.

    Attributes
    ----------
    facts : dict
        Numbers and texts; see `halocline.run.output.saved_facts`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts = facts_of(folder)
        if self.facts.get("kind") != KIND:
            kind = "an output store" if self.facts else "not a store of Halocline"
            raise InputError(f"{folder} is {kind}; expected a checkpoint, or a folder of checkpoints")
        version = self.facts.get("format")
        if version != FORMAT:
            raise InputError(
                f"checkpoint {folder} has format {version}; this version of Halocline reads format {FORMAT}"
            )
        if problem := _problem(self.facts):
            raise InputError(f"{folder / arrays.GROUP} is damaged: {problem}{_list_others(folder)}")

    @property
    def step(self) -> int:
        """Step at which the checkpoint was written."""
        return int(self.facts["step"])

    def check_arrays(self) -> None:
        """Raise InputError if a field of the checkpoint lacks chunks or its metadata are damaged.

        One rank makes this check for all ranks. The other ranks open the arrays without a check.
        """
        store = Store(self.folder)
        for name in self.facts["fields"]:
            if name not in store.arrays:
                raise InputError(f"checkpoint {self.folder} is damaged: it has no field {name!r}")
            try:
                store.open(name)
            except InputError as error:
                raise InputError(f"{error}{_list_others(self.folder)}") from None

    def fetch(self, store: FieldStore, field: Field) -> None:
        """Set a field to its values in the checkpoint. Each rank reads its own points.

        All ranks call this method, after a call of `check_arrays`.

        Raises
        ------
        InputError
            The checkpoint is damaged.
        """
        with store.domain.comm.agreement(f"read field {field.name!r}"):
            array = arrays.read(self.folder / field.name)
            with store.writable(field) as pieces:
                # one additional thread, because one thread waits for the disk
                read_pieces(array, pieces, store.domain.threads + 1)
        if checksum(store, field) != self.facts["fields"][field.name]["checksum"]:
            raise InputError(
                f"checkpoint {self.folder} is damaged: the checksum of field {field.name!r} differs from "
                f"the stored one{_list_others(self.folder)}"
            )


def read_pieces(
    array: arrays.StoredArray, pieces: Iterable[tuple[Index, NDArray[Any]]], threads: int
) -> None:
    """Fill pieces of a field with values of a stored array; each piece has the index of its first point.

    Each chunk is read only once, even if several pieces share it. Each thread holds one chunk in memory.
    """
    grid = ChunkGrid(array.shape, array.chunk)
    parts: defaultdict[Index, list[tuple[Box, NDArray[Any]]]] = defaultdict(list)
    for origin, view in pieces:
        box = Box(origin, tuple(map(add, origin, view.shape)))
        for chunk in grid.over(box):
            part = grid.box(chunk).intersect(box)
            parts[chunk].append((part, view[_slices(part, origin)]))

    def read(chunk: Index) -> None:
        box = grid.box(chunk)
        values = array.read(box.lo, box.hi)
        for part, points in parts[chunk]:
            points[...] = values[_slices(part, box.lo)]

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(read, parts):  # raises the first error and cancels the other chunks
            pass


def _slices(box: Box, origin: Index) -> tuple[slice, ...]:
    """Return the slices that select a box in an array whose first element is the point `origin`."""
    return tuple(map(slice, map(sub, box.lo, origin), map(sub, box.hi, origin)))


def _problem(facts: Mapping[str, Any]) -> str:
    """Return a description of the first damaged fact, or an empty string."""
    from pydantic import ValidationError

    from halocline.run.output.saved_facts import SavedFacts

    try:
        SavedFacts.model_validate(facts)
    except ValidationError as error:
        first = error.errors()[0]
        return (
            f"it lacks {'.'.join(map(str, first['loc']))}"
            if first["type"] == "missing"
            else validation_message(first)
        )
    if facts.get(DIGEST, digest(facts)) != digest(facts):  # checkpoints of earlier versions have no digest
        return "its facts differ from the stored digest"
    return ""


def digest(facts: Mapping[str, Any]) -> str:
    """Return the hash of all facts of a checkpoint except the hash itself."""
    other_facts = {key: value for key, value in facts.items() if key != DIGEST}
    return blake2b(json.dumps(other_facts, sort_keys=True).encode(), digest_size=16).hexdigest()


def newest(path: Path) -> Path:
    """Return the newest complete checkpoint in a folder, or the folder itself if it is a checkpoint.

    Raises
    ------
    InputError
        There is no checkpoint.
    """
    if is_file(path / arrays.GROUP):
        return path
    if not path.is_dir():
        raise InputError(f"no checkpoint in {path}: the folder does not exist")
    pointer = path / POINTER
    if not is_file(pointer):
        if not folders(path, complete=True):
            raise InputError(f"no checkpoint in {path}: the folder contains no complete checkpoint")
        raise InputError(
            f"{path} has no {POINTER}, the file that names the newest checkpoint{_list_others(pointer)}"
        )
    try:
        name = read_object(pointer).get("checkpoint")
    except InputError as error:
        raise InputError(f"{error}{_list_others(pointer)}") from None
    if not isinstance(name, str) or not _FOLDER.fullmatch(name) or not is_file(path / name / arrays.GROUP):
        raise InputError(
            f"{pointer} names {name!r}, but this folder is not a checkpoint{_list_others(pointer)}"
        )
    return path / name


def _list_others(path: Path) -> str:
    """Return a text that lists the complete checkpoints in the folder of a path."""
    other_checkpoints = [folder for folder in folders(path.parent, complete=True) if folder != path]
    if not other_checkpoints:
        return "; the folder contains no other complete checkpoint"
    return f"; complete checkpoints in the folder, the newest last: {', '.join(map(str, other_checkpoints))}"


def folders(path: Path, *, complete: bool = False) -> list[Path]:
    """Return the checkpoints in a folder, sorted by step and age; if `complete`, only complete ones."""
    entries = []
    for folder in path.glob("step-*") if path.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # another process may remove the folder
            if _FOLDER.fullmatch(folder.name) and (not complete or is_file(folder / arrays.GROUP)):
                entries.append((step_of(folder), folder.stat().st_mtime, folder))
    return [folder for _, _, folder in sorted(entries)]


def step_of(folder: Path) -> int:
    """Return the step of a checkpoint from the name of its folder."""
    return int(folder.name.split("-")[1])


SHOWN = 8  # maximum number of lines in a difference between two programs
DT = "dt"  # the time step is a parameter if it is a number


class OtherProgramError(InputError):
    """Error for a checkpoint of another program."""


def check(saved: Saved, session: Session) -> None:
    """Raise InputError if another program wrote a checkpoint. The message shows the differences.

    The grid must have all fields of the checkpoint.
    """
    saved_identity, grid = saved.facts["identity"], session.fields.grid
    # Earlier versions of Halocline compute the time with different statements.
    is_older = saved.facts["values"].keys().isdisjoint(STATE)
    for part, current_identity in session.identity.items():
        saved_text, current_text = str(saved_identity.get(part)), current_identity
        if is_older:
            saved_text, current_text = (
                equations.without_time(saved_text),
                equations.without_time(current_text),
            )
        if saved_text != current_text:
            verb = "differs" if part == "grid" else "differ"
            lines = "\n".join(_difference(saved_text, current_text))
            raise OtherProgramError(
                f"checkpoint {saved.folder} belongs to another program: its {part} {verb} (-: checkpoint, "
                f"+: this run)\n{lines}"
            )
    for name, description in _fields(saved).items():
        field = grid.fields.get(name)
        if field is None or (field.dtype, field.location) != (description["dtype"], description["location"]):
            saved_text = f"{description['dtype']}, {description['location']}"
            current_text = "missing" if field is None else f"{field.dtype}, {field.location}"
            raise InputError(
                f"field {name!r} is {saved_text} in checkpoint {saved.folder}, but {current_text} in this run"
            )


def _difference(saved_text: str, current_text: str) -> Iterator[str]:
    """Yield the lines that differ, shortened."""
    diff = difflib.unified_diff(saved_text.splitlines(), current_text.splitlines(), lineterm="", n=0)
    lines = [line for line in diff if not line.startswith(("---", "+++", "@@"))]
    for line in lines[:SHOWN]:
        yield f"  {line}" if len(line) < 200 else f"  {line[:200]}..."
    if len(lines) > SHOWN:
        yield f"  and {len(lines) - SHOWN} more lines"


def changed_parameters(
    saved: Saved, parameters: Mapping[str, float], change: Collection[str]
) -> dict[str, tuple[float, float]]:
    """Return the parameters that change, each with its value in the checkpoint and its new value.

    Parameters
    ----------
    parameters : mapping of str to float
        Parameters of this run.
    change : collection of str
        Parameters that may differ from those of the checkpoint.

    Raises
    ------
    InputError
        A parameter that is not in `change` differs from the checkpoint.
    """
    saved_values = {name: float.fromhex(text) for name, text in saved.facts["parameters"].items()}
    if unknown := sorted({*saved_values} ^ {*parameters}):
        raise InputError(
            f"checkpoint {saved.folder} belongs to another program: only "
            f"{'the checkpoint' if unknown[0] in saved_values else 'this run'} has parameter {unknown[0]}"
        )
    changes = {
        name: (saved_values[name], new) for name, new in parameters.items() if saved_values[name] != new
    }
    for name, (before, new) in changes.items():
        if name not in change:
            raise InputError(
                f"parameter {name} is {new!r}, but checkpoint {saved.folder} was written with {before!r}. "
                f"Use the same value, or allow the change with change=[{name!r}] or --set {name}={new!r}."
            )
    return changes


def _fields(saved: Saved) -> dict[str, dict[str, str]]:
    """Return the fields of a checkpoint without statistics fields, because outputs load statistics."""
    return {n: d for n, d in saved.facts["fields"].items() if not n.startswith(PREFIX)}


def load_state(session: Session, saved: Saved, changes: Mapping[str, tuple[float, float]]) -> None:
    """Set a session to the state of a checkpoint, except for changed parameters; collective."""
    grid = session.fields.grid
    store = session.fields.store
    fields = [grid.fields[name] for name in _fields(saved)]
    session.fields.load(fields, lambda field: saved.fetch(store, field))
    if changes:
        session.fields.forget_walls()
    values = session.fields.values
    saved_values = {name: v for name, v in saved.facts["values"].items() if not name.startswith(PREFIX)}
    session.forget_time_steps()
    if DT in changes:  # with a new time step, the count of time steps restarts
        saved_values = {name: v for name, v in saved_values.items() if name not in STATE}
    values.update(_numbers(saved_values))
    values.update({CONSTANT_STEP if name == DT else name: value for name, (_, value) in changes.items()})
    session.ran_with = _numbers(saved.facts["ran_with"])
    session.set_scalars(_numbers(saved.facts["scalars"]))


def blocks_of(saved: Saved, grid: Grid) -> Blocks | None:
    """Return the active blocks of a checkpoint; None if the grid has no blocks."""
    blocks = saved.facts.get("blocks")
    if blocks is None:
        return None
    return Blocks(grid.shape, tuple(blocks["counts"]), bytes.fromhex(blocks["active"]))


def _numbers(texts: Mapping[str, str]) -> dict[str, float]:
    return {name: float.fromhex(text) for name, text in texts.items()}
