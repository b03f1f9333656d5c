"""Checkpoints on disk, for readers: each is a folder, and a pointer names the newest one."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from halocline.archive import arrays
from halocline.archive.files import is_file, read_object
from halocline.archive.reader import Store
from halocline.archive.reader import facts as facts_of
from halocline.errors import InputError
from halocline.lang.grid import Field
from halocline.run.memory.assembly import fetch
from halocline.run.memory.contents import checksum
from halocline.run.memory.store import FieldStore
from halocline.words import invalid

FORMAT, KIND = 1, "checkpoint"  # of the facts; readers reject other formats
POINTER = "newest.json"
DIGEST = "digest"  # key of the hash of the other facts
_FOLDER = re.compile(r"step-(\d+)-[0-9a-f]{8}")


class Saved:
    """Checkpoint on disk, of which the facts are read at once.

    Parameters
    ----------
    folder : path

    Raises
    ------
    InputError
        The folder is no checkpoint, or this version cannot read the checkpoint.

    Attributes
    ----------
    facts : dict
        Numbers and texts; see `halocline.run.output.saved_facts`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.facts = facts_of(folder)
        if self.facts.get("kind") != KIND:
            what = "output" if self.facts else "no store of Halocline"
            raise InputError(f"{folder} is {what}; expected a checkpoint, or a folder of checkpoints")
        version = self.facts.get("format")
        if version != FORMAT:
            raise InputError(
                f"checkpoint {folder} has format {version}; this version of Halocline reads format {FORMAT}"
            )
        if problem := _problem(self.facts):
            raise InputError(f"{folder / arrays.GROUP} is damaged: {problem}{_others(folder)}")

    @property
    def step(self) -> int:
        """Step at which the checkpoint was written."""
        return int(self.facts["step"])

    def check_arrays(self) -> None:
        """Raise InputError where a field of the checkpoint lacks chunks or its metadata is damaged.

        One rank checks for all; the other ranks open the arrays without a check.
        """
        store = Store(self.folder)
        for name in self.facts["fields"]:
            if name not in store.arrays:
                raise InputError(f"checkpoint {self.folder} is damaged: it has no field {name!r}")
            try:
                store.open(name)
            except InputError as error:
                raise InputError(f"{error}{_others(self.folder)}") from None

    def fetch(self, store: FieldStore, field: Field) -> None:
        """Set a field to its values in the checkpoint; each rank reads its own points.

        All ranks call this method, after one of them has called `check_arrays`.

        Raises
        ------
        InputError
            The checkpoint is damaged.
        """
        with store.domain.comm.agreement(f"read field {field.name!r}"):
            fetch(store, field, arrays.read(self.folder / field.name))
        if checksum(store, field) != self.facts["fields"][field.name]["checksum"]:
            raise InputError(
                f"checkpoint {self.folder} is damaged: field {field.name!r} has another checksum than when "
                f"it was written{_others(self.folder)}"
            )


def _problem(facts: Mapping[str, Any]) -> str:
    """Return a text on the first fact that is damaged, or an empty string."""
    from pydantic import ValidationError

    from halocline.run.output.saved_facts import SavedFacts

    try:
        SavedFacts.model_validate(facts)
    except ValidationError as error:
        first = error.errors()[0]
        return (
            f"it lacks {'.'.join(map(str, first['loc']))}" if first["type"] == "missing" else invalid(first)
        )
    if facts.get(DIGEST, digest(facts)) != digest(facts):  # checkpoints of earlier versions have no digest
        return "its facts of the run are not those that were written"
    return ""


def digest(facts: Mapping[str, Any]) -> str:
    """Return the hash of all facts of a checkpoint except the hash itself."""
    hashed = {key: value for key, value in facts.items() if key != DIGEST}
    return blake2b(json.dumps(hashed, sort_keys=True).encode(), digest_size=16).hexdigest()


def newest(path: Path) -> Path:
    """Return the newest complete checkpoint in a folder, or the folder itself where it is a checkpoint.

    Raises
    ------
    InputError
        There is no checkpoint.
    """
    if is_file(path / arrays.GROUP):
        return path
    if not path.is_dir():
        raise InputError(f"no checkpoint in {path}: there is no such folder")
    pointer = path / POINTER
    if not is_file(pointer):
        if not folders(path, complete=True):
            raise InputError(f"no checkpoint in {path}: no checkpoint was ever completed there")
        raise InputError(f"{path} has no {POINTER}, which names the newest{_others(pointer)}")
    try:
        name = read_object(pointer).get("checkpoint")
    except InputError as error:
        raise InputError(f"{error}{_others(pointer)}") from None
    if not isinstance(name, str) or not _FOLDER.fullmatch(name) or not is_file(path / name / arrays.GROUP):
        raise InputError(f"{pointer} names {name!r}, which is no checkpoint there{_others(pointer)}")
    return path / name


def _others(path: Path) -> str:
    """Return a text that lists the complete checkpoints beside a path."""
    others = [folder for folder in folders(path.parent, complete=True) if folder != path]
    if not others:
        return "; there are no others"
    return f"; whole ones there, the latest last: {', '.join(map(str, others))}"


def folders(path: Path, *, complete: bool = False) -> list[Path]:
    """Return the checkpoints in a folder by step and age, incomplete ones too unless `complete` is true."""
    entries = []
    for folder in path.glob("step-*") if path.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # another process may be removing it
            if _FOLDER.fullmatch(folder.name) and (not complete or is_file(folder / arrays.GROUP)):
                entries.append((step_of(folder), folder.stat().st_mtime, folder))
    return [folder for _, _, folder in sorted(entries)]


def step_of(folder: Path) -> int:
    """Return the step of a checkpoint from the name of its folder."""
    return int(folder.name.split("-")[1])
