"""Measured kernels: stored and reused choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from halocline.compile.strategy import Strategy
from halocline.run.tuning import kernels
from halocline.run.tuning.patches import Tuned, cache_file, recall


@pytest.fixture
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HALOCLINE_CACHE", str(tmp_path))
    return tmp_path


def test_unreadable_tuning_files_are_ignored(nothing_known: Path) -> None:
    name = kernels.key("source", ["device"], (8, 8), 1, ())
    assert recall(Tuned[Strategy], cache_file(name, "kernels")) is None
    for text in ("", "{}", '{"choice": {"reads": "fast"}, "gain": 1.0, "tried": 2}'):
        cache_file(name, "kernels").write_text(text)
        assert recall(Tuned[Strategy], cache_file(name, "kernels")) is None
    known = {"source": "a", "devices": ["d"], "shape": (8,), "ranks": 1, "choices": ()}
    changes = {"source": "b", "devices": ["e"], "shape": (9,), "ranks": 2, "choices": (Strategy("direct"),)}
    keys = {kernels.key(**known), *(kernels.key(**known | {name: other}) for name, other in changes.items())}
    assert len(keys) == 6


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_candidate_strategies_are_distinct(ndim: int) -> None:
    for staged in (False, True):
        candidates = kernels.strategies(ndim, staged)
        assert len(set(candidates)) == len(candidates)
        assert Strategy() not in candidates
        assert any(strategy.stages == "memory" for strategy in candidates) == staged
