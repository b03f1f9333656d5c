"""Elementary functions of generated code: accuracy against mpmath, special values, equal bits everywhere.

The reference is mpmath at 120 bits, and for special values the C library (C99 annex F) or Python.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from elementary_accuracy import REFERENCE, check_accuracy, libraries, library
from elementary_functions import (
    DOUBLE,
    FLOAT,
    ROOT,
    Library,
)

__all__ = ["libraries", "library"]  # fixtures


# ---- accuracy --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [DOUBLE, FLOAT])
@pytest.mark.parametrize("name", list(REFERENCE))
def test_elementary_functions_are_accurate_at_many_arguments(
    library: Library, name: str, dtype: type
) -> None:
    check_accuracy(library, name, dtype, 50_000)


# ---- the text --------------------------------------------------------------------------------


def test_coefficients_agree_with_their_derivation() -> None:
    script = ROOT / "tools" / "elementary_coefficients.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
