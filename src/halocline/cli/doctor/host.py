"""Findings on the host: compiler and cache, native code, MPI, processor, memory."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from halocline.cli.doctor.finding import Finding, first_line, native_code_loads, problem_and_advice
from halocline.errors import CompileError, HaloclineError, RunError
from halocline.native import native
from halocline.run.host.machine import Machine
from halocline.run.host.mpi_library import mpi_library
from halocline.run.measurements.bandwidth import copy_bandwidth, triad_bandwidth
from halocline.run.ranks.communicator import Communicator
from halocline.run.ranks.launch import run_on_ranks
from halocline.run.ranks.library import launcher
from halocline.run.ranks.mpi import world
from halocline.words import counted

TRIAL = 'extern "C" int halocline_doctor() { return 42; }\n'
RANKS = """
from halocline.run.ranks.mpi import world
comm = world()
from mpi4py import MPI
levels = {MPI.THREAD_SINGLE: "single", MPI.THREAD_FUNNELED: "funneled", MPI.THREAD_SERIALIZED: "serialized"}
if comm.rank == 0:
    print(comm.size, levels.get(MPI.Query_thread(), "multiple"))
"""
PATIENCE = 60.0  # time limit in seconds for two ranks to start


def compiler(machine: Machine) -> Iterator[Finding]:
    """Yield findings on the compiler of kernels, the cache of kernels, and a trial compilation."""
    from halocline.compile.cxx import find_compiler
    from halocline.compile.driver import compile_library

    try:
        cxx = find_compiler()
        length = cxx.vector_length()
    except CompileError as error:
        problem, advice = problem_and_advice(error)
        files = _code_in_cache()
        if files:
            in_cache = f"Problems run whose compiled code is in the cache ({counted(files, 'file')})"
            yield Finding("C++ compiler", "absent", f"{problem}. {in_cache}", advice)
        else:
            yield Finding("C++ compiler", "missing", problem, advice, is_required=True)
        return
    vectors = "" if length is None else f", vectors of {length} bits"
    yield Finding("C++ compiler", "found", f"{cxx.version} ({cxx}){vectors}", is_required=True)
    writable, text = _cache()
    yield Finding("compile cache", "found" if writable else "missing", *text, is_required=True)
    if writable:
        start = time.monotonic()
        try:
            # the source is unique, so that no cached library is used
            library = compile_library(f"{TRIAL}// {time.time_ns()}\n")
            for file in library.parent.glob(f"{library.stem}.*"):
                file.unlink(missing_ok=True)
        except CompileError as error:
            yield Finding("compiling", "missing", *problem_and_advice(error), is_required=True)
        else:
            yield Finding("compiling", "found", f"works, {time.monotonic() - start:.1f} s", is_required=True)


def _code_in_cache() -> int:
    """Return the number of usable files of compiled code in the cache; 0 if the cache cannot be read."""
    from halocline.compile.cache_archive import contents

    try:
        return contents().files
    except CompileError:
        return 0


def _cache() -> tuple[bool, tuple[str, str]]:
    """Return True if the cache of compiled kernels is writable, with a text and advice."""
    from halocline.compile.cache import cache_folder, trusted, work_folder

    try:
        folder = trusted(cache_folder())
        with work_folder(folder):
            libraries = list(folder.glob("*.so"))
    except CompileError as error:
        return False, problem_and_advice(error)
    size = sum(file.stat().st_size for file in libraries)
    return True, (f"{folder}, writable: {len(libraries)} libraries, {size / 1e6:.1f} MB", "")


def native_code(machine: Machine) -> Iterator[Finding]:
    """Yield the finding on the native module, which runs sweeps and exchanges."""
    try:
        module = native()
    except RunError as error:
        yield Finding("native engine", "missing", *problem_and_advice(error), is_required=True)
        return
    date, threads = module.openmp()
    text = f"{Path(module.__file__ or '').name}, OpenMP {date}, up to {threads} threads"
    yield Finding("native engine", "found", text, is_required=True)


def mpi(machine: Machine) -> Iterator[Finding]:
    """Yield findings on the MPI library and on two ranks."""
    if machine.mpi_library is None:
        advice = "Run pip install mpich, or install an MPI (Debian: mpich or openmpi-bin)"
        text = "the library does not report its version"
        try:
            mpi_library()
        except HaloclineError as error:
            text = first_line(error)
        yield Finding("MPI library", "missing", text, advice)
        return
    yield Finding("MPI library", "found", f"{machine.mpi_version} ({machine.mpi_library})")
    if launcher() is not None:
        comm = world()
        text = f"{comm.size} in this run, MPI thread level {comm.thread_level}"
        yield Finding("ranks", "found", text)
        return
    try:
        yield _two_ranks()
    except HaloclineError as error:
        yield Finding("ranks", "missing", first_line(error), "Runs with one process work without MPI")


def _two_ranks() -> Finding:
    """Return the finding on a trial run with two ranks."""
    from halocline.run.ranks.library import mpiexec

    program = mpiexec()
    start = time.monotonic()
    try:
        completed = run_on_ranks(2, ["-c", RANKS], timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise RunError(f"{program} -n 2 did not end within {PATIENCE:g} s") from None
    answer = completed.stdout.split()
    if completed.returncode != 0 or len(answer) != 2 or answer[0] != "2":
        text = completed.stderr.strip() or completed.stdout.strip() or f"exit status {completed.returncode}"
        raise RunError(f"{program} -n 2 failed: {text.splitlines()[-1]}")
    seconds = time.monotonic() - start
    text = f"two started in {seconds:.1f} s with MPI thread level {answer[1]}"
    if answer[1] == "multiple":
        return Finding("ranks", "found", f"{text} ({program})")
    return Finding("ranks", "missing", text, "Install an MPI library with thread level multiple")


def processor(machine: Machine) -> Iterator[Finding]:
    """Yield findings on cores, SIMD width, caches and memory."""
    cores, threads = machine.cores, machine.hardware_threads
    text = f"{machine.cpu or 'unknown processor'}: {cores} cores"
    text += f", {threads} hardware threads" if threads != cores else ""
    yield Finding("cores", "found", f"{text}, {machine.numa_nodes or 1} NUMA node(s)")
    yield Finding(
        "SIMD",
        "found",
        f"{native().simd_width()} bits" if native_code_loads() else f"{machine.simd_bits} bits",
    )
    caches = ", ".join(
        f"L{c.level} {_kib(c.bytes)}" + (f" shared by {c.shared_by}" if c.shared_by > 1 else "")
        for c in machine.caches
    )
    yield Finding("caches", "found" if caches else "absent", caches or "the system does not report them")
    memory, free = machine.memory_bytes or 0, machine.available_bytes or 0
    yield Finding("memory", "found", f"{memory / 1e9:.1f} GB, {free / 1e9:.1f} GB free")


def bandwidth(machine: Machine) -> Iterator[Finding]:
    """Yield findings on the memory bandwidth of one thread and of all threads."""
    if not native_code_loads():
        return
    largest = max((c.bytes for c in machine.caches), default=2**25)
    size = min(max(4 * largest, 2**28), 2**30, (machine.available_bytes or 2**32) // 4)
    counts = sorted({1, machine.hardware_threads})
    triad = partial(triad_bandwidth, Communicator())
    for name, measure in (("triad a += s * b", triad), ("streaming copy", copy_bandwidth)):
        rates = [f"{measure(t, size) / 1e9:.1f} GB/s on {t} thread{'' if t == 1 else 's'}" for t in counts]
        yield Finding(name, "found", ", ".join(rates))


def _kib(size: int) -> str:
    return f"{size // 1024} KiB" if size < 2**20 else f"{size / 2**20:.3g} MiB"
