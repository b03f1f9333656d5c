"""Progress of a run on a terminal and in a log."""

from __future__ import annotations

import re

import pytest

from halocline.cli import progress
from halocline.problems import live
from halocline.problems.problem import Problem


def test_a_case_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LEAST", 0.0)
    shown: list[tuple[int, str]] = []
    Problem("alfven-decay", [16]).run(
        steps=100_000, threads=1, share=True, on_progress=lambda step, line: shown.append((step, line))
    )
    step, line = shown[-1]
    assert step == 100_000
    number = r"\d\S*"
    assert re.fullmatch(
        rf"t = {number}, dt = {number} \(fast magnetosonic waves\), {number} [kMG] cells/s, "
        r"\d+% of the bound, 0:00 left",
        line,
    )


def test_a_batch_log_gets_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "terminal", lambda: None)
    with progress.progress("heat, 8 x 8", "steps") as on_progress:
        assert on_progress is not None
        for _ in range(150):
            now[0] += 10.0
            on_progress(int(now[0]), "t = 1")
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"heat, 8 x 8: {step:,} steps, t = 1" for step in (60, 660, 1260)]
