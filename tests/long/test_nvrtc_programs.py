"""NVRTC 12 compiles the kernels of every program, for architectures of devices that this machine lacks.

The programs are those of the solvers, cases and examples, and bitwise_programs in both precisions. The tests
record the registers of a thread and its spilled bytes. Only the programs in SPILLED may spill.
"""

from __future__ import annotations

from typing import Any

import pytest

from nvrtc_kernels import ARCHITECTURES, LITERALS, PROGRAMS, STRATEGIES, check, check_each


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_compiles_with_every_strategy(name: str, record_property: Any) -> None:
    check(name, [LITERALS], ARCHITECTURES[12], record_property)  # few kernels are equal to others
    check_each(name, list(STRATEGIES), ARCHITECTURES[12], record_property)
