"""CUDA devices for tests: those of this machine, or a stand-in for the driver and for NVRTC.

The stand-in (tests/support/cuda_driver/) runs kernels on the host, in the given number of devices. It rejects
everything that a driver rejects. Its devices are named "CUDA stand-in (host)". A process uses the stand-in
after load(), which must precede every request for CUDA devices, or if it starts with environment().
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
    """Return the number of CUDA devices of this machine."""
    with contextlib.suppress(OSError, AttributeError):
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0


@lru_cache(maxsize=1)
def build() -> Path:
    """Return the folder of the stand-in's libraries; several processes may build it at the same time."""
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
    """Return the environment in which a process starts with the stand-in.

    Settings: memory (bytes of a device), threads and shared (size of a thread block, and bytes that it
    shares), peers and ipc (0: no), delay (microseconds).
    """
    folder = build()
    paths = [str(folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    variables = {
        "LD_LIBRARY_PATH": ":".join(paths),
        "HALOCLINE_NVRTC": str(folder / LIBRARIES["nvrtc.cpp"]),
        "HALOCLINE_TEST_CUDA_SOURCES": str(SOURCES),
        "HALOCLINE_TEST_CUDA_DEVICES": str(devices),
    }
    return variables | {f"HALOCLINE_TEST_CUDA_{name.upper()}": str(value) for name, value in settings.items()}


def load(devices: int = 2, **settings: object) -> ctypes.CDLL:
    """Load the stand-in into this process."""
    variables = environment(devices, **settings)
    # only the start of a process reads it; dlopen finds a loaded library of that name
    del variables["LD_LIBRARY_PATH"]
    os.environ.update(variables)
    return ctypes.CDLL(str(build() / LIBRARIES["driver.cpp"]))
