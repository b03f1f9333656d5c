"""Files that are whole or not there, whatever dies when."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from halocline.errors import InputError, RunError


def write_json(path: Path, content: Any, *, sync: bool = True) -> None:
    """Write a file under another name, sync it, and give it its name: who reads finds the old or the new.

    Parameters
    ----------
    sync : bool
        Whether it is on disk when this returns, and not only where readers find it.

    Raises
    ------
    RunError
        The file cannot be written.
    """
    making = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with making.open("w") as file:
            json.dump(content, file, indent=1, allow_nan=False)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(making, path)
        if sync:
            sync_folder(path.parent)
    except OSError as error:
        making.unlink(missing_ok=True)
        raise RunError(f"{path} cannot be written: {error.strerror}") from None


def read_json(path: Path) -> Any:
    """What `write_json` wrote.

    Raises
    ------
    InputError
        There is no such file, or it holds something else.
    """
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{path} is no JSON file that Halocline wrote, or it is damaged") from None


def sync_folder(folder: Path) -> None:
    """See that the names in a folder are on disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are missing.

    Raises
    ------
    RunError
        That cannot be, or nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sync_folder(folder.parent)
    except FileExistsError:
        raise RunError(f"{folder} is a file; expected a folder, or a name that is free") from None
    except OSError as error:
        raise RunError(f"folder {folder} cannot be made: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RunError(f"folder {folder} cannot be written to: choose another, or change its permissions")


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it; what is gone meanwhile, or cannot be removed, is left."""
    shutil.rmtree(folder, ignore_errors=True)
