"""NVRTC: kernels compiled for CUDA devices, and the cache of what it made.

NVRTC comes with the package nvidia-cuda-nvrtc-cu12 or with a CUDA toolkit; it needs no device. The cache is
that of the C++ compiler, as safe and in the same folder. Its key holds the source, the options, NVRTC's
version and the architecture; not the driver, which takes what an older compiler made.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from halocline.compile.cache import cache_folder, cached, first_whole, trusted
from halocline.errors import CompileError
from halocline.native import native

if TYPE_CHECKING:
    from halocline import _native

# Every fma is the generator's choice, and nothing is rounded otherwise than the host does; said in full, as
# defaults are the compiler's to change. What each kernel takes is reported: see `resources`.
OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "-default-device",
    "--ptxas-options=-v",
)

# Version 12 first: what it makes runs with the drivers of 12 and of 13.
NAMES = ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so.11.2")
PACKAGES = ("nvidia.cuda_nvrtc", "nvidia.cu13")
INSTALL = (
    "install the package nvidia-cuda-nvrtc-cu12 (pip install 'halocline[cuda]'), "
    "or set HALOCLINE_NVRTC to the path of libnvrtc.so"
)


def _folders() -> Iterator[Path]:
    """Where libraries of NVRTC may lie: packages and the environment of this Python, then toolkits."""
    for package in PACKAGES:
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for place in (found.submodule_search_locations or ()) if found else ():
            yield Path(place) / "lib"
    yield Path(sys.prefix) / "lib"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "lib64"
    yield Path("/usr/local/cuda/lib64")


def candidates() -> list[str]:
    """Libraries of NVRTC that there may be, best first: paths, then names that the loader may find.
    HALOCLINE_NVRTC alone where it is set."""
    given = os.environ.get("HALOCLINE_NVRTC")
    if given:
        return [given]
    folders = list(_folders())
    paths = [str(folder / name) for name in NAMES for folder in folders if (folder / name).is_file()]
    return [*paths, *NAMES]


@lru_cache(maxsize=8)
def _load(library: str) -> _native.Nvrtc:
    # some versions do not find their second library in their own folder
    needed = sorted(Path(library).parent.glob("libnvrtc-builtins.so*")) if "/" in library else []
    loaded: _native.Nvrtc = native().Nvrtc(library, [str(path) for path in needed])
    return loaded


def find_nvrtc(architecture: str | None = None) -> _native.Nvrtc:
    """The first NVRTC that compiles for an architecture; else the first one.

    Raises
    ------
    CompileError
        Where there is none.
    """
    found: list[_native.Nvrtc] = []
    reasons = []
    for library in candidates():
        try:
            found.append(_load(library))
        except RuntimeError as error:
            reasons.append(str(error))
            continue
        if architecture is None or _capability(architecture) in found[-1].architectures:
            return found[-1]
    if not found:
        raise CompileError(f"kernels for CUDA devices need NVRTC: {reasons[0]}; {INSTALL}")
    return found[0]


def _capability(architecture: str) -> int:
    number = re.fullmatch(r"sm_(\d+)", architecture)
    if number is None:
        raise CompileError(f"architecture {architecture!r} of a CUDA device, expected one as 'sm_90'")
    return int(number[1])


def _target(architecture: str, nvrtc: _native.Nvrtc) -> str:
    """What is compiled for: the architecture, else PTX of the newest older one, which the driver compiles."""
    wanted, known = _capability(architecture), nvrtc.architectures
    if wanted in known:
        return architecture
    older = [one for one in known if one < wanted]
    if not older:
        version = ".".join(map(str, nvrtc.version))
        raise CompileError(
            f"NVRTC {version} does not compile for {architecture}, the oldest that it knows is "
            f"sm_{min(known)}; install an older nvidia-cuda-nvrtc-cu12 (12.9 and older know sm_70)"
        )
    return f"compute_{max(older)}"


def compile_cuda(source: str, architecture: str) -> Path:
    """Code for CUDA devices of an architecture: from the cache, else compiled.

    Parameters
    ----------
    source : str
        CUDA C++ that includes no header; kernels are ``extern "C" __global__``.
    architecture : str
        Of the device, as "sm_90".

    Returns
    -------
    Path
        A cubin; PTX for a device that is newer than NVRTC.

    Raises
    ------
    CompileError
        Without NVRTC where the cache has no such code, for a cache that cannot be written or that others
        may write, or for source that NVRTC rejects.
    """
    folder = trusted(cache_folder())
    held = sha256("\0".join((source, architecture, *OPTIONS)).encode()).hexdigest()[:32]
    try:
        nvrtc = find_nvrtc(architecture)
    except CompileError:
        # one that any version made: results do not depend on which
        kept = first_whole(folder, f"{held}-*.cubin")
        if kept is None:
            raise
        return kept
    target = _target(architecture, nvrtc)
    version = ".".join(map(str, nvrtc.version))
    options = [f"--gpu-architecture={target}", *OPTIONS]
    key = f"{held}-{version}"
    code = folder / f"{key}.{'cubin' if target == architecture else 'ptx'}"

    def compiled(place: Path) -> Path:
        made, error, log = nvrtc.compile(source, f"{key}.cu", options)
        text = place / "kernels.cu"
        text.write_text(source, encoding="utf-8")
        if error:
            failed = folder / f"{key}.failed.cu"
            os.replace(text, failed)
            shown = "\n".join(log.splitlines()[:20])
            raise CompileError(
                f"NVRTC {version} could not compile generated code for {target} (kept in {failed}), "
                f"{error}:\n{shown}"
            )
        os.replace(text, folder / f"{key}.cu")
        (place / "log").write_text(log, encoding="utf-8")
        os.replace(place / "log", code.with_suffix(".log"))
        (place / "code").write_bytes(made)
        return place / "code"

    return cached(code, compiled)


@dataclass(frozen=True)
class Resources:
    """What a thread of a kernel takes.

    Attributes
    ----------
    registers : int
    spilled : int
        Bytes stored to the device's memory because registers ran out, and loaded again.
    stack : int
        Bytes of arrays and spilled registers in the device's memory.
    shared : int
        Bytes of the memory that the threads of a group share.
    """

    registers: int
    spilled: int
    stack: int
    shared: int


_FUNCTION = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def resources(code: Path) -> dict[str, Resources]:
    """What each kernel of compiled code takes, in the words of the compiler; empty for PTX, which the driver
    compiles."""
    try:
        log = code.with_suffix(".log").read_text(encoding="utf-8")
    except OSError:
        return {}
    found: dict[str, Resources] = {}
    name, stack, spilled = "", 0, 0
    for line in log.splitlines():
        if match := _FUNCTION.search(line):
            name = match[1]
        elif match := _STACK.search(line):
            stack, spilled = int(match[1]), int(match[2])
        elif (match := _USED.search(line)) and name:
            shared = _SHARED.search(line)
            found[name] = Resources(int(match[1]), spilled, stack, int(shared[1]) if shared else 0)
    return found
