"""Archive with the compiled code of a cache, for machines without a compiler.

The archive is a tar file. Its members are the files of the cache: libraries and code for CUDA devices, their
digests, and the compiler's reports on the latter. Sources, tuned settings and measured rates are not part of
it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import os
import re
import shutil
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
        archive = tarfile.open(source)  # noqa: SIM115 - closed below
    except (OSError, EOFError, *_DAMAGE) as error:
        raise InputError(f"{source} cannot be read as an archive of compiled code: {error}") from None
    with archive, work_folder(folder) as place:
        try:
            names = _extracted(archive, place)
        except (EOFError, *_DAMAGE) as error:
            raise InputError(f"{source} cannot be read as an archive of compiled code: {error}") from None
        if not names:
            raise InputError(
                f"{source} contains no compiled code; expected an archive of `halocline cache export`"
            )
        for name in names:
            if not is_usable(place / name):
                raise InputError(
                    f"{source} is damaged: {name} does not match its digest; export the code again"
                )
        sizes = [(place / name).stat().st_size for name in names]
        for name in names:
            if is_usable(folder / name):
                continue  # a run may be loading it
            report = Path(name).with_suffix(".log").name
            if (place / report).exists():
                (place / report).replace(folder / report)
            publish(place / name, folder / name)
    return Contents(len(names), sum(sizes))


def _matches_digest(file: Path) -> bool:
    with contextlib.suppress(OSError):
        return digest_of(file).read_bytes() == digest_line(file, file.read_bytes()).encode()
    return False


def _extracted(archive: tarfile.TarFile, place: Path) -> list[str]:
    """Write the code, the digests and the reports of an archive to a folder; return the names of the code."""
    names = []
    for member in archive:
        file = archive.extractfile(member) if member.isfile() and _MEMBER.fullmatch(member.name) else None
        if file is not None:
            with open(place / member.name, "wb") as target:
                shutil.copyfileobj(file, target)
            if _NAME.fullmatch(member.name):
                names.append(member.name)
    return names
