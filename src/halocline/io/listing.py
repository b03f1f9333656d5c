"""Listing of a store, as data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from halocline.archive.files import is_file
from halocline.archive.reader import TIME, Store, folder_bytes
from halocline.errors import InputError
from halocline.run.output.restart import POINTER, Saved, folders, newest


def described(path: Path) -> dict[str, Any]:
    """Return the description of a path for JSON; "kind" is "output", "checkpoint" or "checkpoints".

    Raises
    ------
    InputError
        The path is not a store of Halocline, or the store is damaged.
    """
    with _readable(path):
        if not is_file(path / "zarr.json") and (folders(path) or is_file(path / POINTER)):
            return _checkpoints(path)
        store = Store(path)
        if "identity" in store.facts:
            return _checkpoint(path)
        times, steps = store.times, store.steps
        parts = store.facts.get("parts") or [store.facts]  # one per run, the newest last
        _check(store)
        return {
            "kind": "output",
            "path": str(path),
            "title": store.attributes.get("title"),
            "source": store.attributes.get("source"),
            "history": store.attributes.get("history"),
            "parameters": parts[-1].get("parameters", {}),
            "region": store.facts.get("contents", {}).get("region"),
            "equations": store.attributes.get("equations", store.facts.get("equations")),
            "times": None if times is None or store.axis != TIME else [_number(t) for t in times],
            "steps": None if steps is None else [int(s) for s in steps],
            "arrays": {
                name: {
                    "dimensions": list(info.dimensions),
                    "shape": list(info.shape),
                    "dtype": info.dtype,
                    "chunk": list(info.chunk),
                    "units": info.units or None,
                    "bytes": folder_bytes(path / name),
                }
                for name, info in store.variables.items()
            },
        }


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Convert exceptions that invalid metadata causes in the with block into InputError.

    Raises
    ------
    InputError
        An entry is missing or has the wrong type.
    """
    try:
        yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError(
            f"{path / 'zarr.json'} is damaged: the metadata of Halocline has no entry {error}"
        ) from None
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{path / 'zarr.json'} is damaged: {error}") from None


def _check(store: Store) -> None:
    """Raise InputError if an array is not complete, since a listing names only complete arrays."""
    for name in store.arrays:
        store.open(name)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _checkpoint(path: Path) -> dict[str, Any]:
    saved, store = Saved(path), Store(path)
    _check(store)
    facts = saved.facts
    return {
        "kind": "checkpoint",
        "path": str(path),
        "step": facts["step"],
        "time": _number(float.fromhex(facts["time"])),
        "made": facts["made"],
        "version": facts["version"],
        "command": facts["command"],
        "case": facts.get("case"),
        "parameters": {name: _number(float.fromhex(text)) for name, text in facts["parameters"].items()},
        "equations": facts["identity"]["equations"],
        "grid": facts["identity"]["grid"],
        "arrays": {
            name: {
                "shape": list(info.shape),
                "dtype": info.dtype,
                "location": facts["fields"][name]["location"],
                "checksum": facts["fields"][name]["checksum"],
                "bytes": folder_bytes(path / name),
            }
            for name, info in store.variables.items()
        },
    }


def _checkpoints(path: Path) -> dict[str, Any]:
    """Return the listing of a folder of checkpoints, which a run may change at the same time."""
    newest_folder, problem = _newest(path)
    entries = []
    for folder in folders(path):
        is_written = is_file(folder / "zarr.json")
        try:
            entry = _entry(folder, is_written=is_written)
        except InputError:
            if is_file(folder / "zarr.json"):
                raise
            entry = {}
        is_removed = not folder.exists() or (is_written and not is_file(folder / "zarr.json"))
        if is_removed or not entry:  # a run has removed the folder
            if folder == newest_folder:
                return _checkpoints(path)
            continue
        array_problem = entry.pop("problem")
        if folder == newest_folder and array_problem is not None:
            newest_folder, problem = None, array_problem
        entries.append({**entry, "newest": folder == newest_folder})
    return {"kind": "checkpoints", "path": str(path), "checkpoints": entries, "problem": problem}


def _newest(path: Path) -> tuple[Path | None, str | None]:
    """Return the newest checkpoint and None, or None and the message of the error."""
    pointer = path / POINTER
    while True:
        content = pointer.read_bytes() if is_file(pointer) else b""
        try:
            return newest(path), None
        except InputError as error:
            problem = str(error)
        if content == (pointer.read_bytes() if is_file(pointer) else b""):  # otherwise read again
            return None, problem


def _entry(folder: Path, *, is_written: bool) -> dict[str, Any]:
    """Return the listing entry of a checkpoint, with the error message of its arrays under "problem"."""
    problem = None
    with _readable(folder):
        facts = Saved(folder).facts if is_written else {}
        time = _number(float.fromhex(facts["time"])) if is_written else None
    try:
        if is_written:
            _check(Store(folder))
    except InputError as error:
        problem = str(error)
    return {
        "name": folder.name,
        "whole": is_written and problem is None,
        "step": facts.get("step"),
        "time": time,
        "made": facts.get("made"),
        "bytes": folder_bytes(folder),
        "problem": problem,
    }
