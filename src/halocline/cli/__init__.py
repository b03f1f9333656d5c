"""The `halocline` command."""

from __future__ import annotations

import os
import sys

from halocline.run.mpi import launcher, report


def main() -> int:
    """Run the command with the words of sys.argv; return its exit status.

    0 only where all went well, 2 where what was given cannot work, 130 after Ctrl-C, else 1. Where several
    ranks run the command, each error is told once.
    """
    started = launcher()
    words = sys.argv[1:]
    if started and started.rank and words[:1] != ["run"] and not {"-h", "--help"}.isdisjoint(words):
        return 0  # the first rank has it printed
    try:
        from halocline.cli.app import run

        return run(words)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:  # whoever read the output, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except BaseException as error:
        return report(error)


__all__ = ["main"]
