"""Files that are either complete or absent, even if a process dies during a write."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from halocline.errors import InputError, RunError
from halocline.lang.values import json_value
from halocline.words import short_repr

LOCK, MAKING = ".lock", ".making-"  # prefixes of the names of locks and temporary files


@contextlib.contextmanager
def _reporting(kind: type[InputError] | type[RunError], path: Path, state: str) -> Iterator[None]:
    """Convert an OSError to an error that names a path and its state, such as "cannot be read"."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path} {state}: {error.strerror}") from None


def write_json(path: Path, content: Any, *, synced: bool = True) -> None:
    """Write a JSON file that is complete or absent at any time; see `atomic_file`.

    Parameters
    ----------
    path : path
    content : object
        Content in JSON form.
    synced : bool
        True if the file survives a machine failure once the call has returned.

    Raises
    ------
    RunError
        The file cannot be written.
    """
    # without indentation, because a run writes several files for each output
    text = json.dumps(content, allow_nan=False, default=json_value)
    with (
        _reporting(RunError, path, "cannot be written"),
        atomic_file(path) as temporary,
        temporary.open("w") as file,
    ):
        file.write(text)
        file.flush()
        if synced:
            os.fsync(file.fileno())
    if synced:
        sync(path.parent)


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces the file at `path` when the block ends.

    If the block fails, the temporary file is removed. Readers find the old file or the new file.
    """
    temporary = path.with_name(f"{MAKING}{secrets.token_hex(4)}-{path.name}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder, whose files move to the folder `path` when the block ends.

    The new files replace files of the same names. If the block fails, the temporary folder is removed.
    """
    temporary = path.with_name(f"{MAKING}{secrets.token_hex(4)}-{path.name}")
    temporary.mkdir()
    try:
        yield temporary
        path.mkdir(exist_ok=True)
        for file in temporary.iterdir():
            file.replace(path / file.name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_object(path: Path) -> dict[str, Any]:
    """Return a mapping that `write_json` wrote.

    Raises
    ------
    InputError
        The file does not exist, or does not contain a mapping.
    """
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not a JSON file of Halocline, or it is damaged") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} is damaged: it contains a {type(content).__name__}; expected an object")
    return content


def as_path(value: Any, label: str) -> Path:
    """Return a pathlib.Path for a text or a path object from the user.

    Raises
    ------
    InputError
        The value is not a path. The message contains `label`, the name of the value.
    """
    try:
        if not isinstance(value, str) or value:
            return Path(value)
    except TypeError:
        pass
    raise InputError(f"{label} is {short_repr(value)}; expected a text such as 'out/heat', or a pathlib.Path")


def check_text(path: Path) -> None:
    """Raise InputError if a path is not valid UTF-8, or contains a null character.

    Stores cannot be opened at such paths.
    """
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{path}: the path is not valid UTF-8; expected a path in UTF-8 for a store"
        ) from None
    except ValueError:
        raise InputError(
            f"{str(path)!r}: the path contains a null character; expected a path without null characters"
        ) from None


def is_file(path: Path) -> bool:
    """Return whether a file exists.

    Raises
    ------
    InputError
        The folder cannot be read.
    """
    with _reporting(InputError, path, "cannot be read"):
        return path.is_file()


def has_file(store: Path, name: str) -> bool:
    """Return whether a store has a plain file of this name, such as "T/zarr.json".

    Raises
    ------
    InputError
        The file, or a folder between the store and the file, is a link or has another type.
    """
    path, parts = store, PurePosixPath(name).parts
    for part in parts[:-1]:
        path /= part
        if not _is_plain(path, stat.S_ISDIR, "folder"):
            return False
    return _is_plain(path / parts[-1], stat.S_ISREG, "file")


def _is_plain(path: Path, is_kind: Callable[[int], bool], kind: str) -> bool:
    """Return whether a path exists; raise InputError if it is a link or has another type."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if not is_kind(mode):
        names = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFREG: "a file"}
        raise InputError(
            f"{path} is {names.get(stat.S_IFMT(mode), 'a special file')}; expected a {kind}, because a "
            f"store contains only plain files and folders. Replace it by the {kind} itself."
        )
    return True


def plain_files(folder: Path) -> dict[str, int]:
    """Return the sizes of the plain files in a folder, in bytes, by file name.

    Raises
    ------
    InputError
        The folder cannot be read.
    """
    sizes: dict[str, int] = {}
    with _reporting(InputError, folder, "cannot be read"), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # a run may rename the file at the same time
                    sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
    return sizes


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on disk.

    Raises
    ------
    RunError
        The disk reports an error.
    """
    with _reporting(RunError, path, "cannot be written"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parent folders.

    Raises
    ------
    RunError
        The folder cannot be created or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sync(folder.parent)
    except FileExistsError:
        raise RunError(f"{folder} is a file; expected a folder, or a path that does not exist") from None
    except OSError as error:
        raise RunError(f"folder {folder} cannot be created: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RunError(
            f"folder {folder} cannot be written to. Choose another folder, or change its permissions."
        )


def remove_folder(folder: Path, mark: str) -> None:
    """Remove a folder and its content, beginning with the file `mark`.

    The file `mark` marks a folder as complete. Files that cannot be removed remain.
    """
    try:
        (folder / mark).unlink(missing_ok=True)
    except OSError:
        return
    shutil.rmtree(folder, ignore_errors=True)


def clear_folder(folder: Path, retained_file: str) -> None:
    """Remove the content of a folder except its lock and one file.

    Raises
    ------
    RunError
        A file cannot be removed.
    """
    try:
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name not in (LOCK, retained_file):
                path.unlink()
    except OSError as error:
        raise RunError(f"{error.filename or folder} cannot be removed: {error.strerror}") from None


def is_free(folder: Path) -> bool:
    """Return whether a folder is absent or empty, apart from locks and temporary files.

    Raises
    ------
    InputError
        The folder cannot be read.
    """
    with _reporting(InputError, folder, "cannot be read"):
        if not folder.exists():
            return True
        return folder.is_dir() and all(path.name.startswith((LOCK, MAKING)) for path in folder.iterdir())


class FolderLock:
    """Lock of a folder, which prevents other processes from writing to the folder.

    The lock lasts until this process frees it or ends. A missing folder is created. On a file system without
    locks, the lock has no effect.

    Parameters
    ----------
    folder : path
    content : str
        Content of the folder, as a noun for messages.

    Raises
    ------
    InputError
        Another process holds the lock.
    RunError
        The folder cannot be written to.
    """

    def __init__(self, folder: Path, content: str) -> None:
        make_folder(folder)
        self.path = folder / LOCK
        self._file: IO[str] | None = None
        while self._file is None:
            with _reporting(RunError, folder, "cannot be written to"):
                file = self.path.open("a+")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # if the files differ, the previous owner of the lock has removed this file
                if os.path.samestat(os.fstat(file.fileno()), self.path.stat()):
                    self._file = file
            except BlockingIOError:
                file.seek(0)
                owner = file.read().strip() or "another process"
                file.close()
                raise InputError(
                    f"{content} in {folder}: {owner} is writing there. Wait until that process ends, or "
                    "choose another path."
                ) from None
            except FileNotFoundError:
                pass
            except OSError:  # the file system has no locks
                file.close()
                return
            if self._file is None:
                file.close()
        with contextlib.suppress(OSError):  # the folder is locked even if the disk is full
            self._file.truncate(0)
            self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
            self._file.flush()

    def free(self) -> None:
        """Release the lock and remove its file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
