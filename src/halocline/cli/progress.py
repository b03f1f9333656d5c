"""How far a run is: a line that renews itself on the terminal, if there is one, else a line now and then."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from time import monotonic
from typing import IO

from halocline.run.host.streams import complain
from halocline.run.ranks.library import launcher
from halocline.words import joined, one_line

FIRST_LINE, LATER_LINES = 60.0, 600.0  # seconds, where there is no terminal
TERMINAL = "HALOCLINE_TERMINAL"  # names the terminal of whoever started this process, whose output is a pipe


def terminal() -> str | None:
    """The terminal on which progress is to be shown, or None."""
    with contextlib.suppress(OSError, ValueError):
        return os.ttyname(sys.stderr.fileno())
    return os.environ.get(TERMINAL)


def share_terminal() -> None:
    """Let processes that this one starts show their progress on its terminal, whatever their output is."""
    name = terminal()
    if name:
        os.environ[TERMINAL] = name


@contextlib.contextmanager
def progress(
    what: str | Callable[[], str], unit: str | Callable[[], str]
) -> Iterator[Callable[..., None] | None]:
    """Show `what` and a count of `unit` during the block; functions give texts that may change.

    Yields what takes the count, and perhaps a text beside it; None on all ranks but the first. Without a
    terminal, as in the log of a batch job, a line comes after a minute, then every ten.
    """
    started = launcher()
    if started is not None and started.rank > 0:
        yield None
        return
    stream = _open(terminal())
    if stream is None:
        yield _Log(what, unit)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[count]}", markup=False),
    )
    console = Console(file=stream, force_terminal=True)
    lines = Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # above the line; output to a file stays there
        redirect_stderr=sys.stderr.isatty(),
    )
    with stream, lines as shown:
        task = shown.add_task(one_line(_text(what)), total=None, count="set up")
        yield lambda count, beside="": shown.update(
            task, description=one_line(_text(what)), count=joined(f"{count:,} {_text(unit)}", beside)
        )


def _text(text: str | Callable[[], str]) -> str:
    return text() if callable(text) else text


class _Log:
    """Writes a line to the error stream now and then."""

    def __init__(self, what: str | Callable[[], str], unit: str | Callable[[], str]) -> None:
        self.what, self.unit = what, unit
        self.next = monotonic() + FIRST_LINE

    def __call__(self, count: int, beside: str = "") -> None:
        if monotonic() >= self.next:
            self.next = monotonic() + LATER_LINES
            complain(joined(f"{_text(self.what)}: {count:,} {_text(self.unit)}", beside))


def _open(name: str | None) -> IO[str] | None:
    if name is None:
        return None
    with contextlib.suppress(OSError):  # not of this node
        return open(os.open(name, os.O_WRONLY | os.O_NOCTTY), "w")
    return None
