"""C++ compiler of kernels, and its flags. Results do not depend on either."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from halocline.compile.processor import LEVELS, NATIVE, widest_vector
from halocline.errors import CompileError

# Flags for all compilers. No flag changes results. Kernels call only functions that every process of Python
# has loaded: memcpy and, on processors without multiply-add, fma. They are therefore linked without libraries
# (-nostdlib). This takes a third of the time of a link with libraries, and zig would first compile its own
# library for minutes. -fno-sanitize=all, -fno-stack-protector and -fomit-frame-pointer undo slow defaults of
# zig and of some distributions.
FLAGS = (
    "-std=c++20",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-sanitize=all",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
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
GCC_SCALAR = ("-fno-tree-vectorize", "-fno-tree-slp-vectorize", "-fno-openmp-simd")
CLANG_SCALAR = ("-fno-vectorize", "-fno-slp-vectorize", "-fno-openmp-simd")


@dataclass(frozen=True)
class Compiler:
    """C++ compiler.

    Attributes
    ----------
    command : tuple of str
        Words of the command before the flags; the first is the path of the program.
    version : str
        First line of its version.
    """

    command: tuple[str, ...]
    version: str

    @property
    def is_clang(self) -> bool:
        """Return True for clang++, and for zig, which contains clang."""
        return "clang" in self.version

    def vector_length(self, target: str = NATIVE) -> int | None:
        """Return the length of vectors in kernels for a target in bits; None if it is not known."""
        widest = _widest(target)
        # without a flag, clang prefers 256 bits on processors with 512
        return vector_bits(target) or (min(widest, 256) if widest and self.is_clang else widest)

    @property
    def is_zig(self) -> bool:
        """Return True for the compiler of the package ziglang, or another `zig cc`."""
        return Path(self.command[0]).name == "zig"

    def __str__(self) -> str:
        return shlex.join(self.command)

    def flags(self, target: str = NATIVE) -> tuple[str, ...]:
        """Return the flags of all kernel libraries for a target: this CPU, or one of `processor.LEVELS`."""
        level, bits = optimization_level(), vector_bits(target)
        architecture = target
        if self.is_zig and target in LEVELS:  # zig spells these names with underscores
            architecture = "generic" if target == "armv8-a" else target.replace("-", "_")
        of_level = () if self.is_clang else GCC_LEVELS[level]
        flags = (f"-O{level}", f"-march={architecture}", *FLAGS, *of_level)
        if bits is None and self.vector_length(target) == 512:
            bits = 512  # loads, not the clock rate, limit the speed of the loops
        if bits is None:
            return flags
        scalar = CLANG_SCALAR if self.is_clang else GCC_SCALAR
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


def _widest(target: str) -> int | None:
    """Return the maximum vector length of a target in bits; None if it is not known."""
    return LEVELS[target].vector_bits if target in LEVELS else widest_vector()


def vector_bits(target: str = NATIVE) -> int | None:
    """Return the vector length in bits that HALOCLINE_VECTORS selects for kernels; None for the default.

    Raises
    ------
    CompileError
        The variable has a value other than 64, 128, 256 and 512, or a value that the target does not support.
    """
    text = os.environ.get(VECTORS)
    if not text:
        return None
    if text not in map(str, VECTOR_BITS):
        accepted = ", ".join(map(str, VECTOR_BITS))
        raise CompileError(f"{VECTORS} is {text!r}; expected a vector length in bits: {accepted}")
    widest = _widest(target)
    if widest is not None and int(text) > widest:
        cpu = "this CPU" if target == NATIVE else target
        raise CompileError(
            f"{VECTORS} is {text!r}, but {cpu} has vectors of {widest} bits at most; set it to one of "
            f"{', '.join(str(bits) for bits in VECTOR_BITS if bits <= widest)}"
        )
    return int(text)


@lru_cache(maxsize=4)
def _version(command: tuple[str, ...]) -> str:
    try:
        output = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(
            f"the C++ compiler {shlex.join(command)!r} does not run: {error}. Set CXX to a working compiler."
        ) from None
    return output.partition("\n")[0]


def find_compiler() -> Compiler:
    """Return the compiler that CXX names, otherwise g++, clang++, c++ or the package ziglang.

    CXX may contain arguments, such as ``ccache g++``. Its value ``zig`` also selects the package ziglang.

    Raises
    ------
    CompileError
        There is no compiler.
    """
    selected = os.environ.get("CXX")
    for words in _words_of(selected) if selected else _defaults():
        path = shutil.which(words[0]) if words else None
        if path is not None:
            command = (path, *words[1:])
            if Path(path).name == "zig":  # `zig c++` would use its own standard library
                command = (path, "cc", *(word for word in words[1:] if word not in ("cc", "c++")))
            return Compiler(command, _version(command))
    reason = (
        f"CXX is {selected!r}, which is not a program on PATH"
        if selected
        else "neither g++, clang++ nor c++ is on PATH, and the package ziglang is not installed"
    )
    raise CompileError(
        f"no C++ compiler: {reason}. Install one (pip install 'halocline[compiler]', or Debian: apt-get "
        "install g++), or set CXX to its path."
    )


def _words_of(selected: str) -> Iterator[tuple[str, ...]]:
    """Yield the possible commands of a value of CXX: a path, which may have spaces, or several words."""
    yield (selected,)
    with contextlib.suppress(ValueError):
        words = tuple(shlex.split(selected))
        yield words
        if words[:1] == ("zig",):
            yield _zig()


def _defaults() -> Iterator[tuple[str, ...]]:
    """Yield the commands of the compilers that are tried in order; the search for the package is slow."""
    yield from (("g++",), ("clang++",), ("c++",))
    yield _zig()


def _zig() -> tuple[str, ...]:
    """Return the command of the compiler in the package ziglang; empty without this package."""
    spec = importlib.util.find_spec("ziglang")
    folders = spec.submodule_search_locations if spec else None
    return (str(Path(folders[0]) / "zig"),) if folders else ()
