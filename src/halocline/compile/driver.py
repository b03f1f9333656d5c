"""The C++ compiler and the cache of what it made.

The cache is safe under concurrent ranks and killed compilers: a library is written under a name of its own
and renamed into place when it is complete; no locks. Its key holds the source, every header, the flags, the
compiler's version and the CPU.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from halocline.compile.emit import PART, STREAMING, number_of_parts
from halocline.errors import CompileError

# The instruction set of the host, and nothing that changes results.
FLAGS = (
    "-std=c++20",
    "-O3",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-fno-exceptions",
    "-fno-rtti",
    "-fPIC",
    "-shared",
    "-w",
)
MOST_COMPILERS = 8  # at a time: each takes up to a gigabyte


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: path and the first line of its version."""

    path: str
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of every kernel library."""
        # 512-bit vectors where the CPU has them: the loops are bound by loads, not by the clock
        wide = () if "clang" in self.version else ("-mprefer-vector-width=512",)
        return (*FLAGS, *(wide if "avx512f" in cpu() else ()))


@lru_cache(maxsize=1)
def cpu() -> str:
    """The model and instruction sets of this CPU."""
    with contextlib.suppress(OSError):
        return described(Path("/proc/cpuinfo").read_text()) or os.uname().machine
    return os.uname().machine


def described(cpuinfo: str) -> str:
    """What /proc/cpuinfo says about the model and instruction sets of the first CPU, on x86 and on ARM."""
    wanted = ("model", "flags", "Features", "CPU ")
    return "\n".join(line for line in cpuinfo.split("\n\n")[0].splitlines() if line.startswith(wanted))


@lru_cache(maxsize=4)
def _version(path: str) -> str:
    try:
        shown = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(
            f"the C++ compiler {path!r} does not run: {error}; set CXX to one that does"
        ) from None
    return shown.splitlines()[0]


def find_compiler() -> Compiler:
    """The compiler named by CXX, else g++ or clang++.

    Raises
    ------
    CompileError
        Where there is none.
    """
    wanted = os.environ.get("CXX")
    for name in (wanted,) if wanted else ("g++", "clang++", "c++"):
        path = shutil.which(name)
        if path is not None:
            return Compiler(path, _version(path))
    what = (
        f"CXX is {wanted!r}, which is no program on the PATH"
        if wanted
        else "neither g++, clang++ nor c++ is on the PATH"
    )
    raise CompileError(
        f"no C++ compiler: {what}; install one (Debian: apt-get install g++) or set CXX to its path"
    )


def cache_folder() -> Path:
    """Where compiled kernels are kept: HALOCLINE_CACHE, else halocline in the user's cache folder."""
    given = os.environ.get("HALOCLINE_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "halocline"


def include_folder() -> Path:
    """The folder that holds halocline/abi.h: in the installed package, or in the source tree."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "include", package.parents[1] / "native" / "include"):
        if (candidate / "halocline" / "abi.h").is_file():
            return candidate
    raise CompileError(f"the headers of generated code are missing from {package}; install Halocline again")


@lru_cache(maxsize=4)
def _headers(folder: Path) -> str:
    digest = sha256()
    for header in sorted((folder / "halocline").glob("*.h*")):
        digest.update(header.read_bytes())
    return digest.hexdigest()


def _flags(compiler: Compiler, streaming: bool) -> list[str]:
    return [*compiler.flags, *([f"-D{STREAMING}"] if streaming else [])]


def library_key(source: str, *, streaming: bool = False) -> str:
    """What tells the library of generated C++ from all others.

    Raises
    ------
    CompileError
        Without a compiler.
    """
    compiler = find_compiler()
    flags = " ".join(_flags(compiler, streaming))
    parts = (source, _headers(include_folder()), flags, compiler.path, compiler.version, cpu())
    return sha256("\0".join(parts).encode()).hexdigest()[:32]


def compile_library(source: str, *, streaming: bool = False) -> Path:
    """The shared library of generated C++: from the cache, else compiled.

    Parameters
    ----------
    source : str
    streaming : bool
        For fields that exceed the cache: kernels fetch ahead, and their results go past the cache.

    Returns
    -------
    Path

    Raises
    ------
    CompileError
        Without a compiler, for a cache that cannot be written, or for source the compiler rejects.
    """
    compiler, include = find_compiler(), include_folder()
    flags = _flags(compiler, streaming)
    key, folder = library_key(source, streaming=streaming), cache_folder()
    library = folder / f"{key}.so"
    if library.is_file():
        return library
    with workplace(folder) as place:
        text = place / "kernels.cpp"
        text.write_text(source, encoding="utf-8")
        made = place / "kernels.so"
        failed = _compile([compiler.path, *flags, f"-I{include}"], text, number_of_parts(source), made)
        if failed is not None:
            kept = folder / f"{key}.failed.cpp"
            shutil.copy(text, kept)
            raise CompileError(
                f"{compiler.path} could not compile generated code (kept in {kept}), exit status "
                f"{failed.status}:\n" + "\n".join(failed.said.splitlines()[:20])
            )
        shutil.copy(text, place / "kept.cpp")
        os.replace(place / "kept.cpp", folder / f"{key}.cpp")
        publish(made, library)
    return library


@dataclass(frozen=True)
class _Failed:
    """How a compiler ended, and what it said."""

    status: int
    said: str


def _compile(command: Sequence[str], text: Path, parts: int, made: Path) -> _Failed | None:
    """Compile a library: its parts at a time, as many as there are cores. What failed, if something did."""
    if parts == 1:
        return _run_all([[*command, str(text), "-o", str(made)]], text.parent)
    objects = [str(text.with_suffix(f".{part}.o")) for part in range(parts)]
    apart = [
        [*(flag for flag in command if flag != "-shared"), f"-D{PART}={part}", "-c", str(text), "-o", made_of]
        for part, made_of in enumerate(objects)
    ]
    return _run_all(apart, text.parent) or _run_all([[*command, *objects, "-o", str(made)]], text.parent)


def _run_all(commands: Sequence[Sequence[str]], place: Path) -> _Failed | None:
    """Run commands, some at a time; the first that failed, in their order, after which none is left."""
    at_once = min(len(os.sched_getaffinity(0)), MOST_COMPILERS)
    running: list[tuple[subprocess.Popen[bytes], Path]] = []
    waiting = list(enumerate(commands))
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                number, command = waiting.pop(0)
                said = place / f"said.{number}"
                with open(said, "wb") as errors:
                    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
                running.append((process, said))
            process, said = running[0]
            process.wait()
            del running[0]
            if process.returncode != 0:
                return _Failed(process.returncode, said.read_text(errors="replace"))
        return None
    finally:
        for process, _ in running:
            process.kill()
            process.wait()


def publish(made: Path, name: Path) -> None:
    """Give a file its name in the cache, once all of it is on disk."""
    with open(made, "rb") as handle:
        os.fsync(handle.fileno())
    os.replace(made, name)


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """A folder of this process alone inside the cache; those that killed compilers left behind are
    removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix="making-", dir=folder))
    except OSError as error:
        raise CompileError(
            f"the cache of compiled kernels, {folder}, cannot be written ({error.strerror}); "
            "set HALOCLINE_CACHE to a folder that can"
        ) from None
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        for left in folder.glob("making-*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > 3600:
                    shutil.rmtree(left, ignore_errors=True)
