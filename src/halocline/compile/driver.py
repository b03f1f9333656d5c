"""C++ compiler, and the cached library of each source.

The file name of a library contains two digests. The first digest covers the source, all headers, the CPU and
the C library. The second digest covers the compiler, its version and its flags. A machine without a compiler
can therefore use a library of the cache.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import IO

from halocline.compile.cache import cache_folder, cached, first_usable, trusted
from halocline.compile.targets.cpu import PART, STREAMING, include_folder, number_of_parts
from halocline.errors import CompileError

# Flags for all compilers. -march=native selects the instruction set of the host. No flag changes results.
# Kernels call only functions of the C library, such as memcpy, which every process has loaded. They are
# therefore linked without libraries (-nostdlib). This takes a third of the time of a link with libraries.
FLAGS = (
    "-std=c++20",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-fno-exceptions",
    "-fno-rtti",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-w",
)
# These flags disable three optimizations of g++. Without the first optimization, kernels with thousands of
# operations compile 10 % faster, and run equally fast. The other two are jump threading (thread-jumps) and
# partial redundancy elimination (tree-pre). Both transform a comparison whose operand is a selection with a
# constant. The transformed code selects between masks. No vector instruction exists for such a selection, so
# that g++ would not vectorize the loop.
GCC_FLAGS = ("-fno-gcse-after-reload", "-fno-thread-jumps", "-fno-tree-pre")
# Optimization levels (-O) that the environment variable selects, with additional flags of g++. Both levels
# give the same bits. At level g, g++ takes about a quarter of the time, but kernels are several times slower.
# Register allocation by regions takes most of the compile time at level g. The flags of this level select a
# faster algorithm.
LEVEL = "HALOCLINE_OPTIMIZATION"
GCC_LEVELS = {"3": GCC_FLAGS, "g": ("-fira-region=one", "-fira-algorithm=priority")}
# Vector lengths in bits that the environment variable can select, for comparisons of speed. The length 64
# means scalar code. All lengths give the same bits.
VECTORS = "HALOCLINE_VECTORS"
VECTOR_BITS = (64, 128, 256, 512)
SIMD = (("avx512f", 512), ("avx", 256), ("sse2", 128), ("asimd", 128))  # vector bits by flag of /proc/cpuinfo
GCC_SCALAR = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-openmp-simd")
CLANG_SCALAR = ("-fno-vectorize", "-fno-slp-vectorize", "-fno-openmp-simd")
MAX_COMPILERS = 8  # maximum number of concurrent compilers, since each uses up to 1 GB


@dataclass(frozen=True)
class Compiler:
    """C++ compiler: its path and the first line of its version."""

    path: str
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of all kernel libraries."""
        level, bits = optimization_level(), vector_bits()
        is_clang = "clang" in self.version
        flags = (f"-O{level}", *FLAGS, *(() if is_clang else GCC_LEVELS[level]))
        if bits is None and not is_clang and "avx512f" in cpu():
            bits = 512  # loads, not the clock rate, limit the speed of the loops
        if bits is None:
            return flags
        scalar = CLANG_SCALAR if is_clang else GCC_SCALAR
        return (*flags, *(scalar if bits == 64 else (f"-mprefer-vector-width={bits}",)))


def optimization_level() -> str:
    """Return the optimization level of kernels: HALOCLINE_OPTIMIZATION, else "3".

    Raises
    ------
    CompileError
        The variable has a value other than "3" and "g".
    """
    level = os.environ.get(LEVEL) or "3"
    if level not in GCC_LEVELS:
        raise CompileError(f"{LEVEL} is {level!r}; set it to 3 (fast kernels) or g (fast compilation)")
    return level


def vector_bits() -> int | None:
    """Return the vector length in bits that HALOCLINE_VECTORS selects for kernels; None for the default.

    Raises
    ------
    CompileError
        The variable has a value other than 64, 128, 256 and 512, or a value that the CPU does not support.
    """
    text = os.environ.get(VECTORS)
    if not text:
        return None
    if text not in map(str, VECTOR_BITS):
        accepted = ", ".join(map(str, VECTOR_BITS))
        raise CompileError(f"{VECTORS} is {text!r}; expected a vector length in bits: {accepted}")
    widest = widest_vector()
    if widest is not None and int(text) > widest:
        raise CompileError(
            f"{VECTORS} is {text!r}, but this CPU has vectors of {widest} bits at most; set it to one of "
            f"{', '.join(str(bits) for bits in VECTOR_BITS if bits <= widest)}"
        )
    return int(text)


