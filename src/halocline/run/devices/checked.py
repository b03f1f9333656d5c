"""Devices on which `make gpu-check` has passed.

CUDA devices have instructions that no test can run without such a device, for example asynchronous copies to
shared memory. Kernels use them only on a device model, with a driver, on which `make gpu-check` has passed.
The cache contains a file for each of them.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from halocline.archive.files import atomic_file
from halocline.compile.cache import cache_folder, own_folder
from halocline.compile.nvrtc import find_nvrtc

# The value 1 selects asynchronous copies on devices that have not been checked; `make gpu-check` sets it.
VARIABLE = "HALOCLINE_ASYNCHRONOUS_COPIES"
DEFINITION = "#define HC_ASYNCHRONOUS_COPIES\n"
COPY = re.compile(r"HC_COPY\((double|float)")  # sign of kernels that copy to shared memory
REVISION = 2  # number of the form of these copies in kernels; a new form requires a new check


def check_file(device: Any) -> Path:
    """Return the file whose presence says that a device has been checked.

    The name covers the model, the driver, the version of NVRTC, and the form of the copies.
    """
    facts = device.name, device.driver, device.architecture, find_nvrtc().version, REVISION
    return cache_folder() / "devices" / f"{sha256(repr(facts).encode()).hexdigest()[:32]}.checked"


def mark_checked(device: Any) -> None:
    """Record that `make gpu-check` has passed on a device."""
    file = check_file(device)
    own_folder(file.parent)
    with atomic_file(file) as new_file:
        new_file.write_text(f"{device.name}, driver {device.driver}\n")


def with_copies(device: Any, source: str) -> str:
    """Return the source of kernels for a device, with asynchronous copies if the device may use them."""
    if device.interface != "cuda" or not COPY.search(source):
        return source
    return DEFINITION + source if has_copies(device) else source


def has_copies(device: Any) -> bool:
    """Return True if the kernels of a device may copy asynchronously."""
    if device.interface != "cuda":
        return False
    selected = os.environ.get(VARIABLE)
    return check_file(device).exists() if selected is None else selected == "1"
