"""`halocline doctor`: what is here, what is missing, and what to do about it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halocline.cli.output import check_files, first, say, write_json, written
from halocline.errors import CompileError, HaloclineError, RunError
from halocline.native import native
from halocline.run.host.machine import Machine, this_machine
from halocline.run.measurements.bandwidth import copy_bandwidth, triad_bandwidth
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.launchers import launcher
from halocline.run.ranks.mpi import world

if TYPE_CHECKING:
    from halocline.run.devices.nvml import Topology

TRIAL = 'extern "C" int halocline_doctor() { return 42; }\n'
RANKS = """
from mpi4py import rc
rc.thread_level = "multiple"
from mpi4py import MPI
from halocline.run.ranks.mpi import world
comm = world()
levels = {MPI.THREAD_SINGLE: "single", MPI.THREAD_FUNNELED: "funneled", MPI.THREAD_SERIALIZED: "serialized"}
if comm.rank == 0:
    print(comm.size, levels.get(MPI.Query_thread(), "multiple"))
"""
FACTS = (
    *("interface", "index", "platform", "name", "driver", "identity", "architecture"),
    *("memory", "local_memory", "largest_group", "units", "doubles"),
)
PATIENCE = 60.0  # seconds for two ranks to start


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes
    ----------
    name : str
    state : {"found", "missing", "absent"}
        "absent" is what nothing needs.
    text : str
    advice : str
        What to do; "" where nothing is to be done.
    needed : bool
        Whether a solve in one process needs it.
    facts : mapping, optional
        More, for programs that read.
    """

    name: str
    state: str
    text: str
    advice: str = ""
    needed: bool = False
    facts: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def examine(json: str | None) -> None:
    """Look at everything, print it, and end with status 1 where no solve can run."""
    check_files(json)
    if not first():
        return
    findings = []
    for look in CHECKS:
        for finding in look(this_machine()):
            findings.append(finding)
            if json != "-":
                print(_line(finding), flush=True)
    able = all(f.state == "found" for f in findings if f.needed)
    found = [finding.as_dict() for finding in findings]
    write_json(json, {"able": able, "findings": found, "machine": this_machine().as_dict()})
    if json != "-":
        if able:
            say("\nA solve can run. Try: halocline solve poisson --n 512")
        else:
            say("\nNo solve can run yet: see what is missing above.")
        written([json])
    if not able:
        sys.exit(1)


def _line(finding: Finding) -> str:
    sign = {"found": "✓", "missing": "✗", "absent": "–"}[finding.state]
    text, *more = [*finding.text.splitlines(), *finding.advice.splitlines()]
    return "\n".join([f"{sign} {finding.name:17} {text}", *(f"{'':20}{line}" for line in more)])


# -- what is looked at ---------------------------------------------------------------------------------------


def _compiler(machine: Machine) -> Iterator[Finding]:
    from halocline.compile.driver import compile_library, find_compiler

    try:
        found = find_compiler()
    except CompileError as error:
        yield Finding("C++ compiler", "missing", *_advised(error), needed=True)
        return
    yield Finding("C++ compiler", "found", f"{found.version} ({found.path})", needed=True)
    writable, text = _cache()
    yield Finding("compile cache", "found" if writable else "missing", *text, needed=True)
    if writable:
        begun = time.monotonic()
        try:
            made = compile_library(f"{TRIAL}// {time.time_ns()}\n")  # another source each time: not cached
            for file in made.parent.glob(f"{made.stem}.*"):
                file.unlink(missing_ok=True)
        except CompileError as error:
            yield Finding("compiling", "missing", *_advised(error), needed=True)
        else:
            yield Finding("compiling", "found", f"works, {time.monotonic() - begun:.1f} s", needed=True)


def _cache() -> tuple[bool, tuple[str, str]]:
    """Whether the cache of compiled kernels can be written; what and, where not, advice."""
    from halocline.compile.cache import cache_folder, trusted, workplace

    try:
        folder = trusted(cache_folder())
        with workplace(folder):
            kept = list(folder.glob("*.so"))
    except CompileError as error:
        return False, _advised(error)
    size = sum(file.stat().st_size for file in kept)
    return True, (f"{folder}, writable: {len(kept)} libraries, {size / 1e6:.1f} MB", "")


