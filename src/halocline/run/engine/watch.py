"""While the engine runs without Python: signals become a request to stop, progress is reported, and whoever
waits for a time or a file can ask for a pause."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from halocline.errors import Terminated
from halocline.native import native

INTERVAL = 0.2  # seconds between reports of progress
STOPPING = (signal.SIGINT, signal.SIGTERM)

_listening: list[signal.Signals] = []  # what an outer block listens to


def interruption(text: str = "") -> KeyboardInterrupt:
    """Return the exception of a run that a signal has stopped, with a text for the user."""
    if native().stopping_signal() == signal.SIGTERM:
        return Terminated(text)
    return KeyboardInterrupt(text)


@contextmanager
def stopping_on(signals: Sequence[signal.Signals] = STOPPING) -> Iterator[None]:
    """Let these signals ask the engines of this process to stop meanwhile, where all ranks agree; inside
    another such block, or one of `noting`, those of the outer block count.

    A request that came too late for the last run in the block stays: the next one follows it, or who called
    this asks for it (`forget_stop`).
    """
    number = 0 if _listening else native().noted_signal()
    if number:
        native().forget_signal()
        native().request_stop(number)
    with _handled(signals, native().stop_on_signals):
        yield


@contextmanager
def noting(signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Let these signals be noted meanwhile: engines go on until a caller that sees `noted_signal` lets them
    pause.

    One that came too late for that stays, for the next run.
    """
    with _handled(signals, native().note_signals):
        yield


@contextmanager
def _handled(signals: Sequence[signal.Signals], handle: Callable[[list[int]], None]) -> Iterator[None]:
    """What is ignored stays ignored, such as SIGINT in what a shell runs in the background."""
    main = threading.current_thread() is threading.main_thread()
    handlers = {s: signal.getsignal(s) for s in signals} if main and not _listening else {}
    before = {s: handler for s, handler in handlers.items() if handler != signal.SIG_IGN}
    if before:
        handle([int(s) for s in before])
        _listening.extend(before)
    try:
        yield
    finally:
        if before:
            _listening.clear()
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def watching(engine: Any, on_progress: Callable[[int], None] | None = None) -> Iterator[None]:
    """Around a native run: SIGINT and SIGTERM end it where all ranks agree; `on_progress` is called
    meanwhile. The engine says whether it was asked to stop."""
    report = None if on_progress is None else (lambda: on_progress(engine.progress()))
    with stopping_on():
        if report is None:
            yield
            return
        with repeating(report, "halocline-progress"):
            yield
        report()


@contextmanager
def repeating(call: Callable[[], None], name: str) -> Iterator[None]:
    """Call something a few times a second from a thread of that name."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(INTERVAL):
            call()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
