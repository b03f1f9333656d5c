"""NVRTC compiles the kernels of every program, for architectures of devices that this machine lacks.

The programs are those of the solvers, cases and examples, and bitwise_programs in both precisions. The tests
record the registers of a thread and its spilled bytes. Only the programs in SPILLED may spill.

`make test` compiles every program that is not in ALIKE for small and large grids, for sm_70, sm_80 and sm_90
in turn. All architectures compile the same text, so that an architecture that rejects a program also rejects
its neighbours in the list. All strategies are compiled for two programs, one of which has stages. Version 13
of NVRTC compiles one program for both of its architectures. These tests take a minute of one core.

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
