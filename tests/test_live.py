"""The line that tells how far a run is."""

from __future__ import annotations

import re
import time

import pytest

from halocline.cli import progress
from halocline.study import live
from halocline.study.live import LiveLine, clock
from halocline.study.run_case import CaseRun


def test_speed_share_and_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(live, "monotonic", lambda: now[0])
    scalars = {"t": 0.0, "dt": 0.01, "speed": 3.0}
    line = LiveLine(
        lambda: scalars, 10**6, until=2.0, last=1000, limiter=lambda s: f"speed {s['speed']:g}",
        cells_a_second=1e8,
    )  # fmt: skip
    assert line(0) == "t = 0"
    for second in range(1, 4):
        now[0] += 1.0
        scalars |= {"t": 0.2 * second}
        told = line(20 * second)
    # 20 steps a second of a million cells; 0.2 of time a second, and 1.4 left: sooner than 940 steps
    assert told == "t = 0.6, dt = 0.01 (speed 3), 20 M cells/s, 20% of the bound, 0:07 left"
    for _ in range(30):  # it becomes slower: what counts is the last time
        now[0] += 1.0
        told = line(61)
    assert re.search(r" (0|\d\d+) cells/s|^t = 0.6, dt", told)


def test_the_speed_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(live, "monotonic", lambda: now[0])
    line = LiveLine(lambda: {"t": 0.0}, 1, until=None, last=10_000)
    step = 0
    for rate in (100, 10):
        for _ in range(40):
            now[0] += 1.0
            step += rate
            told = line(step)
    assert "10 cells/s" in told
    assert f"{clock((10_000 - step) / 10)} left" in told


def test_clock() -> None:
    assert [clock(s) for s in (0.4, 59.6, 61, 7384)] == ["0:00", "1:00", "1:01", "2:03:04"]


def test_a_case_tells_how_far_it_is() -> None:
    told: list[tuple[int, str, float]] = []

    def tell(step: int, line: str) -> None:
        told.append((step, line, time.monotonic()))

    CaseRun("alfven-decay", [16]).run(steps=40_000, threads=1, share=True, on_progress=tell)
    step, line, end = told[-1]
    assert step == 40_000
    assert re.match(r"t = \S+, dt = \S+ \(fast magnetosonic waves\)", line)
    if end - told[0][2] > 2 * live.LEAST:
        assert re.search(r"cells/s, \d+% of the bound, \d+:\d\d left", line)


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
