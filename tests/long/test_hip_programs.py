"""Clang compiles the kernels of every program as HIP for AMD GPUs. No test runs this code."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from hip_kernels import ARCHITECTURES, check
from nvrtc_kernels import LITERALS, PROGRAMS


@pytest.mark.parametrize(("name", "architecture"), zip(PROGRAMS, cycle(ARCHITECTURES), strict=False))
def test_every_program_compiles_for_amd_gpus(name: str, architecture: str, record_property: Any) -> None:
    check(name, ["default", LITERALS, "planes"], architecture, record_property)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_schemes_with_shocks_compile_for_amd_gpus(architecture: str, record_property: Any) -> None:
    check("case-blast", ["default"], architecture, record_property)
