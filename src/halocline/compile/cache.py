"""Cache folder of compiled kernels: access rights, checks of the files, and atomic writes.

The process runs the code in this folder with the permissions of its user. It therefore rejects folders and
files that another user could have written. It also rejects files whose digest does not match: after a crash
or on a full disk, a file may be incomplete, and may crash the process that loads it. Users with permission to
rename the parent folders are trusted.

Concurrent ranks and killed compilers do not damage the cache. A writer creates each file under a unique name,
and renames the file when it is complete. There are no locks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from halocline.errors import CompileError

log = logging.getLogger("halocline")

ABANDONED = 3600  # seconds; an older temporary folder belongs to a compiler that was killed
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Return the cache folder: HALOCLINE_CACHE if it is set, else `halocline` in the user's cache folder.

    Raises
    ------
    CompileError
        The environment does not define the folders of the user.
    """
    selected, base = os.environ.get("HALOCLINE_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if selected:
        return _expanded(Path(selected)).absolute()  # absolute: the loader does not search the current folder
    try:
        return (Path(base).absolute() if base else Path.home() / ".cache") / "halocline"
    except RuntimeError as error:
        raise CompileError(
            f"no folder for compiled kernels: {error}. Set HALOCLINE_CACHE to a folder of your own."
        ) from None


def _expanded(folder: Path) -> Path:
    """Return a path with a leading ``~`` replaced by the home folder, in case the shell did not do so."""
    try:
        return folder.expanduser()
    except RuntimeError:
        raise CompileError(
            f"HALOCLINE_CACHE is {str(folder)!r}, but this home folder does not exist. Set "
            "HALOCLINE_CACHE to a folder of your own."
        ) from None


def trusted(folder: Path) -> Path:
    """Return the folder if no other user can write to it, or if it does not exist yet.

    Raises
    ------
    CompileError
        The folder belongs to another user, or other users may write to it.
    """
    try:
        status = folder.stat()
    except OSError:
        return folder  # a later write reports the error
    defect = _write_access_of_others(status)
    if defect:
        raise CompileError(
            f"the cache of compiled kernels, {folder}, is not used, because it {defect} and its files "
            "run with your permissions. Set HALOCLINE_CACHE to a folder of your own"
            + (
                f", or remove the write permission of others: chmod go-w {folder}"
                if _belongs_to_user_or_root(status)
                else ""
            )
        )
    return folder


def own_folder(folder: Path) -> Path:
    """Return a folder of the cache, and create it if it is missing.

    Only the owner may write to a folder that this function creates, whatever the umask is.

    Raises
    ------
    CompileError
        The folder is not trusted, see `trusted`; another user may have created it first.
    OSError
        The folder cannot be created.
    """
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        with contextlib.suppress(FileExistsError):
            missing.mkdir(mode=0o755)
    return trusted(folder)


def is_usable(file: Path) -> bool:
    """Return True if a file of the cache may be used.

    The file must belong to this user or root, nobody else may write it, and its bytes must match its digest.
    """
    return _defect(file) == ""


def first_usable(folder: Path, pattern: str) -> Path | None:
    """Return the first usable file of a cache folder that matches a pattern, in order of names, or None."""
    return next(filter(is_usable, sorted(folder.glob(pattern))), None)


def cached(file: Path, make: Callable[[Path], Path]) -> Path:
    """Return a file of the cache; if it is missing or unusable, create it first.

    `make` writes the file into the folder that it receives, and returns the path.

    Raises
    ------
    CompileError
        The cache cannot be written, or other users may write to it.
    """
    defect = _defect(file)
    if defect == "":
        return file
    with work_folder(file.parent) as place:
        publish(make(place), file)
    if defect:
        log.warning("%s in the cache was invalid and has been rebuilt: %s", file, defect)
    return file


def _defect(file: Path) -> str | None:
    """Return the reason why a file may not be used; "" for a usable file, None if the file does not exist."""
    try:
        with open(file, "rb") as handle:
            status = os.fstat(handle.fileno())
            defect = f"it {_write_access_of_others(status)}" if _write_access_of_others(status) else ""
            if not defect and digest_of(file).read_text(encoding="utf-8") != digest_line(file, handle.read()):
                defect = "its bytes differ from those that were written"
    except FileNotFoundError as error:
        if error.filename == str(file):
            return None
        defect = "its digest is missing"
    except (OSError, UnicodeDecodeError) as error:
        defect = f"it cannot be read ({error})"
    return defect


def _belongs_to_user_or_root(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _write_access_of_others(status: os.stat_result) -> str:
    """Return the reason why another user could have written a file or folder; "" if nobody could."""
    if not _belongs_to_user_or_root(status):
        return f"belongs to user {status.st_uid}"
    if status.st_mode & OTHERS_WRITE:
        return f"can be written by others (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def digest_of(file: Path) -> Path:
    """Return the file with the digest of a file of the cache."""
    return file.with_name(f"{file.name}.sha256")


def digest_line(file: Path, content: bytes) -> str:
    """Return the content of a digest file, in the format of `sha256sum --check`."""
    return f"{sha256(content).hexdigest()}  {file.name}\n"


def publish(source: Path, target: Path) -> None:
    """Write the digest of a file, flush both files to disk, and rename them to their names in the cache."""
    written = source.with_name(f"{source.name}.digest")
    written.write_text(digest_line(target, source.read_bytes()), encoding="utf-8")
    for file in (written, source):
        with open(file, "rb") as handle:
            os.fchmod(handle.fileno(), stat.S_IMODE(os.fstat(handle.fileno()).st_mode) & ~OTHERS_WRITE)
            os.fsync(handle.fileno())
    os.replace(written, digest_of(target))  # digest first: a file with its final name always has a digest
    os.replace(source, target)


@contextlib.contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """Create a temporary folder in the cache for a with block, and remove folders of killed compilers.

    Raises
    ------
    CompileError
        The cache cannot be written, at the start of the block or inside it: its path is a file, the disk is
        full, or other users may write to it.
    """
    place: Path | None = None
    try:
        own_folder(folder)
        place = Path(tempfile.mkdtemp(prefix="making-", dir=folder))
        yield place
    except OSError as error:
        path = error.filename2 or error.filename
        note = f": {path}" if path and place is not None and not Path(path).is_relative_to(place) else ""
        raise CompileError(
            f"the cache of compiled kernels, {folder}, cannot be written ({error.strerror or error}{note}). "
            "Set HALOCLINE_CACHE to a writable folder."
        ) from None
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
            _remove_abandoned(folder)


def _remove_abandoned(folder: Path) -> None:
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(folder)  # twice as fast as Path.glob for thousands of files
    for path in (folder / name for name in names if name.startswith("making-")):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)
