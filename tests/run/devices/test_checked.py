"""Devices on which `make gpu-check` has passed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from halocline.compile.targets.source import device_text
from halocline.run.devices.checked import (
    DEFINITION,
    VARIABLE,
    check_file,
    has_copies,
    mark_checked,
    with_copies,
)

SOURCE = device_text(["HC_KERNEL copy(double *to, double *from) { HC_COPY(double, to, from); }"], 1)
PLAIN = device_text(["HC_KERNEL nothing() {}"], 1)


def device(**facts: str) -> Any:
    return SimpleNamespace(
        **{"interface": "cuda", "name": "GPU", "driver": "1.2", "architecture": "sm_90"} | facts
    )


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.usefixtures("empty_cache")
def test_only_checked_devices_copy_asynchronously() -> None:
    assert with_copies(device(), SOURCE) == SOURCE
    mark_checked(device())
    assert with_copies(device(), SOURCE) == DEFINITION + SOURCE
    assert with_copies(device(), PLAIN) == PLAIN
    assert has_copies(device())
    assert check_file(device()).read_text() == "GPU, driver 1.2\n"
    for other in ({"name": "other"}, {"driver": "1.3"}, {"architecture": "sm_80"}):
        assert with_copies(device(**other), SOURCE) == SOURCE, other
    assert with_copies(device(interface="opencl"), SOURCE) == SOURCE
    assert not has_copies(device(interface="opencl"))


@pytest.mark.usefixtures("empty_cache")
def test_the_variable_takes_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    assert with_copies(device(), SOURCE) == DEFINITION + SOURCE
    mark_checked(device())
    monkeypatch.setenv(VARIABLE, "0")
    assert with_copies(device(), SOURCE) == SOURCE
