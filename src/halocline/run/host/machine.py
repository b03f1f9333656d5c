"""Hardware and software of this machine: processors, caches, memory, compiler and MPI library."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from halocline import __version__
from halocline.compile.cxx import find_compiler
from halocline.compile.processor import widest_vector
from halocline.errors import CompileError, HaloclineError, RunError
from halocline.plan.rank import RankPlan
from halocline.run.host.process import cores


@dataclass(frozen=True)
class Cache:
    """Data cache of one core.

    Parameters
    ----------
    level : int
        Level in the cache hierarchy.
    bytes : int
        Size in bytes.
    shared_by : int
        Number of hardware threads that share the cache.
    """

    level: int
    bytes: int
    shared_by: int


@dataclass(frozen=True)
class Machine:
    """Properties of the machine of this process, and of the software in use; None means unknown.

    Parameters
    ----------
    host, system : str
        Name of the node, and its operating system and processor architecture.
    cpu : str or None
        Model name.
    hardware_threads : int
        Number of hardware threads in the affinity mask of this process.
    cores : int
        Number of physical cores of these hardware threads.
    numa_nodes : int or None
        Number of NUMA nodes that contain these hardware threads.
    caches : tuple of Cache
        Data caches of the first of these hardware threads, by level.
    simd_bits : int or None
        Width of the widest vector registers in bits.
    memory_bytes, available_bytes : int or None
        Total and currently available memory of the node.
    compiler, compiler_version : str or None
        C++ compiler that compiles generated code, and its version.
    mpi_library, mpi_version : str or None
        MPI library that the native code uses, and its version text.
    version : str
        Version of Halocline.
    commit : str or None
        Git commit of the source that runs, followed by "+" if files differ from the commit.
    openmp : mapping of str to str
        Environment variables that control OpenMP.
    """

    host: str
    system: str
    cpu: str | None
    cores: int
    hardware_threads: int
    numa_nodes: int | None
    caches: tuple[Cache, ...]
    simd_bits: int | None
    memory_bytes: int | None
    available_bytes: int | None
    compiler: str | None
    compiler_version: str | None
    mpi_library: str | None
    mpi_version: str | None
    version: str
    commit: str | None
    openmp: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return the properties as plain data, ready for JSON."""
        return asdict(self)


def this_machine() -> Machine:
    """Return the properties of this machine. The call takes some milliseconds and uses no MPI or NumPy."""
    threads = sorted(cores())
    info = _pairs(_read("/proc/cpuinfo").partition("\n\n")[0])
    memory = _pairs(_read("/proc/meminfo"))
    compiler, compiler_version = _compiler()
    mpi_library, mpi_version = _mpi()
    return Machine(
        host=platform.node(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=info.get("model name"),
        cores=len({_siblings(thread) for thread in threads}),
        hardware_threads=len(threads),
        numa_nodes=_numa_nodes(threads),
        caches=data_caches(threads[0]),
        simd_bits=widest_vector(),
        memory_bytes=_kibibytes(memory.get("MemTotal")),
        available_bytes=_kibibytes(memory.get("MemAvailable")),
        compiler=compiler,
        compiler_version=compiler_version,
        mpi_library=mpi_library,
        mpi_version=mpi_version,
        version=__version__,
        commit=_commit(Path(__file__).resolve().parents[4]),
        openmp={
            key: os.environ[key] for key in sorted(os.environ) if key.startswith(("OMP_", "GOMP_", "KMP_"))
        },
    )


def _read(path: str | Path) -> str:
    """Return the text of a file in /proc or /sys, or "" if the file cannot be read."""
    with contextlib.suppress(OSError):
        return Path(path).read_text().strip()
    return ""


def _pairs(text: str) -> dict[str, str]:
    """Return the values of lines "name : value", by name."""
    split = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in split if colon}


def _kibibytes(text: str | None) -> int | None:
    return int(text.removesuffix("kB")) * 1024 if text else None


def clock_hertz() -> float | None:
    """Return the clock frequency of the first core of this process in hertz, or None if it is unknown.

    The result is the nominal frequency if it is known, else the current frequency.
    """
    thread = min(cores())
    base = _read(f"/sys/devices/system/cpu/cpu{thread}/cpufreq/base_frequency")  # kHz
    if base:
        return 1e3 * float(base)
    megahertz = _pairs(_read("/proc/cpuinfo").partition("\n\n")[0]).get("cpu MHz")
    return 1e6 * float(megahertz) if megahertz else None


def os_release() -> str | None:
    """Return the name of the operating system, such as "Debian GNU/Linux 12 (bookworm)", or None."""
    with contextlib.suppress(OSError):
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    return None


def interconnects() -> tuple[str, ...]:
    """Return the names of the fast network adapters (InfiniBand, Omni-Path, RoCE) of this node."""
    return tuple(sorted(path.name for path in Path("/sys/class/infiniband").glob("*")))


