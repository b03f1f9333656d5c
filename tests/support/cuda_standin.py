"""CUDA devices for tests: those of this machine, else a stand-in for the driver and for NVRTC.

The stand-in (tests/cuda_driver/) runs kernels on the host, in as many devices as are asked for, and refuses
what a driver refuses. Its devices are named "CUDA stand-in (host)". A process has it from load() on, which
must come before anything asks for CUDA devices, or by starting with environment().
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import tempfile
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from hang import HANG

SOURCES = Path(__file__).resolve().parent / "cuda_driver"
LIBRARIES = {"driver.cpp": "libcuda.so.1", "nvrtc.cpp": "libnvrtc.so.12"}
NAME = "CUDA stand-in (host)"


@lru_cache(maxsize=1)
def real_devices() -> int:
    """How many CUDA devices this machine has."""
    with contextlib.suppress(OSError, AttributeError):
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0


@lru_cache(maxsize=1)
def build() -> Path:
    """The folder of the stand-in's libraries; processes that build it at once do not disturb each other."""
    digest = sha256()
    for file in sorted(SOURCES.iterdir()):
        digest.update(file.read_bytes())
    base = Path(os.environ.get("HALOCLINE_CACHE", tempfile.gettempdir()))
    base.mkdir(parents=True, exist_ok=True)
    folder = base / f"cuda-standin-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    place = Path(tempfile.mkdtemp(prefix="making-", dir=base))
    running = []
    for source, library in LIBRARIES.items():
        command = ["g++", "-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror"]
        command += ["-fPIC", "-shared", "-pthread"]
        command += [f"-Wl,-soname,{library}", str(SOURCES / source), "-o", str(place / library)]
        running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    for process in running:
        _, errors = process.communicate(timeout=HANG)
        assert process.returncode == 0, errors
    with contextlib.suppress(OSError):  # another process was first
        place.rename(folder)
    return folder


def environment(devices: int = 2, **settings: object) -> dict[str, str]:
    """What a process needs to start with the stand-in. Settings: memory (bytes of a device), threads
    and shared (of a group: how many, and bytes that they share), peers and ipc (0: no), delay
    (microseconds)."""
    folder = build()
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    told = {
        "LD_LIBRARY_PATH": ":".join(paths),
        "HALOCLINE_NVRTC": str(folder / LIBRARIES["nvrtc.cpp"]),
        "HALOCLINE_TEST_CUDA_SOURCES": str(SOURCES),
        "HALOCLINE_TEST_CUDA_DEVICES": str(devices),
    }
    return told | {f"HALOCLINE_TEST_CUDA_{name.upper()}": str(value) for name, value in settings.items()}


def load(devices: int = 2, **settings: object) -> ctypes.CDLL:
    """Give this process the stand-in."""
    told = environment(devices, **settings)
    del told["LD_LIBRARY_PATH"]  # read when a process starts; a library of that name that is loaded is found
    os.environ.update(told)
    return ctypes.CDLL(str(build() / LIBRARIES["driver.cpp"]))
