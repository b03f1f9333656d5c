"""Files that a run leaves: whole or not at all, in the place that was named, with the rights that it had.

A plain file is replaced by a new one under its name, so that no reader sees half of it. What cannot be
replaced without becoming something else is written into: a pipe, a device, a file that has a second name,
that belongs to another user, is mounted on its own or has rights of its own for some users, and a stream that
is open already, as /dev/stdout is.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import time
from pathlib import Path

from halocline.errors import RunError

PATIENCE = 30.0  # seconds in which somebody must begin to read a pipe
DEFAULT_MODE = 0o666  # less the umask
_STREAM = re.compile(r"(?:/dev/fd|/proc/(?:self|thread-self|\d+)/fd)/(\d+)")


def why_not_writable(path: Path) -> str:
    """Why nothing can be written to a path, found before anything is computed; "" where it can. Folders that
    are missing are made."""
    try:
        if _open_stream(path) is not None:
            return ""
        if path.is_dir():
            return "it is a folder"
        found = _stat(path)
        if found is not None and stat.S_ISSOCK(found.st_mode):
            return "it is a socket"
        if found is not None and not _replaceable(path, found):
            return "" if os.access(path, os.W_OK) else "it is not yours to write"
        folder = _behind_links(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        trial = folder / _name()
        os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        trial.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file.

    Parameters
    ----------
    path : Path
        Symbolic links are followed. A pipe that nobody reads is waited for, `PATIENCE` seconds.
    content : str or bytes

    Raises
    ------
    RunError
        It cannot be written; a plain file that is replaced is then what it was.
    """
    # a name of a file may hold bytes that are no text
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        stream = _open_stream(path)
        found = None if stream is not None else _stat(path)
        if stream is not None:
            _append(stream, data)
        elif (found is not None and not _replaceable(path, found)) or not _replace(path, data, found):
            _write_into(path, data)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from None


def _stat(path: Path) -> os.stat_result | None:
    """What the name leads to; None where that is nothing yet."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _replaceable(path: Path, found: os.stat_result) -> bool:
    """Whether a new file under this name would be all that there was: a plain file with one name, our own, in
    a folder where files may be made."""
    plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()
    return plain and not _has_own_rights(path) and os.access(_behind_links(path).parent, os.W_OK | os.X_OK)


def _has_own_rights(path: Path) -> bool:
    """Whether a file has a list of users and what each may do, which a new file would not have."""
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:
        return False


def _open_stream(path: Path) -> int | None:
    """The number of the open file that a path such as /dev/stdout or /dev/fd/3 stands for."""
    for _ in range(8):
        found = _STREAM.fullmatch(str(path.absolute()))
        if found is not None:
            return int(found[1])
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _append(stream: int, data: bytes) -> None:
    """Write where an open file stands, behind what has been printed there."""
    for printed in (sys.stdout, sys.stderr):
        printed.flush()
    with open(os.dup(stream), "wb") as handle:
        handle.write(data)


def _behind_links(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def _name() -> str:
    return f".halocline-{secrets.token_hex(8)}"


def _replace(path: Path, data: bytes, before: os.stat_result | None) -> bool:
    """Put a new file in the place of what a name leads to; False where nothing can take that place, or not
    with the same rights."""
    path = _behind_links(path)
    new = path.with_name(_name())
    try:
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, DEFAULT_MODE if before is None else 0o600)
        with open(file, "wb") as handle:
            if before is not None:
                if before.st_gid != os.fstat(file).st_gid:
                    os.fchown(file, -1, before.st_gid)
                os.fchmod(file, stat.S_IMODE(before.st_mode))
            handle.write(data)
        new.replace(path)
        return True
    except BaseException as error:
        new.unlink(missing_ok=True)
        # a group of which we are no member; a file that is mounted on its own
        if before is not None and isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EBUSY):
            return False
        raise


def _write_into(path: Path, data: bytes) -> None:
    file = _opened(path)
    with open(file, "wb") as handle:
        os.set_blocking(file, True)
        handle.write(data)


def _opened(path: Path) -> int:
    """The file number of what is written into; a plain file is empty then."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > end:
                if error.errno == errno.ENXIO:
                    error.strerror = f"nobody reads that pipe within {PATIENCE:g} seconds"
                raise
        time.sleep(0.05)
