"""Notices to users that stop nothing."""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import sys
from typing import TextIO

from halocline.words import printable

# What a stream reports that takes no more. Errors that carry the name of a file are not about streams.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})

_lost = False
_closed: set[int] = set()  # the numbers of streams that were closed when the command started


def open_closed() -> None:
    """Open the standard streams that are closed, before a file gets one of their numbers and with it what is
    meant for them. Nothing can be read from them or written to them."""
    full = "/dev/full" if os.path.exists("/dev/full") else os.devnull
    for number, place, flag in ((0, os.devnull, os.O_RDONLY), (1, full, os.O_WRONLY), (2, full, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            _closed.add(number)
            os.open(place, flag)  # takes the lowest free number
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def why_lost(error: OSError) -> str:
    """Why the output is lost."""
    return "it is closed" if 1 in _closed else error.strerror or str(error)


def is_lost_output(error: OSError) -> bool:
    """Whether an error means that a stream does not take what is written to it."""
    return error.filename is None and error.errno in FULL


def complain(text: str) -> None:
    """Print on the error stream; where that takes nothing, the text is lost and the exit status shows it."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: TextIO) -> None:
    """Let what a stream has not taken go, so that the end of Python does not try again."""
    global _lost
    _lost = True
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


class Warnings(logging.StreamHandler):  # type: ignore[type-arg]
    """Warnings of the package on the error stream; see `complain`."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setLevel(logging.WARNING)

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record without control characters."""
        return printable(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:
        """Let it go where the stream takes nothing."""
        give_up(sys.stderr)


def close_errors() -> None:
    """Write what is left for the error stream."""
    try:
        sys.stderr.flush()
    except OSError:
        give_up(sys.stderr)


def lost() -> bool:
    """Whether anything was let go."""
    return _lost


log = logging.getLogger("halocline")


@functools.cache
def say_once(text: str) -> None:
    """Warn, once in this process, however many programs are concerned."""
    log.warning("%s", text)
