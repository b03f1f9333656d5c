"""Programs that are evaluated point by point have the bits of compiled ones, and need no compilation.

Fixed expressions cover every operation. Random ones nest all operations in each other.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halocline.run.fields import pointwise as module
from random_expressions import check_random_expressions, few, trees


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Choose whether all programs are compiled, or none that can be evaluated point by point."""

    def choose(always: bool) -> None:
        monkeypatch.setattr(module, "MOST_WORK", -1 if always else 2**40)

    return choose


@settings(few, max_examples=25)
@given(described=st.lists(trees, min_size=48, max_size=48))
def test_many_random_expressions_have_the_bits_of_compiled_ones(
    described: list[Any], compiled: Callable[[bool], None]
) -> None:
    check_random_expressions(described, compiled)


README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_first_program_of_the_readme_compiles_one_library(tmp_path: Path) -> None:
    """A constant start needs no second library."""
    program = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    before, start, after = re.split(r"(^sim\[T\] = .*\n)", program, flags=re.MULTILINE)
    environment = os.environ | {"HALOCLINE_CACHE": str(tmp_path / "cache")}
    for setting, expected in ((start, 0.59975), ("sim[T] = 1.0\n", 1.0)):
        done = subprocess.run(
            [sys.executable, "-c", before + setting + after], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        checksum, largest = done.stdout.split()
        assert len(checksum) == 32
        assert float(largest) == pytest.approx(expected, abs=1e-5)
        assert len(list((tmp_path / "cache").glob("*.so"))) == 1
