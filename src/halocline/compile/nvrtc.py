"""NVRTC: compilation of kernels for CUDA devices, with a cache.

NVRTC is part of the package nvidia-cuda-nvrtc-cu12 and of CUDA toolkits; it needs no device. The cache folder
is the same as for the C++ compiler, with the same access checks. The key of an entry covers the source, the
options, the version of NVRTC and the architecture. The key does not cover the version of the driver, since
drivers accept code of older compilers.
"""

from __future__ import annotations

import importlib.util
import os
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from halocline.compile.cache import cache_folder, cached, first_usable, trusted
from halocline.errors import CompileError
from halocline.native import native

if TYPE_CHECKING:
    from halocline import _native

# The code generator selects every fma, and rounding is the same as on the host. All options are explicit,
# since compilers may change their defaults. NVRTC reports the resources of each kernel, see `resources`.
OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "-default-device",
    "--ptxas-options=-v",
)

# Version 12 first: its code runs with the drivers of versions 12 and 13.
NAMES = ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so.11.2")
PACKAGES = ("nvidia.cuda_nvrtc", "nvidia.cu13")
INSTALL = (
    "install the package nvidia-cuda-nvrtc-cu12 (pip install 'halocline[cuda]'), "
    "or set HALOCLINE_NVRTC to the path of libnvrtc.so"
)


def _folders() -> Iterator[Path]:
    """Yield the possible folders of NVRTC: packages, the environment of this Python, then toolkits."""
    for package in PACKAGES:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield Path(folder) / "lib"
    yield Path(sys.prefix) / "lib"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "lib64"
    yield Path("/usr/local/cuda/lib64")


def candidates() -> list[str]:
    """Return the possible libraries of NVRTC, best first: paths, then file names that the loader searches.

    If HALOCLINE_NVRTC is set, it is the only candidate.
    """
    selected = os.environ.get("HALOCLINE_NVRTC")
    if selected:
        return [selected]
    folders = list(_folders())
    paths = [str(folder / name) for name in NAMES for folder in folders if (folder / name).is_file()]
    return [*paths, *NAMES]


@lru_cache(maxsize=8)
def _load(library: str) -> _native.Nvrtc:
    # some versions do not search their own folder for their second library
    builtins = sorted(Path(library).parent.glob("libnvrtc-builtins.so*")) if "/" in library else []
    loaded: _native.Nvrtc = native().Nvrtc(library, [str(path) for path in builtins])
    return loaded


def find_nvrtc(architecture: str | None = None) -> _native.Nvrtc:
    """Return the first NVRTC that supports an architecture; if none does, return the first NVRTC.

    Raises
    ------
    CompileError
        There is no NVRTC.
    """
    libraries: list[_native.Nvrtc] = []
    reasons = []
    for library in candidates():
        try:
            libraries.append(_load(library))
        except RuntimeError as error:
            reasons.append(str(error))
            continue
        if architecture is None or _capability(architecture) in libraries[-1].architectures:
            return libraries[-1]
    if not libraries:
        raise CompileError(f"kernels for CUDA devices need NVRTC: {reasons[0]}; {INSTALL}")
    return libraries[0]


def _capability(architecture: str) -> int:
    number = re.fullmatch(r"sm_(\d+)", architecture)
    if number is None:
        raise CompileError(
            f"architecture {architecture!r} is not valid; expected an architecture of a CUDA device, such "
            "as 'sm_90'"
        )
    return int(number[1])


def _target(architecture: str, nvrtc: _native.Nvrtc) -> str:
    """Return the target: the architecture, or PTX of the newest older architecture that NVRTC supports."""
    capability, known = _capability(architecture), nvrtc.architectures
    if capability in known:
        return architecture
    older = [one for one in known if one < capability]
    if not older:
        version = ".".join(map(str, nvrtc.version))
        raise CompileError(
            f"NVRTC {version} does not compile for {architecture}. Its oldest architecture is "
            f"sm_{min(known)}: install an older nvidia-cuda-nvrtc-cu12 (12.9 and older support sm_70)"
        )
    return f"compute_{max(older)}"


