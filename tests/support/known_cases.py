"""Cases that a test declares in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., None]:
    """Return a function that registers further cases by their texts, in this process."""

    def use(**texts: str) -> None:
        folder = tmp_path_factory.mktemp("cases")
        for name, text in texts.items():
            (folder / f"{name}.py").write_text(text)
        monkeypatch.setattr("halocline.problems.files.CASES", folder)

    return use
