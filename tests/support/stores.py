"""Zarr stores, opened with xarray."""

from __future__ import annotations

from pathlib import Path

import xarray


def open_content(path: Path) -> xarray.Dataset:
    """Return the content of a store."""
    return xarray.open_zarr(path).load()
