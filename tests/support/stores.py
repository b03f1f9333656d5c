"""Zarr stores, opened with xarray."""

from __future__ import annotations

from pathlib import Path

import xarray


def opened(path: Path) -> xarray.Dataset:
    return xarray.open_zarr(path).load()
