"""Output files of a run, which are written completely or not at all.

Links are followed, and the permissions of an existing file are kept. The data is first written to a new file,
which then replaces the plain file of this name. Therefore a reader never sees a partial file.

Some targets cannot be replaced by a new file, or would lose properties. The data is written directly into
these targets:

- a pipe or a device
- a file with several hard links, or a file of another user
- a file that is a mount point or has an access control list
- a stream that is already open, such as /dev/stdout
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

PATIENCE = 30.0  # maximum time in seconds until another process opens a pipe for reading
DEFAULT_MODE = 0o666  # permissions of new files, before the umask is applied
_STREAM = re.compile(r"(?:/dev/fd|/proc/(?:self|thread-self|\d+)/fd)/(\d+)")


def not_writable_reason(path: Path) -> str:
    """Return the reason why a path cannot be written, or "" if it can.

    Missing folders are created. Commands call this function before the computation starts.
    """
    try:
        if _open_stream(path) is not None:
            return ""
        if path.is_dir():
            return "it is a folder"
        status = _stat(path)
        if status is not None and stat.S_ISSOCK(status.st_mode):
            return "it is a socket"
        if status is not None and not _is_replaceable(path, status):
            return "" if os.access(path, os.W_OK) else "you have no permission to write it"
        folder = _resolve_links(path).parent
        folder.mkdir(parents=True, exist_ok=True)
        test_file = folder / _name()
        os.close(os.open(test_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        test_file.unlink()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file.

    Parameters
    ----------
    path : Path
        Target. Symbolic links are followed. If the target is a pipe, the function waits up to `PATIENCE`
        seconds for a reader.
    content : str or bytes
        Text or bytes to write.

    Raises
    ------
    RunError
        The file cannot be written. A plain file keeps its old content if its replacement fails.
    """
    # File names in the text may contain bytes that are not valid UTF-8.
    data = content.encode(errors="backslashreplace") if isinstance(content, str) else content
    try:
        stream = _open_stream(path)
        status = None if stream is not None else _stat(path)
        if stream is not None:
            _append(stream, data)
        elif (status is not None and not _is_replaceable(path, status)) or not _replace(path, data, status):
            _write_into(path, data)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from None


def _stat(path: Path) -> os.stat_result | None:
    """Return the status of a path, or None if it does not exist."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_replaceable(path: Path, status: os.stat_result) -> bool:
    """Return True if a new file can replace a file without loss of its properties.

    The file must be a plain file with one hard link and no access control list. The user must own the file
    and have the permission to create files in its folder.
    """
    is_plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
    return (
        is_plain and not _has_access_list(path) and os.access(_resolve_links(path).parent, os.W_OK | os.X_OK)
    )


def _has_access_list(path: Path) -> bool:
    """Return True if a file has an access control list. A new file would not have this list."""
    try:
        return "system.posix_acl_access" in os.listxattr(path)
    except OSError:
        return False


def _open_stream(path: Path) -> int | None:
    """Return the file descriptor of a path such as /dev/stdout or /dev/fd/3, or None for other paths."""
    for _ in range(8):
        match = _STREAM.fullmatch(str(path.absolute()))
        if match is not None:
            return int(match[1])
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


def _append(stream: int, data: bytes) -> None:
    """Write to an open file at its current position, after the text that was printed before."""
    for output in (sys.stdout, sys.stderr):
        output.flush()
    with open(os.dup(stream), "wb") as handle:
        handle.write(data)


def _resolve_links(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def _name() -> str:
    return f".halocline-{secrets.token_hex(8)}"


def _replace(path: Path, data: bytes, before: os.stat_result | None) -> bool:
    """Replace a file by a new file. Return False if this is impossible without a change of group or mode."""
    path = _resolve_links(path)
    new_path = path.with_name(_name())
    try:
        descriptor = os.open(
            new_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, DEFAULT_MODE if before is None else 0o600
        )
        with open(descriptor, "wb") as handle:
            if before is not None:
                if before.st_gid != os.fstat(descriptor).st_gid:
                    os.fchown(descriptor, -1, before.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            handle.write(data)
        new_path.replace(path)
        return True
    except BaseException as error:
        new_path.unlink(missing_ok=True)
        # The user does not belong to the group of the file, or the file is a mount point.
        if before is not None and isinstance(error, OSError) and error.errno in (errno.EPERM, errno.EBUSY):
            return False
        raise


def _write_into(path: Path, data: bytes) -> None:
    file = _open_existing(path)
    with open(file, "wb") as handle:
        os.set_blocking(file, True)
        handle.write(data)


def _open_existing(path: Path) -> int:
    """Open an existing target for writing, and return its descriptor; a plain file is truncated."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            if error.errno != errno.ENXIO or time.monotonic() > end:
                if error.errno == errno.ENXIO:
                    error.strerror = f"no process read the pipe within {PATIENCE:g} seconds"
                raise
        time.sleep(0.05)
