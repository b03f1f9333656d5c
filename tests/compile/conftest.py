"""Compilation anew in tests that change the compiler."""

from __future__ import annotations

import pytest

from halocline.compile import compiler


@pytest.fixture(autouse=True)
def _compiled_anew(request: pytest.FixtureRequest) -> None:
    """Keep no schedules in tests that patch passes: they would be found for the unchanged compiler."""
    if "monkeypatch" in request.fixturenames:
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setattr(compiler, "KEPT", 0)
        monkeypatch.setattr(compiler, "_schedules", {})
