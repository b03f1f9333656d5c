"""Standard streams of a command, and warnings to users."""

from __future__ import annotations

import contextlib
import errno
import functools
import logging
import os
import sys
from typing import TextIO

from halocline.words import printable

# Numbers of errors that mean that a stream accepts no more output, if the error has no file name.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})

_lost = False
_closed: set[int] = set()  # descriptors of streams that were closed when the command started


def open_closed() -> None:
    """Open the standard streams that are closed, so that no other file gets their descriptors.

    Otherwise, the next opened file would get such a descriptor and receive the output of the stream. The
    streams opened here provide no input and accept no output.
    """
    full = "/dev/full" if os.path.exists("/dev/full") else os.devnull
    for number, place, flag in ((0, os.devnull, os.O_RDONLY), (1, full, os.O_WRONLY), (2, full, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            _closed.add(number)
            os.open(place, flag)  # open returns the lowest free descriptor, which is `number`
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def why_lost(error: OSError) -> str:
    """Return the reason why the standard output is lost."""
    return "it is closed" if 1 in _closed else error.strerror or str(error)


def is_lost_output(error: OSError) -> bool:
    """Return True if an error means that a stream does not accept output."""
    return error.filename is None and error.errno in FULL


def complain(text: str) -> None:
    """Print a text on the error stream. If this fails, the exit status reports the loss."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: TextIO) -> None:
    """Discard the pending output of a stream, so that Python does not try to write it at exit."""
    global _lost
    _lost = True
    with contextlib.suppress(OSError, ValueError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, stream.fileno())
        os.close(null_device)


class Warnings(logging.StreamHandler):  # type: ignore[type-arg]
    """Logging handler that prints warnings of the package on the error stream; see `complain`."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setLevel(logging.WARNING)

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record without control characters."""
        return printable(super().format(record))

    def handleError(self, record: logging.LogRecord) -> None:
        """Discard a record that the stream does not accept."""
        give_up(sys.stderr)


def close_errors() -> None:
    """Write the pending output of the error stream."""
    try:
        sys.stderr.flush()
    except OSError:
        give_up(sys.stderr)


def lost() -> bool:
    """Return True if any output was discarded."""
    return _lost


log = logging.getLogger("halocline")


@functools.cache
def say_once(text: str) -> None:
    """Log a warning once per process, even if several programs cause it."""
    log.warning("%s", text)
