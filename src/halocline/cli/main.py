"""Entry point of the `halocline` command, with its exit statuses and error messages."""

from __future__ import annotations

import logging
import signal
import sys
from types import FrameType
from typing import NoReturn

from halocline.errors import Terminated
from halocline.run.host import process, streams
from halocline.run.ranks.abort import report
from halocline.run.ranks.library import launcher


def main() -> int:
    """Run the command with the words of sys.argv, and return its exit status.

    The status is 0 for success, 2 for invalid input, 75 after an early stop with a checkpoint, 130 after
    Ctrl-C, and 143 after SIGTERM. For all other errors, and for an output stream that cannot be written, the
    status is 1. If several ranks run the command, each error is printed once.
    """
    process.seldom()
    streams.open_closed()
    parent = launcher()
    is_alone = parent is None or parent.size == 1
    if is_alone and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)  # with several ranks, MPI ends the others
    words = sys.argv[1:]
    if parent and parent.rank and words[:1] != ["run"] and not {"-h", "--help"}.isdisjoint(words):
        return 0  # the first rank prints the help text
    try:
        from halocline.cli.app import run

        # this handler prints warnings unless the file of the user configures logging
        logging.lastResort = streams.Warnings()
        status = run(words)
        sys.stdout.flush()
        streams.close_errors()
        return status or int(streams.lost())
    except SystemExit as end:
        if isinstance(end.code, str):
            streams.complain(end.code)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed the pipe
        streams.give_up(sys.stdout)
        return 1
    except OSError as error:
        if not streams.is_lost_output(error):
            return report(error)
        streams.give_up(sys.stdout)
        streams.complain(f"halocline: error: the output cannot be written: {streams.why_lost(error)}")
        return 1
    except BaseException as error:
        return report(error)


def terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Raise Terminated, which ends the command after SIGTERM."""
    raise Terminated
