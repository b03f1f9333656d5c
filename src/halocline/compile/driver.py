"""Compilation of generated C++, and the cached library of each source.

The file name of a library has three parts: the digest of the source, all headers and the settings, the
instruction set, and the digest of the compiler, its version and its flags. The instruction set is the digest
of a CPU, or a level such as x86-64-v3. A machine without a compiler can use each library that its CPU can
run.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import IO

from halocline.compile.cache import cache_folder, cached, first_usable, trusted
from halocline.compile.cxx import FLAGS, Compiler, find_compiler, optimization_level, vector_bits
from halocline.compile.processor import NATIVE, cpu, levels
from halocline.compile.targets.cpu import PART, STREAMING, include_folder, number_of_parts
from halocline.errors import CompileError

MAX_COMPILERS = 8  # maximum number of concurrent compilers, since each uses up to 1 GB


@lru_cache(maxsize=4)
def _headers(folder: Path) -> str:
    digest = sha256()
    for header in sorted((folder / "halocline").glob("*.h*")):
        digest.update(header.read_bytes())
    return digest.hexdigest()


def _flags(compiler: Compiler, target: str, streaming: bool) -> list[str]:
    return [*compiler.flags(target), *([f"-D{STREAMING}"] if streaming else [])]


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


def library_path(source: str, *, streaming: bool = False, target: str = NATIVE) -> Path:
    """Return the path in the cache for the library of generated C++; the library may not exist yet.

    Without a compiler, the function returns a library of any compiler: one for this CPU, or else one for a
    level of this CPU.

    Parameters
    ----------
    source : str
    streaming : bool
        See `compile_library`.
    target : str
        "native" for this CPU, or one of `halocline.compile.processor.LEVELS`.

    Raises
    ------
    CompileError
        There is neither a compiler nor a library, or the access rights of the cache are unsafe.
    """
    folder = trusted(cache_folder())
    settings = *FLAGS, optimization_level(), str(vector_bits(target))
    content = _digest(source, _headers(include_folder()), str(streaming), *settings)[:32]
    name = f"{content}-{target if target != NATIVE else _digest(cpu())[:16]}"
    try:
        compiler = find_compiler()
    except CompileError:
        names = (name, *(f"{content}-{level}" for level in levels() if target == NATIVE))
        usable = (first_usable(folder, f"{name}-*.so") for name in names)
        library = next(filter(None, usable), None)
        if library is None:
            raise
        return library
    toolchain = _digest(*compiler.command, compiler.version, *_flags(compiler, target, streaming))[:16]
    return folder / f"{name}-{toolchain}.so"


_collections: list[dict[str, None]] = []


@contextlib.contextmanager
def collected_sources() -> Iterator[dict[str, None]]:
    """Collect the sources that `compile_library` receives in the with block, as the keys of a dictionary."""
    sources: dict[str, None] = {}
    _collections.append(sources)
    try:
        yield sources
    finally:
        _collections.pop()


def compile_library(source: str, *, streaming: bool = False, target: str = NATIVE) -> Path:
    """Return the shared library of generated C++ from the cache, and compile it first if necessary.

    Parameters
    ----------
    source : str
    streaming : bool
        True for fields that exceed the cache: kernels use software prefetch, and their results bypass the
        cache.
    target : str
        Instruction set: "native" for this CPU, or one of `halocline.compile.processor.LEVELS`.

    Returns
    -------
    Path

    Raises
    ------
    CompileError
        There is no compiler, the cache cannot be written, other users may write to it, or the compiler
        rejects the source.
    """
    for sources in _collections:
        sources[source] = None
    library = library_path(source, streaming=streaming, target=target)

    def compiled(place: Path) -> Path:
        compiler = find_compiler()
        text, output = place / "kernels.cpp", place / "kernels.so"
        text.write_text(source, encoding="utf-8")
        command = [*compiler.command, *_flags(compiler, target, streaming), f"-I{include_folder()}"]
        try:
            _compile(command, text, number_of_parts(source), output)
        except subprocess.CalledProcessError as error:
            if os.strerror(errno.ENOSPC) in error.stderr:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            saved_source = library.with_suffix(".failed.cpp")
            shutil.copy(text, saved_source)
            raise CompileError(
                f"{compiler} could not compile generated code (kept in {saved_source}), exit status "
                f"{error.returncode}:\n" + "\n".join(error.stderr.splitlines()[:20])
            ) from None
        _check_loads(output, compiler)
        shutil.copy(text, place / "kept.cpp")
        os.replace(place / "kept.cpp", library.with_suffix(".cpp"))
        return output

    return cached(library, compiled)


def _check_loads(library: Path, compiler: Compiler) -> None:
    """Raise CompileError if the compiler wrote no library, or if the library cannot be loaded."""
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        raise CompileError(
            f"{compiler} ended without an error, but its library of generated code cannot be loaded "
            f"({str(error).rpartition(': ')[2]}). Set CXX to a C++ compiler, or HALOCLINE_CACHE to a folder "
            "without the mount option noexec."
        ) from None


def _compile(command: Sequence[str], text: Path, parts: int, output: Path) -> None:
    """Compile the parts of a library in parallel on the available cores.

    Raises
    ------
    subprocess.CalledProcessError
        A compiler failed; the error contains its messages.
    """
    if parts == 1:
        _run_all([[*command, str(text), "-o", str(output)]], text.parent)
        return
    objects = [str(text.with_suffix(f".{part}.o")) for part in range(parts)]
    commands = [
        [*(flag for flag in command if flag != "-shared"), f"-D{PART}={part}", "-c", str(text), "-o", path]
        for part, path in enumerate(objects)
    ]
    _run_all(commands, text.parent)
    _run_all([[*command, *objects, "-o", str(output)]], text.parent)


def _run_all(commands: Sequence[Sequence[str]], place: Path) -> None:
    """Run compilers in parallel and wait for them in order; after a failure, stop the remaining compilers."""
    max_running = min(len(os.sched_getaffinity(0)), MAX_COMPILERS)
    running: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
    waiting = list(commands)
    try:
        while waiting or running:
            while waiting and len(running) < max_running:
                # messages are kept in memory, so that a compiler can report a full disk
                messages: IO[bytes] = os.fdopen(os.memfd_create("messages"), "w+b")
                running.append((_start(waiting.pop(0), place, messages), messages))
            process, messages = running[0]
            if process.wait() != 0:
                messages.seek(0)
                text = messages.read().decode(errors="replace")
                raise subprocess.CalledProcessError(process.returncode, process.args, stderr=text)
            messages.close()
            del running[0]
    finally:
        for process, messages in running:
            process.kill()
            process.wait()
            messages.close()


def _start(command: Sequence[str], place: Path, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a compiler with its temporary files in `place`, which the caller removes."""
    folders = dict.fromkeys(("TMPDIR", "ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(place))
    environment = {**os.environ, **folders}
    try:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
    except OSError as error:
        raise CompileError(
            f"the C++ compiler {command[0]!r} does not start: {error.strerror}. Set CXX to a working "
            "compiler."
        ) from None
