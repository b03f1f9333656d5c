"""Checkpoints on disk: each a folder of its own, whole before a pointer names it the newest."""

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
from halocline.archive.series import facts as facts_of
from halocline.errors import InputError
from halocline.lang.grid import Field
from halocline.run.memory.assembly import fetch
from halocline.run.memory.contents import checksum
from halocline.run.memory.store import FieldStore
from halocline.words import invalid

FORMAT, KIND = 1, "checkpoint"  # of the facts; a reader of another refuses them
POINTER = "newest.json"
DIGEST = "digest"  # key of the hash of the other facts
_FOLDER = re.compile(r"step-(\d+)-[0-9a-f]{8}")


class Saved:
    """A checkpoint on disk.

    Parameters
    ----------
    folder : path

    Raises
    ------
    InputError
        There is none, or one that this version cannot read.

    Attributes
    ----------
    facts : dict
        Numbers and texts.
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
        # checkpoints of earlier versions have no digest
        if DIGEST in self.facts and self.facts[DIGEST] != digest(self.facts):
            raise InputError(
                f"{folder / arrays.GROUP} is damaged: its facts of the run are not those that were "
                f"written{_others(folder)}"
            )
        self._store: Store | None = None

    @property
    def step(self) -> int:
        """Step at which the checkpoint was written."""
        return int(self.facts["step"])

    def fetch(self, store: FieldStore, field: Field) -> None:
        """Set a field to its values in the checkpoint; all ranks call this.

        Raises
        ------
        InputError
            The checkpoint is damaged.
        """
        with store.domain.comm.agreement(f"read field {field.name!r}"):
            self._store = self._store or Store(self.folder)
            if field.name not in self._store.arrays:
                raise InputError(f"checkpoint {self.folder} is damaged: it has no field {field.name!r}")
            try:
                array = self._store.open(field.name)
            except InputError as error:
                raise InputError(f"{error}{_others(self.folder)}") from None
            fetch(store, field, array)
        if checksum(store, field) != self.facts["fields"][field.name]["checksum"]:
            raise InputError(
                f"checkpoint {self.folder} is damaged: field {field.name!r} has another checksum than when "
                f"it was written{_others(self.folder)}"
            )


def _problem(facts: Mapping[str, Any]) -> str:
    """Return a text on the first fact that cannot be, or an empty string."""
    from pydantic import ValidationError

    from halocline.run.output.saved_facts import SavedFacts

    try:
        SavedFacts.model_validate(facts)
    except ValidationError as error:
        first = error.errors()[0]
        return (
            f"it lacks {'.'.join(map(str, first['loc']))}" if first["type"] == "missing" else invalid(first)
        )
    return ""


def digest(facts: Mapping[str, Any]) -> str:
    """Return the hash of all facts of a checkpoint except the hash itself."""
    hashed = {key: value for key, value in facts.items() if key != DIGEST}
    return blake2b(json.dumps(hashed, sort_keys=True).encode(), digest_size=16).hexdigest()


def newest(path: Path) -> Path:
    """The newest whole checkpoint in a folder, or the folder itself where it is a checkpoint.

    Raises
    ------
    InputError
        There is none.
    """
    if is_file(path / arrays.GROUP):
        return path
    if not path.is_dir():
        raise InputError(f"no checkpoint in {path}: there is no such folder")
    if not is_file(path / POINTER):
        if not any(is_file(each / arrays.GROUP) for each in folders(path)):
            raise InputError(f"no checkpoint in {path}: no checkpoint was ever completed there")
        raise InputError(f"{path} has no {POINTER}, which names the newest{_others(path / POINTER)}")
    try:
        name = read_object(path / POINTER).get("checkpoint")
    except InputError as error:
        raise InputError(f"{error}{_others(path / POINTER)}") from None
    if not isinstance(name, str) or not _FOLDER.fullmatch(name) or not is_file(path / name / arrays.GROUP):
        raise InputError(
            f"{path / POINTER} names {name!r}, which is no checkpoint there{_others(path / POINTER)}"
        )
    return path / name


def _others(folder: Path) -> str:
    """The whole checkpoints beside one, in words."""
    others = [each for each in folders(folder.parent) if each != folder and is_file(each / arrays.GROUP)]
    if not others:
        return "; there are no others"
    return f"; whole ones there, the latest last: {', '.join(map(str, others))}"


def folders(path: Path) -> list[Path]:
    """The checkpoints in a folder, whole or not, by step and age."""
    found = []
    for each in path.glob("step-*") if path.is_dir() else ():
        with contextlib.suppress(FileNotFoundError):  # another process may be removing it
            if _FOLDER.fullmatch(each.name):
                found.append((int(each.name.split("-")[1]), each.stat().st_mtime, each))
    return [each for _, _, each in sorted(found)]