def widest_vector() -> int | None:
    """Return the maximum vector length of this CPU in bits; None if its flags are not known."""
    flags = cpu().split()
    return next((bits for flag, bits in SIMD if flag in flags), None)


@lru_cache(maxsize=1)
def cpu() -> str:
    """Return the model and instruction sets of this CPU."""
    with contextlib.suppress(OSError):
        return described(Path("/proc/cpuinfo").read_text()) or os.uname().machine
    return os.uname().machine


def described(cpuinfo: str) -> str:
    """Return the model and instruction sets of the first CPU in /proc/cpuinfo, for x86 and ARM."""
    prefixes = ("model", "flags", "Features", "CPU ")
    return "\n".join(line for line in cpuinfo.split("\n\n")[0].splitlines() if line.startswith(prefixes))


@lru_cache(maxsize=4)
def _version(path: str) -> str:
    try:
        output = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(
            f"the C++ compiler {path!r} does not run: {error}. Set CXX to a working compiler."
        ) from None
    return output.partition("\n")[0]


def find_compiler() -> Compiler:
    """Return the compiler that CXX names, otherwise g++, clang++ or c++.

    Raises
    ------
    CompileError
        There is no compiler.
    """
    selected = os.environ.get("CXX")
    for name in (selected,) if selected else ("g++", "clang++", "c++"):
        path = shutil.which(name)
        if path is not None:
            return Compiler(path, _version(path))
    reason = (
        f"CXX is {selected!r}, which is not a program on PATH"
        if selected
        else "neither g++, clang++ nor c++ is on PATH"
    )
    raise CompileError(
        f"no C++ compiler: {reason}. Install one (Debian: apt-get install g++) or set CXX to its path."
    )


@lru_cache(maxsize=4)
def _headers(folder: Path) -> str:
    digest = sha256()
    for header in sorted((folder / "halocline").glob("*.h*")):
        digest.update(header.read_bytes())
    return digest.hexdigest()


def _flags(compiler: Compiler, streaming: bool) -> list[str]:
    return [*compiler.flags, *([f"-D{STREAMING}"] if streaming else [])]


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()


def library_path(source: str, *, streaming: bool = False) -> Path:
    """Return the path in the cache for the library of generated C++; the library may not exist yet.

    Without a compiler, the function returns a library of any compiler, since results do not depend on the
    compiler.

    Raises
    ------
    CompileError
        There is neither a compiler nor a library, or the access rights of the cache are unsafe.
    """
    folder = trusted(cache_folder())
    content = _digest(source, _headers(include_folder()), str(streaming), cpu(), _c_library())[:32]
    try:
        compiler = find_compiler()
    except CompileError:
        library = first_usable(folder, f"{content}-*.so")
        if library is None:
            raise
        return library
    toolchain = _digest(compiler.path, compiler.version, *_flags(compiler, streaming))[:16]
    return folder / f"{content}-{toolchain}.so"


def _c_library() -> str:
    """Return the version of the C library, since a library built with a newer version may fail to load."""
    return os.confstr("CS_GNU_LIBC_VERSION") or ""


def compile_library(source: str, *, streaming: bool = False) -> Path:
    """Return the shared library of generated C++ from the cache, and compile it first if necessary.

    Parameters
    ----------
    source : str
    streaming : bool
        True for fields that exceed the cache: kernels use software prefetch, and their results bypass the
        cache.

    Returns
    -------
    Path

    Raises
    ------
    CompileError
        There is no compiler, the cache cannot be written, other users may write to it, or the compiler
        rejects the source.
    """
    library = library_path(source, streaming=streaming)

    def compiled(place: Path) -> Path:
        compiler = find_compiler()
        text, output = place / "kernels.cpp", place / "kernels.so"
        text.write_text(source, encoding="utf-8")
        command = [compiler.path, *_flags(compiler, streaming), f"-I{include_folder()}"]
        try:
            _compile(command, text, number_of_parts(source), output)
        except subprocess.CalledProcessError as error:
            if os.strerror(errno.ENOSPC) in error.stderr:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            saved_source = library.with_suffix(".failed.cpp")
            shutil.copy(text, saved_source)
            raise CompileError(
                f"{compiler.path} could not compile generated code (kept in {saved_source}), exit status "
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
            f"{compiler.path} ended without an error, but its library of generated code cannot be loaded "
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
    try:
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env={**os.environ, "TMPDIR": str(place)}
        )
    except OSError as error:
        raise CompileError(
            f"the C++ compiler {command[0]!r} does not start: {error.strerror}. Set CXX to a working "
            "compiler."
        ) from None