def parse_list(text: str) -> set[int]:
    """Return the numbers of a list in the format of the Linux kernel: "0-3,8" is 0, 1, 2, 3, 8."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _siblings(thread: int) -> str:
    """Return a text that identifies the physical core of a hardware thread."""
    return _read(f"/sys/devices/system/cpu/cpu{thread}/topology/thread_siblings_list") or str(thread)


def share_of_cores(local_mask: int, masks: Iterable[int]) -> int:
    """Return the number of hardware threads for this rank: an equal share of its affinity mask, at least 1.

    Parameters
    ----------
    local_mask : int
        Affinity mask of this rank.
    masks : ints
        Affinity masks of all ranks of the node, including this rank. If the launcher binds ranks to cores,
        their masks differ. Otherwise all ranks have the same mask.
    """
    return max(1, local_mask.bit_count() // max(1, sum(bool(local_mask & mask) for mask in masks)))


def sockets() -> int:
    """Return the number of sockets whose hardware threads this process may use, or 1 if it is unknown."""
    package_ids = {
        _read(f"/sys/devices/system/cpu/cpu{thread}/topology/physical_package_id") for thread in cores()
    }
    return len(package_ids - {""}) or 1


def _numa_nodes(threads: Iterable[int]) -> int | None:
    lists = [_read(path) for path in Path("/sys/devices/system/node").glob("node[0-9]*/cpulist")]
    return sum(not parse_list(text).isdisjoint(threads) for text in lists) or None


@cache
def data_caches(thread: int | None = None) -> tuple[Cache, ...]:
    """Return the data caches of a hardware thread, by level; default: the first thread of this process."""
    if thread is None:
        thread = min(cores())
    caches = []
    for folder in Path(f"/sys/devices/system/cpu/cpu{thread}/cache").glob("index[0-9]*"):
        size = re.fullmatch(r"(\d+)([KMG]?)", _read(folder / "size"))
        if size and _read(folder / "type") in ("Data", "Unified"):
            scale = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[size[2]]
            shared_by = len(parse_list(_read(folder / "shared_cpu_list"))) or 1
            caches.append(Cache(int(_read(folder / "level")), int(size[1]) * scale, shared_by))
    return tuple(sorted(caches, key=lambda data_cache: data_cache.level))


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes (VmRSS)."""
    resident = _kibibytes(_pairs(_read("/proc/self/status")).get("VmRSS"))
    if resident is None:
        raise RunError("/proc/self/status names no VmRSS")
    return resident


# Upper limit for the last-level cache per hardware thread, in bytes. No known machine exceeds this limit.
LARGEST_SHARE = 32 * 2**20


def last_level_cache() -> int:
    """Return the total size of the last-level caches of this node, in bytes.

    At most LARGEST_SHARE bytes per hardware thread are counted. If the system reports a larger cache, other
    virtual machines share this cache, and their threads are not visible. In a measurement on two threads with
    a cache of 260 MiB, arrays fit into the cache only up to a size between 50 and 100 MB
    (docs/performance.md).
    """
    caches = data_caches()
    if not caches:
        return LARGEST_SHARE
    last = caches[-1]
    groups = max(1, (os.cpu_count() or 1) // last.shared_by)
    return groups * min(last.bytes, LARGEST_SHARE * last.shared_by)


def _compiler() -> tuple[str | None, str | None]:
    with contextlib.suppress(CompileError):
        compiler = find_compiler()
        return str(compiler), compiler.version
    return None, None


def _mpi() -> tuple[str | None, str | None]:
    """Return the MPI library in use and the first line of its version text, without MPI_Init."""
    from halocline.run.host.mpi_library import mpi_library, opened

    try:
        library = os.path.realpath(mpi_library())
        functions = opened(library, "MPI_Get_library_version")
    except HaloclineError:
        return None, None
    text, length = ctypes.create_string_buffer(2**16), ctypes.c_int(0)  # MPI needs less than 2**13
    if functions.MPI_Get_library_version(text, ctypes.byref(length)) != 0:
        return library, None
    line = text.value.decode(errors="replace").partition("\n")[0]
    return library, " ".join(line.replace("MPICH Version:", "MPICH").split())


def _commit(root: Path) -> str | None:
    """Return the commit of the source in `root`, or of the build if `root` contains no source."""
    if not (root / ".git").exists() or not (root / "native").is_dir():
        return _read(Path(__file__).parents[2] / "commit.txt") or None
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: Path, *arguments: str) -> str:
    process = subprocess.run(
        ["git", "-C", root, *arguments], capture_output=True, text=True, timeout=10, check=True
    )
    return process.stdout.strip()


def level_2_cache() -> int | None:
    """Return the size of the level-2 cache of a core in bytes, or None if it is unknown."""
    return next((cache.bytes for cache in data_caches() if cache.level == 2), None)


def exceeds_cache(plan: RankPlan, ranks_of_node: int) -> bool:
    """Return True if the fields of a node exceed its last-level cache. Stores then bypass the cache."""
    return plan.memory * ranks_of_node > last_level_cache()