def compile_cuda(source: str, architecture: str) -> Path:
    """Return code for CUDA devices of an architecture from the cache, and compile it first if necessary.

    Parameters
    ----------
    source : str
        CUDA C++ without includes; kernels are ``extern "C" __global__``.
    architecture : str
        Architecture of the device, such as "sm_90".

    Returns
    -------
    Path
        A cubin, or PTX for a device that is newer than NVRTC.

    Raises
    ------
    CompileError
        There is neither NVRTC nor cached code, the cache cannot be written, other users may write to it, or
        NVRTC rejects the source.
    """
    folder = trusted(cache_folder())
    content = sha256("\0".join((source, architecture, *OPTIONS)).encode()).hexdigest()[:32]
    try:
        nvrtc = find_nvrtc(architecture)
    except CompileError:
        # code of any NVRTC version, since results do not depend on the version
        cached_code = first_usable(folder, f"{content}-*.cubin") or first_usable(folder, f"{content}-*.ptx")
        if cached_code is None:
            raise
        return cached_code
    target = _target(architecture, nvrtc)
    version = ".".join(map(str, nvrtc.version))
    options = [f"--gpu-architecture={target}", *OPTIONS]
    key = f"{content}-{version}"
    code = folder / f"{key}.{'cubin' if target == architecture else 'ptx'}"

    def compiled(place: Path) -> Path:
        binary, error, log = nvrtc.compile(source, f"{key}.cu", options)
        text = place / "kernels.cu"
        text.write_text(source, encoding="utf-8")
        if error:
            failed = folder / f"{key}.failed.cu"
            os.replace(text, failed)
            messages = "\n".join(log.splitlines()[:20])
            raise CompileError(
                f"NVRTC {version} could not compile generated code for {target} (kept in {failed}), "
                f"{error}:\n{messages}"
            )
        os.replace(text, folder / f"{key}.cu")
        (place / "log").write_text(log, encoding="utf-8")
        os.replace(place / "log", code.with_suffix(".log"))
        (place / "code").write_bytes(binary)
        return place / "code"

    return cached(code, compiled)


@dataclass(frozen=True)
class Resources:
    """Resources of a kernel.

    Attributes
    ----------
    instructions : int
        Machine instructions, each of 16 bytes, including those that only pad the code.
    registers : int
        Registers per thread.
    spilled : int
        Bytes of registers that each thread spills to global memory and loads again.
    stack : int
        Bytes of global memory per thread for arrays and spilled registers.
    shared : int
        Bytes of shared memory per thread block.
    """

    instructions: int
    registers: int
    spilled: int
    stack: int
    shared: int


INSTRUCTION_BYTES = 16  # since sm_70
_FUNCTION = re.compile(r"Function properties for (\w+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def resources(code: Path) -> dict[str, Resources]:
    """Return the resources of each kernel of compiled code.

    The compiler reports all resources except the number of instructions, which follows from the size of the
    code. The result is empty for PTX, which the driver compiles.
    """
    if code.suffix != ".cubin":
        return {}
    try:
        log = code.with_suffix(".log").read_text(encoding="utf-8")
    except OSError:
        return {}
    sizes = _section_sizes(code.read_bytes())
    result: dict[str, Resources] = {}
    name, stack, spilled = "", 0, 0
    for line in log.splitlines():
        if match := _FUNCTION.search(line):
            name = match[1]
        elif match := _STACK.search(line):
            stack, spilled = int(match[1]), int(match[2])
        elif (match := _USED.search(line)) and name:
            shared = _SHARED.search(line)
            instructions = sizes[f".text.{name}"] // INSTRUCTION_BYTES
            shared_bytes = int(shared[1]) if shared else 0
            result[name] = Resources(instructions, int(match[1]), spilled, stack, shared_bytes)
    return result


def _section_sizes(binary: bytes) -> dict[str, int]:
    """Return the size in bytes of each section of a 64-bit ELF file, by name."""
    (table,) = struct.unpack_from("<Q", binary, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", binary, 0x3A)
    # of each section: offset of its name, then (after type, flags and address) its offset and its size
    sections = [struct.unpack_from("<I20xQQ", binary, table + n * entry_size) for n in range(count)]
    names = sections[names_index][1]
    return {
        binary[names + name : binary.index(b"\0", names + name)].decode(): size for name, _, size in sections
    }
