"""The folder of compiled kernels: who may write there, what in it is whole, and how a file gets there.

What lies there is run as the user who finds it. So nothing is taken from a folder or file that others could
have written, and nothing whose digest, which lies beside it, does not match: a full disk or a crash leaves
files that are cut, and the loader dies of some of them. Whoever may rename the folders above it is trusted.

The cache is safe under concurrent ranks and killed compilers: a file is written under a name of its own and
renamed into place when it is complete; no locks.
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

ABANDONED = 3600  # seconds after which the folder of a compiler is that of one that was killed
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Where compiled kernels are kept: HALOCLINE_CACHE, else halocline in the user's cache folder.

    Raises
    ------
    CompileError
        Nothing says where the user's folders are.
    """
    given, base = os.environ.get("HALOCLINE_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if given:
        return _expanded(Path(given)).absolute()  # the loader looks elsewhere for a name without a folder
    try:
        return (Path(base).absolute() if base else Path.home() / ".cache") / "halocline"
    except RuntimeError as error:
        raise CompileError(
            f"no folder for compiled kernels: {error}; set HALOCLINE_CACHE to a folder of your own"
        ) from None


def _expanded(folder: Path) -> Path:
    """Return a path with the home folder in place of a leading ``~``, which no shell may have seen."""
    try:
        return folder.expanduser()
    except RuntimeError:
        raise CompileError(
            f"HALOCLINE_CACHE is {str(folder)!r}: there is no such home folder; "
            "set it to a folder of your own"
        ) from None


def trusted(folder: Path) -> Path:
    """The folder itself, if no other user can have put anything into it, or if it does not exist yet.

    Raises
    ------
    CompileError
        It belongs to another user, or others may write there.
    """
    try:
        found = folder.stat()
    except OSError:
        return folder  # whoever writes there finds out why it cannot be
    why = _foreign(found)
    if why:
        raise CompileError(
            f"the cache of compiled kernels, {folder}, is not used: it {why}, and what lies there is run as "
            "you; set HALOCLINE_CACHE to a folder of your own"
            + (f", or take the others' right away: chmod go-w {folder}" if _own(found) else "")
        )
    return folder


def own_folder(folder: Path) -> Path:
    """A folder of the cache, made where it is missing: for its owner to write, whatever the umask lets others
    do.

    Raises
    ------
    CompileError
        As `trusted`, also where another user was the first to make it.
    OSError
        It cannot be made.
    """
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        with contextlib.suppress(FileExistsError):
            missing.mkdir(mode=0o755)
    return trusted(folder)


def is_whole(file: Path) -> bool:
    """Whether a file of the cache may be used: there, of this user or root, writable by no one else, and with
    the bytes that its digest stands for."""
    return _fault(file) == ""


def first_whole(folder: Path, pattern: str) -> Path | None:
    """Return the first file of a folder of the cache, by name, that may be used; None where there is none."""
    return next(filter(is_whole, sorted(folder.glob(pattern))), None)


def cached(file: Path, make: Callable[[Path], Path]) -> Path:
    """Return a file of the cache; where it is missing or cannot be used, `make` writes it into a folder.

    Raises
    ------
    CompileError
        The cache cannot be written, or others may write it.
    """
    fault = _fault(file)
    if fault == "":
        return file
    with workplace(file.parent) as place:
        publish(make(place), file)
    if fault:
        log.warning("%s in the cache was not used, and has been made anew: %s", file, fault)
    return file


def _fault(file: Path) -> str | None:
    """Why a file of the cache may not be used; "" where it may, None where it is not there."""
    try:
        with open(file, "rb") as handle:
            found = os.fstat(handle.fileno())
            why = f"it {_foreign(found)}" if _foreign(found) else ""
            if not why and _digest(file).read_text(encoding="utf-8") != _line(file, handle.read()):
                why = "its bytes are not those that were written"
    except FileNotFoundError as error:
        if error.filename == str(file):
            return None
        why = "its digest is missing"
    except (OSError, UnicodeDecodeError) as error:
        why = f"it cannot be read ({error})"
    return why


def _own(found: os.stat_result) -> bool:
    return found.st_uid in (os.geteuid(), 0)


def _foreign(found: os.stat_result) -> str:
    """How somebody else could have written this file or folder; "" where nobody could."""
    if not _own(found):
        return f"belongs to user {found.st_uid}"
    if found.st_mode & OTHERS_WRITE:
        return f"can be written by others (mode {stat.S_IMODE(found.st_mode):o})"
    return ""


def _digest(file: Path) -> Path:
    return file.with_name(f"{file.name}.sha256")


def _line(file: Path, content: bytes) -> str:
    """A line that `sha256sum --check` reads."""
    return f"{sha256(content).hexdigest()}  {file.name}\n"


def publish(made: Path, name: Path) -> None:
    """Give a file its name in the cache, once all of it and its digest are on disk."""
    written = made.with_name(f"{made.name}.digest")
    written.write_text(_line(name, made.read_bytes()), encoding="utf-8")
    for file in (written, made):
        with open(file, "rb") as handle:
            os.fchmod(handle.fileno(), stat.S_IMODE(os.fstat(handle.fileno()).st_mode) & ~OTHERS_WRITE)
            os.fsync(handle.fileno())
    os.replace(written, _digest(name))  # first: a file that has its name is whole
    os.replace(made, name)


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """A folder of this process alone inside the cache; those that killed compilers left behind are removed.

    Raises
    ------
    CompileError
        The cache cannot be written, now or in the block: it is a file, the disk is full; or others may write
        there.
    """
    place: Path | None = None
    try:
        own_folder(folder)
        place = Path(tempfile.mkdtemp(prefix="making-", dir=folder))
        yield place
    except OSError as error:
        what = error.filename2 or error.filename
        where = f": {what}" if what and place is not None and not Path(what).is_relative_to(place) else ""
        raise CompileError(
            f"the cache of compiled kernels, {folder}, cannot be written ({error.strerror or error}{where}); "
            "set HALOCLINE_CACHE to a folder that can"
        ) from None
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
            _remove_abandoned(folder)


def _remove_abandoned(folder: Path) -> None:
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(folder)  # half the time of Path.glob in a cache of thousands of files
    for left in (folder / name for name in names if name.startswith("making-")):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink() if left.is_file() else shutil.rmtree(left, ignore_errors=True)
