"""Every constant that the engine declares for the CUDA driver is compared with NVIDIA's header."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_constant_is_compared() -> None:
    """The comparison itself needs the header: tests/long/test_cuda_interface.py."""
    declarations = (ROOT / "native/src/device/cuda_library.hpp").read_text()
    comparisons = (ROOT / "tests/support/cuda_driver/interface.cpp").read_text()
    declared = re.findall(r"\b(k[A-Z]\w+) = \d+", declarations)
    assert len(declared) > 40
    assert sorted(declared) == sorted(re.findall(r"^SAME\((k\w+),", comparisons, re.MULTILINE))
