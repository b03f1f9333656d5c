"""The entry of the command: exit statuses, and the last lines of a failing command."""

from __future__ import annotations

import errno
import logging
import signal
from collections.abc import Callable
from typing import Any

import pytest

from halocline.cli import app
from halocline.cli.main import main, terminate
from halocline.errors import InputError, RunError, Terminated


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], int]:
    """Return the status of a command that returns a value, or raises it."""
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)

    def of(value: Any) -> int:
        def run(words: list[str]) -> int:
            if isinstance(value, BaseException):
                raise value
            return value

        monkeypatch.setattr(app, "run", run)
        return main()

    return of


@pytest.mark.parametrize(
    ("value", "status", "words"),
    [
        (0, 0, ""),
        (3, 3, ""),
        (SystemExit(None), 0, ""),
        (SystemExit(4), 4, ""),
        (SystemExit("no such file"), 1, "no such file"),
        (InputError("n is 0"), 2, "halocline: error: n is 0"),
        (RunError("rank 1 failed"), 1, "halocline: error: rank 1 failed"),
        (KeyboardInterrupt(), 130, "halocline: interrupted"),
        (Terminated(), 143, "halocline: terminated by SIGTERM"),
        (OSError(errno.ENOENT, "No such file"), 1, "FileNotFoundError: [Errno 2] No such file"),
        (ZeroDivisionError("x"), 1, "ZeroDivisionError: x"),
    ],
)
def test_the_exit_status_shows_the_outcome_of_a_command(
    value: Any, status: int, words: str, outcome: Callable[[Any], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(value) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert words in (printed.err.splitlines() or [""])  # lines of the user may follow


def test_sigterm_without_a_handler_ends_the_command(outcome: Callable[[Any], int]) -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        outcome(0)
        assert signal.getsignal(signal.SIGTERM) is terminate
        with pytest.raises(Terminated):
            terminate(signal.SIGTERM, None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        outcome(0)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
