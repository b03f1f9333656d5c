"""Archive with the compiled code of a cache, for machines without a compiler.

The archive is a tar file. Its members are the files of the cache: libraries and code for CUDA devices, their
digests, and the compiler's reports on the latter. Sources, tuned settings and measured rates are not part of
it.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from halocline.compile.cache import (
    cache_folder,
    digest_line,
    digest_of,
    is_usable,
    publish,
    trusted,
    work_folder,
)
from halocline.errors import InputError

_NAME = re.compile(r"[0-9a-f]{32}-[\w.-]+\.(so|cubin|ptx)")
_MEMBER = re.compile(rf"{_NAME.pattern}(\.sha256)?|[0-9a-f]{{32}}-[\w.-]+\.log")
_DAMAGE = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, KeyError)


@dataclass(frozen=True)
class Contents:
    """Code in a cache or in an archive.

    Attributes
    ----------
    files : int
        Number of libraries, and of files with code for CUDA devices.
    bytes : int
        Size of these files.
    """

    files: int
    bytes: int


def _usable_code(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.glob("*")):
        if _NAME.fullmatch(file.name) and is_usable(file):
            yield file


def contents() -> Contents:
    """Return the usable code in the cache."""
    sizes = [file.stat().st_size for file in _usable_code(trusted(cache_folder()))]
    return Contents(len(sizes), sum(sizes))


def export_code(target: Path, *, overwrite: bool = False) -> Contents:
    """Write all usable code of the cache to an archive; see `import_code`.

    Parameters
    ----------
    target : Path
        File to write. It ends in .tar, .tar.gz or .tar.xz.
    overwrite : bool
        True replaces an existing file.

    Raises
    ------
    InputError
        The name has another suffix, the file exists, or the cache has no code.
    OSError
        The file cannot be written.
    """
    mode = _mode(target)
    if target.exists() and not overwrite:
        raise InputError(f"{target} exists; use another name, or --overwrite")
    files = list(_usable_code(trusted(cache_folder())))
    if not files:
        raise InputError(
            f"{target}: the cache {cache_folder()} has no compiled code to export; run a program first"
        )
    incomplete = target.with_name(f".{target.name}.{os.getpid()}")
    sizes = []
    try:
        with tarfile.open(incomplete, mode) as archive:
            for file in files:
                code = file.read_bytes()
                _add(archive, file.name, code)
                _add(archive, digest_of(file).name, digest_line(file, code).encode())
                if file.with_suffix(".log").exists():
                    archive.add(file.with_suffix(".log"), file.with_suffix(".log").name)
                sizes.append(len(code))
        incomplete.replace(target)
    finally:
        incomplete.unlink(missing_ok=True)
    return Contents(len(sizes), sum(sizes))


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def _mode(target: Path) -> Literal["w", "w:gz", "w:xz"]:
    if target.name.endswith(".tar"):
        return "w"
    if target.name.endswith(".tar.gz"):
        return "w:gz"
    if target.name.endswith(".tar.xz"):
        return "w:xz"
    raise InputError(f"{target}: expected a file name that ends in .tar, .tar.gz or .tar.xz")


def import_code(source: Path) -> Contents:
    """Add the code of an archive to the cache.

    The process later runs this code with the permissions of its user. Import only archives of a person whom
    you trust.

    Parameters
    ----------
    source : Path
        Archive of `export_code`.

    Returns
    -------
    Contents
        The code in the archive.

    Raises
    ------
    InputError
        The file cannot be read, or it is not a complete archive of compiled code.
    CompileError
        The cache cannot be written.
    """
    folder = cache_folder()
    try:
        with tarfile.open(source) as archive:
            members = dict(_members(archive))
    except (OSError, EOFError, *_DAMAGE) as error:
        raise InputError(f"{source} cannot be read as an archive of compiled code: {error}") from None
    names = [name for name in members if _NAME.fullmatch(name)]
    if not names:
        raise InputError(
            f"{source} contains no compiled code; expected an archive of `halocline cache export`"
        )
    for name in names:
        if members.get(digest_of(Path(name)).name) != digest_line(Path(name), members[name]).encode():
            raise InputError(f"{source} is damaged: {name} does not match its digest; export the code again")
    with work_folder(folder) as place:
        for name in names:
            if is_usable(folder / name):
                continue  # a run may be loading it
            report = Path(name).with_suffix(".log").name
            if report in members:
                (place / report).write_bytes(members[report])
                (place / report).replace(folder / report)
            (place / name).write_bytes(members[name])
            publish(place / name, folder / name)
    return Contents(len(names), sum(len(members[name]) for name in names))


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of code, digests and reports in an archive."""
    for member in archive:
        file = archive.extractfile(member) if member.isfile() and _MEMBER.fullmatch(member.name) else None
        if file is not None:
            yield member.name, file.read()
