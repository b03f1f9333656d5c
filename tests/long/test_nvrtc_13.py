"""NVRTC 13 compiles what test_nvrtc_programs.py compiles with version 12, for the architectures it supports.

These tests are a file of their own, so that another worker can run them.
"""

from __future__ import annotations

from typing import Any

import pytest

from nvrtc_kernels import ARCHITECTURES, LITERALS, PROGRAMS, STRATEGIES, check, check_each, version_13


@pytest.fixture(autouse=True)
def newer(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select version 13 of NVRTC."""
    monkeypatch.setenv("HALOCLINE_NVRTC", str(version_13(tmp_path_factory.getbasetemp() / "nvrtc-13")))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_compiles_with_every_strategy(name: str, record_property: Any) -> None:
    check(name, [LITERALS], ARCHITECTURES[13], record_property)  # few kernels are equal to others
    check_each(name, list(STRATEGIES), ARCHITECTURES[13], record_property)
