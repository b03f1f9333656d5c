"""PyTorch and JAX for tests, which are skipped where a package is missing or cannot be loaded."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


def library(name: str) -> Any:
    """Return a package, or skip the test if it cannot be imported."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError, ValueError) as error:  # PyTorch without its CUDA libraries: ValueError
        pytest.skip(f"{name} cannot be imported: {error}")
