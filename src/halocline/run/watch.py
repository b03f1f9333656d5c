"""While the engine runs without Python: signals become a request to stop, and progress is reported."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from halocline.native import native

INTERVAL = 0.2  # seconds between reports of progress
STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def watching(engine: Any, on_progress: Callable[[int], None] | None = None) -> Iterator[None]:
    """Around a native run: SIGINT and SIGTERM end it where all ranks agree; `on_progress` is called
    meanwhile.

    The engine says whether it was asked to stop. A request that came too late for that stays: the next run
    follows it, or who called this asks for it (`forget_stop`). What is ignored stays ignored, such as SIGINT
    in what a shell runs in the background.
    """
    main = threading.current_thread() is threading.main_thread()
    handlers = {s: signal.getsignal(s) for s in STOPPING} if main else {}
    before = {s: handler for s, handler in handlers.items() if handler != signal.SIG_IGN}
    if before:
        native().stop_on_signals([int(s) for s in before])
    done = threading.Event()
    reporter = None
    if on_progress is not None:

        def report() -> None:
            while not done.wait(INTERVAL):
                on_progress(engine.progress())

        reporter = threading.Thread(target=report, name="halocline-progress", daemon=True)
        reporter.start()
    try:
        yield
    finally:
        done.set()
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if reporter is not None:
            reporter.join()
        if on_progress is not None:
            on_progress(engine.progress())