def _native(machine: Machine) -> Iterator[Finding]:
    try:
        module = native()
    except RunError as error:
        yield Finding("native engine", "missing", *_advised(error), needed=True)
        return
    date, threads = module.openmp()
    text = f"{Path(module.__file__ or '').name}, OpenMP {date}, up to {threads} threads"
    yield Finding("native engine", "found", text, needed=True)


def _mpi(machine: Machine) -> Iterator[Finding]:
    if machine.mpi_library is None:
        advice = "pip install mpich; or install the system's MPI (Debian: libmpich-dev) and build anew"
        yield Finding("MPI library", "missing", "native code finds none", advice)
        return
    yield Finding("MPI library", "found", f"{machine.mpi_version} ({machine.mpi_library})")
    if launcher() is not None:
        comm = world()
        text = f"{comm.size} of this run, threads {comm.thread_level}"
        yield Finding("ranks", "found", text)
        return
    try:
        yield _two_ranks()
    except HaloclineError as error:
        yield Finding("ranks", "missing", _first(error), "runs in one process work without it")


def _two_ranks() -> Finding:
    """Start two ranks with mpiexec; they check that mpi4py and native code load the same library."""
    from halocline.run.ranks.launch import mpiexec

    program = mpiexec()
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [str(program), "-n", "2", sys.executable, "-c", RANKS],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"{program} -n 2 did not end within {PATIENCE:g} s") from None
    said = done.stdout.split()
    if done.returncode != 0 or len(said) != 2 or said[0] != "2":
        lines = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
        raise RunError(f"{program} -n 2 failed: {lines[-1]}")
    seconds = time.monotonic() - begun
    text = f"two started in {seconds:.1f} s, MPI thread level {said[1]}, one MPI in mpi4py and native code"
    if said[1] == "multiple":
        return Finding("ranks", "found", f"{text} ({program})")
    return Finding("ranks", "missing", text, "an MPI whose thread level is multiple is needed")


def _processor(machine: Machine) -> Iterator[Finding]:
    cores, threads = machine.cores, machine.hardware_threads
    text = f"{machine.cpu or 'unknown processor'}: {cores} cores"
    text += f", {threads} hardware threads" if threads != cores else ""
    yield Finding("cores", "found", f"{text}, {machine.numa_nodes or 1} NUMA node(s)")
    yield Finding(
        "SIMD", "found", f"{native().simd_width()} bits" if _loads() else f"{machine.simd_bits} bits"
    )
    caches = ", ".join(
        f"L{c.level} {_kib(c.bytes)}" + (f" shared by {c.shared_by}" if c.shared_by > 1 else "")
        for c in machine.caches
    )
    yield Finding("caches", "found" if caches else "absent", caches or "the system does not report them")
    memory, free = machine.memory_bytes or 0, machine.available_bytes or 0
    yield Finding("memory", "found", f"{memory / 1e9:.1f} GB, {free / 1e9:.1f} GB free")


