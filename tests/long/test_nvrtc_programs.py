"""NVRTC compiles the kernels of every program, for architectures of devices that this machine lacks.

The programs are those of the solvers, cases and examples, and bitwise_programs in both precisions. The tests
record the registers of a thread and its spilled bytes. Only the programs in SPILLED may spill.

`make test-full` compiles every program with every strategy: by version 12 for all three architectures, and by
version 13 for the two that it supports.
"""

from __future__ import annotations

from typing import Any

import pytest

from nvrtc_kernels import ARCHITECTURES, LITERALS, PROGRAMS, STRATEGIES, check, version_13


@pytest.fixture
def newer(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select version 13 of NVRTC."""
    monkeypatch.setenv("HALOCLINE_NVRTC", str(version_13(tmp_path_factory.getbasetemp() / "nvrtc-13")))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_compiles_with_every_strategy(name: str, record_property: Any) -> None:
    check(name, [*STRATEGIES, LITERALS], ARCHITECTURES[12], record_property)


@pytest.mark.usefixtures("newer")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_compiles_with_version_13(name: str, record_property: Any) -> None:
    check(name, [*STRATEGIES, LITERALS], ARCHITECTURES[13], record_property)
