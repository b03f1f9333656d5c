"""Progress of a run: an updated line on a terminal or in a notebook, or occasional lines in a log."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from time import monotonic
from typing import IO, Any

from halocline.run.host.streams import complain
from halocline.run.ranks.library import launcher
from halocline.words import joined, one_line

FIRST_LINE, LATER_LINES = 60.0, 600.0  # without a terminal: seconds before the first line and between lines
NOTEBOOK_DELAY = 1.0  # seconds before a notebook shows the progress, so that short runs show nothing
TERMINAL = "HALOCLINE_TERMINAL"  # terminal of the parent process, if the output of this process is a pipe


def terminal() -> str | None:
    """Return the name of the terminal for the progress line, or None."""
    with contextlib.suppress(OSError, ValueError):
        return os.ttyname(sys.stderr.fileno())
    return os.environ.get(TERMINAL)


def in_notebook() -> bool:
    """Return True if this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")  # imported by every kernel
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


def share_terminal() -> None:
    """Pass the terminal of this process to child processes for their progress lines."""
    name = terminal()
    if name:
        os.environ[TERMINAL] = name


@contextlib.contextmanager
def progress(
    description: str | Callable[[], str], unit: str | Callable[[], str]
) -> Iterator[Callable[..., None] | None]:
    """Show a description and a count during the block.

    On the first rank, the context manager yields a function of the count. Two further arguments are optional:
    a text, and the completed share of the work, which a notebook shows as a bar. On all other ranks, it
    yields None. A notebook shows the progress in the output of the cell after one second. Without a notebook
    and a terminal, as in a batch job, a line is written after one minute, and then every ten minutes.

    Parameters
    ----------
    description, unit : str or callable
        Description of the work, and unit of the count. A callable returns the current text.
    """
    parent = launcher()
    if parent is not None and parent.rank > 0:
        yield None
        return
    if in_notebook():
        notebook = _Notebook(description, unit)
        try:
            yield notebook
        finally:
            notebook.remove()
        return
    stream = _open(terminal())
    if stream is None:
        yield _Log(description, unit)
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
        redirect_stdout=sys.stdout.isatty(),  # printed lines appear above the progress line
        redirect_stderr=sys.stderr.isatty(),
    )
    with stream, lines as live_lines:
        task = live_lines.add_task(one_line(_text(description)), total=None, count="set up")
        yield lambda count, suffix="", _=None: live_lines.update(
            task, description=one_line(_text(description)), count=joined(f"{count:,} {_text(unit)}", suffix)
        )


def _text(text: str | Callable[[], str]) -> str:
    return text() if callable(text) else text


class _Log:
    """Writer of occasional progress lines to the error stream."""

    def __init__(self, description: str | Callable[[], str], unit: str | Callable[[], str]) -> None:
        self.description, self.unit = description, unit
        self.next = monotonic() + FIRST_LINE

    def __call__(self, count: int, suffix: str = "", share: float | None = None) -> None:
        if monotonic() >= self.next:
            self.next = monotonic() + LATER_LINES
            complain(joined(f"{_text(self.description)}: {count:,} {_text(self.unit)}", suffix))


class _Notebook:
    """Progress bar in the output of a cell. Any thread may call it."""

    def __init__(self, description: str | Callable[[], str], unit: str | Callable[[], str]) -> None:
        self.description, self.unit = description, unit
        self._begin = monotonic()
        self._output: Any = None  # handle of the output of the cell

    def __call__(self, count: int, suffix: str = "", share: float | None = None) -> None:
        if self._output is None and monotonic() < self._begin + NOTEBOOK_DELAY:
            return
        from rich.progress import BarColumn, Progress, TextColumn

        name = TextColumn("{task.description}", markup=False)
        number = TextColumn("{task.fields[count]}", markup=False)
        bar = Progress(name, number) if share is None else Progress(name, BarColumn(), number)
        text = joined(f"{count:,} {_text(self.unit)}", suffix)
        bar.add_task(
            one_line(_text(self.description)), total=1000, completed=round(1000 * (share or 0)), count=text
        )
        if self._output is None:
            self._output = import_module("IPython.display").display(bar, display_id=True)
        else:
            self._output.update(bar)

    def remove(self) -> None:
        """Remove the bar from the output of the cell."""
        if self._output is not None:
            self._output.update(import_module("IPython.display").HTML(""))


def _open(name: str | None) -> IO[str] | None:
    if name is None:
        return None
    with contextlib.suppress(OSError):  # the terminal belongs to another node
        return open(os.open(name, os.O_WRONLY | os.O_NOCTTY), "w")
    return None