def _bandwidth(machine: Machine) -> Iterator[Finding]:
    if not _loads():
        return
    largest = max((c.bytes for c in machine.caches), default=2**25)
    size = min(max(4 * largest, 2**28), 2**30, (machine.available_bytes or 2**32) // 4)
    counts = sorted({1, machine.hardware_threads})
    triad = partial(triad_bandwidth, Communicator())
    for name, measure in (("triad a += s * b", triad), ("streaming copy", copy_bandwidth)):
        rates = [f"{measure(t, size) / 1e9:.1f} GB/s on {t} thread{'' if t == 1 else 's'}" for t in counts]
        yield Finding(name, "found", ", ".join(rates))


def _cuda(machine: Machine) -> Iterator[Finding]:
    devices = yield from _devices("cuda", "CUDA")
    yield _nvrtc(needed=bool(devices))
    if not devices:
        yield Finding("NVML", "absent", "not asked; only links between CUDA devices come from it")
        return
    from halocline.run.devices.nvml import read_topology

    topology, why = read_topology([device.identity for device in devices])
    if topology is None:
        text, _, advice = why.partition("; ")
        yield Finding("NVML", "missing", f"{text}: links count as equal", advice)
        return
    yield Finding("NVML", "found", f"driver {topology.driver}", facts=asdict(topology))
    if len(devices) > 1:
        yield _links(topology, [_called(device) for device in devices])


def _nvrtc(needed: bool) -> Finding:
    """The compiler of kernels for CUDA devices."""
    from halocline.compile.nvrtc import find_nvrtc

    try:
        found = find_nvrtc()
    except CompileError as error:
        if not needed:
            return Finding("NVRTC", "absent", "not found; only CUDA devices need it")
        return Finding("NVRTC", "missing", *_advised(error))
    architectures = f"sm_{min(found.architectures)} to sm_{max(found.architectures)}"
    return Finding("NVRTC", "found", f"{'.'.join(map(str, found.version))}, compiles for {architectures}")


def _links(topology: Topology, names: Sequence[str]) -> Finding:
    """The bandwidths between devices, and what gives them."""
    from halocline.run.devices.nvml import bandwidths, link

    places = range(len(names))
    rates = [
        [None if a == b else rate for b, rate in enumerate(row)] for a, row in enumerate(bandwidths(topology))
    ]
    kinds = {link(topology, a, b) for a in places for b in places if a < b}
    wide = max(8, *map(len, names)) + 2
    lines = [
        "GB/s one way, where all devices send at once",
        " " * wide + "".join(f"{n:>{wide}}" for n in names),
    ]
    for name, row in zip(names, rates, strict=True):
        cells = ("–" if rate is None else f"{rate / 1e9:.1f}" for rate in row)
        lines.append(f"{name:{wide}}" + "".join(f"{cell:>{wide}}" for cell in cells))
    for kind in sorted(kinds, key=lambda kind: (-kind.bandwidth, kind.kind)):
        lines.append(f"{kind.bandwidth / 1e9:.1f}: {kind.kind}")
    equal = len({kind.bandwidth for kind in kinds}) == 1
    how = "in order, since all are equal" if equal else "by these links"
    lines.append(f"subdomains lie on devices {how}")
    return Finding("links", "found", "\n".join(lines), facts={"devices": list(names), "bandwidth": rates})


def _opencl(machine: Machine) -> Iterator[Finding]:
    yield from _devices("opencl", "OpenCL")


def _devices(interface: str, title: str) -> Generator[Finding, None, list[Any]]:
    """The devices of an interface, one line each; its library is looked for only now."""
    if not _loads():
        return []
    try:
        found = list(native().devices(interface))
    except RuntimeError as error:
        yield Finding(title, "missing", *_advised(error))
        return []
    if not found:
        yield Finding(title, "absent", native().why_no_devices(interface) or "no devices")
        return []
    platforms = list(dict.fromkeys(device.platform for device in found))
    taken = "" if len(platforms) == 1 else f" takes those of the platform {platforms[0]}"
    yield Finding(title, "found", f"{_count(len(found), 'device')}, --device {interface}{taken}")
    for device in found:
        facts = {name: getattr(device, name) for name in FACTS}
        parts = [
            device.name,
            device.platform if len(platforms) > 1 else "",
            device.architecture,
            f"{device.memory / 1e9:.1f} GB",
            _count(device.units, "unit"),
        ]
        parts += [
            "float64" if device.doubles else "no float64 with fma, which runs need",
            f"driver {device.driver}",
        ]
        yield Finding(_called(device), "found", ", ".join(filter(None, parts)), facts=facts)
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _called(device: Any) -> str:
    return f"{device.interface}:{device.index}"


def _mpi_and_devices(machine: Machine) -> Iterator[Finding]:
    """No flag of an MPI says truly whether it takes memory of devices: a run tries it."""
    text = "unknown until verified at set-up: a run with --device sends a small message and compares"
    yield Finding("MPI with devices", "absent", text)


CHECKS: tuple[Callable[[Machine], Iterator[Finding]], ...] = (
    _compiler,
    _native,
    _mpi,
    _processor,
    _bandwidth,
    _cuda,
    _opencl,
    _mpi_and_devices,
)


def _loads() -> bool:
    """Whether native code can be loaded."""
    try:
        native()
    except RunError:
        return False
    return True


def _first(error: Exception) -> str:
    return str(error).splitlines()[0]


def _advised(error: Exception) -> tuple[str, str]:
    """What is wrong, and what to do about it: our messages say that after the last semicolon."""
    text, _, advice = _first(error).rpartition("; ")
    return (text, advice) if text else (advice, "")


def _kib(size: int) -> str:
    return f"{size // 1024} KiB" if size < 2**20 else f"{size / 2**20:.3g} MiB"
