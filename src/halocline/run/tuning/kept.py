"""Measurements in files of the cache, for later runs."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from halocline.compile.cache import own_folder
from halocline.errors import RunError

T = TypeVar("T")


def recalled(kind: type[T], place: Path) -> T | None:
    """Return the dataclass in a file of the cache; None where there is none, or one with other contents."""
    try:
        text = place.read_bytes()
    except OSError:
        return None
    from pydantic import TypeAdapter  # most runs have no such file, and start sooner without it

    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValueError:
        return None


def keep(place: Path, record: dict[str, Any]) -> None:
    """Write a record to a file of the cache: whole or not at all, also where other processes write.

    Raises
    ------
    RunError
        The cache cannot be written.
    """
    try:
        own_folder(place.parent)
        with tempfile.NamedTemporaryFile("w", dir=place.parent, prefix="making-", delete=False) as file:
            made = file.name
            try:
                json.dump(record, file)
                file.flush()
                os.replace(made, place)
            except OSError:
                os.unlink(made)
                raise
    except OSError as error:
        raise RunError(
            f"what was tuned cannot be kept in {place.parent} ({error.strerror}); set HALOCLINE_CACHE to a "
            "folder that can be written"
        ) from None
