"""The line that shows the progress of a run."""

from __future__ import annotations

import pytest

from halocline.run.simulation import live
from halocline.run.simulation.live import LiveLine, clock


def test_the_line_shows_speed_share_and_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    time_now = [100.0]
    monkeypatch.setattr(live, "monotonic", lambda: time_now[0])
    scalars = {"t": 0.0, "dt": 0.01, "speed": 3.0}
    line = LiveLine(
        lambda: scalars, 10**6, until=2.0, last=1000, limiter=lambda s: f"speed {s['speed']:g}",
        bound_cells_per_second=1e8,
    )  # fmt: skip
    assert line(0) == "t = 0"
    for second in range(1, 4):
        time_now[0] += 1.0
        scalars |= {"t": 0.2 * second}
        text = line(20 * second)
    # 20 steps per second of a million cells; 0.2 of time per second, and 1.4 left: sooner than 940 steps
    assert text == "t = 0.6, dt = 0.01 (speed 3), 20 M cells/s, 20% of the bound, 0:07 left"
    for _ in range(30):  # the time does not advance
        time_now[0] += 1.0
        text = line(61)
    assert text == "t = 0.6, dt = 0.01 (speed 3)"


def test_the_speed_is_that_of_recent_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    time_now = [0.0]
    monkeypatch.setattr(live, "monotonic", lambda: time_now[0])
    line = LiveLine(lambda: {"t": 0.0}, 1, until=None, last=10_000)
    step = 0
    for rate in (100, 10):
        for _ in range(40):
            time_now[0] += 1.0
            step += rate
            text = line(step)
    assert "10 cells/s" in text
    assert f"{clock((10_000 - step) / 10)} left" in text


def test_durations_are_formatted_as_clock_times() -> None:
    assert [clock(s) for s in (0.4, 59.6, 61, 7384)] == ["0:00", "1:00", "1:01", "2:03:04"]
